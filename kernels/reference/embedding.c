/* The embedding table: rows picked by id, and their dense gradient. */
#ifndef REAL

#include "kernels/reference/reference.h"

#define EL_BODY "kernels/reference/embedding.c"
#include "kernels/reference/twice.h"

#else

enum el_status NAME(embedding_forward)(const struct el_kernel_args *args)
{
    const int32_t *ids = args->p[0];
    const REAL *table = args->p[1];
    REAL *y = args->p[2];
    int64_t n = args->d[0], e = args->d[2];
    EL_TRY(el_reference_check_index("embedding_forward", ids, n, el_embedding_limit(args->d)));
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = el_embedding_row(args->d, ids[i]);
        for (int64_t j = 0; j < e; j++) y[i * e + j] = row < 0 ? 0 : table[row * e + j];
    }
    return EL_OK;
}

/* A repeated id's gradients are added in the order of positions, in the op's type (a dense table of double sums costs
 * too much memory). */
enum el_status NAME(embedding_backward)(const struct el_kernel_args *args)
{
    const int32_t *ids = args->p[0];
    const REAL *dy = args->p[1];
    REAL *dtable = args->p[2];
    int64_t n = args->d[0], v = args->d[1], e = args->d[2];
    EL_TRY(el_reference_check_index("embedding_backward", ids, n, el_embedding_limit(args->d)));
    if (args->s[0] == 0)
        for (int64_t i = 0; i < v * e; i++) dtable[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = el_embedding_row(args->d, ids[i]);
        for (int64_t j = 0; j < e && row >= 0; j++) dtable[row * e + j] += dy[i * e + j];
    }
    return EL_OK;
}

#endif
