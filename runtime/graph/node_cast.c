/* cast: x[b, ...] -> y[b, ...] of another floating type; its gradient is cast back. The graph puts it before a node
 * that computes in another type than its input has, as autocast puts aten::to. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = graph->tensors[node->inputs[0]].shape;
    return EL_OK;
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    el_pass_move(pass, node, el_pass_input(pass, node, 0), node->inputs[0], el_pass_output(pass, node, 0),
                 node->outputs[0], 0);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    double acc;
    if (!el_pass_input_grad(pass, node, 0, &dx, &acc)) return;
    el_pass_move(pass, node, el_pass_output_grad(pass, node, 0), node->outputs[0], dx, node->inputs[0], acc);
}

const struct el_node_type el_node_cast = {
    .name = "cast", .shape = shape, .forward = forward, .backward_inputs = backward_inputs, .takes = EL_TAKES_ANY};
