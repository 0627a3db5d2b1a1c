/* Fast maximum over time: a block of channels' maxima and positions stay in vector registers. */
#include <string.h>

#include "kernels/cpu/cpu.h"

/* Channels per block: four AVX-512 vectors of maxima and four of positions. */
enum { BLOCK = 64 };

EL_VECTOR static void maximum(const float *x, int64_t length, int64_t stride, int n, float *y, int32_t *at)
{
    float best[BLOCK];
    int32_t where[BLOCK];
    for (int j = 0; j < BLOCK; j++) where[j] = 0;
    memcpy(best, x, (size_t)n * sizeof *x);
    for (int64_t t = 1; t < length; t++) {
        const float *row = x + t * stride;
        for (int j = 0; j < n; j++) {
            where[j] = row[j] > best[j] ? (int32_t)t : where[j];
            best[j] = row[j] > best[j] ? row[j] : best[j];
        }
    }
    memcpy(y, best, (size_t)n * sizeof *y);
    memcpy(at, where, (size_t)n * sizeof *at);
}

enum el_status el_cpu_max_time_forward(const struct el_kernel_args *args)
{
    const float *x = args->p[0];
    float *y = args->p[1];
    int32_t *at = args->p[2];
    int64_t batch = args->d[0], length = args->d[1], filters = args->d[2];
    for (int64_t b = 0; b < batch; b++)
        for (int64_t f = 0; f < filters; f += BLOCK) {
            int n = (int)(filters - f < BLOCK ? filters - f : BLOCK);
            maximum(x + b * length * filters + f, length, filters, n, y + b * filters + f, at + b * filters + f);
        }
    return EL_OK;
}

/* Nearly all of dx is zero: memset, then set each maximum. */
enum el_status el_cpu_max_time_backward(const struct el_kernel_args *args)
{
    const float *dy = args->p[0];
    const int32_t *at = args->p[1];
    float *dx = args->p[2];
    int64_t batch = args->d[0], length = args->d[1], filters = args->d[2];
    for (int64_t b = 0; b < batch; b++) {
        float *sample = dx + b * length * filters;
        memset(sample, 0, (size_t)(length * filters) * sizeof *dx);
        for (int64_t f = 0; f < filters; f++) sample[at[b * filters + f] * filters + f] = dy[b * filters + f];
    }
    return EL_OK;
}
