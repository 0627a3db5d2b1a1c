/* layer_norm: x[b, ..., c], scale[c], shift[c] -> y, PyTorch's LayerNorm over each row of c. One kernel gives all
 * gradients. */
#include "runtime/graph/pass.h"

static const double EPS = 1e-5; /* default of PyTorch and GPT-2 */

static const struct el_shape *shape_of(const struct el_graph *graph, const struct el_node *node)
{
    return &graph->tensors[node->inputs[0]].shape;
}

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = shape_of(graph, node);
    int64_t width = x->d[x->n - 1], scales = graph->params[node->params[0]].shape.d[0];
    if (width != scales)
        return el_fail(EL_ERR_INTERNAL, "%s: rows of %lld for scales of %lld", node->name, (long long)width,
                       (long long)scales);
    *shape_p = *x;
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_shape *x = shape_of(el_pass_get(pass)->graph, node);
    op->args.d[1] = x->d[x->n - 1];
    op->args.d[0] = el_pass_get(pass)->batch * el_shape_count(x) / op->args.d[1];
    el_pass_emit(pass, node, op);
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node,
         &(struct el_kernel_op){.op = EL_OP_LAYER_NORM_FORWARD,
                                .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0),
                                          el_pass_param(pass, node, 1), el_pass_output(pass, node, 0),
                                          el_pass_kept(pass, node)},
                                .args.s = {EPS}});
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_LAYER_NORM_BACKWARD,
                              .views = {el_pass_output_grad(pass, node, 0), el_pass_input(pass, node, 0),
                                        el_pass_param(pass, node, 0), el_pass_kept(pass, node)}};
    struct el_view unwanted = {0};
    for (int i = 0; i < 2; i++) op.views[5 + i] = el_pass_param_grad(pass, node, i, &op.args.s[1]);
    if (!el_pass_input_grad(pass, node, 0, &op.views[4], &op.args.s[0])) {
        el_pass_input_grad_force(pass, node, 0, &unwanted);
        op.views[4] = unwanted;
    }
    emit(pass, node, &op);
    if (unwanted.buffer) el_pass_input_grad_done(pass, node, 0, unwanted);
}

static struct el_kept kept(const struct el_graph *graph, const struct el_node *node)
{
    const struct el_shape *x = shape_of(graph, node);
    return (struct el_kept){.dtype = EL_F32, .per_sample = 2 * el_shape_count(x) / x->d[x->n - 1]};
}

const struct el_node_type el_node_layer_norm = {.name = "layer_norm",
                                                .shape = shape,
                                                .forward = forward,
                                                .backward_inputs = backward_inputs,
                                                .keeps = EL_KEEPS_INPUT,
                                                .takes = EL_TAKES_FULL,
                                                .params_full = 3,
                                                .kept = kept};
