/* Layers with weights and a bias, optionally rectified:
 *     linear: x[b, i], w[o, i], bias[o] or none -> y[b, o];  x[b, l, i] -> y[b, l, o] for any l, as PyTorch's; several
 *             matrices of the same inputs may be one: w[3, o, i] -> y[b, l, 3 o]
 *     conv1d: x[b, l, c], w[f, k, c], bias[f] -> y[b, l-k+1, f]
 * A piece of a linear layer cut by outputs takes all inputs, whose gradients are summed over pieces; cut by inputs it
 * has partial outputs, which are summed before the bias is added (Shoeybi et al., "Megatron-LM", 2019). By tokens
 * (graph.h) the former gathers its inputs, again in backward, and keeps 1/n; in the latter each piece gets 1/n of the
 * sums, and gathers their gradients. */
#include "runtime/graph/pass.h"

static const struct el_shape *input_shape(const struct el_graph *graph, const struct el_node *node)
{
    return &graph->tensors[node->inputs[0]].shape;
}

static const struct el_shape *weights_shape(const struct el_graph *graph, const struct el_node *node)
{
    return &graph->params[node->params[0]].shape;
}

static enum el_status shape_linear(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = input_shape(graph, node), *w = weights_shape(graph, node);
    const int64_t inputs = w->d[w->n - 1], outputs = el_shape_count(w) / inputs;
    if ((x->n == 2 || el_shape_count(x) != inputs) && x->d[x->n - 1] == inputs) { /* also of one token */
        *shape_p = *x;
        shape_p->d[x->n - 1] = outputs;
        if (graph->by_tokens && node->attributes.across == EL_ACROSS_OUTPUTS) shape_p->d[0] *= graph->n_pieces;
        if (graph->by_tokens && node->attributes.across == EL_ACROSS_INPUTS) shape_p->d[0] /= graph->n_pieces;
        return EL_OK;
    }
    if (el_shape_count(x) != inputs) {
        return el_fail(EL_ERR_INTERNAL, "%s: %lld inputs for weights of %lld", node->name, (long long)el_shape_count(x),
                       (long long)inputs);
    }
    *shape_p = (struct el_shape){.n = 1, .d = {outputs}};
    return EL_OK;
}

static enum el_status shape_conv1d(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = input_shape(graph, node), *w = weights_shape(graph, node);
    if (x->d[0] < w->d[1]) {
        return el_fail(EL_ERR_INVALID, "%s: a window of %lld words does not fit a sentence of %lld; give --seq more",
                       node->name, (long long)w->d[1], (long long)x->d[0]);
    }
    *shape_p = (struct el_shape){.n = 2, .d = {x->d[0] - w->d[1] + 1, w->d[0]}};
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, enum el_op_kind linear, enum el_op_kind conv1d,
                 struct el_kernel_op *op)
{
    const struct el_graph *graph = el_pass_get(pass)->graph;
    const struct el_shape *x = input_shape(graph, node), *w = weights_shape(graph, node);
    const bool is_linear = node->type == &el_node_linear;
    const int64_t b = el_pass_get(pass)->batch;
    const int64_t inputs = w->d[w->n - 1], outputs = el_shape_count(w) / inputs;
    const int64_t parts = graph->by_tokens && node->attributes.across == EL_ACROSS_OUTPUTS ? graph->n_pieces : 1;
    const int64_t sizes[2][5] = {{b, x->d[0], x->d[1], w->d[0], w->d[1]},
                                 {parts * b * el_shape_count(x) / inputs, inputs, outputs}};
    op->op = is_linear ? linear : conv1d;
    for (int i = 0; i < 5; i++) op->args.d[i] = sizes[is_linear][i];
    el_pass_emit(pass, node, op);
}

static int64_t count_of(const struct el_pass *pass, int tensor)
{
    return el_pass_get(pass)->batch * el_shape_count(&el_pass_get(pass)->graph->tensors[tensor].shape);
}

/* The layer's whole input, of which a part may be here. */
static struct el_view open_input(struct el_pass *pass, const struct el_node *node)
{
    const struct el_view x = el_pass_input(pass, node, 0);
    if (node->attributes.across != EL_ACROSS_OUTPUTS) return x;
    return el_pass_whole_open(pass, node, x, count_of(pass, node->inputs[0]));
}

