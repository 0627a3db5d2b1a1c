/* A mixture of experts, for tokens x[b, t, c] of which each goes to k of e experts:
 *
 *     logits  = linear(x)                                  the router
 *     weights, place, counts = route(logits)               which experts, and where the rows of each are
 *     rows, scale = dispatch(x, weights, place, counts)    a row for each choice, by expert
 *     h = grouped(rows, counts), a = swiglu(h, scale, counts), y = grouped(a, counts)
 *     combine(y, place, counts)                            a token's rows are summed
 *
 * A row's weight is applied before the last product, as by Megatron-LM, so that backward needs no rows but those at the
 * expert. With experts over ranks (EL_AXIS_EXPERT) dispatch and combine are all-to-alls: rows have a part for each rank
 * with room for all that may come, and counts (of the step's data) say how many are used; docs/architecture.md. Nothing
 * depends on other samples or on the number of ranks: which choices are dropped is decided within a sample. */
#include <math.h>

#include "runtime/graph/pass.h"

static const struct el_shape *shape_in(const struct el_graph *graph, const struct el_node *node, int i)
{
    return &graph->tensors[node->inputs[i]].shape;
}

static int64_t ranks_of(const struct el_graph *graph)
{
    return graph->n_expert_ranks > 1 ? graph->n_expert_ranks : 1;
}

/* How tokens are sent on purpose; NULL: by the router. */
static const struct el_routing *routing_of(const struct el_graph *graph)
{
    return graph->lent_routing ? graph->lent_routing : graph->routing;
}

static int64_t own_experts(const struct el_graph *graph, const struct el_node *node)
{
    return node->attributes.experts / ranks_of(graph);
}

/* A sample's rows for one rank, at most. */
static int64_t rows_for_rank(const struct el_graph *graph, const struct el_node *node, int64_t tokens)
{
    const int64_t own = own_experts(graph, node), k = node->attributes.choices, most = k < own ? k : own;
    const int64_t taken = own * node->attributes.capacity;
    return node->attributes.capacity && taken < tokens * most ? taken : tokens * most;
}

static int64_t rows_of(const struct el_graph *graph, const struct el_node *node, int64_t tokens)
{
    return ranks_of(graph) * rows_for_rank(graph, node, tokens);
}

/* Own counts, and with several ranks those of what comes. */
static enum el_status route_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shapes)
{
    const struct el_shape *logits = shape_in(graph, node, 0);
    const int64_t tokens = logits->d[0], k = node->attributes.choices, e = node->attributes.experts;
    if (logits->n != 2 || logits->d[1] != e || k < 1 || k > e)
        return el_fail(EL_ERR_INTERNAL, "%s: %lld of %lld experts", node->name, (long long)k, (long long)e);
    shapes[0] = shapes[1] = (struct el_shape){.n = 2, .d = {tokens, k}};
    shapes[2] = (struct el_shape){.n = 1, .d = {ranks_of(graph) > 1 ? 2 * e : e}};
    return EL_OK;
}

static void route_sizes(const struct el_pass *pass, const struct el_node *node, int64_t d[4])
{
    d[0] = el_pass_get(pass)->batch;
    d[1] = shape_in(el_pass_get(pass)->graph, node, 0)->d[0];
    d[2] = node->attributes.experts;
    d[3] = node->attributes.choices;
}

static void choose(struct el_pass *pass, const struct el_node *node)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const struct el_routing *routing = spec->training ? routing_of(spec->graph) : NULL;
    struct el_kernel_op op = {
        .op = EL_OP_ROUTE_FORWARD,
        .views = {el_pass_input(pass, node, 0), {0}, el_pass_output(pass, node, 0), el_pass_kept(pass, node)},
        .args = {.s = {routing && routing->balanced}, .k = {spec->seed, (uint64_t)node->attributes.layer}}};
    route_sizes(pass, node, op.args.d);
    op.args.d[4] = spec->sample_first;
    op.args.d[5] = spec->sample_stride;
    if (routing && routing->table) {
        const bool wide = spec->dtype == EL_F64;
        const size_t bytes = (size_t)(routing->rows * routing->experts) * el_dtype_bytes(spec->dtype);
        op.args.d[6] = routing->rows;
        op.views[1] = el_pass_scratch(pass, bytes, "routing");
        el_pass_bring(pass, node, wide ? (const void *)routing->table : routing->single, bytes, op.views[1]);
    }
    el_pass_emit(pass, node, &op);
    el_pass_free(pass, op.views[1]);
}

