/* mean_pool: x[b, h, w, c] -> y[b, c], the mean over all places of an image. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = (struct el_shape){.n = 1, .d = {graph->tensors[node->inputs[0]].shape.d[2]}};
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, enum el_op_kind kind, struct el_view from,
                 struct el_view to, double acc)
{
    const struct el_shape *x = &el_pass_get(pass)->graph->tensors[node->inputs[0]].shape;
    el_pass_emit(
        pass, node,
        &(struct el_kernel_op){.op = kind,
                               .views = {from, to},
                               .args = {.d = {el_pass_get(pass)->batch, x->d[0] * x->d[1], x->d[2]}, .s = {acc}}});
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node, EL_OP_MEAN_POOL_FORWARD, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0), 0);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    double acc;
    if (el_pass_input_grad(pass, node, 0, &dx, &acc))
        emit(pass, node, EL_OP_MEAN_POOL_BACKWARD, el_pass_output_grad(pass, node, 0), dx, acc);
}

const struct el_node_type el_node_mean_pool = {
    .name = "mean_pool", .shape = shape, .forward = forward, .backward_inputs = backward_inputs};
