/* Reducers; see reducer.h. */
#include "runtime/parallel/reducer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/buckets.h"

struct bucket {
    struct el_buffer *buffer;
    int64_t count; /* elements */
    int n_params;
    int n_pending;  /* gradients that have not arrived, while a step is issued */
    int reduced_op; /* the step's last operation on it */
};

/* Where a parameter's gradient goes. */
struct slot {
    int bucket;
    int64_t offset; /* in it, in elements */
};

struct el_reducer {
    struct el_reducer_spec spec;
    int n_params;
    int *order; /* [n_params]: as gradients became ready, or as registered before that is known */
    int n_ready;
    struct slot *slots; /* [n_params] */
    int n_buckets;
    struct bucket *buckets; /* [n_params], n_buckets of them used */
    /* The step being issued. */
    struct el_program *program;
    const struct el_view *grads;
    int next_bucket;
};

enum el_status el_reducer_open(const struct el_reducer_spec *spec, struct el_reducer **reducer_p)
{
    size_t n = (size_t)spec->shard->graph->n_params;
    struct el_reducer *reducer = calloc(1, sizeof *reducer);
    if (!reducer) return el_fail_errno("a reducer");
    *reducer = (struct el_reducer){.spec = *spec, .n_params = (int)n};
    reducer->order = calloc(n, sizeof *reducer->order);
    reducer->slots = calloc(n, sizeof *reducer->slots);
    reducer->buckets = calloc(n, sizeof *reducer->buckets);
    if (!reducer->order || !reducer->slots || !reducer->buckets) {
        el_reducer_close(reducer);
        return el_fail(EL_ERR_HOST_MEMORY, "a reducer of %zu parameters: no memory", n);
    }
    for (int p = 0; p < reducer->n_params; p++) reducer->order[p] = p;
    *reducer_p = reducer;
    return EL_OK;
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
    free(reducer->order);
    free(reducer->slots);
    free(reducer->buckets);
    free(reducer);
}

/* Gives each parameter its place; returns how many buckets there are. */
static int assign(struct el_reducer *reducer, const size_t *limits, int n_limits)
{
    const struct el_shard *shard = reducer->spec.shard;
    size_t bytes[EL_GRAPH_PARAMS_MAX];
    int group[EL_GRAPH_PARAMS_MAX];
    for (int p = 0; p < reducer->n_params; p++) bytes[p] = el_shard_param_bytes(shard, p);
    int n = el_buckets_assign(bytes, reducer->order, reducer->n_params, limits, n_limits, group);
    memset(reducer->buckets, 0, (size_t)n * sizeof *reducer->buckets);
    for (int i = 0; i < reducer->n_params; i++) {
        int p = reducer->order[i];
        struct bucket *bucket = &reducer->buckets[group[i]];
        reducer->slots[p] = (struct slot){group[i], bucket->count};
        bucket->count += el_param_count(shard->graph, p);
        bucket->n_params++;
    }
    return n;
}

/* Whether each member's own part of a bucket goes across. */
static bool in_parts(const struct el_reducer_spec *spec)
{
    return spec->across && !spec->to_first && el_comm_size(spec->across) > 1;
}

/* Elements behind a bucket's last, so that all parts are equal. */
static int64_t padding(const struct el_reducer_spec *spec, int64_t count)
{
    int64_t n = el_comm_size(spec->comm);
    return (n - count % n) % n;
}

enum el_status el_reducer_group(struct el_reducer *reducer, const size_t *limits, int n_limits)
{
    const struct el_shard *shard = reducer->spec.shard;
    free_buckets(reducer);
    int n = assign(reducer, limits, n_limits);
    for (; reducer->n_buckets < n; reducer->n_buckets++) {
        struct bucket *bucket = &reducer->buckets[reducer->n_buckets];
        struct el_comm *comm = reducer->spec.across ? reducer->spec.across : reducer->spec.comm;
        if (in_parts(&reducer->spec)) bucket->count += padding(&reducer->spec, bucket->count);
        size_t bytes = (size_t)bucket->count * el_dtype_bytes(shard->config->dtype);
        EL_TRY(el_comm_alloc(comm, EL_TAG_BUCKET, bytes, "bucket", &bucket->buffer));
    }
    return EL_OK;
}

enum el_status el_reducer_group_round(struct el_reducer *reducer, int round)
{
    const struct el_train_config *config = reducer->spec.shard->config;
    const size_t whole[] = {SIZE_MAX}, rebuilt[] = {config->bucket_first_bytes, config->bucket_cap_bytes};
    return round == 0 ? el_reducer_group(reducer, whole, 1) : el_reducer_group(reducer, rebuilt, 2);
}

void el_reducer_begin(struct el_reducer *reducer, struct el_program *program, const struct el_view *grads)
{
    reducer->program = program;
    reducer->grads = grads;
    reducer->n_ready = 0;
    reducer->next_bucket = 0;
    for (int b = 0; b < reducer->n_buckets; b++) reducer->buckets[b].n_pending = reducer->buckets[b].n_params;
}

