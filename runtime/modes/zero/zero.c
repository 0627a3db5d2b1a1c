/* zero1, zero2, zero3: training state sharded over data ranks (Rajbhandari et al., "ZeRO", 2020). Each rank has and
 * updates a part of each unit of parameters (units.h). zero1 shards the optimizer's slots, zero2 also gradients, zero3
 * also parameters (PyTorch's fully_shard). --mesh dp=2,shard=4: two groups of four hold a copy each (hybrid sharding).
 * tp=2: each rank is two devices with a piece of the model each (tp.c); pp=2: two with a stage each, and micro-batches
 * (flight.h) instead of micro-steps.
 * A unit's gradients share memory, and are reduced and scattered during backward when complete. zero1 and zero2 gather
 * the updated parameters; zero3 gathers a unit before its forward and its backward (copies.h). */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/modes/mode.h"
#include "runtime/modes/pipeline/flight.h"
#include "runtime/state/buffers.h"
#include "runtime/worker/copies.h"

enum { EL_ZERO_NONE = -1 };

struct el_zero_unit {
    struct el_buffer *whole; /* before reduction; in zero1 across steps */
    struct el_buffer *own;   /* this rank's reduced part: allocated in the step unless gradients are kept */
    struct el_buffer *added; /* the same of a later micro-step or beside kept ones: to be added */
    struct el_buffer *sent;  /* --comm-hook: what is reduced, in the hook's type */
    int n_missing;
    int reduced_op;
};

struct el_zero {
    struct el_worker *worker;
    const struct el_shard *shard;
    int stage;
    bool each;                     /* reduce each micro-step's gradients */
    struct el_comm *comm, *across; /* with the ranks of the other parts, and of the same part; NULL: none */
    struct el_zero_unit *units;
    struct el_gathered *gathered; /* zero3's, else NULL */
    struct el_line *line;
    struct el_program *program;
    struct el_view *grads;
    int in_flight; /* the unit whose reduction is pending; EL_ZERO_NONE */
};

/* The type of whole gradients; reduced parts have the parameters' stored type. */
static inline enum el_dtype el_zero_whole(const struct el_zero *zero)
{
    const struct el_train_config *config = zero->shard->config;
    return zero->each ? el_config_computed(config) : el_config_stored(config);
}
static inline size_t el_zero_width(const struct el_zero *zero)
{
    return el_dtype_bytes(el_zero_whole(zero));
}

static inline const struct el_unit *el_zero_row(const struct el_zero *zero, int u)
{
    return &zero->shard->units->units[u];
}

static inline int64_t el_zero_part(const struct el_zero *zero, int u)
{
    return el_zero_row(zero, u)->count / zero->shard->units->n_pieces;
}

static inline bool el_zero_has(const struct el_zero *zero, int p, int u)
{
    return zero->shard->units->of[p] == u;
}

/* This rank's part of the unit's kept gradients; NULL: the step's own. */
static inline struct el_buffer *el_zero_kept_part(const struct el_zero *zero, int u)
{
    return zero->stage > 1 ? zero->shard->grads[el_zero_row(zero, u)->first_param].buffer : NULL;
}

/* A unit's gradients (zero.c): allocated together, reduced and scattered during backward when all are ready.
 * --comm-hook casts them before, and a rank's part after. */

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

/* Waits for the pending unit's part, adds it to existing gradients, and frees the rest. */
static void zero_settle(struct el_zero *zero)
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
    zero_settle(zero);
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
    if (!zero->shard->config->overlap) zero_settle(zero);
}

/* Parameter `p`'s gradient is ready; the unit's last one starts the reduction. `zero`: the context. */
static void zero_ready(void *context, int p)
{
    struct el_zero *zero = context;
    const int u = zero->shard->units->of[p];
    if (--zero->units[u].n_missing > 0) return;
    zero->units[u].n_missing = el_zero_row(zero, u)->n_params;
    reduce(zero, u);
}

/* Allocates gradients in their unit's memory, for `node`'s backward. */
static void zero_place_grads(struct el_zero *zero, int u)
{
    for (int p = 0; p < zero->shard->graph->n_params; p++)
        if (el_zero_has(zero, p, u))
            zero->grads[p] =
                el_view_of(zero->units[u].whole, (size_t)zero->shard->units->offset[p] * el_zero_width(zero));
}

