/* dropout: y = x / (1 - rate) where kept, else 0. The mask is drawn again in backward, by meaning, so nothing is kept
 * for it. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = graph->tensors[node->inputs[0]].shape;
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, struct el_view x, struct el_view y)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const struct el_shape *shape = &spec->graph->tensors[node->outputs[0]].shape, *cut = node->slice.of ? shape : NULL;
    int64_t width = el_shape_count(shape), run = cut ? el_slice_run(cut, &node->slice) : 0;
    int64_t next = cut ? el_slice_at(cut, &node->slice, run) : 0, first = cut ? el_slice_at(cut, &node->slice, 0) : 0;
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_DROPOUT,
                                        .views = {x, y},
                                        .args = {.d = {spec->batch, width, spec->sample_first, spec->sample_stride, run,
                                                       next - first, first},
                                                 .s = {spec->training ? node->attributes.rate : 0},
                                                 .k = {spec->seed, (uint64_t)node->origin}}});
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0));
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    emit(pass, node, el_pass_output_grad(pass, node, 0), dx);
    el_pass_input_grad_done(pass, node, 0, dx);
}

const struct el_node_type el_node_dropout = {
    .name = "dropout", .shape = shape, .forward = forward, .backward_inputs = backward_inputs};
