/* The list of the fast kernels, and what they share; reference/ has each kernel's formula. No fast-math: one machine
 * gives the same bits at each run, but machines that contract products differently differ. */
#pragma once

#include "kernels/kernels.h"
#include "runtime/base/vector.h"

/* f32 ops by vector loops. */
#define EL_CPU_LIST(X)                                                                                                 \
    X(EL_OP_EMBEDDING_FORWARD, embedding_forward)                                                                      \
    X(EL_OP_EMBEDDING_BACKWARD, embedding_backward)                                                                    \
    X(EL_OP_RELU_BACKWARD, relu_backward)                                                                              \
    X(EL_OP_BATCH_NORM_FORWARD, batch_norm_forward)                                                                    \
    X(EL_OP_BATCH_NORM_INFERENCE, batch_norm_inference)                                                                \
    X(EL_OP_BATCH_NORM_BACKWARD, batch_norm_backward)                                                                  \
    X(EL_OP_LAYER_NORM_FORWARD, layer_norm_forward)                                                                    \
    X(EL_OP_LAYER_NORM_BACKWARD, layer_norm_backward)                                                                  \
    X(EL_OP_GELU_FORWARD, gelu_forward)                                                                                \
    X(EL_OP_GELU_BACKWARD, gelu_backward)                                                                              \
    X(EL_OP_ROWS_TAKE, rows_take)                                                                                      \
    X(EL_OP_ROWS_GIVE, rows_give)                                                                                      \
    X(EL_OP_SWIGLU_FORWARD, swiglu_forward)                                                                            \
    X(EL_OP_SWIGLU_BACKWARD, swiglu_backward)                                                                          \
    X(EL_OP_ADD_ROW, add_row)                                                                                          \
    X(EL_OP_SUM_ROWS, sum_rows)                                                                                        \
    X(EL_OP_MAX_TIME_FORWARD, max_time_forward)                                                                        \
    X(EL_OP_MAX_TIME_BACKWARD, max_time_backward)                                                                      \
    X(EL_OP_MAX_POOL_FORWARD, max_pool_forward)                                                                        \
    X(EL_OP_MAX_POOL_BACKWARD, max_pool_backward)                                                                      \
    X(EL_OP_MEAN_POOL_FORWARD, mean_pool_forward)                                                                      \
    X(EL_OP_MEAN_POOL_BACKWARD, mean_pool_backward)                                                                    \
    X(EL_OP_DROPOUT, dropout)                                                                                          \
    X(EL_OP_COPY_COLUMNS, copy_columns)                                                                                \
    X(EL_OP_CROSS_ENTROPY, cross_entropy)                                                                              \
    X(EL_OP_CROSS_ENTROPY_PIECE, cross_entropy_piece)                                                                  \
    X(EL_OP_CROSS_ENTROPY_JOIN, cross_entropy_join)                                                                    \
    X(EL_OP_SCALE, scale)                                                                                              \
    X(EL_OP_ADD, add)                                                                                                  \
    X(EL_OP_CAST, cast)                                                                                                \
    X(EL_OP_FILL, fill)                                                                                                \
    X(EL_OP_SUM_SQUARES, sum_squares)                                                                                  \
    X(EL_OP_CLIP, clip)                                                                                                \
    X(EL_OP_SGD, sgd)                                                                                                  \
    X(EL_OP_MOMENTUM, momentum)                                                                                        \
    X(EL_OP_ADAM, adam)                                                                                                \
    X(EL_OP_MAX_NORM, max_norm)

/* bf16 ops with loops of their own instead of the f32 loops (kernels/bf16.h). */
#define EL_CPU_BF16_LIST(X)                                                                                            \
    X(EL_OP_EMBEDDING_FORWARD, embedding_forward_bf16)                                                                 \
    X(EL_OP_GELU_FORWARD, gelu_forward_bf16)                                                                           \
    X(EL_OP_GELU_BACKWARD, gelu_backward_bf16)                                                                         \
    X(EL_OP_ROWS_TAKE, rows_take_bf16)                                                                                 \
    X(EL_OP_COPY_COLUMNS, copy_columns_bf16)                                                                           \
    X(EL_OP_CAST, cast_bf16)

#define EL_CPU_DECLARE(op, name) enum el_status el_cpu_##name(const struct el_kernel_args *args);
EL_CPU_LIST(EL_CPU_DECLARE)
EL_CPU_BF16_LIST(EL_CPU_DECLARE)
#undef EL_CPU_DECLARE
enum el_status el_cpu_cast_f16(const struct el_kernel_args *args);

const struct el_kernel *el_cpu_conv1d_backward_weights(void);

/* Rows with scratch: attention in f32, and in bf16 where el_tiles_have_pairs(); cross entropy in bf16. */
extern const struct el_kernel el_cpu_attention_forward[2], el_cpu_attention_backward[2], el_cpu_cross_entropy_bf16;

/* oneDNN's row; NULL if it has none or is missing. */
const struct el_kernel *el_cpu_dnnl(enum el_op_kind op, enum el_dtype dtype);

/* The row of the chosen CBLAS (el_kernels_cpu_products); NULL if it has none, or oneDNN is chosen. */
const struct el_kernel *el_cpu_blas(enum el_op_kind op);

/* y[n] (+)= factor * x[n], between f32 and bf16. */
void el_vector_widen(const uint16_t *x, int64_t n, float factor, int acc, float *y);
void el_vector_narrow(const float *x, int64_t n, float factor, int acc, uint16_t *y);

void el_vector_add(const float *restrict x, int64_t n, float *restrict y);
void el_vector_add_bf16(const uint16_t *restrict x, int64_t n, uint16_t *restrict y);

/* y[n] (+)= the sum of the rows of x[rows, n], first to last. */
void el_vector_sum_rows(const float *x, int64_t rows, int64_t n, int acc, float *y);
void el_vector_sum_rows_bf16(const uint16_t *x, int64_t rows, int64_t n, int acc, float *y);

/* y[rows, n] = the transpose of x[n, rows], which keeps all bits; rows and n are multiples of 8. */
void el_vector_transpose(const float *x, int64_t rows, int64_t n, float *y);

/* y[rows, n] = the transpose of x[n, rows] + bias[n] (NULL: none), then max(., 0) with `relu`. */
void el_vector_transpose_bias(const float *x, const float *bias, int64_t rows, int64_t n, int relu, float *y);

/* The maximum of x[n]; -INFINITY for n = 0. */
float el_vector_largest(const float *x, int64_t n);

/* y[n] = exp(x - from), y may be x; returns the sum. */
double el_vector_exp_sum(const float *x, int64_t n, float from, float *y);

/* The module el_dnnl.so: f32 and bf16 rows by oneDNN. */
struct el_dnnl_module {
    /* Required. NULL if the module lacks the row. */
    const struct el_kernel *(*find)(enum el_op_kind op, enum el_dtype dtype);
    /* Required. "oneDNN 2.6.3": the version at run time. */
    const char *(*library)(void);
};

#define EL_DNNL_SYMBOL "el_dnnl_module"
