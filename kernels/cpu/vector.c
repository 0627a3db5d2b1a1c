/* Shared loops; modules call the program's copies. */
#include "kernels/cpu/cpu.h"

#include <math.h>
#include <string.h>

#include "kernels/cpu/lanes.h"
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

EL_VECTOR static void sum_block_bf16(const uint16_t *x, int64_t rows, int64_t stride, int64_t n, float *sum)
{
    float wide[BLOCK] = {0};
    for (int64_t r = 0; r < rows && n == BLOCK; r++)
        for (int j = 0; j < BLOCK; j++) wide[j] += el_f32_of_bf16(x[r * stride + j]);
    for (int64_t r = 0; r < rows && n < BLOCK; r++)
        for (int64_t j = 0; j < n; j++) wide[j] += el_f32_of_bf16(x[r * stride + j]);
    for (int64_t j = 0; j < n; j++) sum[j] += wide[j];
}

void el_vector_sum_rows_bf16(const uint16_t *x, int64_t rows, int64_t n, int acc, float *y)
{
    if (!acc) memset(y, 0, (size_t)n * sizeof *y);
    for (int64_t j = 0; j < n; j += BLOCK) sum_block_bf16(x + j, rows, n, n - j < BLOCK ? n - j : BLOCK, y + j);
}

/* Side of a square: sixteen lines each of x and y, used whole while in the L1 cache. */
enum { SQUARE = 16 };

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_masks __attribute__((vector_size(32)));
#define PICK(a, b, ...) EL_SHUFFLE(eight_masks, a, b, __VA_ARGS__)

/* Eight rows of eight: first pairs of rows, then of pairs, then of quads. */
static inline __attribute__((always_inline)) void transpose_eight(const float *x, int64_t x_stride, eight y[8])
{
    eight row[8], pair[8];
    for (int i = 0; i < 8; i++) row[i] = *(const eight *)(x + i * x_stride);
    for (int i = 0; i < 8; i += 2) {
        pair[i] = PICK(row[i], row[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pair[i + 1] = PICK(row[i], row[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += (i & 1) ? 3 : 1) {
        const int to = i + (i & 1); /* 0, 1, 4, 5 to 0, 2, 4, 6 */
        row[to] = PICK(pair[i], pair[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        row[to + 1] = PICK(pair[i], pair[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int i = 0; i < 4; i++) {
        y[i] = PICK(row[i], row[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        y[i + 4] = PICK(row[i], row[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

EL_VECTOR void el_vector_transpose(const float *x, int64_t rows, int64_t n, float *y)
{
    eight out[8];
    for (int64_t r = 0; r < rows; r += 8)
        for (int64_t j = 0; j < n; j += 8) {
            transpose_eight(x + j * rows + r, rows, out);
            for (int i = 0; i < 8; i++) *(eight *)(y + (r + i) * n + j) = out[i];
        }
}

EL_VECTOR static void transpose_square(const float *x, const float *bias, int64_t x_stride, int64_t y_stride,
                                       float least, float *restrict y)
{
    eight rows[8];
    for (int j = 0; j < SQUARE; j += 8)
        for (int r = 0; r < SQUARE; r += 8) {
            transpose_eight(x + j * x_stride + r, x_stride, rows);
            for (int i = 0; i < 8; i++) {
                const eight value = rows[i] + *(const eight *)(bias + j);
                const eight_masks low = value < least;
                *(eight *)(y + (r + i) * y_stride + j) =
                    (eight)(((eight_masks)value & ~low) | ((eight_masks)(least + (eight){0}) & low));
            }
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

enum { LANES = EL_LANES, STEPS = 16 }; /* values that a lane sums in f32 before double */

EL_VECTOR float el_vector_largest(const float *x, int64_t n)
{
    float lane[LANES], largest;
    int64_t i = 0;
    for (int j = 0; j < LANES; j++) lane[j] = -INFINITY;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
    largest = el_lanes_largest(lane);
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
        total += el_lanes_total(lane);
    }
    for (; i < n; i++) {
        y[i] = el_vector_exp(x[i] - from);
        total += (double)y[i];
    }
    return total;
}
