/* Fast batch norm: groups of rows stay in the L2 cache, a channel block's sums in L1. A group's squares are taken
 * around its own mean, against cancellation; sums are f32 within a group and double across groups. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"

/* Channels per block; rows summed in f32; rows at a time. */
enum { BLOCK = 512, GROUP = 256, TOGETHER = 4 };

EL_VECTOR static void add_rows(const float *restrict x, int64_t rows, int64_t stride, int64_t width,
                               float *restrict sum)
{
    int64_t r = 0;
    for (; r + TOGETHER <= rows; r += TOGETHER) {
        const float *row = x + r * stride;
        for (int64_t j = 0; j < width; j++)
            sum[j] += (row[j] + row[stride + j]) + (row[2 * stride + j] + row[3 * stride + j]);
    }
    for (; r < rows; r++)
        for (int64_t j = 0; j < width; j++) sum[j] += x[r * stride + j];
}

EL_VECTOR static void add_squares(const float *restrict x, int64_t rows, int64_t stride, int64_t width,
                                  const float *restrict mean, float *restrict sum)
{
    int64_t r = 0;
    for (; r + TOGETHER <= rows; r += TOGETHER) {
        const float *row = x + r * stride;
        for (int64_t j = 0; j < width; j++) {
            float m = mean[j], a = row[j] - m, b = row[stride + j] - m;
            float c = row[2 * stride + j] - m, d = row[3 * stride + j] - m;
            sum[j] += (a * a + b * b) + (c * c + d * d);
        }
    }
    for (; r < rows; r++)
        for (int64_t j = 0; j < width; j++) {
            float a = x[r * stride + j] - mean[j];
            sum[j] += a * a;
        }
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

EL_VECTOR static void flush(float *restrict group, int64_t width, double *restrict whole)
{
    for (int64_t j = 0; j < width; j++) {
        whole[j] += (double)group[j];
        group[j] = 0;
    }
}

/* Adds a group's sum and its squares, shifted to 0 (in double without loss), to the total, and clears them. */
EL_VECTOR static void join(int64_t width, float *restrict sum, const float *restrict centre, float *restrict squares,
                           int64_t rows, double *restrict mean, double *restrict variance)
{
    for (int64_t j = 0; j < width; j++) {
        double s = (double)sum[j], m = (double)centre[j];
        mean[j] += s;
        variance[j] += (double)squares[j] + m * (2 * s - (double)rows * m);
        sum[j] = squares[j] = 0;
    }
}

static void moments(const float *x, int64_t n, int64_t c, int64_t width, double mean[BLOCK], double variance[BLOCK])
{
    float sum[BLOCK] = {0}, squares[BLOCK] = {0}, centre[BLOCK];
    memset(mean, 0, BLOCK * sizeof *mean);
    memset(variance, 0, BLOCK * sizeof *variance);
    for (int64_t r = 0; r < n; r += GROUP) {
        int64_t rows = lesser(GROUP, n - r);
        add_rows(x + r * c, rows, c, width, sum);
        for (int64_t j = 0; j < width; j++) centre[j] = sum[j] / (float)rows;
        add_squares(x + r * c, rows, c, width, centre, squares);
        join(width, sum, centre, squares, rows, mean, variance);
    }
    for (int64_t j = 0; j < width; j++) {
        mean[j] /= (double)n;
        variance[j] = fmax(0, variance[j] / (double)n - mean[j] * mean[j]);
    }
}

/* y = factor * x + offset (+ residual), then max(., 0) with `relu`; `width` channels, rows `stride` apart. */
#define EL_NORMALISE(name, value)                                                                                      \
    EL_VECTOR static void name(const float *restrict x, const float *restrict residual, int64_t n, int64_t stride,     \
                               int64_t width, const float *restrict factor, const float *restrict offset,              \
                               float *restrict y)                                                                      \
    {                                                                                                                  \
        (void)residual;                                                                                                \
        for (int64_t r = 0; r < n; r++)                                                                                \
            for (int64_t j = 0, at = r * stride; j < width; j++, at++) {                                               \
                float v = factor[j] * x[at] + offset[j];                                                               \
                y[at] = (value);                                                                                       \
            }                                                                                                          \
    }
EL_NORMALISE(plain, v)
EL_NORMALISE(rectified, v < 0 ? 0 : v)
EL_NORMALISE(added, v + residual[at])
EL_NORMALISE(added_rectified, v + residual[at] < 0 ? 0 : v + residual[at])

static void normalise(const struct el_kernel_args *args, int64_t c0, int64_t width, int relu, const double *mean,
                      const double *rstd)
{
    const float *x = args->p[0], *scale = args->p[1], *shift = args->p[2], *residual = args->p[3];
    float *y = args->p[6], factor[BLOCK], offset[BLOCK];
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t j = 0; j < width; j++) {
        factor[j] = (float)((double)scale[c0 + j] * rstd[j]);
        offset[j] = (float)((double)shift[c0 + j] - mean[j] * (double)scale[c0 + j] * rstd[j]);
    }
    if (residual && relu)
        added_rectified(x + c0, residual + c0, n, c, width, factor, offset, y + c0);
    else if (residual)
        added(x + c0, residual + c0, n, c, width, factor, offset, y + c0);
    else if (relu)
        rectified(x + c0, NULL, n, c, width, factor, offset, y + c0);
    else
        plain(x + c0, NULL, n, c, width, factor, offset, y + c0);
}

