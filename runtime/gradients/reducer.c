#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gradients/reducer.h"
#include "runtime/state/together.h"

int el_buckets_assign(const size_t *bytes, const int *order, int n, const size_t *limits, int n_limits, int *group)
{
    int bucket = 0, limit = 0;
    size_t filled = 0;
    for (int i = 0; i < n; i++) {
        group[i] = bucket;
        filled += bytes[order[i]];
        if (filled < limits[limit]) continue;
        bucket++;
        filled = 0;
        if (limit < n_limits - 1) limit++;
    }
    return filled ? bucket + 1 : bucket;
}

int el_chunks_take(const size_t *bytes, int n, size_t limit, int *group)
{
    int chunk = 0;
    size_t filled = 0;
    for (int i = 0; i < n; i++) {
        if (filled && filled + bytes[i] > limit) {
            chunk++;
            filled = 0;
        }
        group[i] = chunk;
        filled += bytes[i];
    }
    return n ? chunk + 1 : 0;
}

struct el_used_map {
    const struct el_shard *shard;
    struct el_comm *comm, *across;
    int n; /* trained parameters: the map's entries */
    struct el_buffer *sums;
    int32_t *own; /* [n], in host memory */
};

static size_t map_bytes(const struct el_used_map *map)
{
    return (size_t)map->n * sizeof(int32_t);
}

static enum el_status used_map_open(const struct el_shard *shard, struct el_comm *comm, struct el_comm *across,
                                    struct el_used_map **map_p)
{
    struct el_used_map *map = calloc(1, sizeof *map);
    if (!map) return el_fail_errno("a map of used parameters");
    *map = (struct el_used_map){.shard = shard,
                                .comm = comm,
                                .across = across,
                                .own = calloc((size_t)shard->graph->n_params + 1, sizeof(int32_t))};
    *map_p = map;
    if (!map->own) return el_fail_errno("a map of used parameters");
    for (int p = 0; p < shard->graph->n_params; p++)
        if (!shard->graph->params[p].frozen) map->own[map->n++] = el_graph_uses_param(shard->graph, p);
    return el_comm_alloc(across ? across : comm, EL_TAG_BUCKET, map_bytes(map), "map of used parameters", &map->sums);
}

static void used_map_close(struct el_used_map *map)
{
    if (!map) return;
    el_device_free(map->sums);
    free(map->own);
    free(map);
}

static void used_map_issue(struct el_used_map *map, struct el_program *program, int *op_p)
{
    struct el_op_head head = {.label = "map of used parameters", .phase = EL_PHASE_REDUCE};
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .dtype = EL_I32,
                            .count = (size_t)map->n,
                            .data = el_view_of(map->sums, 0),
                            .label = "all_reduce used parameters",
                            .phase = EL_PHASE_COMM};
    el_program_copy(program, map->shard->device, EL_STREAM_COMPUTE, &head, op.data, el_view_host(map->own),
                    map_bytes(map), NULL);
    el_comm_issue(map->comm, program, &op, op_p);
    if (!map->across) return;
    el_comm_wait(map->across, program, *op_p);
    el_comm_issue(map->across, program, &op, op_p);
}

/* Errors: EL_ERR_INTERNAL: another member used a parameter that this one did not. */
static enum el_status used_map_check(const struct el_used_map *map)
{
    const struct el_param *params = map->shard->graph->params;
    for (int i = 0, p = 0; i < map->n; i++, p++) {
        int32_t sum;
        while (params[p].frozen) p++;
        if (map->own[i]) continue;
        EL_TRY(el_device_read(el_view_of(map->sums, (size_t)i * sizeof sum), &sum, sizeof sum));
        if (sum == 0) continue;
        return el_fail(EL_ERR_INTERNAL,
                       "'%s' got a gradient on another rank, and none on rank %d: ranks train one graph",
                       params[p].name, el_comm_rank(map->comm));
    }
    return EL_OK;
}

/* Trained parameters without gradients, for a message: "'side.weight' and 1 more"; "": none. */
static void used_map_missing(const struct el_graph *graph, char *text, size_t bytes)
{
    int n = 0, first = 0;
    for (int p = graph->n_params - 1; p >= 0; p--) {
        if (graph->params[p].frozen || el_graph_uses_param(graph, p)) continue;
        first = p;
        n++;
    }
    *text = 0;
    if (n > 1) snprintf(text, bytes, "'%s' and %d more", graph->params[first].name, n - 1);
    if (n == 1) snprintf(text, bytes, "'%s'", graph->params[first].name);
}

