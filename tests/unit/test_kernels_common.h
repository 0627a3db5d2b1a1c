/* What the tests of the kernels share: tensors between guard words, each op's operands, and a row's life round one run.
 * It holds no expectations; those are in the tests. */
#pragma once

#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"
#include "kernels/kernels.h"
#include "kernels/window.h"
#include "runtime/base/half.h"
#include "runtime/base/module.h"

/* A buffer with guard bytes on both sides. `skew` moves its begin off the 64-byte line, as a gradient's place in a
 * bucket does. */
struct guarded {
    unsigned char *whole;
    void *data;
    size_t bytes, front_bytes;
};

enum { GUARD_BYTES = 128, GUARD_VALUE = 0xA5 };

static inline size_t guarded_whole_bytes(const struct guarded *g)
{
    return (g->front_bytes + g->bytes + GUARD_BYTES + 63) / 64 * 64;
}

static inline struct guarded guarded_alloc(size_t bytes, size_t skew)
{
    struct guarded g = {.bytes = bytes, .front_bytes = GUARD_BYTES + skew};
    g.whole = aligned_alloc(64, guarded_whole_bytes(&g));
    assert_non_null(g.whole);
    memset(g.whole, GUARD_VALUE, guarded_whole_bytes(&g));
    g.data = g.whole + g.front_bytes;
    return g;
}

/* Fails the test, naming `what`, when a guard byte was overwritten; frees the buffer. */
static inline void guarded_free(struct guarded *g, const char *what)
{
    size_t back = g->front_bytes + g->bytes, whole = guarded_whole_bytes(g);
    for (size_t i = 0; i < whole; i++) {
        if ((i < g->front_bytes || i >= back) && g->whole[i] != GUARD_VALUE)
            fail_msg("%s: wrote outside a tensor, at byte %ld of %zu", what, (long)i - (long)g->front_bytes, g->bytes);
    }
    free(g->whole);
}

/* How an operand is filled and whether it comes back. */
enum operand_kind {
    ABSENT,   /* NULL */
    IN,       /* reals in [-1, 1) */
    IN_STEP,  /* reals that are multiples of 1/4: ties and zeros happen */
    IN_ID,    /* int32 in 0..d[1]-1 */
    IN_ROW,   /* int32: rows, from the last one on, and -1 */
    IN_COUNT, /* int32: 0 and up to a limit */
    IN_POSITIVE,
    KEPT,    /* reals that the forward op leaves: filled by its caller */
    KEPT_ID, /* int32, the same */
    OUT,     /* reals written; read too when the op has acc = 1 */
    OUT_ID,  /* int32 written */
    INOUT,   /* reals */
    INOUT_POSITIVE
};

struct operand {
    enum operand_kind kind;
    int64_t n;
};

static inline int operand_is_id(enum operand_kind kind)
{
    return kind == IN_ID || kind == IN_ROW || kind == IN_COUNT || kind == KEPT_ID || kind == OUT_ID;
}

static inline int operand_is_output(enum operand_kind kind)
{
    return kind >= OUT;
}

#define OPERANDS(...)                                                                                                  \
    do {                                                                                                               \
        const struct operand list[] = {__VA_ARGS__};                                                                   \
        memcpy(o, list, sizeof list);                                                                                  \
        return (int)(sizeof list / sizeof list[0]);                                                                    \
    } while (0)

