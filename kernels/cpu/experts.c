/* Rows of experts, and SwiGLU by vector loops. */
#include "kernels/experts.h"

#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/vector_exp.h"

enum { LANES = 16 };

enum el_status el_cpu_rows_take(const struct el_kernel_args *args)
{
    const float *x = args->p[0];
    const int32_t *place = args->p[1];
    float *rows = args->p[2];
    const int64_t n = args->d[0], w = args->d[1], k = args->d[2];
    for (int64_t i = 0; i < n * k; i++)
        if (place[i] >= 0) memcpy(rows + place[i] * w, x + i / k * w, (size_t)w * sizeof *x);
    return EL_OK;
}

enum el_status el_cpu_rows_give(const struct el_kernel_args *args)
{
    const float *rows = args->p[0];
    const int32_t *place = args->p[1];
    float *y = args->p[2];
    const int64_t n = args->d[0], w = args->d[1], k = args->d[2];
    for (int64_t i = 0; i < n; i++) {
        bool adds = args->s[0] != 0;
        for (int64_t j = 0; j < k; j++) {
            const float *row = rows + place[i * k + j] * w;
            if (place[i * k + j] < 0) continue;
            if (adds)
                el_vector_add(row, w, y + i * w);
            else
                memcpy(y + i * w, row, (size_t)w * sizeof *y);
            adds = true;
        }
        if (!adds) memset(y + i * w, 0, (size_t)w * sizeof *y);
    }
    return EL_OK;
}

EL_VECTOR static void forward_row(const float *restrict h, int64_t c, float scale, float *restrict y)
{
    const float *restrict up = h + c;
    EL_INDEPENDENT
    for (int64_t i = 0; i < c; i++) y[i] = scale * (h[i] / (1 + el_vector_exp(-h[i]))) * up[i];
}

/* Returns the scale's gradient. */
EL_VECTOR static float backward_row(const float *restrict dy, const float *restrict h, int64_t c, float scale,
                                    float *restrict dh)
{
    const float *restrict up = h + c;
    float *restrict dup = dh + c;
    double sum = 0;
    for (int64_t at = 0; at < c; at += LANES) {
        float lane[LANES] = {0};
        const int64_t n = c - at < LANES ? c - at : LANES;
        EL_INDEPENDENT
        for (int64_t j = 0; j < n; j++) {
            const int64_t i = at + j;
            const float s = 1 / (1 + el_vector_exp(-h[i])), gate = h[i] * s, d = dy[i] * scale;
            lane[j] = dy[i] * gate * up[i];
            dh[i] = d * up[i] * s * (1 + h[i] * (1 - s));
            dup[i] = d * gate;
        }
        for (int j = 0; j < LANES; j++) sum += (double)lane[j];
    }
    return (float)sum;
}

enum el_status el_cpu_swiglu_forward(const struct el_kernel_args *args)
{
    const float *h = args->p[0], *scale = args->p[1];
    float *y = args->p[3];
    const struct el_experts all = el_experts(args->p[2], &args->d[2], args->d[0]);
    const int64_t c = args->d[1];
    for (int64_t part = 0, first; part < all.m; part++) {
        const int64_t n = el_experts_part(&all, part, &first);
        for (int64_t r = first; r < first + n; r++) forward_row(h + r * 2 * c, c, scale[r], y + r * c);
    }
    return EL_OK;
}

enum el_status el_cpu_swiglu_backward(const struct el_kernel_args *args)
{
    const float *dy = args->p[0], *h = args->p[1], *scale = args->p[2];
    float *dh = args->p[4], *dscale = args->p[5];
    const struct el_experts all = el_experts(args->p[3], &args->d[2], args->d[0]);
    const int64_t c = args->d[1];
    for (int64_t part = 0, first; part < all.m; part++) {
        const int64_t n = el_experts_part(&all, part, &first);
        for (int64_t r = first; r < first + n; r++)
            dscale[r] = backward_row(dy + r * c, h + r * 2 * c, c, scale[r], dh + r * 2 * c);
    }
    return EL_OK;
}