static struct el_view after(const struct el_pass *pass, const struct el_node *node, struct el_view counts)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    if (ranks_of(spec->graph) > 1) counts.offset += (size_t)(spec->batch * node->attributes.experts) * sizeof(int32_t);
    return counts;
}

static void route_forward(struct el_pass *pass, const struct el_node *node)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const int64_t ranks = ranks_of(spec->graph), tokens = shape_in(spec->graph, node, 0)->d[0];
    const struct el_view counts = el_pass_output(pass, node, 2);
    struct el_kernel_op op = {
        .op = EL_OP_ROUTE_PLACE,
        .views = {el_pass_kept(pass, node), el_pass_output(pass, node, 1), counts, el_pass_routed(pass)}};
    if (ranks > 1) op.views[4] = after(pass, node, counts); /* what a muted communicator leaves there are counts */
    choose(pass, node);
    route_sizes(pass, node, op.args.d);
    op.args.d[4] = ranks;
    op.args.d[5] = spec->batch * rows_of(spec->graph, node, tokens);
    op.args.d[6] = node->attributes.capacity;
    if (op.views[3].buffer)
        op.views[3].offset += (size_t)(node->attributes.layer * 2 * node->attributes.experts) * sizeof(int32_t);
    el_pass_emit(pass, node, &op);
    if (ranks == 1) return;
    struct el_comm_op exchange = {.verb = EL_COMM_ALL_TO_ALL,
                                  .dtype = EL_I32,
                                  .count = (size_t)(spec->batch * own_experts(spec->graph, node)),
                                  .data = counts,
                                  .result = after(pass, node, counts)};
    el_pass_communicate(pass, node, EL_AXIS_EXPERT, &exchange);
}

static void route_backward(struct el_pass *pass, const struct el_node *node)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const double weight = spec->sample_weight != 0 ? spec->sample_weight : 1 / (double)spec->batch;
    struct el_kernel_op op = {.op = EL_OP_ROUTE_BACKWARD,
                              .views = {el_pass_output_grad(pass, node, 0), el_pass_input(pass, node, 0),
                                        el_pass_output(pass, node, 0), el_pass_kept(pass, node)},
                              .args.s = {weight * node->attributes.aux, weight * node->attributes.z}};
    route_sizes(pass, node, op.args.d);
    if (!el_pass_input_grad_open(pass, node, 0, &op.views[4])) return;
    el_pass_emit(pass, node, &op);
    el_pass_input_grad_done(pass, node, 0, op.views[4]);
}

/* The chosen experts. */
static struct el_kept route_kept(const struct el_graph *graph, const struct el_node *node)
{
    return (struct el_kept){.dtype = EL_I32, .per_sample = shape_in(graph, node, 0)->d[0] * node->attributes.choices};
}

const struct el_node_type el_node_route = {.name = "route",
                                           .shape = route_shape,
                                           .n_outputs = 3,
                                           .forward = route_forward,
                                           .backward_inputs = route_backward,
                                           .keeps = EL_KEEPS_INPUT | EL_KEEPS_OUTPUT,
                                           .ids = 1U << 1 | 1U << 2,
                                           .takes = EL_TAKES_FULL,
                                           .kept = route_kept};

/* dispatch: x[b, t, c], weights[b, t, k], place, counts -> rows[b, r, c], scale[b, r]. combine: rows[b, r, c], place,
 * counts -> y[b, t, c]. Each is the other's backward. */

/* A sample's rows for a rank, on average. */
static double rows_expected(const struct el_graph *graph, const struct el_node *node, int64_t rank)
{
    const struct el_routing *routing = routing_of(graph);
    const struct el_node_attributes *a = &node->attributes;
    const int64_t own = own_experts(graph, node);
    double rows = 0;
    for (int64_t e = rank * own; e < (rank + 1) * own; e++) {
        const double even = (double)a->choices / (double)a->experts;
        const double sample = (double)a->tokens * (routing && routing->expected ? routing->expected[e] : even);
        rows += a->capacity && sample > (double)a->capacity ? (double)a->capacity : sample;
    }
    return rows;
}

