/* Layer norm over the last side of [n, c]. The variance is a second pass, because sums of squares lose precision to
 * cancellation. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>

#define EL_BODY "kernels/reference/layer_norm.c"
#include "kernels/reference/twice.h"

#else

enum el_status NAME(layer_norm_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0], *scale = args->p[1], *shift = args->p[2];
    REAL *y = args->p[3], *saved = args->p[4];
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t i = 0; i < n; i++, x += c, y += c) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < c; j++) mean += (double)x[j];
        mean /= (double)c;
        for (int64_t j = 0; j < c; j++) variance += ((double)x[j] - mean) * ((double)x[j] - mean);
        double rstd = 1 / sqrt(variance / (double)c + args->s[0]);
        for (int64_t j = 0; j < c; j++)
            y[j] = (REAL)((double)scale[j] * ((double)x[j] - mean) * rstd + (double)shift[j]);
        saved[2 * i] = (REAL)mean;
        saved[2 * i + 1] = (REAL)rstd;
    }
    return EL_OK;
}

/* With g = dy * scale and h the normalised x: dx = rstd * (g - mean(g) - h * mean(g * h)). */
static void LOCAL(input_gradient)(const REAL *dy, const REAL *x, const REAL *scale, const REAL *saved, int64_t c,
                                  int acc, REAL *dx)
{
    double mean = (double)saved[0], rstd = (double)saved[1], plain = 0, times_x = 0;
    for (int64_t j = 0; j < c; j++) {
        double g = (double)dy[j] * (double)scale[j];
        plain += g;
        times_x += g * ((double)x[j] - mean) * rstd;
    }
    plain /= (double)c;
    times_x /= (double)c;
    for (int64_t j = 0; j < c; j++) {
        double g = (double)dy[j] * (double)scale[j], h = ((double)x[j] - mean) * rstd;
        dx[j] = (REAL)(rstd * (g - plain - h * times_x) + (acc ? (double)dx[j] : 0));
    }
}

enum el_status NAME(layer_norm_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0], *x = args->p[1], *scale = args->p[2], *saved = args->p[3];
    REAL *dx = args->p[4], *dscale = args->p[5], *dshift = args->p[6];
    int64_t n = args->d[0], c = args->d[1];
    int acc = args->s[1] != 0;
    for (int64_t j = 0; j < c; j++) {
        double scale_sum = acc ? (double)dscale[j] : 0, shift_sum = acc ? (double)dshift[j] : 0;
        for (int64_t i = 0; i < n; i++) {
            double h = ((double)x[i * c + j] - (double)saved[2 * i]) * (double)saved[2 * i + 1];
            scale_sum += (double)dy[i * c + j] * h;
            shift_sum += (double)dy[i * c + j];
        }
        dscale[j] = (REAL)scale_sum;
        dshift[j] = (REAL)shift_sum;
    }
    for (int64_t i = 0; i < n; i++)
        LOCAL(input_gradient)(dy + i * c, x + i * c, scale, saved + 2 * i, c, args->s[0] != 0, dx + i * c);
    return EL_OK;
}

#endif