static void forward_inputs_cut(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_graph *graph = el_pass_get(pass)->graph;
    const struct el_view bias = op->views[2], y = op->views[3];
    const int64_t n = el_shape_count(&graph->params[node->params[1]].shape), count = count_of(pass, node->outputs[0]);
    op->views[2] = (struct el_view){0};
    op->args.s[0] = 0;
    op->views[3] = el_pass_sum_open(pass, node, y, count);
    emit(pass, node, EL_OP_LINEAR_FORWARD, EL_OP_CONV1D_FORWARD, op);
    el_pass_sum_done(pass, node, op->views[3], y, count);
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_ADD_ROW, .views = {y, bias, y}, .args.d = {count / n, n}});
    if (node->attributes.relu) /* y > 0 ? y : 0 */
        el_pass_emit(pass, node,
                     &(struct el_kernel_op){.op = EL_OP_RELU_BACKWARD, .views = {y, y, y}, .args.d = {count}});
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {
        .views = {open_input(pass, node), el_pass_param(pass, node, 0), {0}, el_pass_output(pass, node, 0)},
        .args.s = {node->attributes.relu}};
    if (node->n_params > 1) op.views[2] = el_pass_param(pass, node, 1);
    if (node->attributes.across == EL_ACROSS_INPUTS)
        forward_inputs_cut(pass, node, &op);
    else
        emit(pass, node, EL_OP_LINEAR_FORWARD, EL_OP_CONV1D_FORWARD, &op);
    el_pass_whole_done(pass, op.views[0], el_pass_input(pass, node, 0));
}

/* Cut by outputs: sums input gradients during the weights' gradients. */
static void begin_input_sums(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.views = {el_pass_output_grad(pass, node, 0), el_pass_param(pass, node, 0)}};
    const int64_t count = count_of(pass, node->inputs[0]);
    struct el_view dx;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    op.views[2] = el_pass_sum_open(pass, node, dx, count);
    emit(pass, node, EL_OP_LINEAR_BACKWARD_DATA, EL_OP_CONV1D_BACKWARD_DATA, &op);
    el_pass_sum_begin(pass, node, op.views[2], dx, count);
}

static void backward_begin(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dy = el_pass_output_grad(pass, node, 0);
    if (node->attributes.relu)
        el_pass_emit(pass, node,
                     &(struct el_kernel_op){.op = EL_OP_RELU_BACKWARD,
                                            .views = {dy, el_pass_output(pass, node, 0), dy},
                                            .args.d = {count_of(pass, node->outputs[0])}});
    if (node->attributes.across == EL_ACROSS_INPUTS) el_pass_output_grad_whole(pass, node, 0);
    if (node->attributes.across == EL_ACROSS_OUTPUTS) begin_input_sums(pass, node);
}

static void backward_weights(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.views = {open_input(pass, node), el_pass_output_grad(pass, node, 0)}};
    for (int i = 0; i < node->n_params; i++) op.views[2 + i] = el_pass_param_grad(pass, node, i, &op.args.s[0]);
    emit(pass, node, EL_OP_LINEAR_BACKWARD_WEIGHTS, EL_OP_CONV1D_BACKWARD_WEIGHTS, &op);
    el_pass_whole_done(pass, op.views[0], el_pass_input(pass, node, 0));
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.views = {el_pass_output_grad(pass, node, 0), el_pass_param(pass, node, 0)}};
    const struct el_view sum = el_pass_sum_end(pass);
    if (sum.buffer)
        el_pass_input_grad_done(pass, node, 0, sum);
    else if (node->attributes.across != EL_ACROSS_OUTPUTS &&
             el_pass_input_grad(pass, node, 0, &op.views[2], &op.args.s[0]))
        emit(pass, node, EL_OP_LINEAR_BACKWARD_DATA, EL_OP_CONV1D_BACKWARD_DATA, &op);
}

const struct el_node_type el_node_linear = {.name = "linear",
                                            .shape = shape_linear,
                                            .forward = forward,
                                            .backward_begin = backward_begin,
                                            .backward_inputs = backward_inputs,
                                            .backward_weights = backward_weights,
                                            .keeps = EL_KEEPS_INPUT_FOR_WEIGHTS,
                                            .takes = EL_TAKES_BF16,
                                            .last_param_first = true,
                                            .reads_grad = true};
const struct el_node_type el_node_conv1d = {.name = "conv1d",
                                            .shape = shape_conv1d,
                                            .forward = forward,
                                            .backward_begin = backward_begin,
                                            .backward_inputs = backward_inputs,
                                            .backward_weights = backward_weights,
                                            .keeps = EL_KEEPS_INPUT_FOR_WEIGHTS,
                                            .takes = EL_TAKES_BF16};
