/* Between the files of the rule only: what each kind of cell is judged by. Pure.
 *
 * A kind's function writes effect, low, high, p, floor, detectable of one cell; when Holm's adjustment is known, the
 * second one writes its verdict, how many more samples would decide, and the reason. */
#pragma once

#include "bench/regress/store.h"

/* A session in which a program differs from itself by more than this can show nothing that would be of use. */
#define EL_REGRESS_NOISY      1.05
/* Of a gate's run, one-sided; and of the interval that is printed. */
#define EL_REGRESS_LEVEL      0.005
#define EL_REGRESS_CONFIDENCE 0.95

/* All figures of an exact side; false where they differ: then it is not exact at all. Whole numbers must be equal,
 * others within 1e-9 of the value. */
bool el_regress_constant(const double *x, size_t n);

/* What the judge knows beside the cell. */
struct el_regress_context {
    size_t cells; /* of this kind that can be judged: Holm's family */
    double level, least_effect;
};

/* What a gate of so many histories like this one would detect in 90 of 100 runs, as a ratio; NAN: it judges none. */
double el_regress_history_detects(const struct el_level *level, size_t cells);
