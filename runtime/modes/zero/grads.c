/* A unit's gradients (zero.c): allocated together, reduced and scattered during backward when all are ready.
 * --comm-hook casts them before, and a rank's part after. */
#include <stdio.h>

#include "runtime/modes/zero/zero.h"

static enum el_dtype reduced_in(const struct el_zero *zero)
{
    return el_config_reduced(zero->shard->config);
}

static enum el_dtype kept_in(const struct el_zero *zero)
{
    return el_config_stored(zero->shard->config);
}

static struct el_buffer *alloc_part(struct el_zero *zero, int u, enum el_tag tag)
{
    struct el_buffer *buffer;
    el_program_alloc(zero->program, zero->shard->device, tag,
                     (size_t)el_zero_part(zero, u) * el_dtype_bytes(kept_in(zero)), "reduced gradients", &buffer);
    return buffer;
}

static struct el_view own_part(const struct el_zero *zero, struct el_buffer *unit, int u, enum el_dtype dtype)
{
    return el_view_of(unit, (size_t)(zero->shard->piece * el_zero_part(zero, u)) * el_dtype_bytes(dtype));
}

static struct el_view find_result(struct el_zero *zero, int u)
{
    struct el_zero_unit *unit = &zero->units[u];
    if (zero->stage == 1) return own_part(zero, unit->whole, u, kept_in(zero));
    if (unit->own || el_zero_kept_part(zero, u)) {
        if (!unit->own) unit->own = el_zero_kept_part(zero, u);
        unit->added = alloc_part(zero, u, EL_TAG_WORKSPACE);
        return el_view_of(unit->added, 0);
    }
    unit->own = alloc_part(zero, u, EL_TAG_GRAD);
    return el_view_of(unit->own, 0);
}

/* Casts to the reduced type and frees the gradients. Returns the result. */
static struct el_view cast_to_reduce(struct el_zero *zero, int u)
{
    struct el_zero_unit *unit = &zero->units[u];
    const struct el_unit *row = el_zero_row(zero, u);
    const size_t width = el_dtype_bytes(reduced_in(zero));
    el_program_alloc_padded(zero->program, zero->shard->device, EL_TAG_BUCKET, (size_t)row->count * width,
                            (size_t)row->padding * width, "gradients that are reduced", &unit->sent);
    el_shard_issue_move(zero->shard, zero->program, EL_PHASE_REDUCE, "cast gradients", el_zero_whole(zero),
                        el_view_of(unit->whole, 0), reduced_in(zero), el_view_of(unit->sent, 0), row->count, 1);
    if (zero->stage > 1) el_program_free(zero->program, unit->whole);
    if (zero->stage > 1) unit->whole = NULL;
    return el_view_of(unit->sent, 0);
}

static struct el_view reduced_part(const struct el_zero *zero, int u)
{
    const struct el_zero_unit *unit = &zero->units[u];
    return own_part(zero, unit->sent ? unit->sent : unit->whole, u, reduced_in(zero));
}

static void cast_from_reduce(struct el_zero *zero, int u)
{
    struct el_zero_unit *unit = &zero->units[u];
    if (reduced_in(zero) != kept_in(zero))
        el_shard_issue_move(zero->shard, zero->program, EL_PHASE_REDUCE, "cast reduced gradients", reduced_in(zero),
                            reduced_part(zero, u), kept_in(zero), find_result(zero, u), el_zero_part(zero, u), 1);
    el_program_free(zero->program, unit->sent);
    unit->sent = NULL;
}

