/* A covering array: rows in which each value of each factor meets each value of every other one, of those that go
 * together. The same rows at each call. Included by tests whose whole product is too long.
 *
 *     struct pairwise array = {.n_factors = 3, .levels = {2, 4, 5}, .valid = goes_together, .context = ...};
 *     pairwise_fill(&array);  ... array.rows[0 .. array.n_rows)[factor] ...  free(array.rows);
 */
#pragma once

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/rng.h"

enum { PAIRWISE_FACTORS = 9, PAIRWISE_LEVELS = 16, PAIRWISE_TRIES = 48 };

struct pairwise_row {
    int level[PAIRWISE_FACTORS];
};

struct pairwise {
    int n_factors, levels[PAIRWISE_FACTORS];
    bool (*valid)(const struct pairwise_row *row, const void *context);
    const void *context;
    bool whole; /* every valid row instead */
    struct pairwise_row *rows;
    int n_rows;
};

/* Which pairs of values have met: [factor][level][other factor][its level]. */
struct pairwise_met {
    bool of[PAIRWISE_FACTORS][PAIRWISE_LEVELS][PAIRWISE_FACTORS][PAIRWISE_LEVELS];
};

/* How many pairs of the row have not met yet; from now on they have, where `mark`. */
static inline int pairwise_gain(const struct pairwise *array, struct pairwise_met *met, const struct pairwise_row *row,
                                bool mark)
{
    int gain = 0;
    for (int a = 0; a < array->n_factors; a++)
        for (int b = a + 1; b < array->n_factors; b++) {
            bool *pair = &met->of[a][row->level[a]][b][row->level[b]];
            gain += !*pair;
            if (mark) *pair = true;
        }
    return gain;
}

static inline bool pairwise_next(const struct pairwise *array, struct pairwise_row *row)
{
    for (int f = 0; f < array->n_factors; f++) {
        if (++row->level[f] < array->levels[f]) return true;
        row->level[f] = 0;
    }
    return false;
}

/* All valid rows. */
static inline void pairwise_list(struct pairwise *array)
{
    struct pairwise_row row = {{0}};
    size_t all = 1;
    for (int f = 0; f < array->n_factors; f++) all *= (size_t)array->levels[f];
    array->rows = malloc(all * sizeof row);
    array->n_rows = 0;
    if (!array->rows) abort();
    do
        if (array->valid(&row, array->context)) array->rows[array->n_rows++] = row;
    while (pairwise_next(array, &row));
}

/* The best of some rows drawn; once none of them brings a new pair, the next one in the list that does; NULL: none. */
static inline const struct pairwise_row *pairwise_choose(const struct pairwise *array, struct pairwise_met *met,
                                                         uint64_t draw, int *first)
{
    const struct el_rng_key key = {.seed = 13, .use = EL_RNG_TEST};
    const struct pairwise_row *best = NULL;
    int most = 0;
    for (int t = 0; t < PAIRWISE_TRIES; t++) {
        const struct pairwise_row *row = &array->rows[el_rng_u64(&key, draw, (uint64_t)t) % (uint64_t)array->n_rows];
        int gain = pairwise_gain(array, met, row, false);
        if (gain > most) best = row;
        if (gain > most) most = gain;
    }
    for (; !best && *first < array->n_rows; ++*first)
        if (pairwise_gain(array, met, &array->rows[*first], false) > 0) best = &array->rows[*first];
    return best;
}

static inline void pairwise_fill(struct pairwise *array)
{
    pairwise_list(array);
    if (array->whole) return;
    struct pairwise_met *met = calloc(1, sizeof *met);
    struct pairwise_row *chosen = malloc((size_t)array->n_rows * sizeof *chosen);
    const struct pairwise_row *row;
    int n = 0, first = 0;
    if (!met || !chosen) abort();
    while ((row = pairwise_choose(array, met, (uint64_t)n, &first))) {
        pairwise_gain(array, met, row, true);
        chosen[n++] = *row;
    }
    memcpy(array->rows, chosen, (size_t)n * sizeof *chosen);
    array->n_rows = n;
    free(chosen);
    free(met);
}
