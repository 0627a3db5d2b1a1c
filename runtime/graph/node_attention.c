/* attention: qkv[b, t, 3 e] -> y[b, t, e], causal self-attention by heads of e / heads values, in one op. It keeps a
 * number per row and head instead of t x t shares; on GPUs the workspace has one sample's shares. */
#include "runtime/graph/pass.h"

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape;
    const int64_t heads = node->attributes.heads;
    if (x->n != 2 || heads < 1 || x->d[1] % (3 * heads))
        return el_fail(EL_ERR_INVALID,
                       "%s: %lld values do not divide evenly among %lld heads: give --heads that divide "
                       "--embed",
                       node->name, (long long)x->d[x->n - 1] / 3, (long long)heads);
    *shape_p = (struct el_shape){.n = 2, .d = {x->d[0], x->d[1] / 3}};
    return EL_OK;
}

static void emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_shape *y = &el_pass_get(pass)->graph->tensors[node->outputs[0]].shape;
    const int64_t heads = node->attributes.heads;
    op->args.d[0] = el_pass_get(pass)->batch;
    op->args.d[1] = y->d[0];
    op->args.d[2] = heads;
    op->args.d[3] = y->d[1] / heads;
    el_pass_emit(pass, node, op);
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    emit(pass, node,
         &(struct el_kernel_op){
             .op = EL_OP_ATTENTION_FORWARD,
             .views = {el_pass_input(pass, node, 0), el_pass_output(pass, node, 0), el_pass_kept(pass, node)}});
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {
        .op = EL_OP_ATTENTION_BACKWARD,
        .views = {el_pass_output_grad(pass, node, 0), el_pass_input(pass, node, 0), el_pass_kept(pass, node)}};
    if (!el_pass_input_grad_open(pass, node, 0, &op.views[3])) return;
    emit(pass, node, &op);
    el_pass_input_grad_done(pass, node, 0, op.views[3]);
}

static struct el_kept kept(const struct el_graph *graph, const struct el_node *node)
{
    const struct el_shape *x = &graph->tensors[node->inputs[0]].shape;
    return (struct el_kept){.dtype = EL_F32, .per_sample = node->attributes.heads * x->d[0]};
}

const struct el_node_type el_node_attention = {.name = "attention",
                                               .shape = shape,
                                               .forward = forward,
                                               .backward_inputs = backward_inputs,
                                               .keeps = EL_KEEPS_INPUT,
                                               .takes = EL_TAKES_BF16,
                                               .kept = kept};
