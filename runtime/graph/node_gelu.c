/* gelu: y = x/2 (1 + tanh(u)), PyTorch's with approximate="tanh". */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = graph->tensors[node->inputs[0]].shape;
    return EL_OK;
}

static int64_t count(const struct el_pass *pass, const struct el_node *node)
{
    return el_pass_get(pass)->batch * el_shape_count(&el_pass_get(pass)->graph->tensors[node->inputs[0]].shape);
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_GELU_FORWARD,
                                        .views = {el_pass_input(pass, node, 0), el_pass_output(pass, node, 0)},
                                        .args.d = {count(pass, node)}});
}

/* In place where nobody else gives its input a gradient. */
static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_GELU_BACKWARD,
                              .views = {el_pass_output_grad(pass, node, 0), el_pass_input(pass, node, 0)},
                              .args.d = {count(pass, node)}};
    op.views[2] = op.views[0];
    if (el_pass_input_grad_hand_over(pass, node, 0)) {
        el_pass_emit(pass, node, &op);
        return;
    }
    if (!el_pass_input_grad_open(pass, node, 0, &op.views[2])) return;
    el_pass_emit(pass, node, &op);
    el_pass_input_grad_done(pass, node, 0, op.views[2]);
}

const struct el_node_type el_node_gelu = {
    .name = "gelu", .shape = shape, .forward = forward, .backward_inputs = backward_inputs, .keeps = EL_KEEPS_INPUT};
