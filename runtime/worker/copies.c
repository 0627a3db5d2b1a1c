#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/state/buffers.h"
#include "runtime/worker/copies.h"

/* The worker with that part for the device at `position`, in the same copy of the model (adjacent workers). */
static int owner_of(const struct el_worker *worker, int position, int part)
{
    const struct el_spot own = el_layout_spot(worker->layout, position);
    if (part < 0 || part >= worker->parts->n) return EL_HELD_NOBODY;
    int stage = worker->parts->schedule.device[part];
    if (stage == own.at[EL_AXIS_STAGE]) return EL_HELD_HERE;
    return own.worker + (stage - own.at[EL_AXIS_STAGE]) * worker->layout->n[EL_AXIS_TENSOR];
}

static enum el_status find_arrays(const struct el_shard *shard, struct el_held_part *part)
{
    size_t n_params = (size_t)part->graph->n_params, n_buffers = (size_t)part->graph->n_buffers;
    part->place = calloc(n_params + 1, sizeof *part->place);
    part->params = calloc(n_params + n_buffers + 1, sizeof *part->params);
    if (!part->place || !part->params) return el_fail_errno("%zu parameters of a part", n_params);
    part->buffers = part->params + n_params;
    for (int p = 0; p < part->graph->n_params; p++) {
        int place = 0;
        while (shard->graph->params[place].origin != part->graph->params[p].origin) place++;
        part->place[p] = place;
        if (shard->params) part->params[p] = el_shard_computed(shard)[place];
    }
    for (int b = 0; b < part->graph->n_buffers && shard->params; b++) {
        int place = 0;
        while (shard->graph->buffers[place].origin != part->graph->buffers[b].origin) place++;
        part->buffers[b] = shard->buffers[place];
    }
    return EL_OK;
}

enum el_status el_held_open(const struct el_worker *worker, int member, struct el_held *held)
{
    const struct el_parts *parts = worker->parts;
    const int position = worker->first + member;
    const struct el_spot spot = el_layout_spot(worker->layout, position);
    *held = (struct el_held){.parts = calloc((size_t)parts->n, sizeof *held->parts)};
    if (!held->parts) return el_fail_errno("%d parts of the model", parts->n);
    for (int k = 0; k < parts->n; k++) {
        if (parts->schedule.device[k] != spot.at[EL_AXIS_STAGE]) continue;
        struct el_held_part *part = &held->parts[held->n++];
        part->graph = parts->part[k];
        part->number = k;
        part->before = owner_of(worker, position, k - 1);
        part->behind = owner_of(worker, position, k + 1);
        EL_TRY(find_arrays(&worker->members[member].shard, part));
    }
    return EL_OK;
}

void el_held_close(struct el_held *held)
{
    for (int i = 0; i < held->n; i++) {
        free(held->parts[i].place);
        free(held->parts[i].params);
    }
    free(held->parts);
    *held = (struct el_held){0};
}

static enum el_status add_item(const struct el_shard *shard, const struct el_state_item *item, double *origin)
{
    const struct el_shape *shape = &item->array->shape;
    const struct el_slice *slice = &item->array->slice;
    const int64_t n = el_shape_count(shape);
    double *values = malloc((size_t)n * sizeof *values);
    if (!values) return el_fail_errno("'%s' of %lld elements", item->array->name, (long long)n);
    enum el_status status = el_shard_read_item(shard, item, values);
    if (status == EL_OK) el_slice_put(shape, slice, values, origin);
    free(values);
    return status;
}

bool el_gather_counts(const struct el_worker *worker, int m, const struct el_state_item *item)
{
    const struct el_spot spot = el_layout_spot(worker->layout, worker->first + m);
    const bool split = worker->members[m].shard.split & 1U << item->what;
    return (item->array->slice.of || spot.at[EL_AXIS_TENSOR] + spot.at[EL_AXIS_EXPERT] == 0) &&
           (split || spot.at[EL_AXIS_SHARD] == 0);
}

static enum el_status gather_read_own(const struct el_worker *worker, enum el_state what, int origin, double *values)
{
    for (int m = 0; m < worker->n_members; m++) {
        const struct el_shard *shard = &worker->members[m].shard;
        if (el_layout_source(worker->layout, worker->first + m) != worker->first + m) continue;
        for (struct el_state_item item = {0}; el_shard_next(shard, &item);)
            if (item.what == what && item.array->origin == origin && !item.array->is_copy && item.view->buffer &&
                el_gather_counts(worker, m, &item))
                EL_TRY(add_item(shard, &item, values));
    }
    return EL_OK;
}

