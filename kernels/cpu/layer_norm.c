/* Fast layer norm: a row stays in the L1 cache for two passes. The gradients of scale and shift take another pass: f32
 * within groups of rows, double across groups. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lanes.h"

/* Values that a lane sums in f32 before double; channels per block; rows summed in f32. */
enum { LANES = EL_LANES, STEPS = 8, BLOCK = 512, GROUP = 256 };

/* Whole lanes from i on that are summed together. */
static inline __attribute__((always_inline)) int64_t whole_lanes(int64_t i, int64_t c)
{
    const int64_t end = i + LANES * STEPS < c ? i + LANES * STEPS : c;
    return end - (end - i) % LANES;
}

EL_VECTOR static double row_mean(const float *x, int64_t c)
{
    double sum = 0;
    int64_t i = 0;
    while (i + LANES <= c) {
        float lane[LANES] = {0};
        for (const int64_t end = whole_lanes(i, c); i < end; i += LANES)
            for (int j = 0; j < LANES; j++) lane[j] += x[i + j];
        sum += el_lanes_total(lane);
    }
    for (; i < c; i++) sum += (double)x[i];
    return sum / (double)c;
}

EL_VECTOR static double row_variance(const float *x, int64_t c, float mean)
{
    double sum = 0;
    int64_t i = 0;
    while (i + LANES <= c) {
        float lane[LANES] = {0};
        for (const int64_t end = whole_lanes(i, c); i < end; i += LANES)
            for (int j = 0; j < LANES; j++) lane[j] += (x[i + j] - mean) * (x[i + j] - mean);
        sum += el_lanes_total(lane);
    }
    for (; i < c; i++) sum += (double)((x[i] - mean) * (x[i] - mean));
    return sum / (double)c;
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
        const double mean = row_mean(x, c), rstd = 1 / sqrt(row_variance(x, c, (float)mean) + args->s[0]);
        saved[2 * i] = (float)mean;
        saved[2 * i + 1] = (float)rstd;
        normalise(x, scale, shift, c, (float)mean, (float)rstd, y);
    }
    return EL_OK;
}

/* With g = dy * scale and h the normalised x: sums[0] = mean of g, sums[1] = mean of g * h. */
EL_VECTOR static void row_means(const float *restrict dy, const float *restrict x, const float *restrict scale,
                                int64_t c, float mean, float rstd, double sums[2])
{
    double sum[2] = {0};
    int64_t i = 0;
    while (i + LANES <= c) {
        float plain[LANES] = {0}, times_x[LANES] = {0};
        for (const int64_t end = whole_lanes(i, c); i < end; i += LANES)
            for (int j = 0; j < LANES; j++) {
                const float g = dy[i + j] * scale[i + j];
                plain[j] += g;
                times_x[j] += g * (x[i + j] - mean);
            }
        sum[0] += el_lanes_total(plain);
        sum[1] += el_lanes_total(times_x);
    }
    for (; i < c; i++) {
        const float g = dy[i] * scale[i];
        sum[0] += (double)g;
        sum[1] += (double)(g * (x[i] - mean));
    }
    sums[0] = sum[0] / (double)c;
    sums[1] = sum[1] * (double)rstd / (double)c;
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