enum el_status el_cpu_batch_norm_forward(const struct el_kernel_args *args)
{
    const float *x = args->p[0];
    float *running_mean = args->p[4], *running_variance = args->p[5];
    float *saved = args->p[7];
    int64_t n = args->d[0], c = args->d[1];
    double eps = args->s[0], momentum = args->s[1];
    EL_TRY(el_batch_norm_check(n));
    for (int64_t c0 = 0; c0 < c; c0 += BLOCK) {
        double mean[BLOCK], variance[BLOCK], rstd[BLOCK];
        int64_t width = lesser(BLOCK, c - c0);
        moments(x + c0, n, c, width, mean, variance);
        for (int64_t j = 0; j < width; j++) {
            float *m = &running_mean[c0 + j], *v = &running_variance[c0 + j];
            double unbiased = variance[j] * (double)n / (double)(n - 1);
            rstd[j] = 1 / sqrt(variance[j] + eps);
            saved[c0 + j] = (float)mean[j];
            saved[c + c0 + j] = (float)rstd[j];
            *m = (float)((1 - momentum) * (double)*m + momentum * mean[j]);
            *v = (float)((1 - momentum) * (double)*v + momentum * unbiased);
        }
        normalise(args, c0, width, args->s[2] != 0, mean, rstd);
    }
    return EL_OK;
}

enum el_status el_cpu_batch_norm_inference(const struct el_kernel_args *args)
{
    const float *running_mean = args->p[4], *running_variance = args->p[5];
    int64_t c = args->d[1];
    for (int64_t c0 = 0; c0 < c; c0 += BLOCK) {
        double mean[BLOCK], rstd[BLOCK];
        int64_t width = lesser(BLOCK, c - c0);
        for (int64_t j = 0; j < width; j++) {
            mean[j] = (double)running_mean[c0 + j];
            rstd[j] = 1 / sqrt((double)running_variance[c0 + j] + args->s[0]);
        }
        normalise(args, c0, width, args->s[1] != 0, mean, rstd);
    }
    return EL_OK;
}

/* g[r, j] = dy, or 0 where the ReLU was shut, and its sums per channel, plain and times (x - mean). */
#define EL_COME_BACK(name, incoming, keep)                                                                             \
    EL_VECTOR static void name(const float *dy, const float *restrict y, const float *restrict x, int64_t rows,        \
                               int64_t stride, int64_t width, const float *restrict mean, float *g,                    \
                               float *restrict sum, float *restrict times_x)                                           \
    {                                                                                                                  \
        (void)y, (void)g;                                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                                           \
            int64_t row = r * stride;                                                                                  \
            EL_INDEPENDENT                                                                                             \
            for (int64_t j = 0; j < width; j++) {                                                                      \
                int64_t at = row + j;                                                                                  \
                float value = (incoming);                                                                              \
                sum[j] += value;                                                                                       \
                times_x[j] += value * (x[at] - mean[j]);                                                               \
                keep;                                                                                                  \
            }                                                                                                          \
        }                                                                                                              \
    }
EL_COME_BACK(come_back, dy[at], (void)0)
EL_COME_BACK(come_back_open, y[at] > 0 ? dy[at] : 0, g[at] = value)

