/* The cases that every table of kernels is held to, against the reference in f64: sizes of one, odd sizes and the
 * models' own; with and without acc, in place, off the cache line, between guard words; and the same bits again.
 *
 * Tolerance. A sum of K products in f32, in any order, errs by about sqrt(K) roundings of its largest partial sum (the
 * roundings' signs are independent), and at most by K. Each element may be off by 4 (sqrt(K) + 8) half-ulps of the
 * largest element of its tensor: the factor 4 because the largest of millions of elements lies some 5 sigma out, the 8
 * for the few roundings that are not in a sum. A wrong term is off by 1/sqrt(K) of the largest element: ten
 * thousand times as much. */
#pragma once

#include "tests/unit/test_kernels_common.h"

#include <math.h>

struct test_case {
    enum el_op_kind op;
    int64_t d[EL_ARGS_SIZES];
    double s[EL_ARGS_SCALARS];
    int in_place; /* p[its last] is p[0] */
    uint64_t step;
    unsigned absent; /* operands that are NULL, a bit each */
};

#define SIZES(...) __VA_ARGS__
#define CASE_WITH(kind, sizes, in, at, none, ...)                                                                      \
    {                                                                                                                  \
        EL_OP_##kind, {SIZES sizes}, {__VA_ARGS__}, in, at, none                                                       \
    }
#define CASE(kind, sizes, ...)               CASE_WITH(kind, sizes, 0, 0, 0, __VA_ARGS__)
#define CASE_IN_PLACE(kind, sizes, ...)      CASE_WITH(kind, sizes, 1, 0, 0, __VA_ARGS__)
#define CASE_AT(at, kind, sizes, ...)        CASE_WITH(kind, sizes, 0, at, 0, __VA_ARGS__)
#define CASE_WITHOUT(none, kind, sizes, ...) CASE_WITH(kind, sizes, 0, 0, none, __VA_ARGS__)
/* Written, and added to; of a forward op without and with its ReLU. */
#define BOTH(kind, sizes)                    CASE(kind, sizes, 0), CASE(kind, sizes, 1)

#define LINEAR(...)                                                                                                    \
    BOTH(LINEAR_FORWARD, (__VA_ARGS__)), BOTH(LINEAR_BACKWARD_DATA, (__VA_ARGS__)),                                    \
        BOTH(LINEAR_BACKWARD_WEIGHTS, (__VA_ARGS__))
#define LINEAR_WITHOUT_BIAS(...)                                                                                       \
    CASE_WITHOUT(1 << 2, LINEAR_FORWARD, (__VA_ARGS__), 0), CASE_WITHOUT(1 << 2, LINEAR_FORWARD, (__VA_ARGS__), 1),    \
        CASE_WITHOUT(1 << 3, LINEAR_BACKWARD_WEIGHTS, (__VA_ARGS__), 0),                                               \
        CASE_WITHOUT(1 << 3, LINEAR_BACKWARD_WEIGHTS, (__VA_ARGS__), 1)
#define CONV1D(...)                                                                                                    \
    BOTH(CONV1D_FORWARD, (__VA_ARGS__)), BOTH(CONV1D_BACKWARD_DATA, (__VA_ARGS__)),                                    \
        BOTH(CONV1D_BACKWARD_WEIGHTS, (__VA_ARGS__))
#define CONV2D(...)                                                                                                    \
    CASE(CONV2D_FORWARD, (__VA_ARGS__), 0), BOTH(CONV2D_BACKWARD_DATA, (__VA_ARGS__)),                                 \
        BOTH(CONV2D_BACKWARD_WEIGHTS, (__VA_ARGS__))
#define EMBEDDING(...) CASE(EMBEDDING_FORWARD, (__VA_ARGS__), 0), BOTH(EMBEDDING_BACKWARD, (__VA_ARGS__))
#define MAX_TIME(...)  CASE(MAX_TIME_FORWARD, (__VA_ARGS__), 0), CASE(MAX_TIME_BACKWARD, (__VA_ARGS__), 0)
#define MAX_POOL(...)  CASE(MAX_POOL_FORWARD, (__VA_ARGS__), 0), CASE(MAX_POOL_BACKWARD, (__VA_ARGS__), 0)
#define MEAN_POOL(...) CASE(MEAN_POOL_FORWARD, (__VA_ARGS__), 0), BOTH(MEAN_POOL_BACKWARD, (__VA_ARGS__))
#define COPY(...)      BOTH(COPY_COLUMNS, (__VA_ARGS__))
/* Of classes, of which this device has a part. */
#define LOSS_PIECE(b, c, first, of, m)                                                                                 \
    CASE(CROSS_ENTROPY_PIECE, (b, c, first, of), 0), CASE(CROSS_ENTROPY_JOIN, (b, c, first, of, m), 0)