/* Whether any part of a cut model has it: an unused parameter is in none. */
static bool is_held(const struct el_parts *parts, bool buffer, int origin)
{
    for (int s = 0; s < parts->n_stages; s++) {
        const struct el_graph *part = parts->stage[s];
        const struct el_param *arrays = buffer ? part->buffers : part->params;
        for (int i = 0; i < (buffer ? part->n_buffers : part->n_params); i++)
            if (arrays[i].origin == origin) return true;
    }
    return false;
}

enum el_status el_gather(struct el_worker *worker, enum el_state what, int origin, double *values)
{
    const struct el_graph *model = worker->graph;
    const bool buffer = what == EL_STATE_BUFFER, cut = el_layout_is_cut(worker->layout);
    const struct el_param *of = &(buffer ? model->buffers : model->params)[origin];
    const int64_t n = el_shape_count(&of->shape);
    if (!cut && !el_worker_is_first(worker)) return EL_OK;
    if ((what == EL_STATE_PARAM || buffer) && !is_held(worker->parts, buffer, origin)) /* no step has changed it */
        return values ? el_state_initial_values(worker->config, model, of, values) : EL_OK;
    double *own = values ? values : malloc((size_t)n * sizeof *own);
    if (!own) return el_fail_errno("'%s' of %lld elements", of->name, (long long)n);
    memset(own, 0, (size_t)n * sizeof *own);
    enum el_status status = gather_read_own(worker, what, origin, own);
    if (status == EL_OK && cut) status = el_worker_sum(worker, own, n);
    if (!values) free(own);
    return status;
}

struct need {
    int unit, node;
};

struct place {
    struct el_buffer *buffer; /* NULL: absent */
    int gather_op;
};

struct el_gathered {
    const struct el_shard *shard;
    struct el_comm *comm; /* NULL: the stored range is all */
    bool gathers;
    int ahead;
    bool frees;
    int n_passes, n_back; /* of a step, and those in backward */
    struct el_view *params;
    struct place *places;
    struct need *needs[2]; /* in forward and in backward, in order */
    int n_needs[2];
    int at; /* the current half's next need */
};

/* Last in forward and first in backward, or nothing is freed between them. */
static bool stays(const struct el_gathered *gathered, const struct el_unit *unit)
{
    const struct el_graph *graph = gathered->shard->graph;
    return unit->backward_open >= 0 && (!gathered->frees || unit->backward_open == graph->n_nodes - 1);
}

static bool casts(const struct el_shard *shard)
{
    return el_config_computed(shard->config) != el_config_stored(shard->config);
}

static void list_needs(struct el_gathered *gathered)
{
    const struct el_units *units = gathered->shard->units;
    const int n_nodes = gathered->shard->graph->n_nodes;
    for (int i = 0; i < n_nodes; i++)
        for (int u = 0; u < units->n; u++)
            if (units->units[u].forward_open == i) gathered->needs[0][gathered->n_needs[0]++] = (struct need){u, i};
    for (int i = n_nodes - 1; i >= 0; i--)
        for (int u = 0; u < units->n; u++)
            if (units->units[u].backward_open == i && !stays(gathered, &units->units[u]))
                gathered->needs[1][gathered->n_needs[1]++] = (struct need){u, i};
}

enum el_status el_gathered_open(const struct el_shard *shard, struct el_comm *comm, int ahead, bool frees, int n_passes,
                                struct el_gathered **gathered_p)
{
    struct el_gathered *gathered = calloc(1, sizeof *gathered);
    const size_t n = (size_t)shard->units->n + 1;
    if (!gathered) return el_fail_errno("gathered parameters");
    *gathered = (struct el_gathered){.shard = shard,
                                     .comm = comm,
                                     .gathers = comm || casts(shard),
                                     .ahead = ahead,
                                     .frees = frees,
                                     .n_passes = n_passes,
                                     .params = calloc((size_t)shard->graph->n_params + 1, sizeof *gathered->params),
                                     .places = calloc(n, sizeof *gathered->places),
                                     .needs = {calloc(n, sizeof(struct need)), calloc(n, sizeof(struct need))}};
    if (!gathered->params || !gathered->places || !gathered->needs[0] || !gathered->needs[1]) {
        el_gathered_close(gathered);
        return el_fail_errno("gathered parameters");
    }
    list_needs(gathered);
    for (int p = 0; p < shard->graph->n_params && !gathered->gathers; p++) gathered->params[p] = shard->params[p];
    *gathered_p = gathered;
    return EL_OK;
}

