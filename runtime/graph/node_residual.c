/* residual: x[b, ...], f[b, ...] -> y = x + f. Backward f's gradient is y's own, handed over; x's is a copy of it,
 * since what comes to x by other ways is added there. Where their types differ y has the wider one. */
#include "runtime/graph/pass.h"

static const struct el_shape *shape_of(const struct el_graph *graph, const struct el_node *node, int i)
{
    return &graph->tensors[node->inputs[i]].shape;
}

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = shape_of(graph, node, 0), *f = shape_of(graph, node, 1);
    if (el_shape_count(x) != el_shape_count(f))
        return el_fail(EL_ERR_INTERNAL, "%s: %lld elements and %lld", node->name, (long long)el_shape_count(x),
                       (long long)el_shape_count(f));
    *shape_p = *x;
    return EL_OK;
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < 2; i++)
        el_pass_move(pass, node, el_pass_input(pass, node, i), node->inputs[i], el_pass_output(pass, node, 0),
                     node->outputs[0], i);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    const struct el_view dy = el_pass_output_grad(pass, node, 0);
    struct el_view to;
    double acc;
    for (int i = 0; i < 2; i++) {
        if (i == 1 && el_pass_input_grad_hand_over(pass, node, 1)) return;
        if (el_pass_input_grad(pass, node, i, &to, &acc))
            el_pass_move(pass, node, dy, node->outputs[0], to, node->inputs[i], acc);
    }
}

const struct el_node_type el_node_residual = {
    .name = "residual", .shape = shape, .forward = forward, .backward_inputs = backward_inputs, .takes = EL_TAKES_ANY};
