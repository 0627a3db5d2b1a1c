/* Products of small matrices in tiles, in words: f32 values, or pairs of bf16 values that follow each other along what
 * is summed, where the processor multiplies pairs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EL_TILE_ROWS = 8, EL_TILE_COLUMNS = 16 };

/* c[EL_TILE_ROWS, columns] = factor (c (0 without acc) + a[EL_TILE_ROWS, depth] b[depth, columns]), c in f32, a and b
 * in words; a word of a is at row * a_row + column * a_column. `columns`: a multiple of EL_TILE_COLUMNS; b and c
 * aligned to so many words. */
struct el_tiles {
    const float *a, *b;
    int64_t a_row, a_column, b_row, depth, columns;
    int acc;
    float factor, *c;
    int64_t c_row;
};

bool el_tiles_have_pairs(void);
void el_tiles_multiply(const struct el_tiles *o, bool pairs);

/* pairs[n] of two rows' values, as bf16; n is a multiple of EL_TILE_COLUMNS. Only where there are pairs. */
void el_tiles_pair(const float *upper, const float *lower, int64_t n, float *pairs);