void el_gathered_close(struct el_gathered *gathered)
{
    if (!gathered) return;
    free(gathered->params);
    free(gathered->places);
    free(gathered->needs[0]);
    free(gathered->needs[1]);
    free(gathered);
}

const struct el_view *el_gathered_params(const struct el_gathered *gathered)
{
    return gathered->params;
}

static void gather(struct el_gathered *gathered, struct el_program *program, enum el_phase phase, int u)
{
    const struct el_shard *shard = gathered->shard;
    const struct el_unit *unit = &shard->units->units[u];
    struct place *place = &gathered->places[u];
    const enum el_dtype dtype = el_config_computed(shard->config);
    const size_t width = el_dtype_bytes(dtype);
    char label[2 * EL_GRAPH_NAME_BYTES];
    if (place->buffer) return;
    snprintf(label, sizeof label, "all_gather %s", *unit->name ? unit->name : "rest");
    el_program_alloc_padded(program, shard->device, EL_TAG_REPLICA, (size_t)unit->count * width,
                            (size_t)unit->padding * width, label, &place->buffer);
    const int64_t part = unit->count / shard->units->n_pieces;
    const struct el_view stored = el_view_of(shard->params[unit->first_param].buffer, 0),
                         own = el_view_of(place->buffer, (size_t)(shard->piece * part) * width);
    if (casts(shard))
        el_shard_issue_move(shard, program, phase, "cast parameters", el_config_stored(shard->config), stored, dtype,
                            own, part, 1);
    struct el_comm_op op = {.verb = EL_COMM_ALL_GATHER,
                            .dtype = dtype,
                            .count = (size_t)part,
                            .data = casts(shard) ? own : stored,
                            .result = el_view_of(place->buffer, 0),
                            .label = label,
                            .phase = EL_PHASE_COMM};
    if (gathered->comm) el_comm_issue(gathered->comm, program, &op, &place->gather_op);
    for (int p = 0; p < shard->graph->n_params; p++)
        if (shard->units->of[p] == u)
            gathered->params[p] = el_view_of(place->buffer, (size_t)shard->units->offset[p] * width);
}

static void gather_now(struct el_gathered *gathered, struct el_program *program, enum el_phase phase, int u)
{
    gather(gathered, program, phase, u);
    el_program_wait(program, gathered->shard->device, EL_STREAM_COMPUTE, gathered->places[u].gather_op);
}

static void drop(struct el_gathered *gathered, struct el_program *program, int u)
{
    el_program_free(program, gathered->places[u].buffer);
    gathered->places[u].buffer = NULL;
}

void el_gathered_before(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct el_gathered *gathered = context;
    const int half = phase == EL_PHASE_BACKWARD;
    const struct need *needs = gathered->needs[half];
    const struct el_units *units = gathered->shard->units;
    if (!gathered->gathers) return;
    if (node->index == (half ? gathered->shard->graph->n_nodes - 1 : 0)) {
        gathered->at = 0;
        gathered->n_back = half ? gathered->n_back % gathered->n_passes + 1 : gathered->n_back;
    }
    for (int u = 0; u < units->n && half; u++) {
        const struct el_unit *unit = &units->units[u];
        const bool gone = stays(gathered, unit) && !gathered->places[u].buffer; /* with an earlier pass */
        if (unit->backward_open == node->index && gone) gather_now(gathered, program, phase, u);
    }
    int at = gathered->at;
    for (; at < gathered->n_needs[half] && needs[at].node == node->index; at++)
        gather_now(gathered, program, phase, needs[at].unit);
    if (at == gathered->at) return;
    gathered->at = at;
    for (int i = at; i < at + gathered->ahead && i < gathered->n_needs[half]; i++)
        gather(gathered, program, phase, needs[i].unit);
}

void el_gathered_after(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct el_gathered *gathered = context;
    const struct el_units *units = gathered->shard->units;
    const bool is_free = gathered->frees || gathered->n_back == gathered->n_passes;
    for (int u = 0; u < units->n && gathered->gathers; u++) {
        const struct el_unit *unit = &units->units[u];
        if (phase == EL_PHASE_BACKWARD ? unit->backward_close == node->index && is_free
                                       : unit->forward_close == node->index && !stays(gathered, unit))
            drop(gathered, program, u);
    }
}