static void zero_make_grads(struct el_zero *zero, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        const int u = zero->shard->units->of[node->params[i]];
        const struct el_unit *row = el_zero_row(zero, u);
        if (u == zero->in_flight) zero_settle(zero); /* from the micro-step before */
        if (!row->trained || zero->units[u].whole) continue;
        el_program_alloc_padded(zero->program, zero->shard->device, EL_TAG_GRAD,
                                (size_t)row->count * el_zero_width(zero), (size_t)row->padding * el_zero_width(zero),
                                "gradients of a unit", &zero->units[u].whole);
        zero_place_grads(zero, u);
    }
}

enum {
    SLOTS = ((1U << EL_SLOTS_MAX) - 1) << EL_STATE_SLOT,
    GRADS = 1U << EL_STATE_GRAD,
    PARAMS = 1U << EL_STATE_PARAM
};

struct settings {
    bool stays;                               /* zero3: gathered parameters stay from forward to backward */
    bool last;                                /* reduce gradients in the last micro-step only */
    enum { AHEAD_1, AHEAD_2, AHEAD_0 } ahead; /* zero3's units gathered ahead */
};

static struct el_view place_in_part(const struct el_zero *zero, struct el_buffer *part, int64_t before, int p)
{
    const struct el_units *units = zero->shard->units;
    int64_t first, count;
    el_units_own(units, p, el_param_count(zero->shard->graph, p), zero->shard->piece, &first, &count);
    const int64_t at = zero->shard->piece * el_zero_part(zero, units->of[p]);
    return el_view_of(part, (size_t)(count > 0 ? before + units->offset[p] + first - at : 0) *
                                el_dtype_bytes(el_config_stored(zero->shard->config)));
}

static void before_node(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct el_zero *zero = context;
    if (zero->gathered) el_gathered_before(zero->gathered, program, node, phase);
    if (phase == EL_PHASE_BACKWARD) zero_make_grads(zero, node);
}

static void after_node(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct el_zero *zero = context;
    if (zero->gathered) el_gathered_after(zero->gathered, program, node, phase);
}

static void begin(void *context, struct el_program *program, struct el_view *grads)
{
    struct el_zero *zero = context;
    zero->program = program;
    zero->grads = grads;
    zero->in_flight = EL_ZERO_NONE;
    for (int u = 0; u < zero->shard->units->n; u++) {
        struct el_zero_unit *unit = &zero->units[u];
        *unit = (struct el_zero_unit){.whole = zero->stage == 1 ? unit->whole : NULL,
                                      .n_missing = el_zero_row(zero, u)->n_params};
        if (unit->whole) zero_place_grads(zero, u);
    }
}

/* The optimizer uses the gradients of this rank's parts. */
static void finish(void *context, struct el_program *program, struct el_view *grads)
{
    struct el_zero *zero = context;
    (void)program;
    zero_settle(zero);
    for (int p = 0; p < zero->shard->graph->n_params; p++) {
        const int u = zero->shard->units->of[p];
        struct el_zero_unit *unit = &zero->units[u];
        grads[p] = (struct el_view){0};
        if (!el_zero_row(zero, u)->trained) continue;
        grads[p] = zero->stage == 1 ? place_in_part(zero, unit->whole, zero->shard->piece * el_zero_part(zero, u), p)
                                    : place_in_part(zero, unit->own, 0, p);
    }
}

static void gather_params(struct el_zero *zero, int u)
{
    const struct el_unit *unit = el_zero_row(zero, u);
    struct el_buffer *params = el_shard_computed(zero->shard)[unit->first_param].buffer;
    const enum el_dtype dtype = el_config_computed(zero->shard->config);
    char label[2 * EL_GRAPH_NAME_BYTES];
    snprintf(label, sizeof label, "all_gather %s", *unit->name ? unit->name : "rest");
    struct el_comm_op op = {
        .verb = EL_COMM_ALL_GATHER,
        .dtype = dtype,
        .count = (size_t)el_zero_part(zero, u),
        .data = el_view_of(params, (size_t)(zero->shard->piece * el_zero_part(zero, u)) * el_dtype_bytes(dtype)),
        .result = el_view_of(params, 0),
        .label = label,
        .phase = EL_PHASE_COMM,
        .join = true};
    el_comm_issue(zero->comm, zero->program, &op, NULL);
}

