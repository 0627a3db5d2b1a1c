/* The level that past sittings of one figure make, and how far they scatter. Pure functions of arrays.
 *
 * Sittings stand in order of time; an accepted one begins an era. Only what came since the last one counts, until then
 * EL_LEVEL_SITTINGS_MIN are there: with fewer, the level is theirs, and the scatter that of earlier eras too, each
 * about its own level. One sitting tells a level less surely than many: the scatter is then given that much larger, so
 * that a rule that takes all values for sittings of one level errs no more often than it should (level.c has the
 * factor).
 *
 * Of eight or more sittings of an era, what lies more than three interquartile ranges outside the quartiles, and more
 * than 2 %, is far: it is kept in the store and said, but it does not count.
 */
#ifndef EL_BENCH_LEVEL_H
#define EL_BENCH_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

enum { EL_LEVEL_SITTINGS_MIN = 8, EL_LEVEL_SITTINGS_MAX = 30 };

/* What lies nearer than this is never far. */
#define EL_LEVEL_FLOOR_RATIO 1.02

struct el_level {
    double values[EL_LEVEL_SITTINGS_MAX]; /* what a rule compares with, oldest first */
    size_t n;                             /* that count; below EL_LEVEL_SITTINGS_MIN nothing can be told */
    size_t n_era;                         /* of them since the last accepted one */
    size_t n_far;                         /* since the last accepted one, left out as far */
    bool last_far;                        /* the newest is one of those */
    double centre;                        /* geometric mean; NAN for none */
    double sd_ratio;                      /* standard deviation of the logarithms, as seen; NAN for n < 2 */
    size_t needs;                         /* sittings until something can be told */
};

/* [n] positive values, oldest first; accepted[i]: this one begins an era. */
void el_level_of(const double *values, const bool *accepted, size_t n, struct el_level *level_p);
/* Marks what is far among n values of one era. */
void el_level_far(const double *values, size_t n, bool *far);

#endif