/* Of `rows` of a sample in a part for each rank the share that the busiest rank uses. */
static double expected_share(const struct el_graph *graph, const struct el_node *node, int64_t rows)
{
    double most = 0;
    for (int64_t rank = 0; rank < ranks_of(graph); rank++) most = fmax(most, rows_expected(graph, node, rank));
    const double share = most * (double)ranks_of(graph) / (double)rows;
    return share < 1 ? share : 1;
}

/* The exchange of `rows` of `width` values with all ranks; `back`: home. */
static void exchange(struct el_pass *pass, const struct el_node *node, struct el_view from, struct el_view to,
                     int64_t rows, int64_t width, struct el_view counts, bool back)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    struct el_comm_op op = {.verb = EL_COMM_ALL_TO_ALL,
                            .count = (size_t)(spec->batch * rows / ranks_of(spec->graph) * width),
                            .data = from,
                            .result = to,
                            .used = counts,
                            .used_each = spec->batch * own_experts(spec->graph, node),
                            .unit = width,
                            .back = back,
                            .expected = expected_share(spec->graph, node, rows)};
    el_pass_communicate(pass, node, EL_AXIS_EXPERT, &op);
}

static size_t bytes_of(const struct el_pass *pass, const struct el_node *node, int64_t count)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    return (size_t)(spec->batch * count) *
           el_dtype_bytes(el_tensor_dtype(&spec->graph->tensors[node->outputs[0]], spec->dtype));
}

struct rows {
    struct el_view place, counts;
    int64_t n, tokens, choices, width; /* of a sample; n: rows */
};

/* rows = the rows of x, at the ranks that have the experts. */
static void go(struct el_pass *pass, const struct el_node *node, const struct rows *r, struct el_view x,
               struct el_view rows)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const bool far = ranks_of(spec->graph) > 1;
    struct el_kernel_op op = {
        .op = EL_OP_ROWS_TAKE,
        .views = {x, r->place,
                  far ? el_pass_scratch(pass, bytes_of(pass, node, r->n * r->width), "rows to send") : rows},
        .args.d = {spec->batch * r->tokens, r->width, r->choices, spec->batch * r->n}};
    el_pass_emit(pass, node, &op);
    if (!far) return;
    exchange(pass, node, op.views[2], rows, r->n, r->width, r->counts, false);
    el_pass_free(pass, op.views[2]);
}

/* y (+)= the sums of rows, from the ranks that have the experts. */
static void come(struct el_pass *pass, const struct el_node *node, const struct rows *r, struct el_view rows,
                 struct el_view y, double acc)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const bool far = ranks_of(spec->graph) > 1;
    struct el_kernel_op op = {
        .op = EL_OP_ROWS_GIVE,
        .views = {far ? el_pass_scratch(pass, bytes_of(pass, node, r->n * r->width), "rows that came back") : rows,
                  r->place, y},
        .args = {.d = {spec->batch * r->tokens, r->width, r->choices, spec->batch * r->n}, .s = {acc}}};
    if (far) exchange(pass, node, rows, op.views[0], r->n, r->width, r->counts, true);
    el_pass_emit(pass, node, &op);
    if (far) el_pass_free(pass, op.views[0]);
}

static struct rows rows_in(const struct el_pass *pass, const struct el_node *node, int place, int64_t width)
{
    const struct el_graph *graph = el_pass_get(pass)->graph;
    const struct el_shape *shape = shape_in(graph, node, place);
    return (struct rows){.place = el_pass_input(pass, node, place),
                         .counts = el_pass_input(pass, node, place + 1),
                         .n = rows_of(graph, node, shape->d[0]),
                         .tokens = shape->d[0],
                         .choices = shape->d[1],
                         .width = width};
}

/* A choice's weight is a row of its own. */
static struct rows weights_in(const struct rows *rows)
{
    struct rows one = *rows;
    one.tokens *= one.choices;
    one.choices = one.width = 1;
    return one;
}

