/* Since when? The change points of a history: past sessions' figures in order of time. Pure functions of arrays.
 *
 *     el_changes_of(values, accepted, n, exact, EL_LEVEL_FLOOR_RATIO, &changes);
 *     el_changes_free(&changes);
 *
 * Method: optimal partitioning (Jackson et al., IEEE Signal Processing Letters 12, 2005), the exact minimum that PELT
 * (Killick, Fearnhead, Eckley, JASA 107, 2012) finds too, of
 *
 *     sum over pieces of the squared distances from the piece's mean / variance + penalty x (number of changes)
 *
 * on logarithms, with pieces of EL_PIECE_MIN or more. The scale is robust: standard deviation = 1.4826 median|x[i + 1]
 * - x[i]| / sqrt 2, which steps hardly touch, and at least EL_CHANGES_SD_MIN. What is more than 3 of it from the median
 * of five neighbours is moved to there: one or two odd sessions are no change. The penalty is 3.4 log n (1 + 12 / n).
 * Where that finds changes, it is multiplied by what the residuals scatter more than the scale says, and by (1 + r) /
 * (1 - r) for their correlation r from one session to the next, and the minimum is found again. docs/regress.md has the
 * rates of errors. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/base/status.h"

/* Fewer sessions of a piece have no interval (EL_REPEATS_MIN). Of a longer history the newest count. */
enum { EL_PIECE_MIN = 5, EL_HISTORY_MAX = 1000 };
#define EL_CHANGES_SD_MIN 0.001 /* ratio: a clock has a resolution, and changes below 2 % are not reported */

/* Sessions first to first + n - 1, on a level, or creeping: their logarithms lie about level + slope (i - first). */
struct el_piece {
    size_t first, n;
    double level, slope; /* logarithms */
    double p;            /* of Kendall's test for the slope, two-sided; NAN: not tested, there is hardly one */
};

struct el_change {
    size_t at;                    /* the new piece's first session, counted from 0 */
    size_t low, high;             /* 95 %: the first is one of these */
    size_t end;                   /* after the new piece's last */
    double ratio;                 /* new level over old one, where they meet; 1.1: the figure is larger by 10 % */
    double ratio_low, ratio_high; /* 95 %, Welch's t on logarithms; NAN: exact */
    bool accepted;                /* a session that began an era lies in [low, end) */
};

struct el_changes {
    struct el_piece *pieces;   /* in order, without gaps */
    struct el_change *changes; /* between two pieces that do not meet within the floor */
    size_t n_pieces, n_changes;
    size_t *cuts, n_cuts; /* the partition, before floor and creeps: each new piece's first session */
    double sd, penalty;   /* of the logarithms; NAN: exact */
};

/* [n] positive values, oldest first; accepted[i]: this one begins an era (NULL: none). `exact`: no noise, any other
 * value is a change. Else changes smaller than floor_ratio are dropped, the smallest first; steps one way are a creep
 * where a line fits better by BIC; and the last piece creeps where Kendall's test has p < 0.001 and the whole drift
 * (Theil and Sen) reaches the floor. Errors: EL_ERR_HOST_MEMORY, EL_ERR_INVALID: more than EL_HISTORY_MAX. */
enum el_status el_changes_of(const double *values, const bool *accepted, size_t n, bool exact, double floor_ratio,
                             struct el_changes *changes_p);
void el_changes_free(struct el_changes *changes);
/* exp(slope (n - 1)): a creeping piece's last over its first. */
double el_piece_drift(const struct el_piece *piece);
