/* What makes a gradient small for the wire: an orthonormal basis of few columns. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>

#define EL_BODY "kernels/reference/compress.c"
#include "kernels/reference/twice.h"

#else

static double LOCAL(product)(const REAL *x, int64_t n, int64_t r, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[k * r + i] * (double)x[k * r + j];
    return sum;
}

enum el_status NAME(orthogonalize)(const struct el_kernel_args *args)
{
    REAL *x = args->p[0]; /* [n, r] */
    int64_t n = args->d[0], r = args->d[1];
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < 2 * i; j++) {
            double along = LOCAL(product)(x, n, r, i, j % i);
            for (int64_t k = 0; k < n; k++)
                x[k * r + i] = (REAL)((double)x[k * r + i] - along * (double)x[k * r + j % i]);
        }
        double norm = sqrt(LOCAL(product)(x, n, r, i, i));
        for (int64_t k = 0; k < n && norm > 0; k++) x[k * r + i] = (REAL)((double)x[k * r + i] / norm);
    }
    return EL_OK;
}

#endif
