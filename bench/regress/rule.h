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

/* The scale the effect is on: 1 where more is worse, -1 where less is. */
double el_regress_sign(const struct el_regress_cell *cell);
/* 5 of 1.05. */
double el_regress_pct(double ratio);
/* The verdict, by the first that applies, with the reason "worse by 5.2 % (95 %: 4.1 to 6.3)" of an effect. false:
 * inconclusive, and the reason is the caller's to give. */
bool el_regress_settle(struct el_regress_cell *cell, bool worse, bool better, bool same);
/* All figures of an exact side; false where they differ: then it is not exact at all. Whole numbers must be equal,
 * others within 1e-9 of the value. */
bool el_regress_constant(const double *x, size_t n);

/* What the judge knows beside the cell. */
struct el_regress_context {
    size_t cells; /* of this kind that can be judged: Holm's family */
    double level, least_effect;
};

void el_regress_measure_paired(struct el_regress_cell *cell, double *p_better_p,
                               const struct el_regress_context *context);
void el_regress_decide_paired(struct el_regress_cell *cell, double p_better, const struct el_regress_context *context);

void el_regress_measure_history(struct el_regress_cell *cell, double *p_better_p,
                                const struct el_regress_context *context);
void el_regress_decide_history(struct el_regress_cell *cell, double p_better, const struct el_regress_context *context);

/* Not tested: no p to adjust. */
void el_regress_decide_exact(struct el_regress_cell *cell, double no_p, const struct el_regress_context *context);

/* What a gate of so many histories like this one would detect in 90 of 100 runs, as a ratio; NAN: it judges none. */
double el_regress_history_detects(const struct el_level *level, size_t cells);