struct bucket {
    struct el_buffer *buffer;
    int64_t count; /* elements */
    int first;     /* its first parameter in `placed` */
    int n_params;
    int n_pending;  /* pending gradients of the current step */
    int reduced_op; /* its last operation in the step */
};

struct slot {
    int bucket;
    int64_t offset; /* in the bucket, in elements */
};

struct el_reducer {
    struct el_reducer_spec spec;
    int n_params;
    int n_order; /* trained parameters; others have no place */
    int *order;  /* [n_order]: as gradients became ready; before that is known, as registered */
    int n_ready;
    struct slot *slots;
    int *placed; /* [n_order], by bucket and place */
    int n_buckets;
    struct bucket *buckets; /* [n_params], the first n_buckets in use */
    struct el_program *program;
    const struct el_view *grads;
    int next_bucket;
    bool *arrived;
    int map_op; /* the map's operation, -1: none yet */
    bool map_known;
    bool unfinished;
    struct el_used_map *map; /* NULL: unused parameters are a failure */
};

static bool has_no_place(const struct el_reducer *reducer, int p)
{
    const struct el_param *param = &reducer->spec.shard->graph->params[p];
    const enum el_reducer_of own = param->slice.of ? EL_REDUCER_OF_SLICES : EL_REDUCER_OF_WHOLE;
    return param->frozen || (reducer->spec.of != EL_REDUCER_OF_ALL && reducer->spec.of != own);
}

bool el_reducer_takes(const struct el_reducer *reducer, int p)
{
    return !has_no_place(reducer, p);
}

static enum el_status make_arrays(struct el_reducer *reducer)
{
    size_t n = (size_t)reducer->n_params + 1;
    reducer->order = calloc(n, sizeof *reducer->order);
    reducer->slots = calloc(n, sizeof *reducer->slots);
    reducer->placed = calloc(n, sizeof *reducer->placed);
    reducer->buckets = calloc(n, sizeof *reducer->buckets);
    reducer->arrived = calloc(n, sizeof *reducer->arrived);
    if (!reducer->order || !reducer->slots || !reducer->placed || !reducer->buckets || !reducer->arrived)
        return el_fail_errno("a reducer of %d parameters", reducer->n_params);
    for (int p = 0; p < reducer->n_params; p++)
        if (!has_no_place(reducer, p)) reducer->order[reducer->n_order++] = p;
    return EL_OK;
}

enum el_status el_reducer_open(const struct el_reducer_spec *spec, struct el_reducer **reducer_p)
{
    struct el_reducer *reducer = calloc(1, sizeof *reducer);
    if (!reducer) return el_fail_errno("a reducer");
    reducer->spec = *spec;
    reducer->n_params = spec->shard->graph->n_params;
    enum el_status status = make_arrays(reducer);
    if (status == EL_OK && spec->unused != EL_UNUSED_FAIL)
        status = used_map_open(spec->shard, spec->comm, spec->across, &reducer->map);
    if (status == EL_OK)
        *reducer_p = reducer;
    else
        el_reducer_close(reducer);
    return status;
}

static void free_buckets(struct el_reducer *reducer)
{
    for (int b = 0; b < reducer->n_buckets; b++) el_device_free(reducer->buckets[b].buffer);
    reducer->n_buckets = 0;
}

void el_reducer_close(struct el_reducer *reducer)
{
    if (!reducer) return;
    free_buckets(reducer);
    used_map_close(reducer->map);
    free(reducer->order);
    free(reducer->slots);
    free(reducer->placed);
    free(reducer->buckets);
    free(reducer->arrived);
    free(reducer);
}

static void fill_bucket(struct el_reducer *reducer, int b, const int *group, int of_group, int first)
{
    struct bucket *bucket = &reducer->buckets[b];
    *bucket = (struct bucket){.first = first};
    for (int i = 0; i < reducer->n_order; i++) {
        int p = reducer->order[i];
        if (group[i] != of_group) continue;
        reducer->slots[p] = (struct slot){b, bucket->count};
        reducer->placed[first + bucket->n_params++] = p;
        bucket->count += el_param_count(reducer->spec.shard->graph, p);
    }
}

