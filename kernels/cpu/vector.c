/* The loops that more than one kernel needs. The modules use them too, out of the program that opened them. */
#include "kernels/cpu/vector.h"

#include <string.h>

EL_VECTOR void el_vector_add(const float *restrict x, int64_t n, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] += x[i];
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
