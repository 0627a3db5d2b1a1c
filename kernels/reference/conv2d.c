/* The convolution over images, channels last, and its gradients. A window row's taps, adjacent in image and filter, are
 * processed together, cut off at the image's ends. */
#ifndef REAL

#include "kernels/reference/reference.h"
#include "kernels/window.h"

#define EL_BODY "kernels/reference/conv2d.c"
#include "kernels/reference/twice.h"

#else

#include "kernels/reference/sums.h"

/* One window under one filter: sample[h, w, c], filter[k, k, c]. */
static double LOCAL(window_sum)(const REAL *sample, const REAL *filter, const struct el_window *s,
                                const struct el_window_taps *y, const struct el_window_taps *x)
{
    double sum = 0;
    for (int64_t tap = y->begin; tap < y->end; tap++)
        sum += LOCAL(dot)(sample + ((y->at + tap) * s->w + x->at + x->begin) * s->c,
                          filter + (tap * s->k + x->begin) * s->c, (x->end - x->begin) * s->c);
    return sum;
}

enum el_status NAME(conv2d_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    const REAL *w = args->p[1];
    REAL *y = args->p[2];
    const struct el_window s = el_window_of_conv2d(args->d);
    for (int64_t b = 0; b < s.b; b++)
        for (int64_t oy = 0; oy < s.oh; oy++)
            for (int64_t ox = 0; ox < s.ow; ox++) {
                struct el_window_taps rows = el_window_taps(oy, s.h, s.k, s.stride, s.pad);
                struct el_window_taps columns = el_window_taps(ox, s.w, s.k, s.stride, s.pad);
                REAL *to = y + ((b * s.oh + oy) * s.ow + ox) * s.f;
                for (int64_t f = 0; f < s.f; f++)
                    to[f] =
                        (REAL)LOCAL(window_sum)(x + b * s.h * s.w * s.c, w + f * s.k * s.k * s.c, &s, &rows, &columns);
            }
    return EL_OK;
}

/* sum[n] += the gradient of pixel (row, column) in channels c0..c0+n-1, from dy[oh, ow, f]. */
static void LOCAL(add_windows)(const REAL *dy, const REAL *w, const struct el_window *s, int64_t row, int64_t column,
                               int64_t c0, int64_t n, double *sum)
{
    for (int64_t ky = 0; ky < s->k; ky++) {
        int64_t oy = el_window_place_of(row, ky, s->oh, s->stride, s->pad);
        if (oy < 0) continue;
        for (int64_t kx = 0; kx < s->k; kx++) {
            int64_t ox = el_window_place_of(column, kx, s->ow, s->stride, s->pad);
            if (ox < 0) continue;
            LOCAL(add_inputs)
            (dy + (oy * s->ow + ox) * s->f, w + (ky * s->k + kx) * s->c + c0, s->f, s->k * s->k * s->c, n, sum);
        }
    }
}

enum el_status NAME(conv2d_backward_data)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0];
    const REAL *w = args->p[1];
    REAL *dx = args->p[2];
    const struct el_window s = el_window_of_conv2d(args->d);
    int acc = args->s[0] != 0;
    for (int64_t pixel = 0; pixel < s.b * s.h * s.w; pixel++)
        for (int64_t c0 = 0; c0 < s.c; c0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            int64_t n = s.c - c0 < EL_REFERENCE_BLOCK ? s.c - c0 : EL_REFERENCE_BLOCK;
            const REAL *from = dy + pixel / (s.h * s.w) * s.oh * s.ow * s.f;
            LOCAL(add_windows)(from, w, &s, pixel / s.w % s.h, pixel % s.w, c0, n, sum);
            LOCAL(put)(sum, n, acc, dx + pixel * s.c + c0);
        }
    return EL_OK;
}

/* sum[n] += the gradient of values i0..i0+n-1 of one filter's tap row [k, c] from one row of places: pixels row[w, c],
 * dy[ow, f] at that filter. */
static void LOCAL(add_places)(const REAL *row, const REAL *dy, const struct el_window *s, int64_t i0, int64_t n,
                              double *sum)
{
    for (int64_t ox = 0; ox < s->ow; ox++) {
        struct el_window_taps taps = el_window_taps(ox, s->w, s->k, s->stride, s->pad);
        int64_t begin = taps.begin * s->c, end = taps.end * s->c;
        if (begin < i0) begin = i0;
        if (end > i0 + n) end = i0 + n;
        double d = (double)dy[ox * s->f];
        for (int64_t i = begin; i < end; i++) sum[i - i0] += d * (double)row[taps.at * s->c + i];
    }
}

enum el_status NAME(conv2d_backward_weights)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    const REAL *dy = args->p[1];
    REAL *dw = args->p[2];
    const struct el_window s = el_window_of_conv2d(args->d);
    int acc = args->s[0] != 0;
    for (int64_t tap = 0; tap < s.f * s.k; tap++)
        for (int64_t i0 = 0; i0 < s.k * s.c; i0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            int64_t n = s.k * s.c - i0 < EL_REFERENCE_BLOCK ? s.k * s.c - i0 : EL_REFERENCE_BLOCK;
            for (int64_t place = 0; place < s.b * s.oh; place++) {
                int64_t row = place % s.oh * s.stride - s.pad + tap % s.k;
                if (row < 0 || row >= s.h) continue;
                LOCAL(add_places)
                (x + (place / s.oh * s.h + row) * s.w * s.c, dy + place * s.ow * s.f + tap / s.k, &s, i0, n, sum);
            }
            LOCAL(put)(sum, n, acc, dw + tap * s.k * s.c + i0);
        }
    return EL_OK;
}

#endif
