/* The list of the CUDA kernels. reference/ has each kernel's formula under the same name. */
#pragma once

#include "kernels/kernels.h"

/* Rows with only run(). */
#define EL_CUDA_LIST(X)                                                                                                \
    X(EL_OP_EMBEDDING_FORWARD, embedding_forward)                                                                      \
    X(EL_OP_LINEAR_FORWARD, linear_forward)                                                                            \
    X(EL_OP_LINEAR_BACKWARD_DATA, linear_backward_data)                                                                \
    X(EL_OP_BATCH_NORM_INFERENCE, batch_norm_inference)                                                                \
    X(EL_OP_LAYER_NORM_FORWARD, layer_norm_forward)                                                                    \
    X(EL_OP_ATTENTION_FORWARD, attention_forward)                                                                      \
    X(EL_OP_GELU_FORWARD, gelu_forward)                                                                                \
    X(EL_OP_GELU_BACKWARD, gelu_backward)                                                                              \
    X(EL_OP_ROUTE_BACKWARD, route_backward)                                                                            \
    X(EL_OP_ROUTE_PLACE, route_place)                                                                                  \
    X(EL_OP_ROWS_TAKE, rows_take)                                                                                      \
    X(EL_OP_ROWS_GIVE, rows_give)                                                                                      \
    X(EL_OP_SWIGLU_FORWARD, swiglu_forward)                                                                            \
    X(EL_OP_SWIGLU_BACKWARD, swiglu_backward)                                                                          \
    X(EL_OP_ADD_ROW, add_row)                                                                                          \
    X(EL_OP_RELU_BACKWARD, relu_backward)                                                                              \
    X(EL_OP_MAX_TIME_FORWARD, max_time_forward)                                                                        \
    X(EL_OP_MAX_TIME_BACKWARD, max_time_backward)                                                                      \
    X(EL_OP_MAX_POOL_FORWARD, max_pool_forward)                                                                        \
    X(EL_OP_MAX_POOL_BACKWARD, max_pool_backward)                                                                      \
    X(EL_OP_MEAN_POOL_FORWARD, mean_pool_forward)                                                                      \
    X(EL_OP_MEAN_POOL_BACKWARD, mean_pool_backward)                                                                    \
    X(EL_OP_COPY_COLUMNS, copy_columns)                                                                                \
    X(EL_OP_CROSS_ENTROPY_PIECE, cross_entropy_piece)                                                                  \
    X(EL_OP_SCALE, scale)                                                                                              \
    X(EL_OP_ADD, add)                                                                                                  \
    X(EL_OP_CAST, cast)                                                                                                \
    X(EL_OP_FILL, fill)                                                                                                \
    X(EL_OP_CLIP, clip)                                                                                                \
    X(EL_OP_SGD, sgd)                                                                                                  \
    X(EL_OP_MOMENTUM, momentum)                                                                                        \
    X(EL_OP_MAX_NORM, max_norm)

#define EL_CUDA_STEP_LIST(X)                                                                                           \
    X(EL_OP_ROUTE_FORWARD, route_forward)                                                                              \
    X(EL_OP_DROPOUT, dropout)                                                                                          \
    X(EL_OP_ADAM, adam)

#define EL_CUDA_WORKSPACE_LIST(X)                                                                                      \
    X(EL_OP_EMBEDDING_BACKWARD, embedding_backward)                                                                    \
    X(EL_OP_LINEAR_BACKWARD_WEIGHTS, linear_backward_weights)                                                          \
    X(EL_OP_BATCH_NORM_FORWARD, batch_norm_forward)                                                                    \
    X(EL_OP_BATCH_NORM_BACKWARD, batch_norm_backward)                                                                  \
    X(EL_OP_LAYER_NORM_BACKWARD, layer_norm_backward)                                                                  \
    X(EL_OP_ATTENTION_BACKWARD, attention_backward)                                                                    \
    X(EL_OP_GROUPED_FORWARD, grouped_forward)                                                                          \
    X(EL_OP_GROUPED_BACKWARD_DATA, grouped_backward_data)                                                              \
    X(EL_OP_GROUPED_BACKWARD_WEIGHTS, grouped_backward_weights)                                                        \
    X(EL_OP_SUM_ROWS, sum_rows)                                                                                        \
    X(EL_OP_SUM_SQUARES, sum_squares)                                                                                  \
    X(EL_OP_CROSS_ENTROPY, cross_entropy)                                                                              \
    X(EL_OP_CROSS_ENTROPY_JOIN, cross_entropy_join)                                                                    \
    X(EL_OP_MSE, mse)

