/* Fast pools over images: a block of channels' maxima and places stay in vector registers. */
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/window.h"

/* Channels per block: four AVX-512 vectors of maxima and four of places. */
enum { BLOCK = 64 };

/* A window at the border. */
struct view {
    struct el_window_taps rows, columns;
    int64_t pixel; /* of tap 0, 0; may be outside */
};

static struct view view_at(const struct el_window *s, int64_t place)
{
    int64_t sample = place / (s->oh * s->ow);
    struct view view = {.rows = el_window_taps(place / s->ow % s->oh, s->h, s->k, s->stride, s->pad),
                        .columns = el_window_taps(place % s->ow, s->w, s->k, s->stride, s->pad)};
    view.pixel = (sample * s->h + view.rows.at) * s->w + view.columns.at;
    return view;
}

EL_VECTOR static void maximum(const float *restrict x, const struct el_window *s, const struct view *view, int n,
                              float *restrict y, int32_t *restrict at)
{
    float best[BLOCK];
    int32_t where[BLOCK];
    int first = 1;
    for (int64_t ky = view->rows.begin; ky < view->rows.end; ky++)
        for (int64_t kx = view->columns.begin; kx < view->columns.end; kx++, first = 0) {
            const float *pixel = x + (view->pixel + ky * s->w + kx) * s->c;
            int32_t tap = (int32_t)(ky * s->k + kx);
            for (int j = 0; j < n && first; j++) {
                best[j] = pixel[j];
                where[j] = tap;
            }
            for (int j = 0; j < n; j++) {
                where[j] = pixel[j] > best[j] ? tap : where[j];
                best[j] = pixel[j] > best[j] ? pixel[j] : best[j];
            }
        }
    memcpy(y, best, (size_t)n * sizeof *y);
    memcpy(at, where, (size_t)n * sizeof *at);
}

enum el_status el_cpu_max_pool_forward(const struct el_kernel_args *args)
{
    const float *x = args->p[0];
    float *y = args->p[1];
    int32_t *at = args->p[2];
    const struct el_window s = el_window_of_pool(args->d);
    for (int64_t place = 0; place < s.b * s.oh * s.ow; place++) {
        struct view view = view_at(&s, place);
        for (int64_t c = 0; c < s.c; c += BLOCK) {
            int n = (int)(s.c - c < BLOCK ? s.c - c : BLOCK);
            maximum(x + c, &s, &view, n, y + place * s.c + c, at + place * s.c + c);
        }
    }
    return EL_OK;
}

EL_VECTOR static void give(const float *restrict dy, const int32_t *restrict at, int32_t tap, int64_t c,
                           float *restrict dx)
{
    for (int64_t j = 0; j < c; j++) dx[j] += at[j] == tap ? dy[j] : 0;
}

enum el_status el_cpu_max_pool_backward(const struct el_kernel_args *args)
{
    const float *dy = args->p[0];
    const int32_t *at = args->p[1];
    float *dx = args->p[2];
    const struct el_window s = el_window_of_pool(args->d);
    memset(dx, 0, (size_t)(s.b * s.h * s.w * s.c) * sizeof *dx);
    for (int64_t place = 0; place < s.b * s.oh * s.ow; place++) {
        struct view view = view_at(&s, place);
        for (int64_t ky = view.rows.begin; ky < view.rows.end; ky++)
            for (int64_t kx = view.columns.begin; kx < view.columns.end; kx++)
                give(dy + place * s.c, at + place * s.c, (int32_t)(ky * s.k + kx), s.c,
                     dx + (view.pixel + ky * s.w + kx) * s.c);
    }
    return EL_OK;
}

EL_VECTOR static void scale_in_place(float *y, int64_t n, float factor)
{
    for (int64_t i = 0; i < n; i++) y[i] *= factor;
}

enum el_status el_cpu_mean_pool_forward(const struct el_kernel_args *args)
{
    const float *x = args->p[0];
    float *y = args->p[1];
    int64_t batch = args->d[0], pixels = args->d[1], c = args->d[2];
    for (int64_t b = 0; b < batch; b++) el_vector_sum_rows(x + b * pixels * c, pixels, c, 0, y + b * c);
    scale_in_place(y, batch * c, 1 / (float)pixels);
    return EL_OK;
}

EL_VECTOR static void add_scaled(const float *restrict x, int64_t n, float factor, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] += factor * x[i];
}

EL_VECTOR static void put_scaled(const float *restrict x, int64_t n, float factor, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = factor * x[i];
}

enum el_status el_cpu_mean_pool_backward(const struct el_kernel_args *args)
{
    const float *dy = args->p[0];
    float *dx = args->p[1];
    int64_t batch = args->d[0], pixels = args->d[1], c = args->d[2];
    float share = 1 / (float)pixels;
    for (int64_t pixel = 0; pixel < batch * pixels; pixel++) {
        if (args->s[0] != 0)
            add_scaled(dy + pixel / pixels * c, c, share, dx + pixel * c);
        else
            put_scaled(dy + pixel / pixels * c, c, share, dx + pixel * c);
    }
    return EL_OK;
}
