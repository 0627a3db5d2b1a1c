/* PowerSGD (Vogels, Karimireddy, Jaggi 2019), as torch.distributed's powerSGD_hook has it with error feedback and warm
 * start: of a gradient M [rows, columns], to which the error of the step before is added, P = M Q is summed over the
 * ranks and made orthonormal, Q = M' P is averaged, and P Q' stands for the mean of M. What it is less than M is the
 * error of the next step, and Q begins that one. What would not become half as small is averaged as it is.
 *
 * A weight that is stored in groups of filters (el_weights_layout) is M' group by group, in another order of columns,
 * which changes no product: Q has its columns' order. */
#include "runtime/gradients/hook.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/base/rng.h"

enum { LEAST_RATE = 2 }; /* PyTorch's min_compression_rate */

struct factor {
    int param;
    int64_t rows, columns, rank;
    int64_t group;          /* rows that lie together; 0: all of them do, row by row */
    struct el_view m, p, q; /* [rows, columns], [rows, rank], [columns, rank] */
};

struct state {
    struct el_hook_bucket bucket;
    struct factor *factors; /* [bucket.n] */
    struct el_buffer *error, *p, *q;
    int64_t n_p, n_q;
    int plain_op, p_op, q_op; /* the step's, -1: none */
};

static struct factor factor_of(const struct el_shard *shard, int param)
{
    const struct el_param *array = &shard->graph->params[param];
    const enum el_dtype dtype = el_config_stored(shard->config);
    const struct el_weights_layout *layout = el_param_layout(array, shard->device, dtype);
    struct factor f = {.param = param, .rows = array->shape.d[0], .group = layout ? layout->filters : 0};
    f.columns = el_param_count(shard->graph, param) / f.rows;
    f.rank = (int64_t)shard->config->hook.amount;
    if (f.rank > f.rows) f.rank = f.rows;
    if (f.rank > f.columns) f.rank = f.columns;
    return f;
}

static bool takes(const struct el_shard *shard, int param)
{
    const struct factor f = factor_of(shard, param);
    return (f.rows + f.columns) * f.rank * LEAST_RATE < f.rows * f.columns;
}

/* ---- what lives across steps ---- */

/* Standard normal, by Box and Muller: the same numbers for every rank and every way of grouping. */
static double normal(const struct el_shard *shard, int param, int64_t i)
{
    const struct el_rng_key key = {.seed = shard->config->seed, .use = EL_RNG_HOOK, .id = (uint32_t)param};
    double u = 1 - el_rng_uniform(&key, (uint64_t)i, 0), v = el_rng_uniform(&key, (uint64_t)i, 1);
    return sqrt(-2 * log(u)) * cos(2 * acos(-1) * v);
}

static enum el_status write(const struct state *s, struct el_view to, const struct factor *drawn, int64_t n)
{
    const struct el_shard *shard = s->bucket.shard;
    const bool wide = el_config_stored(shard->config) == EL_F64;
    void *values = calloc((size_t)n, sizeof(double));
    if (!values) return el_fail_errno("a hook of %lld values", (long long)n);
    for (int64_t i = 0; i < n && drawn; i++) {
        if (wide)
            ((double *)values)[i] = normal(shard, drawn->param, i);
        else
            ((float *)values)[i] = (float)normal(shard, drawn->param, i);
    }
    enum el_status status = el_device_write(to, values, (size_t)n * (wide ? sizeof(double) : sizeof(float)));
    free(values);
    return status;
}

static enum el_status alloc(const struct state *s, int64_t n, const char *name, struct el_buffer **buffer_p)
{
    return el_comm_alloc(s->bucket.comm, EL_TAG_HOOK,
                         (size_t)n * el_dtype_bytes(el_config_stored(s->bucket.shard->config)), name, buffer_p);
}