static enum el_status assign(struct el_reducer *reducer, const size_t *limits, int n_limits, int *n_p)
{
    const struct el_shard *shard = reducer->spec.shard;
    size_t *bytes = calloc((size_t)reducer->n_params + 1, sizeof *bytes);
    int *group = calloc((size_t)reducer->n_params + 1, sizeof *group), n = 0;
    enum el_status status = bytes && group ? EL_OK : el_fail_errno("buckets of %d parameters", reducer->n_params);
    for (int p = 0; p < reducer->n_params && status == EL_OK; p++) bytes[p] = el_shard_param_bytes(shard, p);
    if (status == EL_OK) n = el_buckets_assign(bytes, reducer->order, reducer->n_order, limits, n_limits, group);
    for (int b = 0, first = 0; b < n; first += reducer->buckets[b++].n_params)
        fill_bucket(reducer, b, group, reducer->spec.unused == EL_UNUSED_FIND ? n - 1 - b : b, first);
    free(bytes);
    free(group);
    *n_p = n;
    return status;
}

/* How a sum forms within `comm`: the verb, and whether members then exchange their parts. */
static const struct {
    enum el_comm_verb verb;
    bool in_parts, back;
} ends[] = {[EL_REDUCER_ALL] = {EL_COMM_REDUCE_SCATTER, true, true},
            [EL_REDUCER_OWN] = {EL_COMM_REDUCE_SCATTER, true, false},
            [EL_REDUCER_FIRST] = {EL_COMM_REDUCE, false, false}};

/* Whether each member has its own part of a bucket, at the end or for the reduction across. */
static bool in_parts(const struct el_reducer_spec *spec)
{
    return spec->end == EL_REDUCER_OWN || (ends[spec->end].in_parts && spec->across && el_comm_size(spec->across) > 1);
}

/* Elements after a bucket's last, so that parts are equal. */
static int64_t padding(const struct el_reducer_spec *spec, int64_t count)
{
    int64_t n = el_comm_size(spec->comm);
    return (n - count % n) % n;
}

/* The collective averages; gradients cast to a smaller type are divided before, as in PyTorch's bf16_compress_hook. */
static bool divides(const struct el_reducer_spec *spec)
{
    return spec->average && el_config_reduced(spec->shard->config) != el_config_stored(spec->shard->config);
}

static bool averages(const struct el_reducer_spec *spec)
{
    return spec->average && !divides(spec);
}

/* As in PyTorch an unfinished reduction is noticed when the next step is prepared. */
static enum el_status check_finished(const struct el_reducer *reducer)
{
    const struct el_shard *shard = reducer->spec.shard;
    char missing[96];
    used_map_missing(shard->graph, missing, sizeof missing);
    if (!reducer->unfinished) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "%s: expected to have finished reduction in the prior iteration before starting a new one: rank %d "
                   "got no gradient of %s; %sleave them out of the model",
                   shard->config->mode, el_comm_rank(reducer->spec.comm), missing,
                   reducer->spec.finds ? "give --find-unused on, or " : "");
}

enum el_status el_reducer_group(struct el_reducer *reducer, const size_t *limits, int n_limits)
{
    const struct el_shard *shard = reducer->spec.shard;
    EL_TRY(check_finished(reducer));
    if (reducer->spec.unused == EL_UNUSED_FIND && reducer->n_buckets) return EL_OK;
    free_buckets(reducer);
    int n;
    EL_TRY(assign(reducer, limits, n_limits, &n));
    for (; reducer->n_buckets < n; reducer->n_buckets++) {
        struct bucket *bucket = &reducer->buckets[reducer->n_buckets];
        struct el_comm *comm = reducer->spec.across ? reducer->spec.across : reducer->spec.comm;
        if (in_parts(&reducer->spec)) bucket->count += padding(&reducer->spec, bucket->count);
        size_t bytes = (size_t)bucket->count * el_dtype_bytes(el_config_reduced(shard->config));
        EL_TRY(el_comm_alloc(comm, EL_TAG_BUCKET, bytes, "bucket", &bucket->buffer));
    }
    return EL_OK;
}

enum el_status el_reducer_group_round(struct el_reducer *reducer, int round)
{
    const struct el_train_config *config = reducer->spec.shard->config;
    const size_t whole[] = {SIZE_MAX}, rebuilt[] = {config->bucket_first_bytes, config->bucket_cap_bytes};
    if (round == 0 && reducer->spec.unused != EL_UNUSED_FIND) return el_reducer_group(reducer, whole, 1);
    return el_reducer_group(reducer, rebuilt, 2);
}

void el_reducer_begin(struct el_reducer *reducer, struct el_program *program, const struct el_view *grads)
{
    reducer->program = program;
    reducer->grads = grads;
    reducer->n_ready = 0;
    reducer->next_bucket = 0;
    reducer->map_op = -1;
    memset(reducer->arrived, 0, (size_t)reducer->n_params * sizeof *reducer->arrived);
    for (int b = 0; b < reducer->n_buckets; b++) reducer->buckets[b].n_pending = reducer->buckets[b].n_params;
}

