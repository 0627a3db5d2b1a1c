/* Dropout: whether an element stays is a function of (seed, step, node, global sample, element), so that every split of
 * a batch drops the same ones. If a row is a slice of a longer one, runs of `run` elements lie `apart` there, the first
 * at `from`; run 0: the whole row. */
#ifndef REAL

#include "kernels/reference/reference.h"
#include "runtime/base/rng.h"

#define EL_BODY "kernels/reference/dropout.c"
#include "kernels/reference/twice.h"

#else

enum el_status NAME(dropout)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    int64_t rows = args->d[0], n = args->d[1], first = args->d[2], stride = args->d[3];
    int64_t run = args->d[4] ? args->d[4] : n, apart = args->d[5], from = args->d[6];
    double rate = args->s[0];
    struct el_rng_key key = {.seed = args->k[0], .use = EL_RNG_DROPOUT, .id = (uint32_t)args->k[1]};
    for (int64_t r = 0; r < rows; r++) {
        uint64_t sample = args->step << 32 | (uint64_t)(first + r * stride);
        for (int64_t i = 0; i < n; i++) {
            int keep = el_rng_uniform(&key, sample, (uint64_t)(from + i / run * apart + i % run)) >= rate;
            y[r * n + i] = (REAL)(keep ? (double)x[r * n + i] / (1 - rate) : 0);
        }
    }
    return EL_OK;
}

#endif
