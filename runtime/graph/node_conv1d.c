/* conv1d: x[b, l, c], w[f, k, c], bias[f] -> y[b, l-k+1, f], rectified if asked. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape, *w = &graph->params[node->params[0]].shape;
    if (x->d[0] < w->d[1]) {
        return el_fail(EL_ERR_INVALID, "%s: a window of %lld words does not fit a sentence of %lld; give --seq more",
                       node->name, (long long)w->d[1], (long long)x->d[0]);
    }
    *shape_p = (struct el_shape){.n = 2, .d = {x->d[0] - w->d[1] + 1, w->d[0]}};
    return EL_OK;
}

static void sizes(struct el_pass *pass, const struct el_node *node, int64_t d[5])
{
    const struct el_graph *graph = el_pass_get(pass)->graph;
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape, *w = &graph->params[node->params[0]].shape;
    d[0] = el_pass_get(pass)->batch;
    d[1] = x->d[0];
    d[2] = x->d[1];
    d[3] = w->d[0];
    d[4] = w->d[1];
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_CONV1D_FORWARD,
                              .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0),
                                        el_pass_param(pass, node, 1), el_pass_output(pass, node)}};
    sizes(pass, node, op.args.d);
    op.args.s[0] = node->attributes.relu;
    el_pass_emit(pass, node, &op);
}

static void backward_begin(struct el_pass *pass, const struct el_node *node)
{
    int64_t d[5];
    struct el_view dy = el_pass_output_grad(pass, node);
    if (!node->attributes.relu) return;
    sizes(pass, node, d);
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_RELU_BACKWARD,
                                        .views = {dy, el_pass_output(pass, node), dy},
                                        .args.d = {d[0] * (d[1] - d[4] + 1) * d[3]}});
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_CONV1D_BACKWARD_WEIGHTS,
                              .views = {el_pass_input(pass, node, 0), el_pass_output_grad(pass, node)}};
    for (int i = 0; i < 2; i++) op.views[2 + i] = el_pass_param_grad(pass, node, i, &op.args.s[0]);
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_CONV1D_BACKWARD_DATA,
                              .views = {el_pass_output_grad(pass, node), el_pass_param(pass, node, 0)}};
    if (!el_pass_input_grad(pass, node, 0, &op.views[2], &op.args.s[0])) return;
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
}

static unsigned keeps(const struct el_node *node)
{
    return node->attributes.relu ? EL_KEEPS_INPUT_FOR_WEIGHTS | EL_KEEPS_OUTPUT : EL_KEEPS_INPUT_FOR_WEIGHTS;
}

const struct el_node_type el_node_conv1d = {.name = "conv1d",
                                            .shape = shape,
                                            .forward = forward,
                                            .backward_begin = backward_begin,
                                            .backward_inputs = backward_inputs,
                                            .backward_weights = backward_weights,
                                            .keeps = keeps};
