/* embedding: ids[b, t] -> y[b, t, e] by rows of table[v, e], for any t. Where the device has some of the rows, what it
 * finds is summed over the pieces. Its gradient is dense, as torch's is unless
 * told otherwise. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *ids = &graph->tensors[node->inputs[0]].shape;
    const struct el_shape *table = &graph->params[node->params[0]].shape;
    if (ids->n >= EL_SHAPE_MAX) return el_fail(EL_ERR_INTERNAL, "%s: ids of %d dimensions", node->name, ids->n);
    *shape_p = *ids;
    shape_p->d[shape_p->n++] = table->d[1];
    return EL_OK;
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
    struct el_kernel_op op = {
        .op = EL_OP_EMBEDDING_FORWARD,
        .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0), el_pass_output(pass, node, 0)}};
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
    if (op.args.d[4])
        el_pass_communicate(pass, node, EL_AXIS_TENSOR,
                            &(struct el_comm_op){.verb = EL_COMM_ALL_REDUCE,
                                                 .count = (size_t)(op.args.d[0] * op.args.d[2]),
                                                 .data = op.views[2]});
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_EMBEDDING_BACKWARD,
                              .views = {el_pass_input(pass, node, 0), el_pass_output_grad(pass, node, 0)}};
    op.views[2] = el_pass_param_grad(pass, node, 0, &op.args.s[0]);
    sizes(pass, node, op.args.d);
    el_pass_emit(pass, node, &op);
}

const struct el_node_type el_node_embedding = {.name = "embedding",
                                               .shape = shape,
                                               .forward = forward,
                                               .backward_weights = backward_weights,
                                               .keeps = EL_KEEPS_INPUT_FOR_WEIGHTS};