static void updated(void *context, struct el_program *program)
{
    struct el_zero *zero = context;
    for (int p = 0; p < zero->shard->graph->n_params; p++) zero->grads[p] = zero->shard->grads[p]; /* kept ones */
    for (int u = 0; u < zero->shard->units->n; u++) {
        struct el_zero_unit *unit = &zero->units[u];
        if (!el_zero_row(zero, u)->trained) continue;
        if (unit->own != el_zero_kept_part(zero, u)) el_program_free(program, unit->own);
        if (zero->stage < 3 && zero->comm) gather_params(zero, u);
    }
}

static struct el_share_hooks hooks_of(struct el_zero *zero)
{
    return (struct el_share_hooks){.overwrite = true,
                                   .each = zero->each,
                                   .computed_grads = zero->each,
                                   .grad_ready = zero_ready,
                                   .params = zero->gathered ? el_gathered_params(zero->gathered) : NULL,
                                   .before_node = before_node,
                                   .after_node = after_node,
                                   .begin = begin,
                                   .reduce = finish,
                                   .updated = updated,
                                   .context = zero};
}

/* Rank 0's, or with a cut model those of its copy. */
static void broadcast_buffers(const struct el_worker *worker, struct el_program *program)
{
    const struct el_shard *shard = &worker->members[0].shard;
    const bool stages = worker->layout->n[EL_AXIS_STAGE] > 1;
    if (!stages) el_buffers_issue_broadcast(worker->world, shard, program);
    for (int i = 0; i < 2 && stages; i++) {
        struct el_comm *comm = worker->group[i ? EL_AXIS_SHARD : EL_AXIS_DATA];
        if (comm) el_buffers_issue_broadcast(comm, shard, program);
    }
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_zero *zero = worker->state;
    const struct el_share_hooks hooks = hooks_of(zero);
    if (worker->config->broadcast_buffers) broadcast_buffers(worker, program);
    return zero->line ? el_line_step(zero->line, program) : el_share_step(worker, program, &hooks);
}

/* zero1's gradients; kept ones are this rank's parts of them. */
static enum el_status make_whole_grads(struct el_zero *zero)
{
    const struct el_shard *shard = zero->shard;
    struct el_comm *comm = zero->comm ? zero->comm : zero->across;
    for (int u = 0; u < shard->units->n; u++) {
        const struct el_unit *row = el_zero_row(zero, u);
        if (!row->trained) continue;
        const size_t bytes = (size_t)row->count * el_zero_width(zero);
        EL_TRY(comm ? el_comm_alloc(comm, EL_TAG_GRAD, bytes, "gradients of a unit", &zero->units[u].whole)
                    : el_device_alloc(shard->device, EL_TAG_GRAD, bytes, "gradients of a unit", &zero->units[u].whole));
        for (int p = 0; p < shard->graph->n_params; p++)
            if (el_zero_has(zero, p, u))
                shard->grads[p] = place_in_part(zero, zero->units[u].whole, shard->piece * el_zero_part(zero, u), p);
    }
    return EL_OK;
}

static enum el_status open_line(struct el_zero *zero)
{
    if (!(zero->line = calloc(1, sizeof *zero->line))) return el_fail_errno("%s", zero->worker->config->mode);
    EL_TRY(el_line_open(zero->worker, zero->line));
    zero->line->hooks = hooks_of(zero);
    return EL_OK;
}

static enum el_status setup(struct el_worker *worker)
{
    static const int ahead[] = {[AHEAD_1] = 1, [AHEAD_2] = 2, [AHEAD_0] = 0};
    const struct settings *settings = el_mode_settings(worker->config);
    const struct el_shard *shard = &worker->members[0].shard;
    const int n_passes = (int)(worker->layout->cuts ? worker->config->n_micro : worker->config->n_accumulate);
    struct el_zero *zero = worker->state = calloc(1, sizeof *zero);
    if (zero) zero->units = calloc((size_t)shard->units->n + 1, sizeof *zero->units);
    if (!zero || !zero->units) return el_fail_errno("%s", worker->config->mode);
    zero->worker = worker;
    zero->shard = shard;
    zero->stage = worker->config->zero;
    zero->each = !settings->last && zero->stage > 1;
    zero->comm = worker->group[EL_AXIS_SHARD];
    zero->across = worker->layout->n[EL_AXIS_DATA] > 1 ? worker->group[EL_AXIS_DATA] : NULL;
    worker->comm = el_comm_backend(worker->world);
    if (zero->stage == 1) EL_TRY(make_whole_grads(zero));
    if (zero->stage == 3)
        EL_TRY(
            el_gathered_open(shard, zero->comm, ahead[settings->ahead], !settings->stays, n_passes, &zero->gathered));
    if (worker->layout->cuts) return open_line(zero);
    const bool pieces = worker->layout->n[EL_AXIS_TENSOR] > 1; /* with different weights */
    return pieces || shard->split & PARAMS ? EL_OK : el_share_send_weights(worker, worker->world);
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    const struct el_zero *zero = worker->state;
    return zero->line ? el_line_read_loss(zero->line, loss_p) : el_share_read_loss(worker->members, loss_p);
}