/* The operands of a window over images; see kernels.h for the order. Returns how many. */
static inline int window_operands(enum el_op_kind op, const int64_t *d, struct operand o[EL_ARGS_POINTERS])
{
    int pool = op == EL_OP_MAX_POOL_FORWARD || op == EL_OP_MAX_POOL_BACKWARD;
    const struct el_window window = pool ? el_window_of_pool(d) : el_window_of_conv2d(d), *s = &window;
    int64_t x = s->b * s->h * s->w * s->c, w = s->f * s->k * s->k * s->c, y = s->b * s->oh * s->ow * s->f;
    switch (op) {
    case EL_OP_CONV2D_FORWARD:
        OPERANDS({IN, x}, {IN, w}, {OUT, y});
    case EL_OP_CONV2D_BACKWARD_DATA:
        OPERANDS({IN, y}, {IN, w}, {OUT, x});
    case EL_OP_CONV2D_BACKWARD_WEIGHTS:
        OPERANDS({IN, x}, {IN, y}, {OUT, w});
    case EL_OP_MAX_POOL_FORWARD:
        OPERANDS({IN_STEP, x}, {OUT, y}, {OUT_ID, y});
    case EL_OP_MAX_POOL_BACKWARD:
        OPERANDS({IN, y}, {KEPT_ID, y}, {OUT, x});
    default:
        fail_msg("no operands known for op %s", el_op_name(op));
        return 0;
    }
}

static inline int image_operands(enum el_op_kind op, const int64_t *d, struct operand o[EL_ARGS_POINTERS])
{
    int64_t nc = d[0] * d[1], c = d[1], pixels = d[0] * d[1] * d[2], means = d[0] * d[2];
    switch (op) {
    case EL_OP_MEAN_POOL_FORWARD:
        OPERANDS({IN, pixels}, {OUT, means});
    case EL_OP_MEAN_POOL_BACKWARD:
        OPERANDS({IN, means}, {OUT, pixels});
    case EL_OP_BATCH_NORM_FORWARD:
        OPERANDS({IN, nc}, {IN, c}, {IN, c}, {IN, nc}, {INOUT, c}, {INOUT, c}, {OUT, nc}, {OUT, 2 * c});
    case EL_OP_BATCH_NORM_INFERENCE:
        OPERANDS({IN, nc}, {IN, c}, {IN, c}, {IN, nc}, {IN, c}, {IN_POSITIVE, c}, {OUT, nc});
    case EL_OP_LAYER_NORM_FORWARD:
        OPERANDS({IN, nc}, {IN, c}, {IN, c}, {OUT, nc}, {OUT, 2 * d[0]});
    case EL_OP_LAYER_NORM_BACKWARD:
        OPERANDS({IN, nc}, {IN, nc}, {IN, c}, {KEPT, 2 * d[0]}, {OUT, nc}, {OUT, c}, {OUT, c});
    case EL_OP_BATCH_NORM_BACKWARD:
        OPERANDS({IN, nc}, {IN, nc}, {IN_STEP, nc}, {IN, c}, {KEPT, 2 * c}, {OUT, nc}, {OUT, c}, {OUT, c}, {OUT, nc});
    default:
        return window_operands(op, d, o);
    }
}

/* The operands of layers. */
static inline int layer_operands(enum el_op_kind op, const int64_t *d, struct operand o[EL_ARGS_POINTERS])
{
    int64_t x = d[0] * d[1] * d[2], w = d[3] * d[4] * d[2], y = d[0] * (d[1] - d[4] + 1) * d[3];
    switch (op) {
    case EL_OP_EMBEDDING_FORWARD:
        OPERANDS({IN_ID, d[0]}, {IN, d[1] * d[2]}, {OUT, d[0] * d[2]});
    case EL_OP_EMBEDDING_BACKWARD:
        OPERANDS({IN_ID, d[0]}, {IN, d[0] * d[2]}, {OUT, d[1] * d[2]});
    case EL_OP_CONV1D_FORWARD:
        OPERANDS({IN, x}, {IN, w}, {IN, d[3]}, {OUT, y});
    case EL_OP_CONV1D_BACKWARD_DATA:
        OPERANDS({IN, y}, {IN, w}, {OUT, x});
    case EL_OP_CONV1D_BACKWARD_WEIGHTS:
        OPERANDS({IN, x}, {IN, y}, {OUT, w}, {OUT, d[3]});
    case EL_OP_LINEAR_FORWARD:
        OPERANDS({IN, d[0] * d[1]}, {IN, d[2] * d[1]}, {IN, d[2]}, {OUT, d[0] * d[2]});
    case EL_OP_LINEAR_BACKWARD_DATA:
        OPERANDS({IN, d[0] * d[2]}, {IN, d[2] * d[1]}, {OUT, d[0] * d[1]});
    case EL_OP_LINEAR_BACKWARD_WEIGHTS:
        OPERANDS({IN, d[0] * d[1]}, {IN, d[0] * d[2]}, {OUT, d[2] * d[1]}, {OUT, d[2]});
    case EL_OP_ATTENTION_FORWARD:
        OPERANDS({IN, 3 * x * d[3]}, {OUT, x * d[3]}, {OUT, x});
    case EL_OP_ATTENTION_BACKWARD:
        OPERANDS({IN, x * d[3]}, {IN, 3 * x * d[3]}, {KEPT, x}, {OUT, 3 * x * d[3]});
    case EL_OP_MAX_TIME_FORWARD:
        OPERANDS({IN_STEP, x}, {OUT, d[0] * d[2]}, {OUT_ID, d[0] * d[2]});
    case EL_OP_MAX_TIME_BACKWARD:
        OPERANDS({IN, d[0] * d[2]}, {IN_ID, d[0] * d[2]}, {OUT, x});
    default:
        return image_operands(op, d, o);
    }
}

