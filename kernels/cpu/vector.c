/* Shared loops; modules call the program's copies. */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/vector_exp.h"
#include "runtime/base/half.h"

EL_VECTOR void el_vector_widen(const uint16_t *restrict x, int64_t n, float factor, int acc, float *restrict y)
{
    if (acc)
        for (int64_t i = 0; i < n; i++) y[i] += factor * el_f32_of_bf16(x[i]);
    else
        for (int64_t i = 0; i < n; i++) y[i] = factor * el_f32_of_bf16(x[i]);
}

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

/* By the processor's conversion, which flushes denormals to zero. Returns the number done. */
__attribute__((target("avx512f,avx512bf16"))) static int64_t narrow_whole(const float *x, int64_t n, float factor,
                                                                          uint16_t *y)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        _mm256_storeu_si256((__m256i *)(void *)(y + i),
                            (__m256i)_mm512_cvtneps_pbh(_mm512_mul_ps(_mm512_set1_ps(factor), _mm512_loadu_ps(x + i))));
    return i;
}

static int64_t narrow_fast(const float *x, int64_t n, float factor, uint16_t *y)
{
    return __builtin_cpu_supports("avx512bf16") ? narrow_whole(x, n, factor, y) : 0;
}
#else
static int64_t narrow_fast(const float *x, int64_t n, float factor, uint16_t *y)
{
    (void)x, (void)n, (void)factor, (void)y;
    return 0;
}
#endif

EL_VECTOR static void narrow_plain(const float *restrict x, int64_t n, float factor, int acc, uint16_t *restrict y)
{
    if (acc)
        for (int64_t i = 0; i < n; i++) y[i] = el_bf16_of_f32(el_f32_of_bf16(y[i]) + factor * x[i]);
    else
        for (int64_t i = 0; i < n; i++) y[i] = el_bf16_of_f32(factor * x[i]);
}

void el_vector_narrow(const float *restrict x, int64_t n, float factor, int acc, uint16_t *restrict y)
{
    int64_t done = acc ? 0 : narrow_fast(x, n, factor, y);
    narrow_plain(x + done, n - done, factor, acc, y + done);
}

EL_VECTOR void el_vector_add(const float *restrict x, int64_t n, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
}

EL_VECTOR void el_vector_add_bf16(const uint16_t *restrict x, int64_t n, uint16_t *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = el_bf16_of_f32(el_f32_of_bf16(y[i]) + el_f32_of_bf16(x[i]));
}

/* Columns whose sums stay in registers while the rows pass. */
enum { BLOCK = 64 };

EL_VECTOR static void sum_whole_block(const float *x, int64_t rows, int64_t stride, float *sum)
{
    float local[BLOCK];
    memcpy(local, sum, sizeof local);
    for (int64_t r = 0; r < rows; r++)
        for (int j = 0; j < BLOCK; j++) local[j] += x[r * stride + j];
    memcpy(sum, local, sizeof local);
}

EL_VECTOR static void sum_part_block(const float *x, int64_t rows, int64_t stride, int64_t n, float *restrict sum)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++) sum[j] += x[r * stride + j];
}

void el_vector_sum_rows(const float *x, int64_t rows, int64_t n, int acc, float *y)
{
    if (!acc) memset(y, 0, (size_t)n * sizeof *y);
    int64_t j = 0;
    for (; j + BLOCK <= n; j += BLOCK) sum_whole_block(x + j, rows, n, y + j);
    sum_part_block(x + j, rows, n, n - j, y + j);
}

EL_VECTOR void el_vector_sum_rows_bf16(const uint16_t *restrict x, int64_t rows, int64_t n, int acc, float *restrict y)
{
    if (!acc) memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++) y[j] += el_f32_of_bf16(x[r * n + j]);
}

/* Side of a square: sixteen lines each of x and y, used whole while in the L1 cache. */
enum { SQUARE = 16 };

EL_VECTOR static void transpose_square(const float *x, const float *bias, int64_t x_stride, int64_t y_stride,
                                       float least, float *restrict y)
{
    float square[SQUARE][SQUARE];
    for (int j = 0; j < SQUARE; j++)
        for (int r = 0; r < SQUARE; r++) square[r][j] = x[j * x_stride + r];
    for (int r = 0; r < SQUARE; r++)
        for (int j = 0; j < SQUARE; j++) {
            float value = square[r][j] + bias[j];
            y[r * y_stride + j] = value < least ? least : value;
        }
}

static void transpose_part(const float *x, const float *bias, int64_t x_stride, int64_t y_stride, int64_t rows,
                           int64_t n, float least, float *y)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = 0; j < n; j++) {
            float value = x[j * x_stride + r] + bias[j];
            y[r * y_stride + j] = value < least ? least : value;
        }
}

void el_vector_transpose_bias(const float *x, const float *bias, int64_t rows, int64_t n, int relu, float *y)
{
    static const float none[SQUARE];
    const float least = relu ? 0 : -INFINITY;
    for (int64_t j = 0; j < n; j += SQUARE)
        for (int64_t r = 0; r < rows; r += SQUARE) {
            int64_t columns = n - j < SQUARE ? n - j : SQUARE, height = rows - r < SQUARE ? rows - r : SQUARE;
            const float *add = bias ? bias + j : none;
            if (columns == SQUARE && height == SQUARE)
                transpose_square(x + j * rows + r, add, rows, n, least, y + r * n + j);
            else
                transpose_part(x + j * rows + r, add, rows, n, height, columns, least, y + r * n + j);
        }
}

/* Lanes of partial results, and values that a lane sums in f32 before double. */
enum { LANES = 32, STEPS = 16 };

EL_VECTOR float el_vector_largest(const float *x, int64_t n)
{
    float lane[LANES], largest = -INFINITY;
    int64_t i = 0;
    for (int j = 0; j < LANES; j++) lane[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    for (int j = 0; j < LANES; j++) largest = lane[j] > largest ? lane[j] : largest;
    for (; i < n; i++) largest = x[i] > largest ? x[i] : largest;
    return largest;
}

EL_VECTOR double el_vector_exp_sum(const float *x, int64_t n, float from, float *y)
{
    double total = 0;
    int64_t i = 0;
    while (i + LANES <= n) {
        float lane[LANES] = {0};
        for (int step = 0; step < STEPS && i + LANES <= n; step++, i += LANES) {
            EL_INDEPENDENT
            for (int j = 0; j < LANES; j++) {
                float value = el_vector_exp(x[i + j] - from);
                y[i + j] = value;
                lane[j] += value;
            }
        }
        for (int j = 0; j < LANES; j++) total += (double)lane[j];
    }
    for (; i < n; i++) {
        y[i] = el_vector_exp(x[i] - from);
        total += (double)y[i];
    }
    return total;
}