/* A part's nodes gather and reduce, so that a device has one part and goes back at once. */
static enum el_status check_schedule(const struct el_train_config *config, const struct el_layout *layout)
{
    struct el_schedule schedule;
    EL_TRY(el_schedule_open(config, layout->n[EL_AXIS_STAGE], &schedule));
    bool fits = schedule.n_parts == schedule.n_devices;
    for (int d = 0; d < schedule.n_devices; d++)
        for (int i = 0; i < schedule.n_actions[d]; i++) fits &= schedule.actions[d][i].kind <= EL_ACTION_BACKWARD;
    el_schedule_close(&schedule);
    return fits
               ? EL_OK
               : el_fail(EL_ERR_INVALID,
                         "--schedule %s: %s takes schedules of one part a device and of whole backwards: 1f1b or gpipe",
                         config->schedule, config->mode);
}

static enum el_status check_passes(const struct el_train_config *config, const struct el_layout *layout)
{
    const struct settings *settings = el_mode_settings(config);
    if (!settings->last || config->n_accumulate > 1 || config->n_micro > 1) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--unit reduce=last: a step has one micro-%s, which is the last: add --%s2",
                   layout->cuts ? "batch" : "step", layout->cuts ? "schedule micro=" : "accumulate ");
}

static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    if (!layout->cuts) {
        config->n_micro = 1;
        EL_TRY(check_passes(config, layout));
        return el_parts_check_pieces(config, layout);
    }
    if (config->n_accumulate > 1)
        return el_fail(EL_ERR_INVALID, "--accumulate %lld: stages take micro-batches: give --schedule micro",
                       (long long)config->n_accumulate);
    EL_TRY(check_schedule(config, layout));
    EL_TRY(el_line_check(config, layout));
    return check_passes(config, layout);
}

static void teardown(struct el_worker *worker)
{
    struct el_zero *zero = worker->state;
    if (!zero) return;
    for (int u = 0; zero->stage == 1 && u < zero->shard->units->n; u++) el_device_free(zero->units[u].whole);
    el_gathered_close(zero->gathered);
    if (zero->line) el_line_close(zero->line);
    free(zero->line);
    free(zero->units);
    free(zero);
}

/* zero1 reduces these parts of gradients. Parameters are in parts if passes cast copies. */
static void layout12(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    const bool casts = el_config_computed(config) != el_config_stored(config);
    el_layout_sharded(config, n_processes, SLOTS | GRADS | (casts ? PARAMS : 0), layout_p);
}

static void layout3(const struct el_train_config *config, int n_processes, struct el_layout *layout_p)
{
    el_layout_sharded(config, n_processes, SLOTS | GRADS | PARAMS, layout_p);
}

static void resolve1(struct el_train_config *config)
{
    config->zero = 1;
}

static void resolve2(struct el_train_config *config)
{
    config->zero = 2;
}

static void resolve3(struct el_train_config *config)
{
    config->zero = 3;
}

static const struct el_mode_option unit = {
    .name = "unit",
    .argument = "WHAT",
    .help = "parameters that are gathered and reduced together: block: a block of the model (gpt's h.0, resnet18's "
            "layer1.0), and the rest as one; models without blocks: a layer; layer; model: all",
    .kind = EL_MODE_CHOICE,
    EL_MODE_FIELD(unit),
    .choices = "block|layer|model",
    .initial = "block"};

static const struct el_mode_option reduce_each = {
    .name = "reduce-in",
    .argument = "WHICH",
    .help =
        "with --accumulate: reduce gradients in each micro-step (a rank keeps its part alone), or in the last one (a "
        "rank keeps all until then, as with PyTorch's no_sync)",
    .kind = EL_MODE_SWITCH,
    EL_MODE_SETTING(struct settings, last),
    .choices = "each|last",
    .initial = "each"};

