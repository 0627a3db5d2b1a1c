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
    int reduced_op; /* the all-reduce of the step being issued */
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

enum el_status el_reducer_group(struct el_reducer *reducer, const size_t *limits, int n_limits)
{
    const struct el_shard *shard = reducer->spec.shard;
    free_buckets(reducer);
    int n = assign(reducer, limits, n_limits);
    for (; reducer->n_buckets < n; reducer->n_buckets++) {
        struct bucket *bucket = &reducer->buckets[reducer->n_buckets];
        size_t bytes = (size_t)bucket->count * el_dtype_bytes(shard->config->dtype);
        EL_TRY(el_comm_alloc(reducer->spec.comm, EL_TAG_BUCKET, bytes, "bucket", &bucket->buffer));
    }
    return EL_OK;
}

void el_reducer_begin(struct el_reducer *reducer, struct el_program *program, const struct el_view *grads)
{
    reducer->program = program;
    reducer->grads = grads;
    reducer->n_ready = 0;
    reducer->next_bucket = 0;
    for (int b = 0; b < reducer->n_buckets; b++) reducer->buckets[b].n_pending = reducer->buckets[b].n_params;
}

/* Launches the next bucket's all-reduce; what comes after it on the compute stream does not wait. */
static void reduce_next(struct el_reducer *reducer)
{
    struct bucket *bucket = &reducer->buckets[reducer->next_bucket];
    char label[32];
    snprintf(label, sizeof label, "all_reduce bucket %d", reducer->next_bucket++);
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .reduction = reducer->spec.average ? EL_COMM_AVERAGE : EL_COMM_SUM,
                            .dtype = reducer->spec.shard->config->dtype,
                            .count = (size_t)bucket->count,
                            .data = el_view_of(bucket->buffer, 0),
                            .label = label,
                            .phase = EL_PHASE_COMM};
    bucket->reduced_op = -1;
    el_comm_issue(reducer->spec.comm, reducer->program, &op, &bucket->reduced_op);
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
    for (int b = 0; b < reducer->n_buckets; b++) {
        el_program_wait(reducer->program, shard->device, EL_STREAM_COMPUTE, reducer->buckets[b].reduced_op);
        for (int p = 0; p < reducer->n_params && !reducer->spec.views; p++) {
            if (reducer->slots[p].bucket != b) continue;
            el_shard_issue_scale(shard, reducer->program, EL_PHASE_REDUCE, "copy from bucket",
                                 el_reducer_place(reducer, p), reducer->grads[p], el_param_count(shard->graph, p), 1);
        }
    }
}
