/* How a loop is compiled for several instruction sets, and the loops that more than one kernel needs.
 *
 * Sums are taken in an order that the compiler may not change (no fast-math): the same inputs give the same bits at
 * each run on one machine, though not on two machines that contract products differently. */
#ifndef EL_KERNELS_CPU_VECTOR_H
#define EL_KERNELS_CPU_VECTOR_H

#include <stdint.h>

/* A function marked EL_VECTOR is compiled for AVX-512, for AVX2 and for the plain machine, and the loader takes the one
 * that fits, so that a binary built anywhere runs anywhere, at full width. Off where the compiler lacks it, and under
 * sanitizers, whose run time is not up yet when the loader asks. */
#if defined __x86_64__ && defined __GLIBC__ && defined __GNUC__ && !defined __clang__ && __GNUC__ >= 12 &&             \
    !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define EL_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define EL_VECTOR
#endif

/* Before a loop whose iterations touch nothing of each other's, though its pointers may be equal. */
#ifdef __clang__
#define EL_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined __GNUC__
#define EL_INDEPENDENT _Pragma("GCC ivdep")
#else
#define EL_INDEPENDENT
#endif

/* y[n] += x[n]. */
void el_vector_add(const float *restrict x, int64_t n, float *restrict y);

/* y[n] (+)= the sum of the rows of x[rows, n], from first to last. */
void el_vector_sum_rows(const float *x, int64_t rows, int64_t n, int acc, float *y);

/* y[rows, n] = the transpose of x[n, rows] + bias[n], and max(., 0) of it with `relu`. */
void el_vector_transpose_bias(const float *x, const float *bias, int64_t rows, int64_t n, int relu, float *y);

#endif