#define LOSS(...) CASE(CROSS_ENTROPY, (__VA_ARGS__), 0), CASE(MSE, (__VA_ARGS__), 0)
#define ELEMENTS(n)                                                                                                    \
    CASE(GELU_FORWARD, (n), 0), CASE(GELU_BACKWARD, (n), 0), CASE_IN_PLACE(GELU_BACKWARD, (n), 0),                     \
        CASE(RELU_BACKWARD, (n), 0), CASE_IN_PLACE(RELU_BACKWARD, (n), 0), CASE(SCALE, (n), 0.3),                      \
        CASE_IN_PLACE(SCALE, (n), 0.3), CASE(CAST, (n), 0.3), CASE(CAST, (n), 1, 1), CASE(ADD, (n), 0),                \
        CASE(FILL, (n), 0.3), CASE(SGD, (n), 0.1), CASE(MOMENTUM, (n), 0.1, 0.9),                                      \
        CASE(ADAM, (n), 1e-3, 0.9, 0.999, 1e-8), CASE_AT(1000, ADAM, (n), 1e-3, 0.9, 0.999, 1e-8, 0.1),                \
        CASE(SUM_SQUARES, (n), 0), CASE(CLIP, (n), 0.1), CASE(CLIP, (n), 5)
#define ROW(...)                                                                                                       \
    CASE(ADD_ROW, (__VA_ARGS__), 0), CASE_IN_PLACE(ADD_ROW, (__VA_ARGS__), 0), BOTH(SUM_ROWS, (__VA_ARGS__))
#define LAYER_NORM(...)                                                                                                \
    CASE(LAYER_NORM_FORWARD, (__VA_ARGS__), 1e-5), CASE(LAYER_NORM_BACKWARD, (__VA_ARGS__), 0, 0),                     \
        CASE(LAYER_NORM_BACKWARD, (__VA_ARGS__), 0, 1), CASE(LAYER_NORM_BACKWARD, (__VA_ARGS__), 1, 0)
#define ATTENTION(...) CASE(ATTENTION_FORWARD, (__VA_ARGS__), 0), CASE(ATTENTION_BACKWARD, (__VA_ARGS__), 0)
/* By logits; drawn; in turn. Logits have ties. */
#define ROUTE(b, t, e, k)                                                                                              \
    CASE(ROUTE_FORWARD, (b, t, e, k), 0), CASE_AT(3, ROUTE_FORWARD, (b, t, e, k, 2, 3, 2), 0),                         \
        CASE_AT(3, ROUTE_FORWARD, (b, t, e, k, 2, 3), 1), CASE(ROUTE_BACKWARD, (b, t, e, k), 0, 0),                    \
        CASE(ROUTE_BACKWARD, (b, t, e, k), 0.3, 0.2)
#define PLACE(...)       CASE(ROUTE_PLACE, (__VA_ARGS__), 0), CASE_WITHOUT(1 << 3 | 1 << 4, ROUTE_PLACE, (__VA_ARGS__), 0)
#define EXPERT_ROWS(...) CASE(ROWS_TAKE, (__VA_ARGS__), 0), BOTH(ROWS_GIVE, (__VA_ARGS__))
#define GROUPED(r, ...)                                                                                                \
    CASE(GROUPED_FORWARD, (r, __VA_ARGS__), 0, r), CASE(GROUPED_BACKWARD_DATA, (r, __VA_ARGS__), 0, r),                \
        CASE(GROUPED_BACKWARD_DATA, (r, __VA_ARGS__), 1, r),                                                           \
        CASE(GROUPED_BACKWARD_WEIGHTS, (r, __VA_ARGS__), 0, r, 1),                                                     \
        CASE(GROUPED_BACKWARD_WEIGHTS, (r, __VA_ARGS__), 1, r, 0.5)
#define SWIGLU(...) CASE(SWIGLU_FORWARD, (__VA_ARGS__), 0), CASE(SWIGLU_BACKWARD, (__VA_ARGS__), 0)
#define DROPOUT(...)                                                                                                   \
    CASE_AT(3, DROPOUT, (__VA_ARGS__), 0.5), CASE_IN_PLACE(DROPOUT, (__VA_ARGS__), 0.1), CASE(DROPOUT, (__VA_ARGS__), 0)
