/* Pools over images: max (the gradient goes to the first maximum) and mean over all pixels. */
#ifndef REAL

#include "kernels/reference/reference.h"
#include "kernels/window.h"

#define EL_BODY "kernels/reference/pool.c"
#include "kernels/reference/twice.h"

#else

/* Updates y[c], at[c] from pixel[c], tap `tap` of the window, where it is larger; everywhere if it is the first tap. */
static void LOCAL(take_larger)(const REAL *pixel, int64_t c, int64_t tap, int first, REAL *y, int32_t *at)
{
    for (int64_t j = 0; j < c; j++)
        if (first || pixel[j] > y[j]) {
            y[j] = pixel[j];
            at[j] = (int32_t)tap;
        }
}

enum el_status NAME(max_pool_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    int32_t *at = args->p[2];
    const struct el_window s = el_window_of_pool(args->d);
    for (int64_t place = 0; place < s.b * s.oh * s.ow; place++) {
        const REAL *sample = x + place / (s.oh * s.ow) * s.h * s.w * s.c;
        struct el_window_taps rows = el_window_taps(place / s.ow % s.oh, s.h, s.k, s.stride, s.pad);
        struct el_window_taps columns = el_window_taps(place % s.ow, s.w, s.k, s.stride, s.pad);
        for (int64_t ky = rows.begin; ky < rows.end; ky++)
            for (int64_t kx = columns.begin; kx < columns.end; kx++) {
                const REAL *pixel = sample + ((rows.at + ky) * s.w + columns.at + kx) * s.c;
                int first = ky == rows.begin && kx == columns.begin;
                LOCAL(take_larger)(pixel, s.c, ky * s.k + kx, first, y + place * s.c, at + place * s.c);
            }
    }
    return EL_OK;
}

/* Windows overlap: a pixel gets the sum over the windows that have it as maximum, in the order of places and in the
 * op's type. */
enum el_status NAME(max_pool_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0];
    const int32_t *at = args->p[1];
    REAL *dx = args->p[2];
    const struct el_window s = el_window_of_pool(args->d);
    for (int64_t i = 0; i < s.b * s.h * s.w * s.c; i++) dx[i] = 0;
    for (int64_t place = 0; place < s.b * s.oh * s.ow; place++) {
        int64_t row = place / s.ow % s.oh * s.stride - s.pad, column = place % s.ow * s.stride - s.pad;
        REAL *sample = dx + place / (s.oh * s.ow) * s.h * s.w * s.c;
        for (int64_t j = 0; j < s.c; j++) {
            int64_t tap = at[place * s.c + j];
            sample[((row + tap / s.k) * s.w + column + tap % s.k) * s.c + j] += dy[place * s.c + j];
        }
    }
    return EL_OK;
}

enum el_status NAME(mean_pool_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    int64_t batch = args->d[0], pixels = args->d[1], c = args->d[2];
    for (int64_t b = 0; b < batch; b++)
        for (int64_t c0 = 0; c0 < c; c0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            int64_t n = c - c0 < EL_REFERENCE_BLOCK ? c - c0 : EL_REFERENCE_BLOCK;
            for (int64_t pixel = 0; pixel < pixels; pixel++)
                for (int64_t j = 0; j < n; j++) sum[j] += (double)x[(b * pixels + pixel) * c + c0 + j];
            for (int64_t j = 0; j < n; j++) y[b * c + c0 + j] = (REAL)(sum[j] / (double)pixels);
        }
    return EL_OK;
}

enum el_status NAME(mean_pool_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0];
    REAL *dx = args->p[1];
    int64_t batch = args->d[0], pixels = args->d[1], c = args->d[2];
    int acc = args->s[0] != 0;
    for (int64_t pixel = 0; pixel < batch * pixels; pixel++)
        for (int64_t j = 0; j < c; j++) {
            double share = (double)dy[pixel / pixels * c + j] / (double)pixels;
            REAL *to = &dx[pixel * c + j];
            *to = (REAL)(acc ? (double)*to + share : share);
        }
    return EL_OK;
}

#endif
