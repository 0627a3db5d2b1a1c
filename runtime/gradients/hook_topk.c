/* The largest values of a bucket, with error feedback (Stich, Cordonnier, Jaggi 2018; Lin and others' Deep Gradient
 * Compression without its momentum correction): a rank's gradients are added to what it has not sent yet, the k largest
 * of that leave it, and all ranks gather each other's: the mean has every rank's values at their places, and 0
 * elsewhere. */
#include "runtime/gradients/hook.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct state {
    struct el_hook_bucket bucket;
    int64_t k;
    struct el_buffer *error, *values, *places; /* [count], [ranks, k], [ranks, k] i32 */
    int values_op, places_op;
};

static enum el_dtype dtype_of(const struct state *s)
{
    return el_config_stored(s->bucket.shard->config);
}

static enum el_status open_state(struct state *s)
{
    const struct el_hook_bucket *bucket = &s->bucket;
    const size_t width = el_dtype_bytes(dtype_of(s)), all = (size_t)(s->k * el_comm_size(bucket->comm));
    if (bucket->count > INT32_MAX)
        return el_fail(EL_ERR_INVALID,
                       "--comm-hook topk: a bucket of %lld values: at most %d have places: give a "
                       "smaller --bucket-mb",
                       (long long)bucket->count, INT32_MAX);
    EL_TRY(el_device_alloc(bucket->shard->device, EL_TAG_HOOK, (size_t)bucket->count * width, "error", &s->error));
    EL_TRY(el_comm_alloc(bucket->comm, EL_TAG_HOOK, all * width, "values", &s->values));
    EL_TRY(el_comm_alloc(bucket->comm, EL_TAG_HOOK, all * el_dtype_bytes(EL_I32), "places", &s->places));
    void *zeros = calloc((size_t)bucket->count, width);
    if (!zeros) return el_fail_errno("a hook of %lld values", (long long)bucket->count);
    enum el_status status = el_device_write(el_view_of(s->error, 0), zeros, (size_t)bucket->count * width);
    free(zeros);
    return status;
}

static void close_state(void *state)
{
    struct state *s = state;
    if (!s) return;
    el_device_free(s->error);
    el_device_free(s->values);
    el_device_free(s->places);
    free(s);
}

static enum el_status open_bucket(const struct el_hook_bucket *bucket, void **state_p)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s) return el_fail_errno("a hook");
    s->bucket = *bucket;
    s->k = (int64_t)ceil(bucket->shard->config->hook.amount * (double)bucket->count / 100);
    enum el_status status = open_state(s);
    if (status == EL_OK)
        *state_p = s;
    else
        close_state(s);
    return status;
}

static void compute(const struct state *s, struct el_program *program, struct el_kernel_op op)
{
    op.head.phase = EL_PHASE_REDUCE;
    op.dtype = dtype_of(s);
    el_program_kernel(program, s->bucket.shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

/* This member's own part of what all gather. */
static struct el_view own(const struct state *s, struct el_buffer *buffer, enum el_dtype dtype)
{
    return el_view_of(buffer, (size_t)(s->k * el_comm_rank(s->bucket.comm)) * el_dtype_bytes(dtype));
}

static void gather(const struct state *s, struct el_program *program, const char *what, struct el_buffer *buffer,
                   enum el_dtype dtype, int *op_p)
{
    char label[48];
    snprintf(label, sizeof label, "all_gather %s of bucket %d", what, s->bucket.number);
    const struct el_comm_op op = {.verb = EL_COMM_ALL_GATHER,
                                  .dtype = dtype,
                                  .count = (size_t)s->k,
                                  .data = own(s, buffer, dtype),
                                  .result = el_view_of(buffer, 0),
                                  .label = label,
                                  .phase = EL_PHASE_COMM};
    el_program_fail(program, el_comm_issue(s->bucket.comm, program, &op, op_p));
}

static void start(void *state, struct el_program *program)
{
    struct state *s = state;
    const struct el_view error = el_view_of(s->error, 0);
    compute(s, program,
            (struct el_kernel_op){.head.label = "error",
                                  .op = EL_OP_ADD,
                                  .views = {el_view_of(s->bucket.buffer, 0), error},
                                  .args.d = {s->bucket.count}});
    compute(s, program,
            (struct el_kernel_op){.head.label = "top_k",
                                  .op = EL_OP_TOP_K,
                                  .views = {error, own(s, s->values, dtype_of(s)), own(s, s->places, EL_I32)},
                                  .args.d = {s->bucket.count, s->k}});
    s->values_op = s->places_op = -1;
    gather(s, program, "values", s->values, dtype_of(s), &s->values_op);
    gather(s, program, "places", s->places, EL_I32, &s->places_op);
}

/* An embedding's gradient, whose rows are values: each goes to its place, the others become 0. */
static void end(void *state, struct el_program *program)
{
    struct state *s = state;
    const struct el_view bucket = el_view_of(s->bucket.buffer, 0);
    const int n = el_comm_size(s->bucket.comm);
    el_program_wait(program, s->bucket.shard->device, EL_STREAM_COMPUTE, s->values_op);
    el_program_wait(program, s->bucket.shard->device, EL_STREAM_COMPUTE, s->places_op);
    compute(s, program,
            (struct el_kernel_op){.head.label = "scatter",
                                  .op = EL_OP_EMBEDDING_BACKWARD,
                                  .views = {el_view_of(s->places, 0), el_view_of(s->values, 0), bucket},
                                  .args.d = {n * s->k, s->bucket.count, 1}});
    compute(s, program,
            (struct el_kernel_op){.head.label = "divide",
                                  .op = EL_OP_SCALE,
                                  .views = {bucket, bucket},
                                  .args = {.d = {s->bucket.count}, .s = {1.0 / n}}});
}

const struct el_hook_ops el_hook_topk = {.open = open_bucket, .start = start, .end = end, .close = close_state};