/* Residual: operand 3 of forward, 8 of backward, there in place of dy too. ReLU: backward has y, its operand 2. */
#define BATCH_NORM(...)                                                                                                \
    CASE_WITHOUT(1 << 3, BATCH_NORM_FORWARD, (__VA_ARGS__), 1e-5, 0.1, 0),                                             \
        CASE_WITHOUT(1 << 3, BATCH_NORM_FORWARD, (__VA_ARGS__), 1e-5, 0.1, 1),                                         \
        CASE(BATCH_NORM_FORWARD, (__VA_ARGS__), 1e-3, 0.3, 1), CASE(BATCH_NORM_FORWARD, (__VA_ARGS__), 1e-5, 0.1, 0),  \
        CASE_WITHOUT(1 << 3, BATCH_NORM_INFERENCE, (__VA_ARGS__), 1e-5, 0),                                            \
        CASE_WITHOUT(1 << 3, BATCH_NORM_INFERENCE, (__VA_ARGS__), 1e-5, 1),                                            \
        CASE(BATCH_NORM_INFERENCE, (__VA_ARGS__), 1e-5, 1),                                                            \
        CASE_WITHOUT(1 << 2 | 1 << 8, BATCH_NORM_BACKWARD, (__VA_ARGS__), 0, 0),                                       \
        CASE_WITHOUT(1 << 8, BATCH_NORM_BACKWARD, (__VA_ARGS__), 1, 0),                                                \
        CASE(BATCH_NORM_BACKWARD, (__VA_ARGS__), 0, 0), CASE(BATCH_NORM_BACKWARD, (__VA_ARGS__), 1, 1),                \
        CASE_WITHOUT(1 << 2, BATCH_NORM_BACKWARD, (__VA_ARGS__), 0, 1),                                                \
        CASE_IN_PLACE(BATCH_NORM_BACKWARD, (__VA_ARGS__), 0, 0)