/* Where each factor's matrices lie; then Q's first values. */
static enum el_status place(struct state *s)
{
    const struct el_hook_bucket *bucket = &s->bucket;
    const size_t width = el_dtype_bytes(el_config_stored(bucket->shard->config));
    int64_t m = bucket->n_plain, p = 0, q = 0;
    for (int i = 0; i < bucket->n; i++) {
        struct factor *f = &s->factors[i];
        f->m = el_view_of(bucket->buffer, (size_t)m * width);
        f->p = el_view_of(s->p, (size_t)p * width);
        f->q = el_view_of(s->q, (size_t)q * width);
        m += f->rows * f->columns;
        p += f->rows * f->rank;
        q += f->columns * f->rank;
        EL_TRY(write(s, f->q, f, f->columns * f->rank));
    }
    return write(s, el_view_of(s->error, 0), NULL, bucket->count - bucket->n_plain);
}

static enum el_status open_state(struct state *s)
{
    const struct el_hook_bucket *bucket = &s->bucket;
    if (bucket->n == 0) return EL_OK;
    s->factors = calloc((size_t)bucket->n, sizeof *s->factors);
    if (!s->factors) return el_fail_errno("a hook of %d gradients", bucket->n);
    for (int i = 0; i < bucket->n; i++) {
        s->factors[i] = factor_of(bucket->shard, bucket->params[i]);
        s->n_p += s->factors[i].rows * s->factors[i].rank;
        s->n_q += s->factors[i].columns * s->factors[i].rank;
    }
    EL_TRY(alloc(s, bucket->count - bucket->n_plain, "error", &s->error));
    EL_TRY(alloc(s, s->n_p, "P", &s->p));
    EL_TRY(alloc(s, s->n_q, "Q", &s->q));
    return place(s);
}

static void close_state(void *state)
{
    struct state *s = state;
    if (!s) return;
    el_device_free(s->error);
    el_device_free(s->p);
    el_device_free(s->q);
    free(s->factors);
    free(s);
}

static enum el_status open_bucket(const struct el_hook_bucket *bucket, void **state_p)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s) return el_fail_errno("a hook");
    s->bucket = *bucket;
    enum el_status status = open_state(s);
    if (status == EL_OK)
        *state_p = s;
    else
        close_state(s);
    return status;
}

/* ---- a step ---- */

static void reduce(const struct state *s, struct el_program *program, const char *what, struct el_buffer *buffer,
                   int64_t count, enum el_comm_reduction reduction, int *op_p)
{
    char label[48];
    *op_p = -1;
    if (count == 0) return;
    snprintf(label, sizeof label, "all_reduce %sbucket %d", what, s->bucket.number);
    const struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                  .reduction = reduction,
                                  .dtype = el_config_stored(s->bucket.shard->config),
                                  .count = (size_t)count,
                                  .data = el_view_of(buffer, 0),
                                  .label = label,
                                  .phase = EL_PHASE_COMM};
    el_program_fail(program, el_comm_issue(s->bucket.comm, program, &op, op_p));
}