/* `source`: the first copy's own; with a communicator, any of this member's memory. */
static enum el_status receive_first(struct el_comm *const comm[2], const struct el_shard *shard, struct el_view source,
                                    struct el_buffer *buffer)
{
    struct el_comm_op op = el_buffers_broadcast(shard, el_view_of(buffer, 0));
    struct el_program *program;
    EL_TRY(el_program_create(&program));
    el_program_copy(program, shard->device, EL_STREAM_COMPUTE,
                    &(struct el_op_head){.label = "copy buffers", .phase = EL_PHASE_COMM}, op.data, source,
                    el_buffers_bytes(shard->graph, shard->config->dtype), NULL);
    for (int i = 0; i < 2 && comm[i]; i++) el_comm_issue(comm[i], program, &op, NULL);
    enum el_status status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return status;
}

enum el_status el_copies_take_first(struct el_worker *worker, int member, struct el_held *held,
                                    struct el_buffer **buffer_p)
{
    const struct el_shard *shard = &worker->members[member].shard;
    struct el_comm *const data = worker->group[EL_AXIS_DATA], *const shards = worker->group[EL_AXIS_SHARD];
    struct el_comm *const comm[2] = {data ? data : shards, data ? shards : NULL}; /* all copies of this part */
    struct el_buffer *buffer;
    *buffer_p = NULL;
    if (shard->graph->n_buffers == 0 || (!comm[0] && member == 0)) return EL_OK;
    EL_TRY(el_device_alloc(shard->device, EL_TAG_BUFFER, el_buffers_bytes(shard->graph, shard->config->dtype),
                           "buffers of the first copy", &buffer));
    *buffer_p = buffer;
    for (int i = 0; i < held->n; i++)
        for (int b = 0; b < held->parts[i].graph->n_buffers; b++) held->parts[i].buffers[b].buffer = buffer;
    return receive_first(comm, shard, (comm[0] ? shard : &worker->members[0].shard)->buffers[0], buffer);
}

static enum el_status read_copy(const struct el_shard *shard, const struct el_view *views, const struct el_graph *model,
                                double *values)
{
    for (int b = 0; b < shard->graph->n_buffers; b++) {
        const struct el_param *array = &shard->graph->buffers[b];
        EL_TRY(el_shard_read_doubles(shard, array, views[b], values + el_buffers_place(model, array->origin)));
    }
    return EL_OK;
}

static bool is_copys_first(const struct el_layout *layout, int position)
{
    const struct el_spot spot = el_layout_spot(layout, position);
    for (int d = 0; d < position; d++)
        if (el_layout_spot(layout, d).owns && el_layout_spot(layout, d).at[EL_AXIS_STAGE] == spot.at[EL_AXIS_STAGE] &&
            el_layout_spot(layout, d).feed == spot.feed)
            return false;
    return spot.owns;
}

static enum el_status read_own(struct el_worker *worker, el_copies_views *computed, int n_copies, double *values)
{
    int64_t n = el_buffers_count(worker->graph);
    for (int c = 0; c < n_copies && computed; c++)
        EL_TRY(read_copy(&worker->members[0].shard, computed(worker, c), worker->graph, values + c * n));
    for (int m = 0; m < worker->n_members && !computed; m++) {
        int position = worker->first + m;
        const struct el_shard *shard = &worker->members[m].shard;
        if (!is_copys_first(worker->layout, position)) continue;
        EL_TRY(read_copy(shard, shard->buffers, worker->graph,
                         values + el_layout_spot(worker->layout, position).feed * n));
    }
    return EL_OK;
}

enum el_status el_copies_read(struct el_worker *worker, el_copies_views *computed, double **values_p, int64_t *n_p)
{
    int n_copies = computed ? worker->config->n_devices : el_layout_copies(worker->layout);
    int64_t n = n_copies * el_buffers_count(worker->graph);
    *values_p = NULL;
    *n_p = 0;
    if (n == 0 || !el_device_computes(worker->members[0].shard.device)) return EL_OK;
    double *values = calloc((size_t)n, sizeof *values);
    if (!values) return el_fail_errno("%lld running statistics", (long long)n);
    enum el_status status = read_own(worker, computed, n_copies, values);
    if (status == EL_OK) status = el_worker_sum(worker, values, n);
    if (status == EL_OK && worker->first == 0) {
        *values_p = values;
        *n_p = n;
        return EL_OK;
    }
    free(values);
    return status;
}
