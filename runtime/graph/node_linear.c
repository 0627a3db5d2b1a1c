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

static void backward(struct el_pass *pass, const struct el_node *node)
{
    int64_t d[3];
    sizes(pass, node, d);
    struct el_view dy = el_pass_output_grad(pass, node);
    if (node->attributes.relu) {
        el_pass_emit(pass, node,
                     &(struct el_kernel_op){.op = EL_OP_RELU_BACKWARD,
                                            .views = {dy, el_pass_output(pass, node), dy},
                                            .args.d = {d[0] * d[2]}});
    }
    double acc;
    struct el_view dx;
    struct el_view dw = el_pass_param_grad(pass, node, 0, &acc), dbias = el_pass_param_grad(pass, node, 1, &acc);
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_LINEAR_BACKWARD_WEIGHTS,
                                        .views = {el_pass_input(pass, node, 0), dy, dw, dbias},
                                        .args = {.d = {d[0], d[1], d[2]}, .s = {acc}}});
    if (!el_pass_input_grad(pass, node, 0, &dx, &acc)) return;
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_LINEAR_BACKWARD_DATA,
                                        .views = {dy, el_pass_param(pass, node, 0), dx},
                                        .args = {.d = {d[0], d[1], d[2]}, .s = {acc}}});
}

static unsigned keeps(const struct el_node *node)
{
    return node->attributes.relu ? EL_KEEPS_INPUT | EL_KEEPS_OUTPUT : EL_KEEPS_INPUT;
}

const struct el_node_type el_node_linear = {.name = "linear",
                                            .shape = shape,
                                            .forward = forward,
                                            .backward = backward,
                                            .keeps = keeps,
                                            .last_param_first = true};