/* One operation on elements [first, first + count) of a bucket, or of all members' such parts; behind the last one. */
static void launch(struct el_reducer *reducer, struct bucket *bucket, struct el_comm *comm, struct el_comm_op op,
                   int64_t first)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(op.verb);
    char label[48];
    size_t own = (size_t)first * el_dtype_bytes(reducer->spec.shard->config->dtype);
    snprintf(label, sizeof label, "%s bucket %d", row->name, reducer->next_bucket);
    op.dtype = reducer->spec.shard->config->dtype;
    op.data = el_view_of(bucket->buffer, row->all_data ? 0 : own);
    if (row->all_data) op.result = el_view_of(bucket->buffer, own);
    if (row->all_result) op.result = el_view_of(bucket->buffer, 0);
    op.label = label;
    op.phase = EL_PHASE_COMM;
    el_comm_wait(comm, reducer->program, bucket->reduced_op);
    el_comm_issue(comm, reducer->program, &op, &bucket->reduced_op);
}

/* Within the process, across processes, and where all get the sums within it again. */
static void reduce_across(struct el_reducer *reducer, struct bucket *bucket)
{
    const struct el_reducer_spec *spec = &reducer->spec;
    int64_t n = el_comm_size(spec->comm), rank = el_comm_rank(spec->comm), part = bucket->count / n;
    if (spec->to_first) part = bucket->count;
    struct el_comm_op within = {.verb = spec->to_first ? EL_COMM_REDUCE : EL_COMM_REDUCE_SCATTER,
                                .count = (size_t)part},
                      across = {.verb = EL_COMM_ALL_REDUCE,
                                .reduction = spec->average ? EL_COMM_AVERAGE : EL_COMM_SUM,
                                .count = (size_t)part},
                      back = {.verb = EL_COMM_ALL_GATHER, .count = (size_t)part};
    int64_t first = spec->to_first ? 0 : rank * part;
    if (n > 1) launch(reducer, bucket, spec->comm, within, first);
    if (spec->to_first && rank > 0) return;
    if (el_comm_size(spec->across) > 1) launch(reducer, bucket, spec->across, across, first);
    if (n > 1 && !spec->to_first) launch(reducer, bucket, spec->comm, back, first);
}

/* Launches the next bucket's reduction; what comes after it on the compute stream does not wait. */
static void reduce_next(struct el_reducer *reducer)
{
    const struct el_reducer_spec *spec = &reducer->spec;
    struct bucket *bucket = &reducer->buckets[reducer->next_bucket];
    bucket->reduced_op = -1;
    if (in_parts(spec) || spec->to_first) {
        reduce_across(reducer, bucket);
    } else {
        struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                .reduction = spec->average && !spec->across ? EL_COMM_AVERAGE : EL_COMM_SUM,
                                .count = (size_t)bucket->count};
        launch(reducer, bucket, spec->comm, op, 0);
    }
    reducer->next_bucket++;
}

struct el_view el_reducer_place(const struct el_reducer *reducer, int p)
{
    const struct slot *slot = &reducer->slots[p];
    size_t bytes = el_dtype_bytes(reducer->spec.shard->config->dtype);
    return el_view_of(reducer->buckets[slot->bucket].buffer, (size_t)slot->offset * bytes);
}

void el_reducer_ready(void *context, int p)
{
    struct el_reducer *reducer = context;
    const struct el_shard *shard = reducer->spec.shard;
    if (reducer->n_ready < reducer->n_params) reducer->order[reducer->n_ready++] = p;
    if (!reducer->spec.views)
        el_shard_issue_scale(shard, reducer->program, EL_PHASE_REDUCE, "copy to bucket", reducer->grads[p],
                             el_reducer_place(reducer, p), el_param_count(shard->graph, p), 1);
    reducer->buckets[reducer->slots[p].bucket].n_pending--;
    if (!reducer->spec.overlap) return;
    while (reducer->next_bucket < reducer->n_buckets && reducer->buckets[reducer->next_bucket].n_pending == 0)
        reduce_next(reducer);
}

void el_reducer_finish(struct el_reducer *reducer)
{
    const struct el_shard *shard = reducer->spec.shard;
    while (reducer->next_bucket < reducer->n_buckets) reduce_next(reducer);
    if (reducer->spec.to_first && el_comm_rank(reducer->spec.comm) > 0) return;
    for (int b = 0; b < reducer->n_buckets; b++) {
        el_program_wait(reducer->program, shard->device, EL_STREAM_COMPUTE, reducer->buckets[b].reduced_op);
        for (int p = 0; p < reducer->n_params && !reducer->spec.views; p++) {
            if (reducer->slots[p].bucket != b) continue;
            el_shard_issue_scale(shard, reducer->program, EL_PHASE_REDUCE, "copy from bucket",
                                 el_reducer_place(reducer, p), reducer->grads[p], el_param_count(shard->graph, p), 1);
        }
    }
}