static void compute(const struct state *s, struct el_program *program, struct el_kernel_op op)
{
    op.head.phase = EL_PHASE_REDUCE;
    op.dtype = el_config_stored(s->bucket.shard->config);
    el_program_kernel(program, s->bucket.shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

static void orthogonalize(const struct state *s, struct el_program *program, struct el_view x, int64_t n, int64_t rank)
{
    compute(s, program,
            (struct el_kernel_op){
                .head.label = "orthogonalize", .op = EL_OP_ORTHOGONALIZE, .views = {x}, .args.d = {n, rank}});
}

enum product { TO_P, TO_Q, TO_M };

/* P = M Q, Q = M' P or M = P Q': a linear layer's three products, of all rows or group by group. */
static void multiply(const struct state *s, struct el_program *program, const struct factor *f, enum product to)
{
    static const char *const labels[] = {"low rank P", "low rank Q", "low rank M"};
    const size_t width = el_dtype_bytes(el_config_stored(s->bucket.shard->config));
    const int64_t rows = f->group ? f->group : f->rows;
    for (int64_t first = 0; first < f->rows; first += rows) {
        const struct el_view m = {f->m.buffer, f->m.offset + (size_t)(first * f->columns) * width},
                             p = {f->p.buffer, f->p.offset + (size_t)(first * f->rank) * width},
                             x = f->group ? f->q : p, w = f->group ? p : f->q;
        struct el_kernel_op op = {.head.label = labels[to],
                                  .args = {.d = {f->group ? f->columns : rows, f->rank, f->group ? rows : f->columns},
                                           .s = {to == TO_Q && first > 0}}};
        if (to == TO_M)
            op.op = EL_OP_LINEAR_FORWARD, op.views[0] = x, op.views[1] = w, op.views[3] = m;
        else if ((to == TO_P) == !f->group)
            op.op = EL_OP_LINEAR_BACKWARD_DATA, op.views[0] = m, op.views[1] = w, op.views[2] = x;
        else
            op.op = EL_OP_LINEAR_BACKWARD_WEIGHTS, op.views[0] = x, op.views[1] = m, op.views[2] = w;
        compute(s, program, op);
    }
}

/* y (+)= scale * x, of what is compressed. */
static void move(const struct state *s, struct el_program *program, struct el_view x, struct el_view y, double scale,
                 bool adds)
{
    struct el_kernel_op op = {.head.label = "error",
                              .op = adds ? EL_OP_CAST : EL_OP_SCALE,
                              .views = {x, y},
                              .args = {.d = {s->bucket.count - s->bucket.n_plain}, .s = {scale, adds}}};
    if (adds) op.args.k[0] = el_config_stored(s->bucket.shard->config);
    compute(s, program, op);
}

static struct el_view compressed(const struct state *s)
{
    return el_view_of(s->bucket.buffer,
                      (size_t)s->bucket.n_plain * el_dtype_bytes(el_config_stored(s->bucket.shard->config)));
}

static void start(void *state, struct el_program *program)
{
    struct state *s = state;
    reduce(s, program, "", s->bucket.buffer, s->bucket.n_plain, EL_COMM_AVERAGE, &s->plain_op);
    if (s->bucket.n == 0) return;
    move(s, program, el_view_of(s->error, 0), compressed(s), 1, true);
    move(s, program, compressed(s), el_view_of(s->error, 0), 1, false);
    for (int i = 0; i < s->bucket.n; i++) {
        const struct factor *f = &s->factors[i];
        orthogonalize(s, program, f->q, f->columns, f->rank);
        multiply(s, program, f, TO_P);
    }
    reduce(s, program, "P of ", s->p, s->n_p, EL_COMM_SUM, &s->p_op);
}

static void go_on(void *state, struct el_program *program)
{
    struct state *s = state;
    if (s->bucket.n == 0) return;
    el_program_wait(program, s->bucket.shard->device, EL_STREAM_COMPUTE, s->p_op);
    for (int i = 0; i < s->bucket.n; i++) {
        const struct factor *f = &s->factors[i];
        orthogonalize(s, program, f->p, f->rows, f->rank);
        multiply(s, program, f, TO_Q);
    }
    reduce(s, program, "Q of ", s->q, s->n_q, EL_COMM_AVERAGE, &s->q_op);
}

static void end(void *state, struct el_program *program)
{
    struct state *s = state;
    el_program_wait(program, s->bucket.shard->device, EL_STREAM_COMPUTE, s->plain_op);
    if (s->bucket.n == 0) return;
    el_program_wait(program, s->bucket.shard->device, EL_STREAM_COMPUTE, s->q_op);
    for (int i = 0; i < s->bucket.n; i++) multiply(s, program, &s->factors[i], TO_M);
    move(s, program, compressed(s), el_view_of(s->error, 0), -1, true);
}

const struct el_hook_ops el_hook_powersgd = {
    .takes = takes, .open = open_bucket, .start = start, .go_on = go_on, .end = end, .close = close_state};