/* The operands of experts: rows that are not used must stay. */
static inline int expert_operands(enum el_op_kind op, const int64_t *d, struct operand o[EL_ARGS_POINTERS])
{
    int64_t logits = d[0] * d[1] * d[2], choices = d[0] * d[1] * d[3], nw = d[0] * d[1], rw = d[3] * d[1];
    int64_t x = d[0] * d[1], y = d[0] * d[2], w = d[1] * d[2] * d[3], counts = d[3] * d[4] * d[5];
    int64_t c = d[0] * d[1], counts_c = d[2] * d[3] * d[4];
    switch (op) {
    case EL_OP_ROUTE_FORWARD:
        OPERANDS({IN_STEP, logits}, {d[6] ? IN_STEP : ABSENT, d[6] * d[2]}, {OUT, choices}, {OUT_ID, choices});
    case EL_OP_ROUTE_BACKWARD:
        OPERANDS({IN, choices}, {IN_STEP, logits}, {KEPT, choices}, {KEPT_ID, choices}, {OUT, logits});
    case EL_OP_ROUTE_PLACE:
        OPERANDS({KEPT_ID, choices}, {OUT_ID, choices}, {OUT_ID, d[0] * d[2]}, {OUT_ID, 2 * d[2]},
                 {OUT_ID, d[0] * d[2]});
    case EL_OP_ROWS_TAKE:
        OPERANDS({IN, nw}, {IN_ROW, d[0] * d[2]}, {INOUT, rw});
    case EL_OP_ROWS_GIVE:
        OPERANDS({IN, rw}, {IN_ROW, d[0] * d[2]}, {OUT, nw});
    case EL_OP_GROUPED_FORWARD:
        OPERANDS({IN, x}, {IN, w}, {IN_COUNT, counts}, {INOUT, y});
    case EL_OP_GROUPED_BACKWARD_DATA:
        OPERANDS({IN, y}, {IN, w}, {IN_COUNT, counts}, {INOUT, x});
    case EL_OP_GROUPED_BACKWARD_WEIGHTS:
        OPERANDS({IN, x}, {IN, y}, {IN_COUNT, counts}, {OUT, w});
    case EL_OP_SWIGLU_FORWARD:
        OPERANDS({IN, 2 * c}, {IN, d[0]}, {IN_COUNT, counts_c}, {INOUT, c});
    case EL_OP_SWIGLU_BACKWARD:
        OPERANDS({IN, c}, {IN, 2 * c}, {IN, d[0]}, {IN_COUNT, counts_c}, {INOUT, 2 * c}, {INOUT, d[0]});
    default:
        fail_msg("no operands known for op %s", el_op_name(op));
        return 0;
    }
}

