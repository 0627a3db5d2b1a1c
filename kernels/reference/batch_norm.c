/* Batch norm over [n, c] per channel, with the residual and ReLU after it. The variance is a second pass, because sums
 * of squares lose precision to cancellation. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>

#define EL_BODY "kernels/reference/batch_norm.c"
#include "kernels/reference/twice.h"

#else

static void LOCAL(moments)(const REAL *x, int64_t n, int64_t c, int64_t width, double *mean, double *variance)
{
    for (int64_t j = 0; j < width; j++) mean[j] = variance[j] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) mean[j] += (double)x[i * c + j];
    for (int64_t j = 0; j < width; j++) mean[j] /= (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            double off = (double)x[i * c + j] - mean[j];
            variance[j] += off * off;
        }
    for (int64_t j = 0; j < width; j++) variance[j] /= (double)n;
}

/* y[n, width] = relu?(scale * (x - mean) * rstd + shift + residual), in rows of c. */
static void LOCAL(normalise)(const struct el_kernel_args *args, int64_t c0, int64_t width, const double *mean,
                             const double *rstd, int relu, REAL *y)
{
    const REAL *x = args->p[0], *scale = args->p[1], *shift = args->p[2], *residual = args->p[3];
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            int64_t at = i * c + c0 + j;
            double value = (double)scale[c0 + j] * ((double)x[at] - mean[j]) * rstd[j] + (double)shift[c0 + j];
            if (residual) value += (double)residual[at];
            y[at] = (REAL)(relu && value < 0 ? 0 : value);
        }
}

enum el_status NAME(batch_norm_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *running_mean = args->p[4], *running_variance = args->p[5];
    REAL *y = args->p[6], *saved = args->p[7];
    int64_t n = args->d[0], c = args->d[1];
    double eps = args->s[0], momentum = args->s[1];
    EL_TRY(el_batch_norm_check(n));
    for (int64_t c0 = 0; c0 < c; c0 += EL_REFERENCE_BLOCK) {
        double mean[EL_REFERENCE_BLOCK], variance[EL_REFERENCE_BLOCK], rstd[EL_REFERENCE_BLOCK];
        int64_t width = c - c0 < EL_REFERENCE_BLOCK ? c - c0 : EL_REFERENCE_BLOCK;
        LOCAL(moments)(x + c0, n, c, width, mean, variance);
        for (int64_t j = 0; j < width; j++) {
            REAL *m = &running_mean[c0 + j], *v = &running_variance[c0 + j];
            double unbiased = variance[j] * (double)n / (double)(n - 1);
            rstd[j] = 1 / sqrt(variance[j] + eps);
            saved[c0 + j] = (REAL)mean[j];
            saved[c + c0 + j] = (REAL)rstd[j];
            *m = (REAL)((1 - momentum) * (double)*m + momentum * mean[j]);
            *v = (REAL)((1 - momentum) * (double)*v + momentum * unbiased);
        }
        LOCAL(normalise)(args, c0, width, mean, rstd, args->s[2] != 0, y);
    }
    return EL_OK;
}

enum el_status NAME(batch_norm_inference)(const struct el_kernel_args *args)
{
    const REAL *running_mean = args->p[4], *running_variance = args->p[5];
    int64_t c = args->d[1];
    for (int64_t c0 = 0; c0 < c; c0 += EL_REFERENCE_BLOCK) {
        double mean[EL_REFERENCE_BLOCK], rstd[EL_REFERENCE_BLOCK];
        int64_t width = c - c0 < EL_REFERENCE_BLOCK ? c - c0 : EL_REFERENCE_BLOCK;
        for (int64_t j = 0; j < width; j++) {
            mean[j] = (double)running_mean[c0 + j];
            rstd[j] = 1 / sqrt((double)running_variance[c0 + j] + args->s[0]);
        }
        LOCAL(normalise)(args, c0, width, mean, rstd, args->s[1] != 0, args->p[6]);
    }
    return EL_OK;
}

/* The gradient before the ReLU: dy, or 0 where it was shut. */
static inline double LOCAL(incoming)(const REAL *dy, const REAL *y, int64_t at)
{
    return y && !(y[at] > 0) ? 0 : (double)dy[at];
}

/* Sums over rows of that gradient, plain and times the normalised x, for `width` channels. */
static void LOCAL(gradient_sums)(const struct el_kernel_args *args, int64_t c0, int64_t width, double *plain,
                                 double *times_x)
{
    const REAL *dy = args->p[0], *x = args->p[1], *y = args->p[2], *saved = args->p[4];
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t j = 0; j < width; j++) plain[j] = times_x[j] = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            double g = LOCAL(incoming)(dy, y, i * c + c0 + j);
            plain[j] += g;
            times_x[j] += g * ((double)x[i * c + c0 + j] - (double)saved[c0 + j]);
        }
    for (int64_t j = 0; j < width; j++) times_x[j] *= (double)saved[c + c0 + j];
}

/* dx = scale * rstd * (g - mean of g - normalised x * mean of (g * normalised x)); the residual gets g. Reads an
 * element's dy before it writes dresidual, which may be dy. */
static void LOCAL(spread)(const struct el_kernel_args *args, int64_t c0, int64_t width, const double *plain,
                          const double *times_x)
{
    const REAL *dy = args->p[0], *x = args->p[1], *y = args->p[2], *scale = args->p[3], *saved = args->p[4];
    REAL *dx = args->p[5], *dresidual = args->p[8];
    int64_t n = args->d[0], c = args->d[1];
    int acc = args->s[1] != 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++) {
            int64_t channel = c0 + j, at = i * c + channel;
            double g = LOCAL(incoming)(dy, y, at), rstd = (double)saved[c + channel];
            double normalised = ((double)x[at] - (double)saved[channel]) * rstd;
            dx[at] = (REAL)((double)scale[channel] * rstd *
                            (g - plain[j] / (double)n - normalised * times_x[j] / (double)n));
            if (dresidual) dresidual[at] = (REAL)(acc ? (double)dresidual[at] + g : g);
        }
}

enum el_status NAME(batch_norm_backward)(const struct el_kernel_args *args)
{
    REAL *dscale = args->p[6], *dshift = args->p[7];
    int64_t c = args->d[1];
    int acc = args->s[0] != 0;
    for (int64_t c0 = 0; c0 < c; c0 += EL_REFERENCE_BLOCK) {
        double plain[EL_REFERENCE_BLOCK], times_x[EL_REFERENCE_BLOCK];
        int64_t width = c - c0 < EL_REFERENCE_BLOCK ? c - c0 : EL_REFERENCE_BLOCK;
        LOCAL(gradient_sums)(args, c0, width, plain, times_x);
        for (int64_t j = 0; j < width; j++) {
            dscale[c0 + j] = (REAL)(acc ? (double)dscale[c0 + j] + times_x[j] : times_x[j]);
            dshift[c0 + j] = (REAL)(acc ? (double)dshift[c0 + j] + plain[j] : plain[j]);
        }
        LOCAL(spread)(args, c0, width, plain, times_x);
    }
    return EL_OK;
}

#endif
