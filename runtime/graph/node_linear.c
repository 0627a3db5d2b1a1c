/* linear: x[b, i], w[o, i], bias[o] -> y[b, o], rectified if asked. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape, *w = &graph->params[node->params[0]].shape;
    if (el_shape_count(x) != w->d[1]) {
        return el_fail(EL_ERR_INTERNAL, "%s: %lld inputs for weights of %lld", node->name, (long long)el_shape_count(x),
                       (long long)w->d[1]);
    }
    *shape_p = (struct el_shape){.n = 1, .d = {w->d[0]}};
    return EL_OK;
}

static void sizes(struct el_pass *pass, const struct el_node *node, int64_t d[3])
{
    const struct el_shape *w = &el_pass_get(pass)->graph->params[node->params[0]].shape;
    d[0] = el_pass_get(pass)->batch;
    d[1] = w->d[1];
    d[2] = w->d[0];
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_LINEAR_FORWARD,
                              .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0),
                                        el_pass_param(pass, node, 1), el_pass_output(pass, node)}};
    sizes(pass, node, op.args.d);
    op.args.s[0] = node->attributes.relu;
    el_pass_emit(pass, node, &op);
}

static void backward_begin(struct el_pass *pass, const struct el_node *node)
{
    int64_t d[3];
    struct el_view dy = el_pass_output_grad(pass, node);
    if (!node->attributes.relu) return;
    sizes(pass, node, d);
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_RELU_BACKWARD,
                                        .views = {dy, el_pass_output(pass, node), dy},
                                        .args.d = {d[0] * d[2]}});
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_LINEAR_BACKWARD_WEIGHTS,
                              .views = {el_pass_input(pass, node, 0), el_pass_output_grad(pass, node)}};
    for (int i = 0; i < 2; i++) op.views[2 + i] = el_pass_param_grad(pass, node, i, &op.args.s[0]);
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_LINEAR_BACKWARD_DATA,
                              .views = {el_pass_output_grad(pass, node), el_pass_param(pass, node, 0)}};
    if (!el_pass_input_grad(pass, node, 0, &op.views[2], &op.args.s[0])) return;
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
}

static unsigned keeps(const struct el_node *node)
{
    return node->attributes.relu ? EL_KEEPS_INPUT_FOR_WEIGHTS | EL_KEEPS_OUTPUT : EL_KEEPS_INPUT_FOR_WEIGHTS;
}

const struct el_node_type el_node_linear = {.name = "linear",
                                            .shape = shape,
                                            .forward = forward,
                                            .backward_begin = backward_begin,
                                            .backward_inputs = backward_inputs,
                                            .backward_weights = backward_weights,
                                            .keeps = keeps,
                                            .last_param_first = true};