/* The limit of what ids, rows or counts an op is given. */
static inline int64_t operand_limit(enum el_op_kind op, const int64_t *d)
{
    switch (op) {
    case EL_OP_ROWS_TAKE:
    case EL_OP_ROWS_GIVE:
        return d[3];
    case EL_OP_GROUPED_FORWARD:
    case EL_OP_GROUPED_BACKWARD_DATA:
    case EL_OP_GROUPED_BACKWARD_WEIGHTS:
        return d[0] / (d[3] * d[4] * d[5]);
    case EL_OP_SWIGLU_FORWARD:
    case EL_OP_SWIGLU_BACKWARD:
        return d[0] / (d[2] * d[3] * d[4]);
    default:
        return d[1];
    }
}

/* The operands of every op. */
static inline int op_operands(enum el_op_kind op, const int64_t *d, struct operand o[EL_ARGS_POINTERS])
{
    int64_t n = d[0], rn = d[0] * d[1];
    if (op >= EL_OP_ROUTE_FORWARD && op <= EL_OP_SWIGLU_BACKWARD) return expert_operands(op, d, o);
    switch (op) {
    case EL_OP_RELU_BACKWARD:
        OPERANDS({IN, n}, {IN_STEP, n}, {OUT, n});
    case EL_OP_GELU_BACKWARD:
        OPERANDS({IN, n}, {IN, n}, {OUT, n});
    case EL_OP_ADD_ROW:
        OPERANDS({IN, rn}, {IN, d[1]}, {OUT, rn});
    case EL_OP_SUM_ROWS:
        OPERANDS({IN, rn}, {OUT, d[1]});
    case EL_OP_DROPOUT:
        OPERANDS({IN, rn}, {OUT, rn});
    case EL_OP_COPY_COLUMNS: /* INOUT: what lies between the columns must stay */
        OPERANDS({IN, (n - 1) * d[2] + d[1]}, {INOUT, (n - 1) * d[3] + d[1]});
    case EL_OP_CROSS_ENTROPY_PIECE:
        OPERANDS({IN, d[0] * d[1]}, {IN_ID, d[0]}, {OUT, 3 * d[0]});
    case EL_OP_CROSS_ENTROPY_JOIN:
        OPERANDS({IN, d[0] * d[1]}, {IN_ID, d[0]}, {IN_POSITIVE, 3 * d[0] * d[4]}, {OUT, 1}, {OUT, d[0] * d[1]});
    case EL_OP_CROSS_ENTROPY:
    case EL_OP_MSE:
        OPERANDS({IN, rn}, {IN_ID, n}, {OUT, 1}, {OUT, rn});
    case EL_OP_SCALE:
    case EL_OP_CAST:
    case EL_OP_GELU_FORWARD:
        OPERANDS({IN, n}, {OUT, n});
    case EL_OP_FILL:
        OPERANDS({OUT, n});
    case EL_OP_ADD:
    case EL_OP_SGD:
        OPERANDS({IN, n}, {INOUT, n});
    case EL_OP_SUM_SQUARES:
        OPERANDS({IN, n}, {INOUT, 1});
    case EL_OP_CLIP:
        OPERANDS({IN_POSITIVE, 1}, {INOUT, n});
    case EL_OP_MOMENTUM:
        OPERANDS({IN, n}, {INOUT, n}, {INOUT, n});
    case EL_OP_ADAM:
        OPERANDS({IN, n}, {INOUT, n}, {INOUT, n}, {INOUT_POSITIVE, n}, {OUT, n}, {OUT, n});
    case EL_OP_MAX_NORM:
        OPERANDS({INOUT, rn});
    default:
        return layer_operands(op, d, o);
    }
#undef OPERANDS
}

/* Element i of operand `index`: the same number for f32 and f64, because it has 24 bits. */
static inline double operand_value(enum operand_kind kind, int index, int64_t i)
{
    uint64_t z = ((uint64_t)index << 40 | (uint64_t)i) * 0x9E3779B97F4A7C15u + 7; /* splitmix64: tensors are large */
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    double u = (double)((z ^ z >> 31) >> 40) * 0x1p-24;
    if (kind == INOUT_POSITIVE || kind == IN_POSITIVE) return u;
    if (kind == IN_STEP) return (double)((int)(u * 9) - 4) / 4;
    return 2 * u - 1;
}