static enum el_status dispatch_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shapes)
{
    const struct el_shape *x = shape_in(graph, node, 0);
    const int64_t rows = rows_of(graph, node, x->d[0]);
    shapes[0] = (struct el_shape){.n = 2, .d = {rows, x->d[1]}};
    shapes[1] = (struct el_shape){.n = 1, .d = {rows}};
    return EL_OK;
}

static void dispatch_forward(struct el_pass *pass, const struct el_node *node)
{
    const struct rows rows = rows_in(pass, node, 2, shape_in(el_pass_get(pass)->graph, node, 0)->d[1]);
    const struct rows weights = weights_in(&rows);
    go(pass, node, &rows, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0));
    go(pass, node, &weights, el_pass_input(pass, node, 1), el_pass_output(pass, node, 1));
}

static void dispatch_backward(struct el_pass *pass, const struct el_node *node)
{
    const struct rows rows = rows_in(pass, node, 2, shape_in(el_pass_get(pass)->graph, node, 0)->d[1]);
    const struct rows weights = weights_in(&rows);
    struct el_view dx;
    double acc;
    if (el_pass_input_grad(pass, node, 0, &dx, &acc))
        come(pass, node, &rows, el_pass_output_grad(pass, node, 0), dx, acc);
    if (el_pass_input_grad(pass, node, 1, &dx, &acc))
        come(pass, node, &weights, el_pass_output_grad(pass, node, 1), dx, acc);
}

const struct el_node_type el_node_dispatch = {.name = "dispatch",
                                              .shape = dispatch_shape,
                                              .n_outputs = 2,
                                              .forward = dispatch_forward,
                                              .backward_inputs = dispatch_backward,
                                              .keeps = EL_KEEPS_INPUT,
                                              .reads = 1U << 2 | 1U << 3,
                                              .takes = EL_TAKES_BF16};

static enum el_status combine_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    *shape_p = (struct el_shape){.n = 2, .d = {shape_in(graph, node, 1)->d[0], shape_in(graph, node, 0)->d[1]}};
    return EL_OK;
}

static void combine_forward(struct el_pass *pass, const struct el_node *node)
{
    const struct rows rows = rows_in(pass, node, 1, shape_in(el_pass_get(pass)->graph, node, 0)->d[1]);
    come(pass, node, &rows, el_pass_input(pass, node, 0), el_pass_output(pass, node, 0), 0);
}

static void combine_backward(struct el_pass *pass, const struct el_node *node)
{
    const struct rows rows = rows_in(pass, node, 1, shape_in(el_pass_get(pass)->graph, node, 0)->d[1]);
    struct el_view drows;
    if (!el_pass_input_grad_open(pass, node, 0, &drows)) return;
    go(pass, node, &rows, el_pass_output_grad(pass, node, 0), drows);
    el_pass_input_grad_done(pass, node, 0, drows);
}

const struct el_node_type el_node_combine = {.name = "combine",
                                             .shape = combine_shape,
                                             .forward = combine_forward,
                                             .backward_inputs = combine_backward,
                                             .keeps = EL_KEEPS_INPUT,
                                             .reads = 1U << 1 | 1U << 2,
                                             .takes = EL_TAKES_BF16,
                                             .reads_grad = true};

/* grouped: rows[b, r, i], counts, w[experts here, o, i] -> y[b, r, o]. swiglu: h[b, r, 2 c], scale[b, r], counts ->
 * a[b, r, c]. Rows that are not used stay as they are. */

static void group_sizes(const struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, int at)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    op->args.d[at] = own_experts(spec->graph, node);
    op->args.d[at + 1] = ranks_of(spec->graph);
    op->args.d[at + 2] = spec->batch;
    op->args.s[1] =
        rows_expected(spec->graph, node, spec->graph->expert_rank) * (double)(spec->batch * ranks_of(spec->graph));
}

static enum el_status grouped_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *x = shape_in(graph, node, 0), *w = &graph->params[node->params[0]].shape;
    if (w->n != 3 || w->d[0] != own_experts(graph, node) || w->d[2] != x->d[1])
        return el_fail(EL_ERR_INTERNAL, "%s: rows of %lld for weights of %lld", node->name, (long long)x->d[1],
                       (long long)w->d[2]);
    *shape_p = (struct el_shape){.n = 2, .d = {x->d[0], w->d[1]}};
    return EL_OK;
}

