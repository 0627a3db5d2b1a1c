/* The maximum over time; its gradient goes to the first maximum. */
#ifndef REAL

#include "kernels/reference/reference.h"

#define EL_BODY "kernels/reference/max_time.c"
#include "kernels/reference/twice.h"

#else

enum el_status NAME(max_time_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    int32_t *at = args->p[2];
    int64_t batch = args->d[0], length = args->d[1], filters = args->d[2];
    for (int64_t b = 0; b < batch; b++)
        for (int64_t f = 0; f < filters; f++) {
            const REAL *column = x + b * length * filters + f;
            int64_t best = 0;
            for (int64_t t = 1; t < length; t++)
                if (column[t * filters] > column[best * filters]) best = t;
            y[b * filters + f] = column[best * filters];
            at[b * filters + f] = (int32_t)best;
        }
    return EL_OK;
}

enum el_status NAME(max_time_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0];
    const int32_t *at = args->p[1];
    REAL *dx = args->p[2];
    int64_t batch = args->d[0], length = args->d[1], filters = args->d[2];
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < length; t++)
            for (int64_t f = 0; f < filters; f++)
                dx[(b * length + t) * filters + f] = at[b * filters + f] == t ? dy[b * filters + f] : 0;
    return EL_OK;
}

#endif
