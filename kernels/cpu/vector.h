/* The loops that more than one kernel needs.
 *
 * Sums are taken in an order that the compiler may not change (no fast-math): the same inputs give the same bits at
 * each run on one machine, though not on two machines that contract products differently. */
#ifndef EL_KERNELS_CPU_VECTOR_H
#define EL_KERNELS_CPU_VECTOR_H

#include <stdint.h>

#include "runtime/base/vector.h"

/* y[n] += x[n]. */
void el_vector_add(const float *restrict x, int64_t n, float *restrict y);

/* y[n] (+)= the sum of the rows of x[rows, n], from first to last. */
void el_vector_sum_rows(const float *x, int64_t rows, int64_t n, int acc, float *y);

/* y[rows, n] = the transpose of x[n, rows] + bias[n], and max(., 0) of it with `relu`. */
void el_vector_transpose_bias(const float *x, const float *bias, int64_t rows, int64_t n, int relu, float *y);

#endif
