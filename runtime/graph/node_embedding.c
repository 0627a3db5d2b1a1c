/* embedding: ids[b, t] -> y[b, t, e] by rows of table[v, e], for any t. With some rows per device results are summed
 * over pieces; by tokens (graph.h) each gets 1/n of the sums. The gradient is dense, torch's default. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *ids = &graph->tensors[node->inputs[0]].shape;
    const struct el_shape *table = &graph->params[node->params[0]].shape;
    if (ids->n >= EL_SHAPE_MAX) return el_fail(EL_ERR_INTERNAL, "%s: ids of %d dimensions", node->name, ids->n);
    *shape_p = *ids;
    if (graph->by_tokens) shape_p->d[0] /= graph->n_pieces;
    shape_p->d[shape_p->n++] = table->d[1];
    return EL_OK;
}

static int64_t count(const struct el_pass *pass, const struct el_node *node)
{
    return el_pass_get(pass)->batch * el_shape_count(&el_pass_get(pass)->graph->tensors[node->outputs[0]].shape);
}

static void sizes(struct el_pass *pass, const struct el_node *node, int64_t d[5])
{
    const struct el_graph *graph = el_pass_get(pass)->graph;
    d[0] = el_pass_get(pass)->batch * el_shape_count(&graph->tensors[node->inputs[0]].shape);
    d[1] = graph->params[node->params[0]].shape.d[0];
    d[2] = graph->params[node->params[0]].shape.d[1];
    d[3] = graph->params[node->params[0]].slice.first;
    d[4] = graph->params[node->params[0]].slice.of;
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    const struct el_view y = el_pass_output(pass, node, 0);
    struct el_kernel_op op = {.op = EL_OP_EMBEDDING_FORWARD,
                              .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0),
                                        el_pass_sum_open(pass, node, y, count(pass, node))}};
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
    if (op.args.d[4]) el_pass_sum_done(pass, node, op.views[2], y, count(pass, node));
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    const struct el_view dy = el_pass_output_grad(pass, node, 0);
    struct el_kernel_op op = {
        .op = EL_OP_EMBEDDING_BACKWARD,
        .views = {el_pass_input(pass, node, 0), el_pass_whole_open(pass, node, dy, count(pass, node))}};
    op.views[2] = el_pass_param_grad(pass, node, 0, &op.args.s[0]);
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
    el_pass_whole_done(pass, op.views[1], dy);
}

const struct el_node_type el_node_embedding = {.name = "embedding",
                                               .shape = shape,
                                               .forward = forward,
                                               .backward_weights = backward_weights,
                                               .keeps = EL_KEEPS_INPUT_FOR_WEIGHTS};
