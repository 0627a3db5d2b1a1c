/* The order of execution: every trial once a round, in an order drawn anew for each round, so that a drift of the
 * machine does not become one mode's effect. Knows neither files nor processes. */
#ifndef EL_BENCH_PLAN_H
#define EL_BENCH_PLAN_H

#include <stdint.h>

#include "runtime/base/status.h"

struct el_plan_entry {
    int trial, repeat;
    int order; /* place in the plan, from 0 */
};

struct el_plan {
    struct el_plan_entry *entries;
    int n;
};

/* A pure function of its arguments. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_plan_make(int n_trials, int repeats, uint64_t seed, struct el_plan *plan_p);
void el_plan_free(struct el_plan *plan);

#endif