/* Rows stand once each, and every fifth is missing; of three counts the second is 0. */
static inline int32_t operand_id(enum operand_kind kind, int64_t i, int64_t limit, double value)
{
    if (kind == IN_ROW) return i % 5 == 3 ? -1 : (int32_t)(limit - 1 - i);
    if (kind == IN_COUNT) return i % 3 == 1 ? 0 : (int32_t)(limit - i * 7 % (limit + 1));
    return kind == IN_ID ? (int32_t)(value * (double)limit) : 5;
}

/* `coarse`: numbers that bf16 has. */
static inline void operand_fill(const struct operand *o, int index, int64_t limit, enum el_dtype dtype, int coarse,
                                void *data)
{
    for (int64_t i = 0; i < o->n; i++) {
        double value = operand_value(o->kind == IN_ID ? INOUT_POSITIVE : o->kind, index, i);
        if (coarse && !operand_is_id(o->kind)) value = (double)el_f32_of_bf16(el_bf16_of_f32((float)value));
        if (dtype == EL_BF16)
            ((uint16_t *)data)[i] = el_bf16_of_f32((float)value);
        else if (operand_is_id(o->kind))
            ((int32_t *)data)[i] = operand_id(o->kind, i, limit, value);
        else if (dtype == EL_F32)
            ((float *)data)[i] = (float)value;
        else
            ((double *)data)[i] = value;
    }
}

/* What is known when the workspace is asked for. */
static inline struct el_kernel_args without_pointers(const struct el_kernel_args *args)
{
    struct el_kernel_args asked = *args;
    memset(asked.p, 0, sizeof asked.p);
    return asked;
}

/* workspace, prepare, run, release of one row, with the workspace between guards and full of NaN. */
static inline void row_run(const struct el_kernel *row, struct el_kernel_args *args, const char *what)
{
    struct el_workspace workspace = {0};
    assert_non_null(row);
    const struct el_kernel_args asked = without_pointers(args);
    if (row->workspace && row->workspace(&asked, &workspace) != EL_OK) fail_msg("%s: %s", what, el_error_message());
    assert_true(workspace.padding_bytes <= workspace.bytes && workspace.allowance_bytes <= workspace.bytes);
    struct guarded scratch = guarded_alloc(workspace.bytes, 0);
    memset(scratch.data, 0xff, workspace.bytes);
    args->workspace = scratch.data;
    args->workspace_bytes = workspace.bytes;
    args->plan = NULL;
    if (row->prepare && row->prepare(args, &args->plan) != EL_OK) fail_msg("%s: %s", what, el_error_message());
    if (el_kernel_run(row, args) != EL_OK) fail_msg("%s: %s", what, el_error_message());
    if (row->describe && args->plan && strlen(row->describe(args->plan)) == 0)
        fail_msg("%s: its choice has no words", what);
    if (row->release) row->release(args->plan);
    guarded_free(&scratch, what);
}

/* oneDNN's rows; NULL, and why is printed, where it is not there. */
static inline const struct el_dnnl_module *find_dnnl(void)
{
    void *symbol;
    if (el_module_open("dnnl", EL_DNNL_SYMBOL, &symbol) == EL_OK) return symbol;
    print_message("%s\n", el_error_message());
    return NULL;
}

/* For answers worked out by hand. */
static inline void run_f64(enum el_op_kind op, struct el_kernel_args *args)
{
    const struct el_kernel *row = el_kernels_reference()->find(op, EL_F64);
    assert_non_null(row);
    assert_int_equal(row->run(args), EL_OK);
}

static inline void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-12 * (1 + fabs(want)))) fail_msg("%.17g should be %.17g", got, want);
}

static inline void assert_all_near(const double *got, const double *want, int n)
{
    for (int i = 0; i < n; i++) assert_near(got[i], want[i]);
}