void el_zero_settle(struct el_zero *zero)
{
    const int u = zero->in_flight;
    if (u == EL_ZERO_NONE) return;
    struct el_zero_unit *unit = &zero->units[u];
    el_program_wait(zero->program, zero->shard->device, EL_STREAM_COMPUTE, unit->reduced_op);
    cast_from_reduce(zero, u);
    struct el_kernel_op add = {.head = {.label = "add to the gradients", .phase = EL_PHASE_REDUCE},
                               .op = EL_OP_ADD,
                               .dtype = kept_in(zero),
                               .views = {el_view_of(unit->added, 0), el_view_of(unit->own, 0)},
                               .args.d = {el_zero_part(zero, u)}};
    zero->in_flight = EL_ZERO_NONE;
    if (zero->stage == 1) return;
    if (unit->added) el_program_kernel(zero->program, zero->shard->device, EL_STREAM_COMPUTE, &add, NULL);
    el_program_free(zero->program, unit->added);
    el_program_free(zero->program, unit->whole);
    unit->added = unit->whole = NULL;
}

static void reduce(struct el_zero *zero, int u)
{
    struct el_zero_unit *unit = &zero->units[u];
    char label[2 * EL_GRAPH_NAME_BYTES];
    snprintf(label, sizeof label, "reduce_scatter %s",
             *el_zero_row(zero, u)->name ? el_zero_row(zero, u)->name : "rest");
    el_zero_settle(zero);
    const bool casts = reduced_in(zero) != el_zero_whole(zero), casts_back = reduced_in(zero) != kept_in(zero);
    const struct el_view data = casts ? cast_to_reduce(zero, u) : el_view_of(unit->whole, 0);
    struct el_comm_op scatter = {.verb = EL_COMM_REDUCE_SCATTER,
                                 .reduction = EL_COMM_AVERAGE,
                                 .dtype = reduced_in(zero),
                                 .count = (size_t)el_zero_part(zero, u),
                                 .data = data,
                                 .result = casts_back ? reduced_part(zero, u) : find_result(zero, u),
                                 .label = label,
                                 .phase = EL_PHASE_COMM},
                      across = scatter;
    across.verb = EL_COMM_ALL_REDUCE;
    across.data = scatter.result;
    across.result = (struct el_view){0};
    across.label = "all_reduce across copies";
    unit->reduced_op = EL_ZERO_NONE;
    if (zero->comm)
        el_comm_issue(zero->comm, zero->program, &scatter, &unit->reduced_op);
    else if (scatter.result.buffer != data.buffer) /* the part is the whole */
        el_shard_issue_move(zero->shard, zero->program, EL_PHASE_REDUCE, "take the part", scatter.dtype, scatter.data,
                            scatter.dtype, scatter.result, (int64_t)scatter.count, 1);
    if (zero->across) {
        el_comm_wait(zero->across, zero->program, unit->reduced_op);
        el_comm_issue(zero->across, zero->program, &across, &unit->reduced_op);
    }
    zero->in_flight = u;
    if (!zero->shard->config->overlap) el_zero_settle(zero);
}

void el_zero_ready(void *context, int p)
{
    struct el_zero *zero = context;
    const int u = zero->shard->units->of[p];
    if (--zero->units[u].n_missing > 0) return;
    zero->units[u].n_missing = el_zero_row(zero, u)->n_params;
    reduce(zero, u);
}

void el_zero_place_grads(struct el_zero *zero, int u)
{
    for (int p = 0; p < zero->shard->graph->n_params; p++)
        if (el_zero_has(zero, p, u))
            zero->grads[p] =
                el_view_of(zero->units[u].whole, (size_t)zero->shard->units->offset[p] * el_zero_width(zero));
}

void el_zero_make_grads(struct el_zero *zero, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        const int u = zero->shard->units->of[node->params[i]];
        const struct el_unit *row = el_zero_row(zero, u);
        if (u == zero->in_flight) el_zero_settle(zero); /* from the micro-step before */
        if (!row->trained || zero->units[u].whole) continue;
        el_program_alloc_padded(zero->program, zero->shard->device, EL_TAG_GRAD,
                                (size_t)row->count * el_zero_width(zero), (size_t)row->padding * el_zero_width(zero),
                                "gradients of a unit", &zero->units[u].whole);
        el_zero_place_grads(zero, u);
    }
}
