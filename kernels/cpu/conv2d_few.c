/* conv2d over few pixels on AVX-512, from the stored layout (conv2d.h). With few pixels reading the weights dominates
 * (resnet50 at 64 x 64, batch 4: 60 MB and 16 pixels). Here they are read once, in order; each 16 x 16 block stays in
 * registers for all its pixels; oneDNN re-reads them per row of pixels, and copies them for backward to the inputs.
 * Panels [channels / 16, pixels, 16] in the workspace avoid evictions from the L1 cache.
 * With oneDNN alone a step of resnet18 on 32 x 32 images (single) takes 51 % longer at batch 16 (49 to 53) and 60 % at
 * batch 64 (57 to 64). */
#include "kernels/cpu/conv2d.h"

#include <string.h>

#include "kernels/window.h"

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))

enum {
    SIDE = EL_CONV2D_SIDE,
    BLOCK = EL_CONV2D_BLOCK,
    TAPS = 9,
    PIXELS = 256,      /* at most, in all samples */
    SMALL_IMAGE = 4,   /* pixels of an image for which oneDNN, which works by rows of one image, is always slower */
    OFTEN = 48,        /* on larger images oneDNN is faster above so many uses of a weight */
    AHEAD = 4 * BLOCK, /* prefetch distance */
};

struct meetings {
    int n[TAPS];
    int32_t x[TAPS][PIXELS], y[TAPS][PIXELS];
};

static void meet(const struct el_window *s, struct meetings *m)
{
    memset(m->n, 0, sizeof m->n);
    for (int64_t place = 0; place < s->b * s->oh * s->ow; place++) {
        struct el_window_taps rows = el_window_taps(place / s->ow % s->oh, s->h, s->k, s->stride, s->pad);
        struct el_window_taps columns = el_window_taps(place % s->ow, s->w, s->k, s->stride, s->pad);
        int64_t pixel = (place / (s->oh * s->ow) * s->h + rows.at) * s->w + columns.at;
        for (int64_t ky = rows.begin; ky < rows.end; ky++)
            for (int64_t kx = columns.begin; kx < columns.end; kx++) {
                int64_t tap = ky * s->k + kx;
                int i = m->n[tap]++;
                m->x[tap][i] = (int32_t)(pixel + ky * s->w + kx);
                m->y[tap][i] = (int32_t)place;
            }
    }
}

/* to[i][0..16) += from[i][j] * block[j] for `n` <= 8 pixels; inlined for a constant n. */
AVX512 static inline __attribute__((always_inline)) void multiply(const __m512 block[SIDE], const int n,
                                                                  const float *const *from, float *const *to)
{
    __m512 sum[8];
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) sum[i] = _mm512_loadu_ps(to[i]);
#pragma GCC unroll 16
    for (int j = 0; j < SIDE; j++)
#pragma GCC unroll 8
        for (int i = 0; i < n; i++) sum[i] = _mm512_fmadd_ps(_mm512_set1_ps(from[i][j]), block[j], sum[i]);
#pragma GCC unroll 8
    for (int i = 0; i < n; i++) _mm512_storeu_ps(to[i], sum[i]);
}

AVX512 static inline __attribute__((always_inline)) void multiply_all(const __m512 block[SIDE], int n,
                                                                      const int32_t *from_at, const float *from,
                                                                      const int32_t *to_at, float *to)
{
    for (int i = 0; i < n;) {
        const float *source[8];
        float *sink[8];
        int some = n - i < 8 ? n - i : 8;
        for (int j = 0; j < some; j++) {
            source[j] = from + from_at[i + j] * SIDE;
            sink[j] = to + to_at[i + j] * SIDE;
        }
        if (some >= 8) {
            multiply(block, 8, source, sink);
            i += 8;
        } else if (some >= 4) {
            multiply(block, 4, source, sink);
            i += 4;
        } else {
            multiply(block, 1, source, sink);
            i += 1;
        }
    }
}