static void emit_grouped(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const struct el_shape *w = &spec->graph->params[node->params[0]].shape;
    op->args.d[0] = spec->batch * shape_in(spec->graph, node, 0)->d[0];
    op->args.d[1] = w->d[2];
    op->args.d[2] = w->d[1];
    op->views[2] = after(pass, node, el_pass_input(pass, node, 1));
    group_sizes(pass, node, op, 3);
    el_pass_emit(pass, node, op);
}

static void grouped_forward(struct el_pass *pass, const struct el_node *node)
{
    emit_grouped(
        pass, node,
        &(struct el_kernel_op){
            .op = EL_OP_GROUPED_FORWARD,
            .views = {el_pass_input(pass, node, 0), el_pass_param(pass, node, 0), {0}, el_pass_output(pass, node, 0)}});
}

static void grouped_backward_weights(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_GROUPED_BACKWARD_WEIGHTS,
                              .views = {el_pass_input(pass, node, 0), el_pass_output_grad(pass, node, 0)}};
    op.views[3] = el_pass_param_grad(pass, node, 0, &op.args.s[0]);
    op.args.s[2] = 1 / (double)ranks_of(el_pass_get(pass)->graph);
    emit_grouped(pass, node, &op);
}

static void grouped_backward(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_GROUPED_BACKWARD_DATA,
                              .views = {el_pass_output_grad(pass, node, 0), el_pass_param(pass, node, 0)}};
    if (!el_pass_input_grad_open(pass, node, 0, &op.views[3])) return;
    emit_grouped(pass, node, &op);
    el_pass_input_grad_done(pass, node, 0, op.views[3]);
}

const struct el_node_type el_node_grouped = {.name = "grouped",
                                             .shape = grouped_shape,
                                             .forward = grouped_forward,
                                             .backward_inputs = grouped_backward,
                                             .backward_weights = grouped_backward_weights,
                                             .keeps = EL_KEEPS_INPUT_FOR_WEIGHTS | EL_KEEPS_INPUT,
                                             .reads = 1U << 1,
                                             .takes = EL_TAKES_BF16,
                                             .reads_grad = true};

static enum el_status swiglu_shape(const struct el_graph *graph, const struct el_node *node, struct el_shape *shape_p)
{
    const struct el_shape *h = shape_in(graph, node, 0);
    *shape_p = (struct el_shape){.n = 2, .d = {h->d[0], h->d[1] / 2}};
    return EL_OK;
}

static void emit_swiglu(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    const struct el_pass_spec *spec = el_pass_get(pass);
    const struct el_shape *h = shape_in(spec->graph, node, 0);
    op->args.d[0] = spec->batch * h->d[0];
    op->args.d[1] = h->d[1] / 2;
    group_sizes(pass, node, op, 2);
    el_pass_emit(pass, node, op);
}

static void swiglu_forward(struct el_pass *pass, const struct el_node *node)
{
    emit_swiglu(pass, node,
                &(struct el_kernel_op){.op = EL_OP_SWIGLU_FORWARD,
                                       .views = {el_pass_input(pass, node, 0), el_pass_input(pass, node, 1),
                                                 after(pass, node, el_pass_input(pass, node, 2)),
                                                 el_pass_output(pass, node, 0)}});
}

static void swiglu_backward(struct el_pass *pass, const struct el_node *node)
{
    struct el_kernel_op op = {.op = EL_OP_SWIGLU_BACKWARD,
                              .views = {el_pass_output_grad(pass, node, 0), el_pass_input(pass, node, 0),
                                        el_pass_input(pass, node, 1), after(pass, node, el_pass_input(pass, node, 2))}};
    for (int i = 0; i < 2; i++) el_pass_input_grad_force(pass, node, i, &op.views[4 + i]);
    emit_swiglu(pass, node, &op);
    for (int i = 0; i < 2; i++) el_pass_input_grad_done(pass, node, i, op.views[4 + i]);
}

const struct el_node_type el_node_swiglu = {.name = "swiglu",
                                            .shape = swiglu_shape,
                                            .forward = swiglu_forward,
                                            .backward_inputs = swiglu_backward,
                                            .keeps = EL_KEEPS_INPUT,
                                            .reads = 7,
                                            .takes = EL_TAKES_BF16};