/* On elements [first, first + count), or on all members' such parts, after the bucket's last operation. */
static void launch(struct el_reducer *reducer, struct bucket *bucket, struct el_comm *comm, struct el_comm_op op,
                   int64_t first)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(op.verb);
    char label[48];
    const enum el_dtype dtype = el_config_reduced(reducer->spec.shard->config);
    size_t own = (size_t)first * el_dtype_bytes(dtype);
    snprintf(label, sizeof label, "%s bucket %d", row->name, reducer->next_bucket);
    op.dtype = dtype;
    op.data = el_view_of(bucket->buffer, row->all_data ? 0 : own);
    if (row->all_data) op.result = el_view_of(bucket->buffer, own);
    if (row->all_result) op.result = el_view_of(bucket->buffer, 0);
    op.label = label;
    op.phase = EL_PHASE_COMM;
    el_comm_wait(comm, reducer->program, bucket->reduced_op);
    el_program_fail(reducer->program, el_comm_issue(comm, reducer->program, &op, &bucket->reduced_op));
}

/* Within the process, across processes, and back within the process if all get the sums. */
static void reduce_across(struct el_reducer *reducer, struct bucket *bucket)
{
    const struct el_reducer_spec *spec = &reducer->spec;
    const enum el_comm_reduction reduction = averages(spec) ? EL_COMM_AVERAGE : EL_COMM_SUM;
    const bool parts = ends[spec->end].in_parts, crosses = spec->across && el_comm_size(spec->across) > 1;
    int64_t n = el_comm_size(spec->comm), rank = el_comm_rank(spec->comm), part = bucket->count / (parts ? n : 1);
    struct el_comm_op within = {.verb = ends[spec->end].verb,
                                .reduction = spec->across ? EL_COMM_SUM : reduction,
                                .count = (size_t)part},
                      across = {.verb = EL_COMM_ALL_REDUCE, .reduction = reduction, .count = (size_t)part},
                      back = {.verb = EL_COMM_ALL_GATHER, .count = (size_t)part};
    int64_t first = parts ? rank * part : 0;
    if (n > 1) launch(reducer, bucket, spec->comm, within, first);
    if (!parts && rank > 0) return;
    if (crosses) launch(reducer, bucket, spec->across, across, first);
    if (n > 1 && ends[spec->end].back) launch(reducer, bucket, spec->comm, back, first);
}

struct el_view el_reducer_place(const struct el_reducer *reducer, int p)
{
    const struct slot *slot = &reducer->slots[p];
    size_t bytes = el_dtype_bytes(el_config_reduced(reducer->spec.shard->config));
    return el_view_of(reducer->buckets[slot->bucket].buffer, (size_t)slot->offset * bytes);
}

void el_reducer_own(const struct el_reducer *reducer, int p, int64_t *first_p, int64_t *count_p)
{
    const struct el_reducer_spec *spec = &reducer->spec;
    const struct slot *slot = &reducer->slots[p];
    int64_t n = el_param_count(spec->shard->graph, p), rank = el_comm_rank(spec->comm);
    int64_t part = reducer->buckets[slot->bucket].count / el_comm_size(spec->comm);
    int64_t begin = 0, end = spec->end == EL_REDUCER_FIRST && rank > 0 ? 0 : n;
    if (spec->end == EL_REDUCER_OWN) {
        begin = rank * part - slot->offset;
        end = begin + part < n ? begin + part : n;
        begin = begin < 0 ? 0 : begin;
    }
    *first_p = begin < n ? begin : n;
    *count_p = end > *first_p ? end - *first_p : 0;
}

static void copy(const struct el_reducer *reducer, const int *params, int n, bool back)
{
    const struct el_reducer_spec *spec = &reducer->spec;
    const enum el_dtype stored = el_config_stored(spec->shard->config),
                        reduced = el_config_reduced(spec->shard->config);
    const char *label = back ? "copy from bucket" : "copy to bucket";
    double scale = back || !divides(spec) ? 1 : 1.0 / el_comm_size(spec->across ? spec->across : spec->comm);
    struct el_together copies = {spec->shard, reducer->program, EL_PHASE_REDUCE, label, .tensors = NULL};
    for (int i = 0; i < n && !spec->views; i++) {
        struct el_view place = el_reducer_place(reducer, params[i]), grad = reducer->grads[params[i]];
        int64_t first = 0, count = el_param_count(spec->shard->graph, params[i]);
        if (back) el_reducer_own(reducer, params[i], &first, &count);
        if (!reducer->arrived[params[i]] || count == 0) continue;
        place.offset += (size_t)first * el_dtype_bytes(reduced);
        grad.offset += (size_t)first * el_dtype_bytes(stored);
        el_together_move(&copies, back ? reduced : stored, back ? place : grad, back ? stored : reduced,
                         back ? grad : place, count, scale);
    }
    el_together_end(&copies);
}

