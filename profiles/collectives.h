/* Collectives of several members on one clock: who arrived when, who waited, and how long the transfer itself took.
 *
 * A member arrives when its communication stream begins the operation: its data is ready and the operation before is
 * over. With s its arrival and e its end, over the members r of one operation (definitions: docs/metrics.md):
 *     latest   = max s           skew     = max s - min s
 *     wait_r   = min(latest, e_r) - s_r    (a root may leave before the last one comes)
 *     transfer = max(0, max e - latest)    late_r = s_r - mean of the other members' s
 * Pure arithmetic. Units: nanoseconds in spans, seconds in results. Ownership: arrays are the struct's own, until
 * el_collectives_free. Threads: any.
 */
#ifndef EL_PROFILES_COLLECTIVES_H
#define EL_PROFILES_COLLECTIVES_H

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

enum { EL_COLLECTIVES_MEMBERS_MAX = 64 };

/* One member's: `spans` is [n_steps][n], all else [n]. */
struct el_collectives {
    size_t n_steps, n;
    struct el_span *spans;
    enum el_phase *phases;
    double *bytes; /* payload */
};

void el_collectives_free(struct el_collectives *collectives);

/* What one operation of the step comes to over the steps. */
struct el_collective_figures {
    double skew_s, transfer_s; /* means */
    double skew_median_s;
    double late_s[EL_COLLECTIVES_MEMBERS_MAX]; /* medians: one step that was disturbed does not count */
};

/* All members have the same n_steps and n. Fills latest_ns[n_steps][n]. */
void el_collectives_latest(const struct el_collectives *members, int n_members, int64_t *latest_ns);
/* Of operation `k` of each step. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_collectives_figures(const struct el_collectives *members, int n_members, size_t k,
                                      struct el_collective_figures *figures_p);

#endif
