/* conv2d: x[b, h, w, c], weights[f, k, k, c] -> y[b, oh, ow, f]; stride and padding for both sides; no bias, because
 * batch norm follows. */
#include "runtime/graph/node_window.h"
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape, *w = &graph->params[node->params[0]].shape;
    if (x->d[2] != w->d[3])
        return el_fail(EL_ERR_INTERNAL, "%s: %lld channels for weights of %lld", node->name, (long long)x->d[2],
                       (long long)w->d[3]);
    return el_node_window_shape(node, x, w->d[1], w->d[0], shape_p);
}

static void emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_graph *graph = el_pass_get(pass)->graph;
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape, *w = &graph->params[node->params[0]].shape;
    const int64_t d[] = {el_pass_get(pass)->batch, x->d[0], x->d[1], x->d[2], w->d[0], w->d[1], node->attributes.stride,
                         node->attributes.pad};
    for (int i = 0; i < 8; i++) op->args.d[i] = d[i];
    op->args.k[0] = el_pass_param_layout(pass, node, 0) != NULL;
    el_pass_emit(pass, node, op);
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node,
         &(struct el_kernel_op){
             .op = EL_OP_CONV2D_FORWARD,
             .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0), el_pass_output(pass, node, 0)}});
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_CONV2D_BACKWARD_WEIGHTS,
                              .views = {el_pass_input(pass, node, 0), el_pass_output_grad(pass, node, 0)}};
    op.views[2] = el_pass_param_grad(pass, node, 0, &op.args.s[0]);
    emit(pass, node, &op);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_CONV2D_BACKWARD_DATA,
                              .views = {el_pass_output_grad(pass, node, 0), el_pass_param(pass, node, 0)}};
    if (!el_pass_input_grad(pass, node, 0, &op.views[2], &op.args.s[0])) return;
    emit(pass, node, &op);
}

const struct el_node_type el_node_conv2d = {.name = "conv2d",
                                            .shape = shape,
                                            .forward = forward,
                                            .backward_inputs = backward_inputs,
                                            .backward_weights = backward_weights,
                                            .keeps = EL_KEEPS_INPUT_FOR_WEIGHTS,
                                            .takes = EL_TAKES_BF16};
