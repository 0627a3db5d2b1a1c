/* max_time: x[b, t, f] -> y[b, f], the maximum over time. Backward needs only where it was. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = (struct el_shape){.n = 1, .d = {graph->tensors[node->inputs[0]].shape.d[1]}};
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, enum el_op_kind kind, struct el_view a,
                 struct el_view b, struct el_view c)
{
    const struct el_shape *x = &el_pass_get(pass)->graph->tensors[node->inputs[0]].shape;
    el_pass_emit(
        pass, node,
        &(struct el_kernel_op){.op = kind, .views = {a, b, c}, .args.d = {el_pass_get(pass)->batch, x->d[0], x->d[1]}});
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node, EL_OP_MAX_TIME_FORWARD, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0),
         el_pass_kept(pass, node));
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    emit(pass, node, EL_OP_MAX_TIME_BACKWARD, el_pass_output_grad(pass, node, 0), el_pass_kept(pass, node), dx);
    el_pass_input_grad_done(pass, node, 0, dx);
}

static struct el_kept kept(const struct el_graph *graph, const struct el_node *node)
{
    return (struct el_kept){.dtype = EL_I32, .per_sample = graph->tensors[node->inputs[0]].shape.d[1]};
}

const struct el_node_type el_node_max_time = {
    .name = "max_time", .shape = shape, .forward = forward, .backward_inputs = backward_inputs, .kept = kept};
