/* concat: x0[b, n0], x1[b, n1], ... -> y[b, n0 + n1 + ...]. */
#include "runtime/graph/pass.h"

static int64_t width(const struct el_graph *graph, int tensor)
{
    return el_shape_count(&graph->tensors[tensor].shape);
}

static enum el_status shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    int64_t sum = 0;
    for (int i = 0; i < node->n_inputs; i++) sum += width(graph, node->inputs[i]);
    *shape_p = (struct el_shape){.n = 1, .d = {sum}};
    return EL_OK;
}

static void forward(struct el_pass *pass, const struct el_node *node)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    int64_t column = 0, all = width(spec->graph, node->outputs[0]);
    for (int i = 0; i < node->n_inputs; i++) {
        int64_t own = width(spec->graph, node->inputs[i]);
        struct el_kernel_op op = {.op = EL_OP_COPY_COLUMNS,
                                  .views = {el_pass_input(pass, node, i), el_pass_output(pass, node, 0)},
                                  .args.d = {spec->batch, own, own, all}};
        el_pass_shift(pass, node, &op, 1, column);
        el_pass_emit(pass, node, &op);
        column += own;
    }
}

static void backward_inputs(struct el_pass *pass, const struct el_node *node)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    int64_t column = 0, all = width(spec->graph, node->outputs[0]);
    for (int i = 0; i < node->n_inputs; i++) {
        int64_t own = width(spec->graph, node->inputs[i]);
        double acc;
        struct el_view dx;
        if (el_pass_input_grad(pass, node, i, &dx, &acc)) {
            struct el_kernel_op op = {.op = EL_OP_COPY_COLUMNS,
                                      .views = {el_pass_output_grad(pass, node, 0), dx},
                                      .args = {.d = {spec->batch, own, all, own}, .s = {acc}}};
            el_pass_shift(pass, node, &op, 0, column);
            el_pass_emit(pass, node, &op);
        }
        column += own;
    }
}

const struct el_node_type el_node_concat = {
    .name = "concat", .shape = shape, .forward = forward, .backward_inputs = backward_inputs};
