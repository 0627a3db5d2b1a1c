/* shift: x[b, ...], row -> y = x + row, with a row per sample (positions) or per last side (a bias). By tokens
 * (graph.h) a device uses its own positions, and only these have a gradient there. */
#include "runtime/graph/pass.h"

static int64_t row_of(const struct el_graph *graph, const struct el_node *node)
{
    return el_shape_count(&graph->params[node->params[0]].shape);
}

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape;
    const int64_t row = row_of(graph, node), sample = el_shape_count(x) * (graph->by_tokens ? graph->n_pieces : 1);
    if (row != sample && row != x->d[x->n - 1])
        return el_fail(EL_ERR_INTERNAL, "%s: a row of %lld for %lld elements", node->name, (long long)row,
                       (long long)sample);
    *shape_p = *x;
    return EL_OK;
}

/* Views of the whole x, row and y (if any) are moved to one stretch. */
static void emit(struct el_pass *pass, const struct el_node *node, const struct el_stretch *s, struct el_kernel_op op)
{
    const int64_t row = row_of(el_pass_get(pass)->graph, node), n = s->n_samples * s->count;
    const bool bias = row < s->count;
    el_pass_shift(pass, node, &op, 0, s->at);
    el_pass_shift(pass, node, &op, 1, bias ? 0 : s->first);
    el_pass_shift(pass, node, &op, 2, s->at);
    op.args.d[1] = bias ? row : s->count;
    op.args.d[0] = n / op.args.d[1];
    el_pass_emit(pass, node, &op);
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    for (struct el_stretch s = {0}; el_pass_next_stretch(pass, node->inputs[0], &s);)
        emit(pass, node, &s,
             (struct el_kernel_op){
                 .op = EL_OP_ADD_ROW,
                 .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0), el_pass_output(pass, node, 0)}});
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    const struct el_graph *graph = el_pass_get(pass)->graph;
    double acc;
    const struct el_view grad = el_pass_param_grad(pass, node, 0, &acc);
    if (graph->by_tokens && acc == 0) { /* other devices' positions, or several stretches */
        el_pass_zero_grad(pass, node, grad, row_of(graph, node));
        acc = 1;
    }
    for (struct el_stretch s = {0}; el_pass_next_stretch(pass, node->inputs[0], &s);)
        emit(pass, node, &s,
             (struct el_kernel_op){
                 .op = EL_OP_SUM_ROWS, .views = {el_pass_output_grad(pass, node, 0), grad}, .args.s = {acc}});
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    const struct el_shape *x = &el_pass_get(pass)->graph->tensors[node->inputs[0]].shape;
    struct el_view dx;
    double acc;
    if (el_pass_input_grad_hand_over(pass, node, 0)) return;
    if (!el_pass_input_grad(pass, node, 0, &dx, &acc)) return;
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){
                     .op = EL_OP_COPY_COLUMNS,
                     .views = {el_pass_output_grad(pass, node, 0), dx},
                     .args = {.d = {el_pass_get(pass)->batch, el_shape_count(x), el_shape_count(x), el_shape_count(x)},
                              .s = {acc}}});
}

const struct el_node_type el_node_shift = {.name = "shift",
                                           .shape = shape,
                                           .forward = forward,
                                           .backward_inputs = backward_inputs,
                                           .backward_weights = backward_weights,
                                           .takes = EL_TAKES_FULL};