static const struct el_mode_option reshard = {
    .name = "reshard",
    .argument = "HOW",
    .help = "free a unit's parameters after its forward and gather them again for its backward, as PyTorch's "
            "reshard_after_forward; off: they stay",
    .kind = EL_MODE_SWITCH,
    EL_MODE_SETTING(struct settings, stays),
    .choices = "on|off",
    .initial = "on"};

static const struct el_mode_option gather_ahead = {
    .name = "gather-ahead",
    .argument = "N",
    .help = "units that are gathered ahead, while the one before them computes",
    .kind = EL_MODE_CHOICE,
    EL_MODE_SETTING(struct settings, ahead),
    .choices = "1|2|0",
    .initial = "1"};

#define SHARED                                                                                                         \
    &el_mode_procs, &el_mode_mesh, &el_mode_overlap, &el_mode_comm_hook, &unit, &el_mode_accumulate, &el_mode_cut,     \
        &el_mode_micro, &el_mode_schedule, &el_mode_broadcast_buffers, &el_mode_sequence_parallel

static const struct el_mode_option *const options1[] = {SHARED, NULL}, *const options2[] = {SHARED, &reduce_each, NULL},
                                          *const options3[] = {SHARED, &reduce_each, &reshard, &gather_ahead, NULL};

#define ZERO_ROW(stage)                                                                                                \
    .axes = 1U << EL_AXIS_DATA | 1U << EL_AXIS_SHARD | 1U << EL_AXIS_STAGE | 1U << EL_AXIS_TENSOR,                     \
    .options = options##stage,                                                                                         \
    .statistics = "of each rank's share; running ones are rank 0's, sent to all at a step's start",                    \
    .loss = EL_LOSS_OF_RANKS, .n_shown = 1
#define ZERO_HOOKS(stage, layout_of)                                                                                   \
    .resolve = resolve##stage, .check = check, .layout = layout_of, .rounds = 1, .setup = setup, .issue = issue,       \
    .read_loss = read_loss, .teardown = teardown

const struct el_mode_ops el_mode_zero1 = {
    .info = {ZERO_ROW(1), .name = "zero1", .summary = "ddp with the optimizer's state sharded over the ranks (ZeRO 1)",
             .sends = "gradients (P) by reduce-scatter during backward, and new parameters (P) by all-gather",
             .variants = "--overlap off|--accumulate 2|--unit model|--mesh dp=2|--mesh pp=2",
             .memory = {.backward = 2, .optimizer = 2, .words = "(2 + S / n) P"},
             .look = {.fill = 0x4fb3bf, .ink = 0x23808c, .pattern = 3, .point = 13, .point_size = 1.7}},
    ZERO_HOOKS(1, layout12)};

const struct el_mode_ops el_mode_zero2 = {
    .info = {ZERO_ROW(2), .name = "zero2", .summary = "zero1 with the gradients sharded too (ZeRO 2)",
             .sends = "as zero1",
             .variants = "--overlap off|--accumulate 2|--accumulate 2 --unit reduce=last|--mesh dp=2",
             .memory = {.backward = 1, .optimizer = 1, .words = "(1 + (1 + S) / n) P, and two units"},
             .look = {.fill = 0x8d7bd1, .ink = 0x5e4bab, .pattern = 3, .point = 5, .point_size = 1.5}},
    ZERO_HOOKS(2, layout12)};

const struct el_mode_ops el_mode_zero3 = {
    .info = {ZERO_ROW(3), .name = "zero3",
             .summary = "zero2 with the parameters sharded too (ZeRO 3, PyTorch's fully_shard)",
             .sends = "as zero1, and parameters once more: gathered for forward, and for backward",
             .variants = "--overlap off|--accumulate 2|--unit layer,ahead=2|--unit reshard=off --unit ahead=0|"
                         "--accumulate 2 --unit reduce=last|--mesh dp=2|--mesh pp=2",
             .memory = {.words = "(2 + S) / n P, and four units"},
             .look = {.fill = 0xe0a030, .ink = 0xa87010, .pattern = 3, .point = 9, .point_size = 1.7}},
    ZERO_HOOKS(3, layout3)};
