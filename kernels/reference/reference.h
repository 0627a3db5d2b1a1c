/* What the reference kernels share. A family file (linear.c, ...) is written once with REAL and NAME() and compiled
 * twice: it sets EL_BODY to its own name and includes twice.h, which includes it with REAL = float and then double.
 *
 * Sums are in double, in the definition's order, or in four interleaved parts where the comment says so. Results depend
 * neither on the machine nor on the thread. */
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

/* Checks 0 <= index[i] < limit for all i < n. */
enum el_status el_reference_check_index(const char *op, const int32_t *index, int64_t n, int64_t limit);

/* With embedding's d[]: the limit of ids, and an id's row; -1: in another piece. */
static inline int64_t el_embedding_limit(const int64_t *d)
{
    return d[4] ? d[4] : d[1];
}
static inline int64_t el_embedding_row(const int64_t *d, int64_t id)
{
    return id >= d[3] && id < d[3] + d[1] ? id - d[3] : -1;
}

/* Outputs computed together, so that their sums stay in vector registers. */
enum { EL_REFERENCE_BLOCK = 64 };
