/* Fast ops of experts: rows to their places and back, SwiGLU. */
#include "kernels/experts.h"

#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector_exp.h"

static enum el_status take(const struct el_kernel_args *args, size_t width)
{
    const char *x = args->p[0];
    const int32_t *place = args->p[1];
    char *rows = args->p[2];
    const int64_t n = args->d[0], k = args->d[2];
    const size_t bytes = (size_t)args->d[1] * width;
    for (int64_t i = 0; i < n; i++, x += bytes)
        for (int64_t j = 0; j < k; j++) {
            const int64_t row = place[i * k + j];
            if (row >= 0) memcpy(rows + (size_t)row * bytes, x, bytes);
        }
    return EL_OK;
}

enum el_status el_cpu_rows_take(const struct el_kernel_args *args)
{
    return take(args, sizeof(float));
}

enum el_status el_cpu_rows_take_bf16(const struct el_kernel_args *args)
{
    return take(args, sizeof(uint16_t));
}

enum el_status el_cpu_rows_give(const struct el_kernel_args *args)
{
    const float *rows = args->p[0];
    const int32_t *place = args->p[1];
    float *y = args->p[2];
    const int64_t n = args->d[0], w = args->d[1], k = args->d[2];
    for (int64_t i = 0; i < n; i++, y += w) {
        bool acc = args->s[0] != 0;
        for (int64_t j = 0; j < k; j++) {
            const int64_t row = place[i * k + j];
            if (row < 0) continue;
            if (acc)
                el_vector_add(rows + row * w, w, y);
            else
                memcpy(y, rows + row * w, (size_t)w * sizeof *y);
            acc = true;
        }
        if (!acc) memset(y, 0, (size_t)w * sizeof *y);
    }
    return EL_OK;
}

EL_VECTOR static void swiglu_row(const float *restrict gate, const float *restrict up, float scale, int64_t c,
                                 float *restrict y)
{
    for (int64_t i = 0; i < c; i++) y[i] = scale * (gate[i] / (1 + el_vector_exp(-gate[i]))) * up[i];
}

enum el_status el_cpu_swiglu_forward(const struct el_kernel_args *args)
{
    const float *h = args->p[0], *scale = args->p[1];
    float *y = args->p[3];
    const struct el_experts all = el_experts(args->p[2], &args->d[2], args->d[0]);
    const int64_t c = args->d[1];
    for (int64_t part = 0, first; part < all.m; part++)
        for (int64_t n = el_experts_part(&all, part, &first), r = first; r < first + n; r++)
            swiglu_row(h + r * 2 * c, h + r * 2 * c + c, scale[r], c, y + r * c);
    return EL_OK;
}

/* Gradients of one value; returns its part of the scale's. */
static inline __attribute__((always_inline)) float slope(float d, float gate, float up, float scale, float *dgate,
                                                         float *dup)
{
    const float s = 1 / (1 + el_vector_exp(-gate)), silu = gate * s;
    *dgate = d * scale * up * (s * (1 + gate * (1 - s)));
    *dup = d * scale * silu;
    return d * silu * up;
}

enum { LANES = 32 };

EL_VECTOR static float swiglu_slope_row(const float *restrict dy, const float *restrict h, float scale, int64_t c,
                                        float *restrict dh)
{
    float lane[LANES] = {0};
    double sum = 0;
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES) {
        EL_INDEPENDENT
        for (int j = 0; j < LANES; j++)
            lane[j] += slope(dy[i + j], h[i + j], h[c + i + j], scale, &dh[i + j], &dh[c + i + j]);
    }
    for (int j = 0; i < c; i++, j++) lane[j] += slope(dy[i], h[i], h[c + i], scale, &dh[i], &dh[c + i]);
    for (int j = 0; j < LANES; j++) sum += (double)lane[j];
    return (float)sum;
}

enum el_status el_cpu_swiglu_backward(const struct el_kernel_args *args)
{
    const float *dy = args->p[0], *h = args->p[1], *scale = args->p[2];
    float *dh = args->p[4], *dscale = args->p[5];
    const struct el_experts all = el_experts(args->p[3], &args->d[2], args->d[0]);
    const int64_t c = args->d[1];
    for (int64_t part = 0, first; part < all.m; part++)
        for (int64_t n = el_experts_part(&all, part, &first), r = first; r < first + n; r++)
            dscale[r] = swiglu_slope_row(dy + r * c, h + r * 2 * c, scale[r], c, dh + r * 2 * c);
    return EL_OK;
}
