/* What the reference kernels share. A family file (linear.c, ...) has its kernels once, with REAL and NAME(); it
 * includes twice.h, which includes it back for float and for double.
 * Sums are in double, in the definition's order, or in four interleaved parts where the comment says so; results do not
 * depend on machine or thread. */
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

enum { EL_REFERENCE_BLOCK = 64 };
