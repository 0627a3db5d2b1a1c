/* What the fast kernels share: the list of them, and how a loop is compiled for several instruction sets.
 *
 * Each has its twin of the same name in reference/, which says what it computes; here stands only how it is made fast.
 * Sums are taken in f32 in an order that the compiler may not change (no fast-math): the same inputs give the same bits
 * at each run on one machine, but not on two machines with different vectors.
 */
#ifndef EL_KERNELS_CPU_H
#define EL_KERNELS_CPU_H

#include "kernels/kernels.h"

/* A function marked EL_VECTOR is compiled for AVX-512, for AVX2 and for the plain machine, and the loader takes the one
 * that fits, so that a binary built anywhere runs anywhere, at full width. Off where the compiler lacks it, and under
 * sanitizers, whose run time is not up yet when the loader asks. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12 &&             \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define EL_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EL_VECTOR
#endif

/* The ops done by vector loops in f32. The others are oneDNN's, or the reference's. */
#define EL_CPU_LIST(X)                                                                                                 \
    X(EL_OP_EMBEDDING_FORWARD, embedding_forward)                                                                      \
    X(EL_OP_EMBEDDING_BACKWARD, embedding_backward)                                                                    \
    X(EL_OP_RELU_BACKWARD, relu_backward)                                                                              \
    X(EL_OP_MAX_TIME_FORWARD, max_time_forward)                                                                        \
    X(EL_OP_MAX_TIME_BACKWARD, max_time_backward)                                                                      \
    X(EL_OP_DROPOUT, dropout)                                                                                          \
    X(EL_OP_COPY_COLUMNS, copy_columns)                                                                                \
    X(EL_OP_CROSS_ENTROPY, cross_entropy)                                                                              \
    X(EL_OP_MSE, mse)                                                                                                  \
    X(EL_OP_SCALE, scale)                                                                                              \
    X(EL_OP_ADD, add)                                                                                                  \
    X(EL_OP_FILL, fill)                                                                                                \
    X(EL_OP_SGD, sgd)                                                                                                  \
    X(EL_OP_MOMENTUM, momentum)                                                                                        \
    X(EL_OP_ADAM, adam)                                                                                                \
    X(EL_OP_MAX_NORM, max_norm)

#define EL_CPU_DECLARE(op, name) enum el_status el_cpu_##name(const struct el_kernel_args *args);
EL_CPU_LIST(EL_CPU_DECLARE)
#undef EL_CPU_DECLARE

#endif