static const struct test_case cases[] = {
/* Minutes, under a sanitizer or by an emulator, in loops that these sizes go through too. */
#if defined __SANITIZE_ADDRESS__ || defined SMALLER_CASES
    EMBEDDING(512, 2500, 128),
    ELEMENTS(10007),
#else
    LINEAR(64, 1024, 1024),
    CONV1D(64, 64, 128, 100, 3),
    CONV1D(5, 64, 128, 100, 4),
    CONV1D(5, 64, 128, 100, 5),
    EMBEDDING(4096, 20000, 128),
    ELEMENTS(100000),
    CONV2D(2, 16, 16, 64, 64, 3, 1, 1),
    CONV2D(2, 32, 32, 3, 64, 7, 2, 3),
    CONV2D(2, 8, 8, 256, 64, 1, 1, 0),
    CONV2D(1, 8, 8, 128, 256, 3, 2, 1),
    BATCH_NORM(4096, 64),
    MAX_POOL(2, 32, 32, 64, 3, 2, 1),
    ATTENTION(1, 200, 2, 64),
    LOSS(9, 8192),
#endif
    CONV2D(1, 1, 1, 1, 1, 1, 1, 0),
    CONV2D(1, 3, 2, 1, 1, 3, 1, 1),
    CONV2D(2, 7, 5, 3, 4, 3, 1, 1),
    CONV2D(3, 8, 7, 17, 33, 3, 2, 1),
    CONV2D(1, 9, 11, 3, 16, 7, 2, 3),
    CONV2D(1, 13, 13, 3, 5, 7, 1, 3),
    CONV2D(2, 7, 7, 8, 70, 1, 2, 0),
    CONV2D(1, 6, 6, 65, 16, 1, 1, 0),
    CONV2D(2, 5, 6, 4, 3, 2, 3, 0),
    CONV2D(1, 2, 2, 16, 16, 3, 2, 1),
    BATCH_NORM(4, 1),
    BATCH_NORM(3, 5),
    BATCH_NORM(17, 65),
    BATCH_NORM(50, 64),
    BATCH_NORM(1031, 7),
    BATCH_NORM(128, 300),
    LAYER_NORM(1, 1),
    LAYER_NORM(3, 2),
    LAYER_NORM(7, 33),
    LAYER_NORM(300, 5),
    LAYER_NORM(5, 600),
    LAYER_NORM(40, 256),
    ATTENTION(1, 1, 1, 1),
    ATTENTION(2, 3, 2, 5),
    ATTENTION(1, 8, 3, 32),
    ATTENTION(2, 33, 1, 7),
    ATTENTION(1, 67, 2, 64),
    ATTENTION(2, 70, 1, 70), /* beyond a tile of the card's, in both */
    ATTENTION(1, 129, 1, 33),
    ROUTE(1, 1, 1, 1),
    ROUTE(2, 5, 4, 2),
    ROUTE(1, 67, 8, 1),
    ROUTE(3, 7, 6, 6), /* all experts */
    ROUTE(2, 70, 40, 16),
    ROUTE(1, 3, 512, 3),
    PLACE(1, 1, 1, 1, 1, 1),
    PLACE(2, 5, 4, 2, 2, 24),
    PLACE(3, 70, 6, 3, 3, 660, 20), /* some are dropped */
    PLACE(2, 9, 64, 2, 1, 40),      /* most experts have none */
    PLACE(5, 1100, 4, 4, 2, 22000), /* more choices than a block of the card's has */
    EXPERT_ROWS(1, 1, 1, 1),
    EXPERT_ROWS(7, 33, 3, 25),
    EXPERT_ROWS(50, 70, 2, 100),
    GROUPED(1, 1, 1, 1, 1, 1),
    GROUPED(13, 3, 5, 3, 2, 1), /* an expert without rows, and a row that no part has */
    GROUPED(90, 17, 66, 4, 2, 3),
    GROUPED(430, 70, 9, 3, 2, 1), /* more rows of an expert than a tile of the card's */
    SWIGLU(1, 1, 1, 1, 1),
    SWIGLU(29, 5, 3, 2, 2),
    SWIGLU(200, 70, 2, 2, 1),
    ROW(1, 1),
    ROW(5, 70),
    ROW(64, 256),
    MAX_POOL(1, 1, 1, 1, 1, 1, 0),
    MAX_POOL(2, 7, 5, 3, 3, 2, 1),
    MAX_POOL(1, 8, 8, 65, 3, 2, 1),
    MAX_POOL(2, 6, 9, 16, 2, 2, 0),
    MAX_POOL(1, 9, 9, 4, 3, 1, 2),
    MAX_POOL(1, 7, 7, 2, 7, 3, 3),
    MEAN_POOL(1, 1, 1),
    MEAN_POOL(3, 7, 5),
    MEAN_POOL(2, 49, 130),
    MEAN_POOL(4, 16, 512),
    LINEAR(1, 1, 1),
    LINEAR(1, 7, 1),
    LINEAR(5, 1, 3),
    LINEAR(3, 17, 33),
    LINEAR(2, 10, 5),
    LINEAR(64, 300, 2),
    LINEAR(13, 1024, 10),
    LINEAR(16, 3, 65),
    LINEAR(33, 200, 150),
    LINEAR(1, 130, 70),
    LINEAR_WITHOUT_BIAS(1, 1, 1),
    LINEAR_WITHOUT_BIAS(13, 33, 130),
    LINEAR_WITHOUT_BIAS(17, 5, 150), /* much more weights than rows */
    LINEAR(6, 5, 5000),              /* in blocks, of which the last one is smaller */
    LINEAR_WITHOUT_BIAS(3, 2, 4097),
    CONV1D(1, 1, 1, 1, 1),
    CONV1D(1, 5, 1, 1, 5),
    CONV1D(2, 7, 3, 5, 2),
    CONV1D(3, 9, 17, 33, 4),
    CONV1D(1, 6, 300, 100, 3),
    CONV1D(2, 64, 128, 100, 3),
    CONV1D(1, 64, 128, 100, 4),
    CONV1D(1, 64, 128, 100, 5),
    EMBEDDING(1, 1, 1),
    EMBEDDING(50, 7, 3),
    EMBEDDING(33, 100, 17),
    MAX_TIME(1, 1, 1),
    MAX_TIME(2, 3, 1),
    MAX_TIME(3, 7, 65),
    MAX_TIME(2, 5, 64),
    MAX_TIME(64, 62, 100),
    EMBEDDING(50, 7, 3, 2, 20),
    LOSS_PIECE(1, 1, 0, 2, 2),
    LOSS_PIECE(7, 33, 5, 66, 3),
    LOSS(1, 1),
    LOSS(1, 2),
    LOSS(7, 3),
    LOSS(64, 10),
    LOSS(5, 131),
    ELEMENTS(1),
    ELEMENTS(15),
    ELEMENTS(1003),
    DROPOUT(1, 1, 0, 1),
    DROPOUT(3, 17, 2, 1),
    DROPOUT(64, 300, 1, 2),
    COPY(1, 1, 1, 1),
    COPY(3, 5, 5, 9),
    COPY(64, 100, 300, 100),
    CASE(MAX_NORM, (1, 1), 0.1),
    CASE(MAX_NORM, (7, 13), 2),
    CASE(MAX_NORM, (100, 300), 9.9),
    CASE(MAX_NORM, (2, 300), 0),
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* The longest sum that makes one element of an output. Losses are summed in double, which only f64 can tell. */
static inline double terms(const struct test_case *c, enum el_dtype dtype)
{
    const int64_t *d = c->d;
    switch (c->op) {
    case EL_OP_LINEAR_FORWARD:
    case EL_OP_MEAN_POOL_FORWARD:
    case EL_OP_LAYER_NORM_FORWARD:
    case EL_OP_GROUPED_FORWARD:
    case EL_OP_SWIGLU_BACKWARD:
        return (double)d[1];
    case EL_OP_LINEAR_BACKWARD_DATA:
    case EL_OP_GROUPED_BACKWARD_DATA:
    case EL_OP_ROWS_GIVE:
        return (double)d[2];
    case EL_OP_CONV1D_FORWARD:
        return (double)(d[2] * d[4]);
    case EL_OP_CONV1D_BACKWARD_DATA:
        return (double)(d[3] * d[4]);
    case EL_OP_CONV1D_BACKWARD_WEIGHTS:
        return (double)(d[0] * (d[1] - d[4] + 1));
    case EL_OP_LAYER_NORM_BACKWARD:
        return (double)(d[0] + d[1]);
    case EL_OP_ROUTE_BACKWARD:
        return (double)(d[1] + d[2]);
    case EL_OP_ATTENTION_FORWARD:
    case EL_OP_ATTENTION_BACKWARD:
        return (double)(d[1] + d[3]);
    case EL_OP_SUM_ROWS:
    case EL_OP_LINEAR_BACKWARD_WEIGHTS:
    case EL_OP_GROUPED_BACKWARD_WEIGHTS:
    case EL_OP_EMBEDDING_BACKWARD:
    case EL_OP_BATCH_NORM_FORWARD:
    case EL_OP_BATCH_NORM_BACKWARD:
        return (double)d[0];
    case EL_OP_CONV2D_FORWARD:
        return (double)(d[3] * d[5] * d[5]);
    case EL_OP_CONV2D_BACKWARD_DATA:
        return (double)(d[4] * d[5] * d[5]);
    case EL_OP_CONV2D_BACKWARD_WEIGHTS:
        return (double)(d[0] * el_window_of_conv2d(d).oh * el_window_of_conv2d(d).ow);
    case EL_OP_MAX_POOL_BACKWARD:
        return (double)(d[4] * d[4]);
    case EL_OP_CROSS_ENTROPY_PIECE:
        return (double)d[1];
    case EL_OP_CROSS_ENTROPY_JOIN:
    case EL_OP_CROSS_ENTROPY:
    case EL_OP_MSE:
        return dtype == EL_F64 ? (double)(d[0] * d[1]) : 1;
    case EL_OP_SUM_SQUARES:
        return dtype == EL_F64 ? (double)d[0] : 1;
    default:
        return 1;
    }
}

/* Whether OUT operand i is read. */
static inline int accumulates(const struct test_case *c, int i)
{
    switch (c->op) {
    case EL_OP_BATCH_NORM_BACKWARD:
        return i >= 6 && c->s[i == 8] != 0; /* dscale and dshift; dresidual */
    case EL_OP_LAYER_NORM_BACKWARD:
        return c->s[i >= 5] != 0; /* dx; dscale and dshift */
    case EL_OP_CAST:
        return c->s[1] != 0;
    case EL_OP_ROUTE_PLACE:
        return i == 3; /* log */
    case EL_OP_CONV2D_BACKWARD_DATA:
    case EL_OP_CONV2D_BACKWARD_WEIGHTS:
    case EL_OP_MEAN_POOL_BACKWARD:
    case EL_OP_LINEAR_BACKWARD_DATA:
    case EL_OP_LINEAR_BACKWARD_WEIGHTS:
    case EL_OP_CONV1D_BACKWARD_DATA:
    case EL_OP_CONV1D_BACKWARD_WEIGHTS:
    case EL_OP_EMBEDDING_BACKWARD:
    case EL_OP_SUM_ROWS:
    case EL_OP_ROWS_GIVE:
    case EL_OP_GROUPED_BACKWARD_WEIGHTS:
        return c->s[0] != 0;
    default:
        return 0;
    }
}

/* One case's operands in one data type, and what a run made of them. */
struct outcome {
    enum el_dtype dtype;
    int n;
    enum el_dtype types[EL_ARGS_POINTERS];
    struct operand operands[EL_ARGS_POINTERS];
    struct guarded tensors[EL_ARGS_POINTERS];
    char name[200];
};

static inline void outcome_free(struct outcome *out)
{
    for (int i = 0; i < out->n; i++)
        if (out->tensors[i].whole) guarded_free(&out->tensors[i], out->name);
}

/* Of which type each operand of a row of `dtype` is. A cast is between f32 and bf16. */
static inline void find_types(const struct test_case *c, enum el_dtype dtype, const struct operand *operands, int n,
                              enum el_dtype types[EL_ARGS_POINTERS])
{
    struct el_op_operand told[EL_ARGS_POINTERS];
    assert_int_equal(el_op_operands(el_op_name(c->op), el_dtype_name(dtype), c->d, told), n);
    for (int i = 0; i < n; i++) {
        types[i] = operand_is_id(operands[i].kind) ? EL_I32 : strcmp(told[i].dtype, "f32") ? dtype : EL_F32;
        if (c->op == EL_OP_CAST && i == 0 && dtype != EL_F64) types[i] = dtype == EL_F32 ? EL_BF16 : EL_F32;
    }
}

static inline void fill_tensor(const struct test_case *c, const struct operand *o, int index, enum el_dtype dtype,
                               int coarse, struct guarded *tensor)
{
    if ((o->kind == OUT || o->kind == OUT_ID) && !accumulates(c, index))
        memset(tensor->data, 0xff, tensor->bytes); /* NaN: what is not written shows */
    else
        operand_fill(o, index, operand_limit(c->op, c->d), dtype, coarse, tensor->data);
}

/* The forward op of an op that reads `n` outputs of it: where the first stands among the operands of both, and whether
 * the forward op's input is backward's operand 1. */
struct kept {
    enum el_op_kind backward, forward;
    int operand, output, n, shares_input;
};

static inline const struct kept *kept_by(enum el_op_kind op)
{
    static const struct kept rows[] = {
        {EL_OP_MAX_POOL_BACKWARD, EL_OP_MAX_POOL_FORWARD, 1, 2, 1, 0},
        {EL_OP_BATCH_NORM_BACKWARD, EL_OP_BATCH_NORM_FORWARD, 4, 7, 1, 1},
        {EL_OP_LAYER_NORM_BACKWARD, EL_OP_LAYER_NORM_FORWARD, 3, 4, 1, 1},
        {EL_OP_ATTENTION_BACKWARD, EL_OP_ATTENTION_FORWARD, 2, 2, 1, 1},
        {EL_OP_ROUTE_BACKWARD, EL_OP_ROUTE_FORWARD, 2, 2, 2, 1},
        {EL_OP_ROUTE_PLACE, EL_OP_ROUTE_FORWARD, 0, 3, 1, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].backward == op) return &rows[i];
    return NULL;
}

/* Output `o` of a forward op in f64, rounded to f32, or to bf16 where that is given, so that it is the same in all
 * types. */
static inline void fill_output(const struct operand *o, const void *from, enum el_dtype dtype, enum el_dtype given,
                               const struct guarded *tensor)
{
    if (operand_is_id(o->kind)) memcpy(tensor->data, from, tensor->bytes);
    for (int64_t j = 0; !operand_is_id(o->kind) && j < o->n; j++) {
        float value = (float)((const double *)from)[j];
        if (given == EL_BF16) value = el_f32_of_bf16(el_bf16_of_f32(value));
        if (dtype == EL_F64)
            ((double *)tensor->data)[j] = (double)value;
        else if (dtype == EL_BF16)
            ((uint16_t *)tensor->data)[j] = el_bf16_of_f32(value);
        else
            ((float *)tensor->data)[j] = value;
    }
}

/* What an op reads of its forward, made by the reference in f64 from operands of the same sizes. */
static inline void fill_kept(const struct test_case *c, const struct outcome *out, const enum el_dtype *given)
{
    const struct kept *kept = kept_by(c->op);
    struct operand operands[EL_ARGS_POINTERS];
    struct el_kernel_args args = {.s = {1e-5}};
    if (!kept) return;
    memcpy(args.d, c->d, sizeof args.d);
    if (kept->forward == EL_OP_ROUTE_FORWARD)
        args.s[0] = 0, memset(&args.d[4], 0, sizeof args.d - 4 * sizeof args.d[0]);
    int n = op_operands(kept->forward, args.d, operands);
    for (int i = 0; i < n; i++) {
        if (operands[i].kind == ABSENT) continue;
        args.p[i] = calloc((size_t)operands[i].n, sizeof(double));
        assert_non_null(args.p[i]);
        operand_fill(&operands[i], kept->shares_input ? 1 : i, 0, EL_F64, 0, args.p[i]);
    }
    assert_int_equal(el_kernels_reference()->find(kept->forward, EL_F64)->run(&args), EL_OK);
    for (int i = 0; i < kept->n; i++) {
        const int to = kept->operand + i, from = kept->output + i;
        fill_output(&operands[from], args.p[from], out->types[to], given[to], &out->tensors[to]);
    }
    for (int i = 0; i < n; i++) free(args.p[i]);
}

/* A row's life round one run on the tensors of `out`: row_run, or what brings them to a device and back. */
typedef void (*row_runner)(const struct el_kernel *row, struct el_kernel_args *args, struct outcome *out);

static inline void run_here(const struct el_kernel *row, struct el_kernel_args *args, struct outcome *out)
{
    row_run(row, args, out->name);
}

static inline void name_case(const struct el_kernel_table *table, enum el_dtype dtype, const struct test_case *c,
                             struct outcome *out)
{
    int used =
        snprintf(out->name, sizeof out->name, "%s %s %s d:", table->name, el_dtype_name(dtype), el_op_name(c->op));
    for (int i = 0; i < EL_ARGS_SIZES; i++)
        used += snprintf(out->name + used, sizeof out->name - (size_t)used, " %lld", (long long)c->d[i]);
    snprintf(out->name + used, sizeof out->name - (size_t)used, " s: %g %g %g%s absent: %x", c->s[0], c->s[1], c->s[2],
             c->in_place ? " in place" : "", c->absent);
}

/* With the operands that a row of type `values` is given. */
static inline void compute_like(enum el_dtype values, const struct el_kernel_table *table, enum el_dtype dtype,
                                const struct test_case *c, size_t skew, row_runner runner, struct outcome *out)
{
    struct el_kernel_args args = {.step = c->step};
    enum el_dtype given[EL_ARGS_POINTERS];
    if (c->op == EL_OP_DROPOUT || c->op == EL_OP_ROUTE_FORWARD) args.k[0] = 11, args.k[1] = 4;
    memcpy(args.d, c->d, sizeof args.d);
    memcpy(args.s, c->s, sizeof args.s);
    memset(out, 0, sizeof *out);
    name_case(table, dtype, c, out);
    out->dtype = dtype;
    out->n = op_operands(c->op, c->d, out->operands);
    find_types(c, dtype, out->operands, out->n, out->types);
    find_types(c, values, out->operands, out->n, given);
    if (c->op == EL_OP_CAST) args.k[0] = out->types[0];
    for (int i = 0; i < out->n; i++) {
        struct operand *o = &out->operands[i];
        if (c->absent & 1u << i) *o = (struct operand){ABSENT, 0};
        if (o->kind == ABSENT) continue;
        if (c->in_place && i == out->n - 1) {
            args.p[i] = args.p[0];
            break;
        }
        size_t width = el_dtype_bytes(out->types[i]);
        out->tensors[i] = guarded_alloc((size_t)o->n * width, skew * width);
        fill_tensor(c, o, i, out->types[i], given[i] == EL_BF16, &out->tensors[i]);
        args.p[i] = out->tensors[i].data;
    }
    fill_kept(c, out, given);
    runner(table->find(c->op, dtype), &args, out);
}

static inline void compute(const struct el_kernel_table *table, enum el_dtype dtype, const struct test_case *c,
                           size_t skew, row_runner runner, struct outcome *out)
{
    compute_like(dtype, table, dtype, c, skew, runner, out);
}

/* The bytes of output i, wherever it lies. */
static inline const void *output(const struct outcome *out, int i)
{
    return out->tensors[i].data ? out->tensors[i].data : out->tensors[0].data;
}

static inline double real_at(const void *data, enum el_dtype dtype, int64_t i)
{
    if (dtype == EL_BF16) return (double)el_f32_of_bf16(((const uint16_t *)data)[i]);
    return dtype == EL_F32 ? (double)((const float *)data)[i] : ((const double *)data)[i];
}

/* The gradient that a norm gives its input is what is left of larger terms: for two values hardly anything. */
static inline double largest_term(const struct test_case *c, const struct outcome *want, int i)
{
    double scale = 0, rstd = 0;
    const int layer = c->op == EL_OP_LAYER_NORM_BACKWARD && i == 4;
    if (!layer && (c->op != EL_OP_BATCH_NORM_BACKWARD || i != 5)) return 0;
    const double *scales = want->tensors[layer ? 2 : 3].data, *saved = want->tensors[layer ? 3 : 4].data;
    if (!layer) {
        for (int64_t j = 0; j < c->d[1]; j++) scale = fmax(scale, fabs(scales[j]) * saved[c->d[1] + j]);
        return scale;
    }
    for (int64_t j = 0; j < c->d[1]; j++) scale = fmax(scale, fabs(scales[j]));
    for (int64_t j = 0; j < c->d[0]; j++) rstd = fmax(rstd, saved[2 * j + 1]);
    return scale * rstd;
}

/* `half_ulp` is what one rounding may err by, relative to the result. */
static inline void compare_reals(const struct test_case *c, const struct outcome *got, const struct outcome *want,
                                 int i, double half_ulp)
{
    const double *w = output(want, i);
    double largest = 0;
    for (int64_t j = 0; j < got->operands[i].n; j++) largest = fmax(largest, fabs(w[j]));
    largest = fmax(largest, largest_term(c, want, i));
    double allowed = 4 * (sqrt(terms(c, got->dtype)) + 8) * half_ulp * largest;
    if (got->types[i] == EL_BF16) allowed += (1 + accumulates(c, i)) * 0x1p-8 * largest; /* rounded once, then added */
    for (int64_t j = 0; j < got->operands[i].n; j++) {
        double g = real_at(output(got, i), got->types[i], j);
        if (!(fabs(g - w[j]) <= allowed))
            fail_msg("%s: output %d, element %lld is %.9g, should be %.9g within %.2g", got->name, i, (long long)j, g,
                     w[j], allowed);
    }
}

static inline void compare(const struct test_case *c, const struct outcome *got, const struct outcome *want,
                           double half_ulp)
{
    for (int i = 0; i < got->n; i++) {
        if (!operand_is_output(got->operands[i].kind)) continue;
        if (!operand_is_id(got->operands[i].kind))
            compare_reals(c, got, want, i, half_ulp);
        else if (memcmp(output(got, i), output(want, i), (size_t)got->operands[i].n * sizeof(int32_t)))
            fail_msg("%s: output %d differs", got->name, i);
    }
}

static inline void same_bits(const struct outcome *a, const struct outcome *b)
{
    for (int i = 0; i < a->n; i++)
        if (a->tensors[i].whole && memcmp(a->tensors[i].data, b->tensors[i].data, a->tensors[i].bytes))
            fail_msg("%s: operand %d differs from the first run's", a->name, i);
}

static inline double case_flops(const struct test_case *c)
{
    struct el_kernel_args args = {.step = 0};
    memcpy(args.d, c->d, sizeof args.d);
    memcpy(args.s, c->s, sizeof args.s);
    return el_op_cost(c->op, EL_F32, &args).flops;
}

/* Checks the cases of up to `most_flops` whose rows the table has in `dtype` against the reference in f64; returns how
 * many. */
static inline int check_rows(const struct el_kernel_table *table, enum el_dtype dtype, row_runner runner,
                             double half_ulp, double most_flops)
{
    int checked = 0;
    for (int i = 0; i < CASES; i++) {
        if (!table->find(cases[i].op, dtype) || case_flops(&cases[i]) > most_flops) continue;
        checked++;
        struct test_case plain = cases[i];
        plain.in_place = 0;
        struct outcome want, got, again;
        compute_like(dtype, el_kernels_reference(), EL_F64, &plain, 0, run_here, &want);
        compute(table, dtype, &cases[i], 0, runner, &got);
        compare(&cases[i], &got, &want, half_ulp);
        compute(table, dtype, &cases[i], 0, runner, &again);
        same_bits(&again, &got);
        outcome_free(&again);
        compute(table, dtype, &cases[i], 1, runner, &again);
        compare(&cases[i], &again, &want, half_ulp);
        outcome_free(&again);
        outcome_free(&got);
        outcome_free(&want);
    }
    return checked;
}

/* Batch norm in f32 of values 1000 +- 0.1: mean and square have so much in common that a variance from sums of squares
 * in f32 is all error. For tables on the host's memory. */
static inline void check_batch_norm_far_from_zero(const struct el_kernel_table *table, row_runner runner)
{
    enum { ROWS = 600, C = 33 };
    static float x[ROWS * C], y[ROWS * C], ones[C], running[2][C], saved[2 * C];
    static double exact_x[ROWS * C], exact_y[ROWS * C], exact_ones[C], exact_running[2][C], exact[2 * C];
    static struct outcome out = {.name = "batch norm far from 0"};
    for (int i = 0; i < ROWS * C; i++) exact_x[i] = x[i] = (float)(1000 + 0.1 * operand_value(IN, 0, i));
    for (int i = 0; i < C; i++) exact_ones[i] = ones[i] = 1;
    struct el_kernel_args want = {
        .p = {exact_x, exact_ones, exact_ones, NULL, exact_running[0], exact_running[1], exact_y, exact}};
    struct el_kernel_args got = {.p = {x, ones, ones, NULL, running[0], running[1], y, saved}};
    want.d[0] = got.d[0] = ROWS, want.d[1] = got.d[1] = C;
    want.s[0] = got.s[0] = 1e-5, want.s[1] = got.s[1] = 1;
    run_f64(EL_OP_BATCH_NORM_FORWARD, &want);
    runner(table->find(EL_OP_BATCH_NORM_FORWARD, EL_F32), &got, &out);
    for (int i = 0; i < C; i++) {
        double rstd = (double)saved[C + i] / exact[C + i], variance = (double)running[1][i] / exact_running[1][i];
        double mean = (double)saved[i] / exact[i];
        if (!(fabs(mean - 1) <= 1e-6 && fabs(rstd - 1) < 1e-3 && fabs(variance - 1) < 1e-3))
            fail_msg("%s: channel %d: the mean is %.8f of what it should be, 1 / deviation %.6f, the variance %.6f",
                     table->name, i, mean, rstd, variance);
    }
}
