/* The linear layer: y = x w' + bias, optional ReLU, both gradients; add_row and sum_rows. */
#ifndef REAL

#include "kernels/reference/reference.h"

#define EL_BODY "kernels/reference/linear.c"
#include "kernels/reference/twice.h"

#else

#include "kernels/reference/sums.h"

enum el_status NAME(linear_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    const REAL *w = args->p[1];
    const REAL *bias = args->p[2];
    REAL *y = args->p[3];
    int64_t rows = args->d[0], in = args->d[1], out = args->d[2];
    int relu = args->s[0] != 0;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t o = 0; o < out; o++) {
            double sum = (bias ? (double)bias[o] : 0) + LOCAL(dot)(x + b * in, w + o * in, in);
            y[b * out + o] = (REAL)(relu && sum < 0 ? 0 : sum);
        }
    return EL_OK;
}

enum el_status NAME(linear_backward_data)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0];
    const REAL *w = args->p[1];
    REAL *dx = args->p[2];
    int64_t rows = args->d[0], in = args->d[1], out = args->d[2];
    int acc = args->s[0] != 0;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t i0 = 0; i0 < in; i0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            int64_t n = in - i0 < EL_REFERENCE_BLOCK ? in - i0 : EL_REFERENCE_BLOCK;
            LOCAL(add_inputs)(dy + b * out, w + i0, out, in, n, sum);
            LOCAL(put)(sum, n, acc, dx + b * in + i0);
        }
    return EL_OK;
}

enum el_status NAME(linear_backward_weights)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    const REAL *dy = args->p[1];
    REAL *dw = args->p[2];
    REAL *dbias = args->p[3];
    int64_t rows = args->d[0], in = args->d[1], out = args->d[2];
    int acc = args->s[0] != 0;
    for (int64_t o = 0; o < out; o++)
        for (int64_t i0 = 0; i0 < in; i0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            int64_t n = in - i0 < EL_REFERENCE_BLOCK ? in - i0 : EL_REFERENCE_BLOCK;
            for (int64_t b = 0; b < rows; b++)
                for (int64_t j = 0; j < n; j++) sum[j] += (double)dy[b * out + o] * (double)x[b * in + i0 + j];
            LOCAL(put)(sum, n, acc, dw + o * in + i0);
        }
    if (dbias) LOCAL(bias_gradient)(dy, rows, out, acc, dbias);
    return EL_OK;
}

enum el_status NAME(add_row)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0], *row = args->p[1];
    REAL *y = args->p[2];
    int64_t rows = args->d[0], n = args->d[1];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i++) y[r * n + i] = x[r * n + i] + row[i];
    return EL_OK;
}

enum el_status NAME(sum_rows)(const struct el_kernel_args *args)
{
    LOCAL(bias_gradient)(args->p[0], args->d[0], args->d[1], args->s[0] != 0, args->p[1]);
    return EL_OK;
}

#endif
