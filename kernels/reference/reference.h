/* What the reference kernels share: the reference has every op, and one body serves f32 and f64.
 *
 * A family file (linear.c, ...) is written once in terms of REAL and NAME() and compiled twice: at first sight it names
 * itself in EL_BODY and includes twice.h, which includes it back with REAL = float, then with REAL = double.
 *
 * Every sum is taken in double, in the order of the definition, or in four interleaved parts of fixed order where the
 * comment says so: these kernels are the truth, not the speed. They never depend on the machine or on the thread.
 */
#pragma once

#include "kernels/kernels.h"

#define EL_REFERENCE_DECLARE(op, name)                                                                                 \
    enum el_status el_reference_##name##_f32(const struct el_kernel_args *args);                                       \
    enum el_status el_reference_##name##_f64(const struct el_kernel_args *args);
EL_OP_LIST(EL_REFERENCE_DECLARE)
#undef EL_REFERENCE_DECLARE
enum el_status el_reference_cast_bf16(const struct el_kernel_args *args);
enum el_status el_reference_cast_f16(const struct el_kernel_args *args);
enum el_status el_reference_fill_f16(const struct el_kernel_args *args);

/* Checks that 0 <= index[i] < limit for all i < n: data from a file never indexes a tensor unchecked. */
enum el_status el_reference_check_index(const char *op, const int32_t *index, int64_t n, int64_t limit);

/* Of a table with the d[] of embedding_*: below what an id must be, and its row; -1: another piece has it. */
static inline int64_t el_embedding_limit(const int64_t *d)
{
    return d[4] ? d[4] : d[1];
}
static inline int64_t el_embedding_row(const int64_t *d, int64_t id)
{
    return id >= d[3] && id < d[3] + d[1] ? id - d[3] : -1;
}

/* Outputs computed together, so that the compiler can keep their sums in vector registers. */
enum { EL_REFERENCE_BLOCK = 64 };
