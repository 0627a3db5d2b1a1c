/* The convolution over time, channels last, without padding, and its gradients.
 *
 * The k steps that a filter sees are k*c adjacent values, so that it is a linear layer with overlapping inputs:
 * y[b,t,f] = bias[f] + <x[b, t..t+k-1, :], w[f, :, :]>. */
#ifndef REAL

#include "kernels/reference/reference.h"

#define EL_BODY "kernels/reference/conv1d.c"
#include "kernels/reference/twice.h"

#else

#include "kernels/reference/sums.h"

enum el_status NAME(conv1d_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    const REAL *w = args->p[1];
    const REAL *bias = args->p[2];
    REAL *y = args->p[3];
    int64_t batch = args->d[0], length = args->d[1], c = args->d[2], filters = args->d[3], k = args->d[4];
    int64_t windows = length - k + 1;
    int relu = args->s[0] != 0;
    for (int64_t b = 0; b < batch; b++)
        for (int64_t t = 0; t < windows; t++)
            for (int64_t f = 0; f < filters; f++) {
                double sum = (double)bias[f] + LOCAL(dot)(x + (b * length + t) * c, w + f * k * c, k * c);
                y[(b * windows + t) * filters + f] = (REAL)(relu && sum < 0 ? 0 : sum);
            }
    return EL_OK;
}

enum el_status NAME(conv1d_backward_data)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0];
    const REAL *w = args->p[1];
    REAL *dx = args->p[2];
    int64_t batch = args->d[0], length = args->d[1], c = args->d[2], filters = args->d[3], k = args->d[4];
    int64_t windows = length - k + 1;
    int acc = args->s[0] != 0;
    for (int64_t bt = 0; bt < batch * length; bt++)
        for (int64_t c0 = 0; c0 < c; c0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            int64_t n = c - c0 < EL_REFERENCE_BLOCK ? c - c0 : EL_REFERENCE_BLOCK, b = bt / length, t = bt % length;
            for (int64_t step = 0; step < k; step++) {
                int64_t window = t - step;
                if (window < 0 || window >= windows) continue;
                const REAL *from = dy + (b * windows + window) * filters;
                LOCAL(add_inputs)(from, w + step * c + c0, filters, k * c, n, sum);
            }
            LOCAL(put)(sum, n, acc, dx + bt * c + c0);
        }
    return EL_OK;
}

enum el_status NAME(conv1d_backward_weights)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    const REAL *dy = args->p[1];
    REAL *dw = args->p[2];
    REAL *dbias = args->p[3];
    int64_t batch = args->d[0], length = args->d[1], c = args->d[2], filters = args->d[3], k = args->d[4];
    int64_t windows = length - k + 1;
    int acc = args->s[0] != 0;
    for (int64_t f = 0; f < filters; f++)
        for (int64_t i0 = 0; i0 < k * c; i0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            int64_t n = k * c - i0 < EL_REFERENCE_BLOCK ? k * c - i0 : EL_REFERENCE_BLOCK;
            for (int64_t row = 0; row < batch * windows; row++) {
                double d = (double)dy[row * filters + f];
                const REAL *from = x + (row / windows * length + row % windows) * c + i0;
                for (int64_t j = 0; j < n; j++) sum[j] += d * (double)from[j];
            }
            LOCAL(put)(sum, n, acc, dw + f * k * c + i0);
        }
    LOCAL(bias_gradient)(dy, batch * windows, filters, acc, dbias);
    return EL_OK;
}

#endif
