/* Nodes that reduce several places to one value; a maximum's backward needs only its position:
 *     max_pool: x[b, h, w, c] -> y[b, oh, ow, c], each window's maximum; padding never wins
 *     max_time: x[b, t, f] -> y[b, f], the maximum over time
 *     mean_pool: x[b, h, w, c] -> y[b, c], the mean over an image */
#include "runtime/graph/node_window.h"
#include "runtime/graph/pass.h"

static const struct el_shape *input_shape(const struct el_graph *graph, const struct el_node *node)
{
    return &graph->tensors[node->inputs[0]].shape;
}

static enum el_status shape_pool(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = input_shape(graph, node);
    return el_node_window_shape(node, x, node->attributes.window, x->d[2], shape_p);
}

static enum el_status shape_time(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = (struct el_shape){.n = 1, .d = {input_shape(graph, node)->d[1]}};
    return EL_OK;
}

static void emit_max(struct el_pass *pass, const struct el_node *node, bool back, struct el_view a, struct el_view b,
                     struct el_view c)
{
    static const enum el_op_kind kinds[2][2] = {{EL_OP_MAX_POOL_FORWARD, EL_OP_MAX_POOL_BACKWARD},
                                                {EL_OP_MAX_TIME_FORWARD, EL_OP_MAX_TIME_BACKWARD}};
    const struct el_shape *x = input_shape(el_pass_get(pass)->graph, node);
    const struct el_node_attributes *at = &node->attributes;
    const bool time = node->type == &el_node_max_time;
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = kinds[time][back],
                                        .views = {a, b, c},
                                        .args.d = {el_pass_get(pass)->batch, x->d[0], x->d[1], time ? 0 : x->d[2],
                                                   at->window, at->stride, at->pad}});
}

static void forward_max(struct el_pass *pass, const struct el_node *node)
{
    emit_max(pass, node, false, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0), el_pass_kept(pass, node));
}

static void backward_max(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    emit_max(pass, node, true, el_pass_output_grad(pass, node, 0), el_pass_kept(pass, node), dx);
    el_pass_input_grad_done(pass, node, 0, dx);
}

static struct el_kept kept(const struct el_graph *graph, const struct el_node *node)
{
    return (struct el_kept){.dtype = EL_I32, .per_sample = el_shape_count(&graph->tensors[node->outputs[0]].shape)};
}

const struct el_node_type el_node_max_pool = {
    .name = "max_pool", .shape = shape_pool, .forward = forward_max, .backward_inputs = backward_max, .kept = kept};
const struct el_node_type el_node_max_time = {
    .name = "max_time", .shape = shape_time, .forward = forward_max, .backward_inputs = backward_max, .kept = kept};

static enum el_status shape_mean(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = (struct el_shape){.n = 1, .d = {input_shape(graph, node)->d[2]}};
    return EL_OK;
}

static void emit_mean(struct el_pass *pass, const struct el_node *node, enum el_op_kind kind, struct el_view from,
                      struct el_view to, double acc)
{
    const struct el_shape *x = input_shape(el_pass_get(pass)->graph, node);
    el_pass_emit(
        pass, node,
        &(struct el_kernel_op){.op = kind,
                               .views = {from, to},
                               .args = {.d = {el_pass_get(pass)->batch, x->d[0] * x->d[1], x->d[2]}, .s = {acc}}});
}

static void forward_mean(struct el_pass *pass, const struct el_node *node)
{
    emit_mean(pass, node, EL_OP_MEAN_POOL_FORWARD, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0), 0);
}

static void backward_mean(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    double acc;
    if (el_pass_input_grad(pass, node, 0, &dx, &acc))
        emit_mean(pass, node, EL_OP_MEAN_POOL_BACKWARD, el_pass_output_grad(pass, node, 0), dx, acc);
}

const struct el_node_type el_node_mean_pool = {
    .name = "mean_pool", .shape = shape_mean, .forward = forward_mean, .backward_inputs = backward_mean};
