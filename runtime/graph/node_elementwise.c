/* Element-wise nodes: cast, GELU, residual, dropout. */
#include "runtime/graph/pass.h"

/* cast: x[b, ...] -> y[b, ...] of another floating type; its gradient is cast back. The graph inserts it before a node
 * that computes in another type, like autocast's aten::to. */

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

/* gelu: y = x/2 (1 + tanh(u)), PyTorch's approximate="tanh". */

static enum el_status gelu_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = graph->tensors[node->inputs[0]].shape;
    return EL_OK;
}

static int64_t count(const struct el_pass *pass, const struct el_node *node)
{
    return el_pass_get(pass)->batch * el_shape_count(&el_pass_get(pass)->graph->tensors[node->inputs[0]].shape);
}

static void gelu_forward(struct el_pass *pass, const struct el_node *node)
{
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_GELU_FORWARD,
                                        .views = {el_pass_input(pass, node, 0), el_pass_output(pass, node, 0)},
                                        .args.d = {count(pass, node)}});
}

/* In place if its input has no other gradient. */
static void gelu_backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_GELU_BACKWARD,
                              .views = {el_pass_output_grad(pass, node, 0), el_pass_input(pass, node, 0)},
                              .args.d = {count(pass, node)}};
    op.views[2] = op.views[0];
    if (el_pass_input_grad_hand_over(pass, node, 0)) {
        el_pass_emit(pass, node, &op);
        return;
    }
    if (!el_pass_input_grad_open(pass, node, 0, &op.views[2])) return;
    el_pass_emit(pass, node, &op);
    el_pass_input_grad_done(pass, node, 0, op.views[2]);
}

const struct el_node_type el_node_gelu = {.name = "gelu",
                                          .shape = gelu_shape,
                                          .forward = gelu_forward,
                                          .backward_inputs = gelu_backward_inputs,
                                          .keeps = EL_KEEPS_INPUT};

/* residual: x[b, ...], f[b, ...] -> y = x + f, in the wider type. Backward hands y's gradient over to f; x has the
 * same, or a copy, because other contributions are added to it. */

static const struct el_shape *shape_of(const struct el_graph *graph, const struct el_node *node, int i)
{
    return &graph->tensors[node->inputs[i]].shape;
}

static enum el_status residual_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = shape_of(graph, node, 0), *f = shape_of(graph, node, 1);
    if (el_shape_count(x) != el_shape_count(f))
        return el_fail(EL_ERR_INTERNAL, "%s: %lld elements and %lld", node->name, (long long)el_shape_count(x),
                       (long long)el_shape_count(f));
    *shape_p = *x;
    return EL_OK;
}

static bool is_of_one_type(const struct el_pass *pass, const struct el_node *node)
{
    const struct el_tensor *tensors = el_pass_get(pass)->graph->tensors;
    enum el_dtype dtype = tensors[node->outputs[0]].dtype;
    return tensors[node->inputs[0]].dtype == dtype && tensors[node->inputs[1]].dtype == dtype;
}

static void residual_forward(struct el_pass *pass, const struct el_node *node)
{
    if (is_of_one_type(pass, node)) {
        struct el_kernel_op op = {
            .op = EL_OP_ADD_ROW,
            .views = {el_pass_input(pass, node, 0), el_pass_input(pass, node, 1), el_pass_output(pass, node, 0)},
            .args.d = {1, count(pass, node)}};
        el_pass_emit(pass, node, &op);
        return;
    }
    for (int i = 0; i < 2; i++)
        el_pass_move(pass, node, el_pass_input(pass, node, i), node->inputs[i], el_pass_output(pass, node, 0),
                     node->outputs[0], i);
}

static void residual_backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    const struct el_view dy = el_pass_output_grad(pass, node, 0);
    struct el_view to;
    double acc;
    if (el_pass_input_grads_share(pass, node)) return;
    for (int i = 0; i < 2; i++) {
        if (i == 1 && el_pass_input_grad_hand_over(pass, node, 1)) return;
        if (el_pass_input_grad(pass, node, i, &to, &acc))
            el_pass_move(pass, node, dy, node->outputs[0], to, node->inputs[i], acc);
    }
}

const struct el_node_type el_node_residual = {.name = "residual",
                                              .shape = residual_shape,
                                              .forward = residual_forward,
                                              .backward_inputs = residual_backward_inputs,
                                              .takes = EL_TAKES_ANY};

/* dropout: y = x / (1 - rate) if kept, else 0. Backward draws the mask again instead of keeping it. */

static enum el_status dropout_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = graph->tensors[node->inputs[0]].shape;
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, struct el_view x, struct el_view y)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    for (struct el_stretch s = {0}; el_pass_next_stretch(pass, node->outputs[0], &s);) {
        struct el_kernel_op op = {
            .op = EL_OP_DROPOUT,
            .views = {x, y},
            .args = {.d = {s.n_samples, s.count, spec->sample_first + s.sample * spec->sample_stride,
                           spec->sample_stride, s.is_part ? s.count : 0, 0, s.first},
                     .s = {spec->training ? node->attributes.rate : 0},
                     .k = {spec->seed, (uint64_t)node->origin}}};
        el_pass_shift(pass, node, &op, 0, s.at);
        el_pass_shift(pass, node, &op, 1, s.at);
        el_pass_emit(pass, node, &op);
    }
}

static void dropout_forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0));
}

static void dropout_backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_view dx;
    if (!el_pass_input_grad_open(pass, node, 0, &dx)) return;
    emit(pass, node, el_pass_output_grad(pass, node, 0), dx);
    el_pass_input_grad_done(pass, node, 0, dx);
}

const struct el_node_type el_node_dropout = {.name = "dropout",
                                             .shape = dropout_shape,
                                             .forward = dropout_forward,
                                             .backward_inputs = dropout_backward_inputs,
                                             .reads_grad = true};
