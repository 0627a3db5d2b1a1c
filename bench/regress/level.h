/* The level that past sessions of one figure make, and how far they scatter. Pure functions of arrays.
 *
 * Sessions stand in order of time; an accepted one begins an era. Where EL_LEVEL_SESSIONS_MIN or more came since the
 * last one, only they count. With fewer, the level is theirs, and the scatter that of earlier eras too, each about its
 * own level; an earlier era of one session has none and is skipped. E levels are then estimated from K sessions:
 * the scatter has K - E degrees of freedom (`df`), fewer than EL_LEVEL_DF_MIN decide nothing, and a rule has to use
 * as many. One session gives a level less precisely than many: the values are then given that much further apart, so
 * that a rule that takes them for sessions of one level, but for `df`, errs no more often than it should (level.c has
 * the factor).
 *
 * Of eight or more sessions of an era, what lies more than three interquartile ranges outside the quartiles, and more
 * than 2 %, is an outlier ("far"): it is kept in the store and reported, but it does not count.
 */
#ifndef EL_BENCH_LEVEL_H
#define EL_BENCH_LEVEL_H

#include <stdbool.h>
#include <stddef.h>

enum { EL_LEVEL_SESSIONS_MIN = 8, EL_LEVEL_SESSIONS_MAX = 30, EL_LEVEL_DF_MIN = EL_LEVEL_SESSIONS_MIN - 1 };

/* What lies nearer than this is never far. */
#define EL_LEVEL_FLOOR_RATIO 1.02

struct el_level {
    double values[EL_LEVEL_SESSIONS_MAX]; /* what a rule compares with, oldest first */
    size_t n;                             /* that count */
    size_t df;                            /* degrees of freedom of their scatter; nothing is judged below the least */
    size_t n_eras;                        /* that were used */
    size_t n_era;                         /* of the n, since the last accepted one */
    size_t n_far;                         /* since the last accepted one, left out as far */
    bool last_far;                        /* the newest is one of those */
    double centre;                        /* geometric mean; NAN for none */
    double sd_ratio;                      /* standard deviation of the logarithms, as seen; NAN for df 0 */
    size_t needs;                         /* more sessions of this level until anything can be judged */
};

/* [n] positive values, oldest first; accepted[i]: this one begins an era. */
void el_level_of(const double *values, const bool *accepted, size_t n, struct el_level *level_p);
/* Marks what is far among n values of one era. */
void el_level_far(const double *values, size_t n, bool *far);

#endif
