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
    for (struct el_stretch s = {0}; el_pass_next_stretch(pass, node->outputs[0], &s);) {
        struct el_kernel_op op = {
            .op = EL_OP_DROPOUT,
            .views = {x, y},
            .args = {.d = {s.n_samples, s.count, spec->sample_first + s.sample * spec->sample_stride,
                           spec->sample_stride, s.is_part ? s.count : 0, 0, s.first},
                     .s = {spec->training ? node->attributes.rate : 0},
                     .k = {spec->seed, (uint64_t)node->origin}}};
        el_pass_shift(pass, node, &op, 0, s.at);
        el_pass_shift(pass, node, &op, 1, s.at);
        el_pass_emit(pass, node, &op);
    }
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