AVX512 static inline __attribute__((always_inline)) void fetch(const float *block)
{
    for (int j = 0; j < SIDE; j++) _mm_prefetch((const char *)(block + AHEAD + j * SIDE), _MM_HINT_T0);
}

AVX512 static inline __attribute__((always_inline)) void load(const float *from, __m512 block[SIDE])
{
#pragma GCC unroll 16
    for (int j = 0; j < SIDE; j++) block[j] = _mm512_loadu_ps(from + j * SIDE);
}

AVX512 static inline __attribute__((always_inline)) void turn(__m512 b[SIDE])
{
    __m512 t[SIDE];
#pragma GCC unroll 8
    for (int i = 0; i < SIDE; i += 2) {
        t[i] = _mm512_unpacklo_ps(b[i], b[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(b[i], b[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < SIDE; i += 4)
#pragma GCC unroll 2
        for (int j = 0; j < 2; j++) {
            __m512d low = _mm512_castps_pd(t[i + j]), high = _mm512_castps_pd(t[i + j + 2]);
            b[i + 2 * j] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
            b[i + 2 * j + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
        }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        t[i] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(b[i], b[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(b[i + 8], b[i + 12], 0xdd);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        b[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        b[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        b[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

struct work {
    struct el_window s;
    int64_t x_pixels, y_pixels;
    float *x, *y;
    struct meetings meetings;
};

static void begin(const struct el_kernel_args *args, struct work *work)
{
    struct el_window s = work->s = el_window_of_conv2d(args->d);
    work->x_pixels = s.b * s.h * s.w;
    work->y_pixels = s.b * s.oh * s.ow;
    work->x = args->workspace;
    work->y = work->x + work->x_pixels * s.c;
    meet(&s, &work->meetings);
}

static enum el_status workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)
{
    struct el_window s = el_window_of_conv2d(args->d);
    int64_t n = s.b * (s.h * s.w * s.c + s.oh * s.ow * s.f);
    *workspace_p = (struct el_workspace){.bytes = (size_t)n * sizeof(float)};
    return EL_OK;
}

static void to_panel(const float *from, int64_t pixels, int64_t channels, float *panel)
{
    for (int64_t c = 0; c < channels; c += SIDE)
        for (int64_t p = 0; p < pixels; p++, panel += SIDE)
            memcpy(panel, from + p * channels + c, SIDE * sizeof *panel);
}

AVX512 static void from_panel(const float *panel, int64_t pixels, int64_t channels, int acc, float *to)
{
    for (int64_t c = 0; c < channels; c += SIDE)
        for (int64_t p = 0; p < pixels; p++, panel += SIDE) {
            float *pixel = to + p * channels + c;
            __m512 value = _mm512_loadu_ps(panel);
            _mm512_storeu_ps(pixel, acc ? _mm512_add_ps(value, _mm512_loadu_ps(pixel)) : value);
        }
}

AVX512 static enum el_status forward(const struct el_kernel_args *args)
{
    const float *w = args->p[1];
    struct work k;
    begin(args, &k);
    to_panel(args->p[0], k.x_pixels, k.s.c, k.x);
    memset(k.y, 0, (size_t)(k.y_pixels * k.s.f) * sizeof *k.y);
    for (int64_t f = 0; f < k.s.f; f += SIDE)
        for (int64_t c = 0; c < k.s.c; c += SIDE)
            for (int64_t tap = 0; tap < k.s.k * k.s.k; tap++, w += BLOCK) {
                const struct meetings *m = &k.meetings;
                __m512 block[SIDE];
                if (m->n[tap] == 0) continue;
                fetch(w);
                load(w, block);
                multiply_all(block, m->n[tap], m->x[tap], k.x + c * k.x_pixels, m->y[tap], k.y + f * k.y_pixels);
            }
    from_panel(k.y, k.y_pixels, k.s.f, 0, args->p[2]);
    return EL_OK;
}

AVX512 static enum el_status backward_data(const struct el_kernel_args *args)
{
    const float *w = args->p[1];
    struct work k;
    begin(args, &k);
    to_panel(args->p[0], k.y_pixels, k.s.f, k.y);
    memset(k.x, 0, (size_t)(k.x_pixels * k.s.c) * sizeof *k.x);
    for (int64_t f = 0; f < k.s.f; f += SIDE)
        for (int64_t c = 0; c < k.s.c; c += SIDE)
            for (int64_t tap = 0; tap < k.s.k * k.s.k; tap++, w += BLOCK) {
                const struct meetings *m = &k.meetings;
                __m512 block[SIDE];
                if (m->n[tap] == 0) continue;
                fetch(w);
                load(w, block);
                turn(block);
                multiply_all(block, m->n[tap], m->y[tap], k.y + f * k.y_pixels, m->x[tap], k.x + c * k.x_pixels);
            }
    from_panel(k.x, k.x_pixels, k.s.c, args->s[0] != 0, args->p[2]);
    return EL_OK;
}

AVX512 static enum el_status backward_weights(const struct el_kernel_args *args)
{
    float *dw = args->p[2];
    int acc = args->s[0] != 0;
    struct work k;
    begin(args, &k);
    to_panel(args->p[0], k.x_pixels, k.s.c, k.x);
    to_panel(args->p[1], k.y_pixels, k.s.f, k.y);
    for (int64_t f = 0; f < k.s.f; f += SIDE)
        for (int64_t c = 0; c < k.s.c; c += SIDE)
            for (int64_t tap = 0; tap < k.s.k * k.s.k; tap++, dw += BLOCK) {
                const float *x = k.x + c * k.x_pixels, *dy = k.y + f * k.y_pixels;
                __m512 sum[SIDE];
#pragma GCC unroll 16
                for (int j = 0; j < SIDE; j++) sum[j] = acc ? _mm512_loadu_ps(dw + j * SIDE) : _mm512_setzero_ps();
                for (int i = 0; i < k.meetings.n[tap]; i++) {
                    const float *pixel = x + k.meetings.x[tap][i] * SIDE;
                    __m512 d = _mm512_loadu_ps(dy + k.meetings.y[tap][i] * SIDE);
#pragma GCC unroll 16
                    for (int j = 0; j < SIDE; j++) sum[j] = _mm512_fmadd_ps(_mm512_set1_ps(pixel[j]), d, sum[j]);
                }
#pragma GCC unroll 16
                for (int j = 0; j < SIDE; j++) _mm512_storeu_ps(dw + j * SIDE, sum[j]);
            }
    return EL_OK;
}

static int64_t taps_inside(int64_t places, int64_t length, const struct el_window *s)
{
    int64_t n = 0;
    for (int64_t place = 0; place < places; place++) {
        struct el_window_taps taps = el_window_taps(place, length, s->k, s->stride, s->pad);
        n += taps.end - taps.begin;
    }
    return n;
}

const struct el_kernel *el_cpu_conv2d_few(enum el_op_kind op, const struct el_kernel_args *args)
{
    static const struct el_kernel rows[] = {{.run = forward, .workspace = workspace},
                                            {.run = backward_data, .workspace = workspace},
                                            {.run = backward_weights, .workspace = workspace}};
    const struct el_window s = el_window_of_conv2d(args->d);
    if (!args->k[0] || s.k * s.k > TAPS || s.b * s.oh * s.ow > PIXELS || !__builtin_cpu_supports("avx512f"))
        return NULL;
    int64_t uses = s.b * taps_inside(s.oh, s.h, &s) * taps_inside(s.ow, s.w, &s);
    if (s.oh * s.ow > SMALL_IMAGE && uses > OFTEN * s.k * s.k) return NULL;
    return op == EL_OP_CONV2D_FORWARD ? &rows[0] : op == EL_OP_CONV2D_BACKWARD_DATA ? &rows[1] : &rows[2];
}

#else

const struct el_kernel *el_cpu_conv2d_few(enum el_op_kind op, const struct el_kernel_args *args)
{
    (void)op, (void)args;
    return NULL;
}

#endif
