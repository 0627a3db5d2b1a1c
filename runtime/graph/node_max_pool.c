/* max_pool: x[b, h, w, c] -> y[b, oh, ow, c], the maximum of each window, by stride and padding, which never wins.
 * Backward needs only where it was. */
#include "runtime/graph/node_window.h"
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape;
    return el_node_window_shape(node, x, node->attributes.window, x->d[2], shape_p);
}

static void emit(struct el_pass *pass, const struct el_node *node, enum el_op_kind kind, struct el_view a,
                 struct el_view b, struct el_view c)
{
    const struct el_shape *x = &el_pass_get(pass)->graph->tensors[node->inputs[0]].shape;
    const struct el_node_attributes *attributes = &node->attributes;
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = kind,
                                        .views = {a, b, c},
                                        .args.d = {el_pass_get(pass)->batch, x->d[0], x->d[1], x->d[2],
                                                   attributes->window, attributes->stride, attributes->pad}});
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node, EL_OP_MAX_POOL_FORWARD, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0),
         el_pass_kept(pass, node));
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    emit(pass, node, EL_OP_MAX_POOL_BACKWARD, el_pass_output_grad(pass, node, 0), el_pass_kept(pass, node), dx);
    el_pass_input_grad_done(pass, node, 0, dx);
}

static struct el_kept kept(const struct el_graph *graph, const struct el_node *node)
{
    return (struct el_kept){.dtype = EL_I32, .per_sample = el_shape_count(&graph->tensors[node->outputs[0]].shape)};
}

const struct el_node_type el_node_max_pool = {
    .name = "max_pool", .shape = shape, .forward = forward, .backward_inputs = backward_inputs, .kept = kept};
