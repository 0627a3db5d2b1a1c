/* residual: x[b, ...], f[b, ...] -> y = x + f. Backward f's gradient is y's own, handed over; x's is a copy of it,
 * since what comes to x by other ways is added there. */
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

/* y[n] (+)= x */
static void copy(struct el_pass *pass, const struct el_node *node, struct el_view x, struct el_view y, double acc)
{
    const int64_t rows = el_pass_get(pass)->batch, n = el_shape_count(shape_of(el_pass_get(pass)->graph, node, 0));
    el_pass_emit(
        pass, node,
        &(struct el_kernel_op){.op = EL_OP_COPY_COLUMNS, .views = {x, y}, .args = {.d = {rows, n, n, n}, .s = {acc}}});
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < 2; i++) copy(pass, node, el_pass_input(pass, node, i), el_pass_output(pass, node, 0), i);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    const struct el_view dy = el_pass_output_grad(pass, node, 0);
    struct el_view to;
    double acc;
    if (el_pass_input_grad(pass, node, 0, &to, &acc)) copy(pass, node, dy, to, acc);
    if (el_pass_input_grad_hand_over(pass, node, 1)) return;
    if (el_pass_input_grad(pass, node, 1, &to, &acc)) copy(pass, node, dy, to, acc);
}

const struct el_node_type el_node_residual = {
    .name = "residual", .shape = shape, .forward = forward, .backward_inputs = backward_inputs};
