/* A tile is kept in registers while its depth passes. */
#include "kernels/cpu/tiles.h"

#include "runtime/base/vector.h"

enum { ROWS = EL_TILE_ROWS, HALF = EL_TILE_COLUMNS };

typedef float vector __attribute__((vector_size(64), may_alias)); /* of HALF columns */

/* HALF or 2 HALF columns from j on, `rows` rows at a time; rows and vectors are constants that fill registers. */
#define TILE(ADD)                                                                                                      \
    for (int i = 0; i < ROWS; i += rows) {                                                                             \
        const float *from = o->a + i * o->a_row;                                                                       \
        float *to = o->c + i * o->c_row + j;                                                                           \
        vector sum[ROWS][2];                                                                                           \
        for (int r = 0; r < rows; r++)                                                                                 \
            for (int l = 0; l < vectors; l++)                                                                          \
                sum[r][l] = o->acc ? ((const vector *)(to + r * o->c_row))[l] : (vector){0};                           \
        for (int64_t k = 0; k < o->depth; k++) {                                                                       \
            const vector *row = (const vector *)(o->b + k * o->b_row + j);                                             \
            for (int r = 0; r < rows; r++)                                                                             \
                for (int l = 0; l < vectors; l++) ADD(sum[r][l], from[r * o->a_row + k * o->a_column], row[l]);        \
        }                                                                                                              \
        for (int r = 0; r < rows; r++)                                                                                 \
            for (int l = 0; l < vectors; l++) ((vector *)(to + r * o->c_row))[l] = sum[r][l] * o->factor;              \
    }

#define ADD_VALUES(sum, word, words) ((sum) += (word) * (words))

static inline __attribute__((always_inline)) void tile(const struct el_tiles *o, int64_t j, const int rows,
                                                       const int vectors)
{
    TILE(ADD_VALUES);
}

EL_VECTOR static void multiply_narrow(const struct el_tiles *o)
{
    for (int64_t j = 0; j < o->columns; j += HALF) tile(o, j, ROWS / 2, 1);
}

#if defined __x86_64__ && defined __GNUC__
#include <immintrin.h>

#define PAIRS "avx512f,avx512bw,avx512bf16"
#define ADD_PAIRS(sum, word, words)                                                                                    \
    ((sum) = (vector)_mm512_dpbf16_ps((__m512)(sum), (__m512bh)_mm512_set1_ps(word), (__m512bh)(words)))

__attribute__((target(PAIRS))) static inline __attribute__((always_inline)) void
tile_of_pairs(const struct el_tiles *o, int64_t j, const int rows, const int vectors)
{
    TILE(ADD_PAIRS);
}

__attribute__((target(PAIRS))) static void multiply_pairs(const struct el_tiles *o)
{
    int64_t j = 0;
    for (; j + 2 * HALF <= o->columns; j += 2 * HALF) tile_of_pairs(o, j, ROWS, 2);
    if (j < o->columns) tile_of_pairs(o, j, ROWS, 1);
}

__attribute__((target("avx512f"))) static void multiply_wide(const struct el_tiles *o)
{
    int64_t j = 0;
    for (; j + 2 * HALF <= o->columns; j += 2 * HALF) tile(o, j, ROWS, 2);
    if (j < o->columns) tile(o, j, ROWS, 1);
}

__attribute__((target(PAIRS))) void el_tiles_pair(const float *upper, const float *lower, int64_t n, float *pairs)
{
    const __m512i alternate = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22,
                                               6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int64_t j = 0; j < n; j += HALF) {
        const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(lower + j), _mm512_loadu_ps(upper + j));
        _mm512_storeu_si512(pairs + j, _mm512_permutexvar_epi16(alternate, both));
    }
}

static bool has_wide(void)
{
    return __builtin_cpu_supports("avx512f");
}

bool el_tiles_have_pairs(void)
{
    return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512bw");
}
#else
#define multiply_pairs multiply_narrow
#define multiply_wide  multiply_narrow
#define has_wide()     false

void el_tiles_pair(const float *upper, const float *lower, int64_t n, float *pairs)
{
    (void)upper, (void)lower, (void)n, (void)pairs;
}

bool el_tiles_have_pairs(void)
{
    return false;
}
#endif

void el_tiles_multiply(const struct el_tiles *o, bool pairs)
{
    if (pairs)
        multiply_pairs(o);
    else if (has_wide())
        multiply_wide(o);
    else
        multiply_narrow(o);
}
