/* What the reference kernels share: the list of them, and how one body serves f32 and f64.
 *
 * A family file (linear.c, ...) is written once in terms of REAL and NAME() and compiled twice: at first sight it names
 * itself in EL_BODY and includes twice.h, which includes it back with REAL = float, then with REAL = double.
 *
 * Every sum is taken in double, in the order of the definition, or in four interleaved parts of fixed order where the
 * comment says so: these kernels are the truth, not the speed. They never depend on the machine or on the thread.
 */
#ifndef EL_KERNELS_REFERENCE_H
#define EL_KERNELS_REFERENCE_H

#include "kernels/kernels.h"

#define EL_REFERENCE_LIST(X)                                                                                           \
    X(EL_OP_EMBEDDING_FORWARD, embedding_forward)                                                                      \
    X(EL_OP_EMBEDDING_BACKWARD, embedding_backward)                                                                    \
    X(EL_OP_CONV1D_FORWARD, conv1d_forward)                                                                            \
    X(EL_OP_CONV1D_BACKWARD_DATA, conv1d_backward_data)                                                                \
    X(EL_OP_CONV1D_BACKWARD_WEIGHTS, conv1d_backward_weights)                                                          \
    X(EL_OP_CONV2D_FORWARD, conv2d_forward)                                                                            \
    X(EL_OP_CONV2D_BACKWARD_DATA, conv2d_backward_data)                                                                \
    X(EL_OP_CONV2D_BACKWARD_WEIGHTS, conv2d_backward_weights)                                                          \
    X(EL_OP_LINEAR_FORWARD, linear_forward)                                                                            \
    X(EL_OP_LINEAR_BACKWARD_DATA, linear_backward_data)                                                                \
    X(EL_OP_LINEAR_BACKWARD_WEIGHTS, linear_backward_weights)                                                          \
    X(EL_OP_BATCH_NORM_FORWARD, batch_norm_forward)                                                                    \
    X(EL_OP_BATCH_NORM_INFERENCE, batch_norm_inference)                                                                \
    X(EL_OP_BATCH_NORM_BACKWARD, batch_norm_backward)                                                                  \
    X(EL_OP_RELU_BACKWARD, relu_backward)                                                                              \
    X(EL_OP_MAX_TIME_FORWARD, max_time_forward)                                                                        \
    X(EL_OP_MAX_TIME_BACKWARD, max_time_backward)                                                                      \
    X(EL_OP_MAX_POOL_FORWARD, max_pool_forward)                                                                        \
    X(EL_OP_MAX_POOL_BACKWARD, max_pool_backward)                                                                      \
    X(EL_OP_MEAN_POOL_FORWARD, mean_pool_forward)                                                                      \
    X(EL_OP_MEAN_POOL_BACKWARD, mean_pool_backward)                                                                    \
    X(EL_OP_DROPOUT, dropout)                                                                                          \
    X(EL_OP_COPY_COLUMNS, copy_columns)                                                                                \
    X(EL_OP_CROSS_ENTROPY, cross_entropy)                                                                              \
    X(EL_OP_MSE, mse)                                                                                                  \
    X(EL_OP_COUNT_CORRECT, count_correct)                                                                              \
    X(EL_OP_SCALE, scale)                                                                                              \
    X(EL_OP_ADD, add)                                                                                                  \
    X(EL_OP_FILL, fill)                                                                                                \
    X(EL_OP_SGD, sgd)                                                                                                  \
    X(EL_OP_MOMENTUM, momentum)                                                                                        \
    X(EL_OP_ADAM, adam)                                                                                                \
    X(EL_OP_MAX_NORM, max_norm)

#define EL_REFERENCE_DECLARE(op, name)                                                                                 \
    enum el_status el_reference_##name##_f32(const struct el_kernel_args *args);                                       \
    enum el_status el_reference_##name##_f64(const struct el_kernel_args *args);
EL_REFERENCE_LIST(EL_REFERENCE_DECLARE)
#undef EL_REFERENCE_DECLARE

/* Checks that 0 <= index[i] < limit for all i < n: data from a file never indexes a tensor unchecked. */
enum el_status el_reference_check_index(const char *op, const int32_t *index, int64_t n, int64_t limit);

/* Outputs computed together, so that the compiler can keep their sums in vector registers. */
enum { EL_REFERENCE_BLOCK = 64 };

#endif
