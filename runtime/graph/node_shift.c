/* shift: x[b, ...], row -> y = x + row, where the row has a sample's elements (positions), or those of its last side (a
 * bias). */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape;
    const int64_t row = el_shape_count(&graph->params[node->params[0]].shape);
    if (row != el_shape_count(x) && row != x->d[x->n - 1])
        return el_fail(EL_ERR_INTERNAL, "%s: a row of %lld for %lld elements", node->name, (long long)row,
                       (long long)el_shape_count(x));
    *shape_p = *x;
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const int64_t row = el_shape_count(&spec->graph->params[node->params[0]].shape);
    op->args.d[0] = spec->batch * el_shape_count(&spec->graph->tensors[node->inputs[0]].shape) / row;
    op->args.d[1] = row;
    el_pass_emit(pass, node, op);
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node,
         &(struct el_kernel_op){
             .op = EL_OP_ADD_ROW,
             .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0), el_pass_output(pass, node, 0)}});
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_SUM_ROWS, .views = {el_pass_output_grad(pass, node, 0)}};
    op.views[1] = el_pass_param_grad(pass, node, 0, &op.args.s[0]);
    emit(pass, node, &op);
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    const struct el_shape *x = &el_pass_get(pass)->graph->tensors[node->inputs[0]].shape;
    struct el_view dx;
    double acc;
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