EL_VECTOR static void spread(const float *g, const float *restrict x, int64_t n, int64_t stride, int64_t width,
                             const float *restrict factor, const float *restrict slope, const float *restrict offset,
                             float *dx)
{
    for (int64_t r = 0; r < n; r++) {
        int64_t row = r * stride;
        EL_INDEPENDENT
        for (int64_t j = 0; j < width; j++) {
            int64_t at = row + j;
            dx[at] = factor[j] * g[at] + (slope[j] * x[at] + offset[j]);
        }
    }
}

static void give_residual(const struct el_kernel_args *args, int64_t c0, int64_t width, const float *g)
{
    float *dresidual = args->p[8];
    int64_t n = args->d[0], c = args->d[1];
    if (!dresidual || (args->s[1] == 0 && dresidual == g)) return;
    for (int64_t at = c0; at < n * c; at += c) {
        if (args->s[1] != 0)
            el_vector_add(g + at, width, dresidual + at);
        else
            memcpy(dresidual + at, g + at, (size_t)width * sizeof *g);
    }
}

static void gradient_sums(const struct el_kernel_args *args, int64_t c0, int64_t width, float *g, double sum[BLOCK],
                          double times_x[BLOCK])
{
    const float *dy = args->p[0], *x = args->p[1], *y = args->p[2], *saved = args->p[4];
    int64_t n = args->d[0], c = args->d[1];
    float group[2][BLOCK] = {{0}};
    memset(sum, 0, BLOCK * sizeof *sum);
    memset(times_x, 0, BLOCK * sizeof *times_x);
    for (int64_t r = 0; r < n; r += GROUP) {
        int64_t rows = lesser(GROUP, n - r), at = r * c + c0;
        if (y)
            come_back_open(dy + at, y + at, x + at, rows, c, width, saved + c0, g + at, group[0], group[1]);
        else
            come_back(dy + at, NULL, x + at, rows, c, width, saved + c0, NULL, group[0], group[1]);
        flush(group[0], width, sum);
        flush(group[1], width, times_x);
    }
    for (int64_t j = 0; j < width; j++) times_x[j] *= (double)saved[c + c0 + j];
}

/* dx = scale * rstd * (g - mean of g - normalised x * mean of (g * normalised x)), as factor * g + slope * x +
 * offset. */
static void spread_block(const struct el_kernel_args *args, int64_t c0, int64_t width, const float *g,
                         const double *sum, const double *times_x)
{
    const float *x = args->p[1], *scale = args->p[3], *saved = args->p[4];
    float *dx = args->p[5], factor[BLOCK], slope[BLOCK], offset[BLOCK];
    int64_t n = args->d[0], c = args->d[1];
    for (int64_t j = 0; j < width; j++) {
        double rstd = (double)saved[c + c0 + j], all = (double)scale[c0 + j] * rstd, mean = (double)saved[c0 + j];
        double by_x = all * rstd * times_x[j] / (double)n;
        factor[j] = (float)all;
        slope[j] = (float)-by_x;
        offset[j] = (float)(by_x * mean - all * sum[j] / (double)n);
    }
    spread(g + c0, x + c0, n, c, width, factor, slope, offset, dx + c0);
}

enum el_status el_cpu_batch_norm_backward(const struct el_kernel_args *args)
{
    float *dscale = args->p[6], *dshift = args->p[7];
    int64_t c = args->d[1];
    int acc = args->s[0] != 0, own = args->p[8] && args->s[1] == 0;
    float *kept = own ? args->p[8] : args->p[5]; /* g goes to the residual's gradient, or dx */
    const float *g = args->p[2] ? kept : args->p[0];
    for (int64_t c0 = 0; c0 < c; c0 += BLOCK) {
        double sum[BLOCK], times_x[BLOCK];
        int64_t width = lesser(BLOCK, c - c0);
        gradient_sums(args, c0, width, kept, sum, times_x);
        for (int64_t j = 0; j < width; j++) {
            dscale[c0 + j] = (float)(acc ? (double)dscale[c0 + j] + times_x[j] : times_x[j]);
            dshift[c0 + j] = (float)(acc ? (double)dshift[c0 + j] + sum[j] : sum[j]);
        }
        give_residual(args, c0, width, g);
        spread_block(args, c0, width, g, sum, times_x);
    }
    return EL_OK;
}