/* bf16 rows that are not made from f32 (kernels/bf16.h). */
#define EL_CUDA_BF16_LIST(X)                                                                                           \
    X(EL_OP_LINEAR_FORWARD, linear_forward)                                                                            \
    X(EL_OP_LINEAR_BACKWARD_DATA, linear_backward_data)                                                                \
    X(EL_OP_LINEAR_BACKWARD_WEIGHTS, linear_backward_weights)                                                          \
    X(EL_OP_ATTENTION_FORWARD, attention_forward)                                                                      \
    X(EL_OP_ATTENTION_BACKWARD, attention_backward)                                                                    \
    X(EL_OP_ROUTE_FORWARD, route_forward)                                                                              \
    X(EL_OP_ROUTE_BACKWARD, route_backward)                                                                            \
    X(EL_OP_ROUTE_PLACE, route_place)                                                                                  \
    X(EL_OP_ROWS_TAKE, rows_take)                                                                                      \
    X(EL_OP_ROWS_GIVE, rows_give)                                                                                      \
    X(EL_OP_GROUPED_FORWARD, grouped_forward)                                                                          \
    X(EL_OP_GROUPED_BACKWARD_DATA, grouped_backward_data)                                                              \
    X(EL_OP_GROUPED_BACKWARD_WEIGHTS, grouped_backward_weights)                                                        \
    X(EL_OP_SWIGLU_FORWARD, swiglu_forward)                                                                            \
    X(EL_OP_SWIGLU_BACKWARD, swiglu_backward)                                                                          \
    X(EL_OP_ADD_ROW, add_row)                                                                                          \
    X(EL_OP_SUM_ROWS, sum_rows)                                                                                        \
    X(EL_OP_SCALE, scale)                                                                                              \
    X(EL_OP_ADD, add)                                                                                                  \
    X(EL_OP_CAST, cast)                                                                                                \
    X(EL_OP_FILL, fill)                                                                                                \
    X(EL_OP_SGD, sgd)                                                                                                  \
    X(EL_OP_MOMENTUM, momentum)                                                                                        \
    X(EL_OP_ADAM, adam)                                                                                                \
    X(EL_OP_SUM_SQUARES, sum_squares)                                                                                  \
    X(EL_OP_CLIP, clip)

#define EL_CUDA_DECLARE_BF16(op, name) enum el_status el_cuda_##name##_bf16(const struct el_kernel_args *args);
EL_CUDA_BF16_LIST(EL_CUDA_DECLARE_BF16)
#undef EL_CUDA_DECLARE_BF16
enum el_status el_cuda_cast_f16(const struct el_kernel_args *args);
enum el_status el_cuda_fill_f16(const struct el_kernel_args *args);
enum el_status el_cuda_bf16_move(const struct el_kernel_args *args, const void *x, int64_t n, bool back, void *y);

#define EL_CUDA_DECLARE_RUN(op, name)                                                                                  \
    enum el_status el_cuda_##name##_f32(const struct el_kernel_args *args);                                            \
    enum el_status el_cuda_##name##_f64(const struct el_kernel_args *args);
EL_CUDA_LIST(EL_CUDA_DECLARE_RUN)
EL_CUDA_STEP_LIST(EL_CUDA_DECLARE_RUN)
EL_CUDA_WORKSPACE_LIST(EL_CUDA_DECLARE_RUN)
#undef EL_CUDA_DECLARE_RUN

#define EL_CUDA_DECLARE_STEP(op, name)                                                                                 \
    bool el_cuda_##name##_step_values_f32(const struct el_kernel_args *args, void *values);                            \
    bool el_cuda_##name##_step_values_f64(const struct el_kernel_args *args, void *values);
EL_CUDA_STEP_LIST(EL_CUDA_DECLARE_STEP)
#undef EL_CUDA_DECLARE_STEP

#define EL_CUDA_DECLARE_WORKSPACE(op, name)                                                                            \
    enum el_status el_cuda_##name##_workspace_f32(const struct el_kernel_args *args,                                   \
                                                  struct el_workspace *workspace_p);                                   \
    enum el_status el_cuda_##name##_workspace_f64(const struct el_kernel_args *args, struct el_workspace *workspace_p);
EL_CUDA_WORKSPACE_LIST(EL_CUDA_DECLARE_WORKSPACE)
#undef EL_CUDA_DECLARE_WORKSPACE

/* The convolutions' rows, with plans, in the order of the ops: f32, f64. */
enum { EL_CUDA_CONV_OPS = EL_OP_CONV2D_BACKWARD_WEIGHTS - EL_OP_CONV1D_FORWARD + 1 };
extern const struct el_kernel el_cuda_conv_rows[EL_CUDA_CONV_OPS][2];
