/* batch_norm: x[n, c], scale[c], shift[c], buffers mean[c] and variance[c] -> y[n, c]; n: batch and pixels. Training
 * normalises by the batch's statistics and updates the buffers; evaluation uses the buffers. A second input, the
 * residual, is added before the ReLU, so that the end of a residual block is one node; its gradient is this node's
 * masked one, handed over without a copy. One kernel gives all gradients. */
#include "runtime/graph/pass.h"

/* PyTorch's defaults. */
static const double EPS = 1e-5, MOMENTUM = 0.1;

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_tensor *x = &graph->tensors[node->inputs[0]];
    const struct el_shape *residual = node->n_inputs > 1 ? &graph->tensors[node->inputs[1]].shape : &x->shape;
    int64_t channels = x->shape.d[x->shape.n - 1], scales = graph->params[node->params[0]].shape.d[0];
    if (x->producer < 0) return el_fail(EL_ERR_INTERNAL, "%s: a layer must stand before it", node->name);
    if (channels != scales)
        return el_fail(EL_ERR_INTERNAL, "%s: %lld channels for scales of %lld", node->name, (long long)channels,
                       (long long)scales);
    if (el_shape_count(residual) != el_shape_count(&x->shape))
        return el_fail(EL_ERR_INTERNAL, "%s: a residual of %lld elements for %lld", node->name,
                       (long long)el_shape_count(residual), (long long)el_shape_count(&x->shape));
    *shape_p = x->shape;
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_shape *x = &el_pass_get(pass)->graph->tensors[node->inputs[0]].shape;
    op->args.d[1] = x->d[x->n - 1];
    op->args.d[0] = el_pass_get(pass)->batch * el_shape_count(x) / op->args.d[1];
    el_pass_emit(pass, node, op);
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    struct el_view x = el_pass_input(pass, node, 0), y = el_pass_output(pass, node, 0), residual = {0};
    struct el_view scale = el_pass_param(pass, node, 0), shift = el_pass_param(pass, node, 1);
    struct el_view mean = el_pass_buffer(pass, node, 0), variance = el_pass_buffer(pass, node, 1);
    double relu = node->attributes.relu;
    if (node->n_inputs > 1) residual = el_pass_input(pass, node, 1);
    if (el_pass_get(pass)->training)
        emit(pass, node,
             &(struct el_kernel_op){.op = EL_OP_BATCH_NORM_FORWARD,
                                    .views = {x, scale, shift, residual, mean, variance, y, el_pass_kept(pass, node)},
                                    .args.s = {EPS, MOMENTUM, relu}});
    else
        emit(pass, node,
             &(struct el_kernel_op){.op = EL_OP_BATCH_NORM_INFERENCE,
                                    .views = {x, scale, shift, residual, mean, variance, y},
                                    .args.s = {EPS, relu}});
}

/* Where the residual's gradient goes; no buffer: nowhere, or dy itself is handed over. */
static struct el_view residual_grad(struct el_pass *pass, const struct el_node *node, double *acc_p)
{
    struct el_view view = {0};
    if (node->n_inputs == 1) return view;
    if (el_pass_input_grad_hand_over(pass, node, 1))
        return node->attributes.relu ? el_pass_output_grad(pass, node, 0) : view;
    el_pass_input_grad(pass, node, 1, &view, acc_p);
    return view;
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_BATCH_NORM_BACKWARD,
                              .views = {el_pass_output_grad(pass, node, 0),
                                        el_pass_input(pass, node, 0),
                                        {0},
                                        el_pass_param(pass, node, 0),
                                        el_pass_kept(pass, node)}};
    if (node->attributes.relu) op.views[2] = el_pass_output(pass, node, 0);
    for (int i = 0; i < 2; i++) op.views[6 + i] = el_pass_param_grad(pass, node, i, &op.args.s[0]);
    op.views[8] = residual_grad(pass, node, &op.args.s[1]);
    el_pass_input_grad_force(pass, node, 0, &op.views[5]);
    emit(pass, node, &op);
    el_pass_input_grad_done(pass, node, 0, op.views[5]);
}

static struct el_kept kept(const struct el_graph *graph, const struct el_node *node)
{
    return (struct el_kept){.dtype = EL_F32, .fixed = 2 * graph->params[node->params[0]].shape.d[0]};
}

const struct el_node_type el_node_batch_norm = {.name = "batch_norm",
                                                .shape = shape,
                                                .forward = forward,
                                                .backward_inputs = backward_inputs,
                                                .keeps = EL_KEEPS_INPUT,
                                                .params_full = 3,
                                                .kept = kept};