static void reduce_next(struct el_reducer *reducer)
{
    const struct el_reducer_spec *spec = &reducer->spec;
    struct bucket *bucket = &reducer->buckets[reducer->next_bucket];
    if (el_together_is_on(spec->shard)) copy(reducer, reducer->placed + bucket->first, bucket->n_params, false);
    bucket->reduced_op = -1;
    if (in_parts(spec) || spec->end != EL_REDUCER_ALL) {
        reduce_across(reducer, bucket);
    } else {
        struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                .reduction = averages(spec) && !spec->across ? EL_COMM_AVERAGE : EL_COMM_SUM,
                                .count = (size_t)bucket->count};
        launch(reducer, bucket, spec->comm, op, 0);
    }
    reducer->next_bucket++;
}

static void launch_complete(struct el_reducer *reducer)
{
    while (reducer->next_bucket < reducer->n_buckets && reducer->buckets[reducer->next_bucket].n_pending == 0)
        reduce_next(reducer);
    if (reducer->next_bucket < reducer->n_buckets || !reducer->map || reducer->map_known || reducer->map_op >= 0)
        return;
    used_map_issue(reducer->map, reducer->program, &reducer->map_op);
}

static void put_zeros(struct el_reducer *reducer)
{
    const struct el_shard *shard = reducer->spec.shard;
    for (int p = 0; p < reducer->n_params; p++) {
        if (has_no_place(reducer, p) || el_graph_uses_param(shard->graph, p)) continue;
        el_shard_issue_fill_as(shard, reducer->program, EL_PHASE_REDUCE, "no gradient",
                               el_config_reduced(shard->config), el_reducer_place(reducer, p),
                               el_param_count(shard->graph, p), 0);
        reducer->buckets[reducer->slots[p].bucket].n_pending--;
    }
}

static void fail_twice(struct el_reducer *reducer, int p)
{
    const struct el_shard *shard = reducer->spec.shard;
    el_program_fail(reducer->program,
                    el_fail(EL_ERR_INVALID,
                            "%s: expected to mark a variable ready only once: '%s' got a second gradient in one step "
                            "of rank %d",
                            shard->config->mode, shard->graph->params[p].name, el_comm_rank(reducer->spec.comm)));
}

void el_reducer_ready(void *context, int p)
{
    struct el_reducer *reducer = context;
    if (reducer->arrived[p]) {
        fail_twice(reducer, p);
        return;
    }
    if (reducer->n_ready == 0 && reducer->map) put_zeros(reducer);
    reducer->arrived[p] = true;
    if (reducer->spec.unused != EL_UNUSED_FIND) reducer->order[reducer->n_ready] = p;
    reducer->n_ready++;
    if (!el_together_is_on(reducer->spec.shard)) copy(reducer, &p, 1, false);
    reducer->buckets[reducer->slots[p].bucket].n_pending--;
    if (reducer->spec.overlap) launch_complete(reducer);
}

void el_reducer_finish(struct el_reducer *reducer)
{
    const struct el_reducer_spec *spec = &reducer->spec;
    launch_complete(reducer);
    reducer->unfinished = reducer->next_bucket < reducer->n_buckets;
    for (int p = 0, i = reducer->n_ready; p < reducer->n_params && spec->unused == EL_UNUSED_STATIC; p++)
        if (!reducer->arrived[p] && !has_no_place(reducer, p)) reducer->order[i++] = p;
    if (spec->end == EL_REDUCER_FIRST && el_comm_rank(spec->comm) > 0) return;
    for (const struct bucket *b = reducer->buckets; b < reducer->buckets + reducer->next_bucket; b++) {
        el_program_wait(reducer->program, spec->shard->device, EL_STREAM_COMPUTE, b->reduced_op);
        copy(reducer, reducer->placed + b->first, b->n_params, true);
    }
    el_program_wait(reducer->program, spec->shard->device, EL_STREAM_COMPUTE, reducer->map_op);
    reducer->map_known = spec->unused == EL_UNUSED_STATIC && !reducer->unfinished;
}

enum el_status el_reducer_check(const struct el_reducer *reducer)
{
    return reducer->map ? used_map_check(reducer->map) : EL_OK;
}
