/* Fast layer norm: a row stays in the L1 cache for two passes. The gradients of scale and shift take another pass: f32
 * within groups of rows, double across groups. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

/* Lanes of a row's sums; channels per block; rows summed in f32. */
enum { LANES = 16, BLOCK = 512, GROUP = 256 };

static inline __attribute__((always_inline)) double total(const double lane[LANES])
{
    double sum = 0;
    for (int j = 0; j < LANES; j++) sum += lane[j];
    return sum;
}

EL_VECTOR static double row_mean(const float *x, int64_t c)
{
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += (double)x[i + j];
    for (; i < c; i++) lane[i % LANES] += (double)x[i];
    return total(lane) / (double)c;
}

EL_VECTOR static double row_variance(const float *x, int64_t c, double mean)
{
    double lane[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] += ((double)x[i + j] - mean) * ((double)x[i + j] - mean);
    for (; i < c; i++) lane[i % LANES] += ((double)x[i] - mean) * ((double)x[i] - mean);
    return total(lane) / (double)c;
}

EL_VECTOR static void normalise(const float *restrict x, const float *restrict scale, const float *restrict shift,
                                int64_t c, float mean, float rstd, float *restrict y)
{
    for (int64_t j = 0; j < c; j++) y[j] = scale[j] * ((x[j] - mean) * rstd) + shift[j];
}

enum el_status el_cpu_layer_norm_forward(const struct el_kernel_args *args)
{
    const float *x = args->p[0], *scale = args->p[1], *shift = args->p[2];
    float *y = args->p[3], *saved = args->p[4];
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t i = 0; i < n; i++, x += c, y += c) {
        double mean = row_mean(x, c), rstd = 1 / sqrt(row_variance(x, c, mean) + args->s[0]);
        saved[2 * i] = (float)mean;
        saved[2 * i + 1] = (float)rstd;
        normalise(x, scale, shift, c, (float)mean, (float)rstd, y);
    }
    return EL_OK;
}

/* With g = dy * scale and h the normalised x: sums[0] = mean of g, sums[1] = mean of g * h. */
EL_VECTOR static void row_means(const float *dy, const float *x, const float *scale, int64_t c, float mean, float rstd,
                                double sums[2])
{
    double plain[LANES] = {0}, times_x[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= c; i += LANES)
        for (int j = 0; j < LANES; j++) {
            float g = dy[i + j] * scale[i + j];
            plain[j] += (double)g;
            times_x[j] += (double)(g * (x[i + j] - mean));
        }
    for (; i < c; i++) {
        float g = dy[i] * scale[i];
        plain[i % LANES] += (double)g;
        times_x[i % LANES] += (double)(g * (x[i] - mean));
    }
    sums[0] = total(plain) / (double)c;
    sums[1] = total(times_x) * (double)rstd / (double)c;
}

/* dx (+)= rstd * (g - mean of g - h * mean of g * h). */
EL_VECTOR static void spread(const float *restrict dy, const float *restrict x, const float *restrict scale, int64_t c,
                             float mean, float rstd, const double sums[2], int acc, float *restrict dx)
{
    const float plain = (float)sums[0], by_x = (float)sums[1] * rstd;
    if (!acc)
        for (int64_t j = 0; j < c; j++) dx[j] = rstd * (dy[j] * scale[j] - plain - (x[j] - mean) * by_x);
    else
        for (int64_t j = 0; j < c; j++) dx[j] += rstd * (dy[j] * scale[j] - plain - (x[j] - mean) * by_x);
}

EL_VECTOR static void add_group(const float *restrict dy, const float *restrict x, const float *restrict saved,
                                int64_t rows, int64_t stride, int64_t width, float *restrict plain,
                                float *restrict times_h)
{
    for (int64_t r = 0; r < rows; r++, dy += stride, x += stride) {
        const float mean = saved[2 * r], rstd = saved[2 * r + 1];
        for (int64_t j = 0; j < width; j++) {
            plain[j] += dy[j];
            times_h[j] += dy[j] * ((x[j] - mean) * rstd);
        }
    }
}

static void parameter_gradients(const struct el_kernel_args *args, int64_t c0, int64_t width)
{
    const float *dy = args->p[0], *x = args->p[1], *saved = args->p[3];
    float *dscale = (float *)args->p[5] + c0, *dshift = (float *)args->p[6] + c0, plain[BLOCK], times_h[BLOCK];
    double sum[2][BLOCK] = {{0}};
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t r = 0; r < n; r += GROUP) {
        memset(plain, 0, sizeof plain);
        memset(times_h, 0, sizeof times_h);
        add_group(dy + r * c + c0, x + r * c + c0, saved + 2 * r, n - r < GROUP ? n - r : GROUP, c, width, plain,
                  times_h);
        for (int64_t j = 0; j < width; j++) {
            sum[0][j] += (double)times_h[j];
            sum[1][j] += (double)plain[j];
        }
    }
    for (int64_t j = 0; j < width; j++) {
        dscale[j] = (float)(sum[0][j] + (args->s[1] != 0 ? (double)dscale[j] : 0));
        dshift[j] = (float)(sum[1][j] + (args->s[1] != 0 ? (double)dshift[j] : 0));
    }
}

enum el_status el_cpu_layer_norm_backward(const struct el_kernel_args *args)
{
    const float *dy = args->p[0], *x = args->p[1], *scale = args->p[2], *saved = args->p[3];
    float *dx = args->p[4];
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t c0 = 0; c0 < c; c0 += BLOCK) parameter_gradients(args, c0, c - c0 < BLOCK ? c - c0 : BLOCK);
    for (int64_t i = 0; i < n; i++, saved += 2) {
        double sums[2];
        row_means(dy + i * c, x + i * c, scale, c, saved[0], saved[1], sums);
        spread(dy + i * c, x + i * c, scale, c, saved[0], saved[1], sums, args->s[0] != 0, dx + i * c);
    }
    return EL_OK;
}
