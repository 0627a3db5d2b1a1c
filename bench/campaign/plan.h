/* The order of execution: every trial once a round, in an order drawn anew for each round, so that a drift of the
 * machine does not become one mode's effect. Knows neither files nor processes. */
#ifndef EL_BENCH_PLAN_H
#define EL_BENCH_PLAN_H

#include <stdint.h>

struct el_plan_entry {
    int trial, repeat;
};

/* entries[n_trials * repeats], in order. A pure function of its arguments. */
void el_plan_make(int n_trials, int repeats, uint64_t seed, struct el_plan_entry *entries);

#endif
