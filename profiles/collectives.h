/* Collectives and messages of several members on one clock: who arrived when, who waited, and how long the transfer
 * itself took.
 *
 * A member arrives when its communication stream begins the operation: its data is ready and the operation before is
 * over. With s its arrival and e its end, over the members r of one operation (definitions: docs/metrics.md):
 *     latest   = max s           skew     = max s - min s
 *     wait_r   = min(latest, e_r) - s_r    (a root may leave before the last one comes)
 *     transfer = max(0, max e - latest)    late_r = s_r - mean of the other members' s
 * A message is an operation of two members. Who receives it waits for the other one; who sends it waits for nobody.
 * Pure arithmetic. Units: nanoseconds in spans, seconds in results. Ownership: arrays are the struct's own, until
 * el_collectives_free. Threads: any.
 */
#pragma once

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

struct el_collective {
    uint64_t operation;   /* el_op_info.operation: which members' are one operation */
    enum el_op_link link; /* whether it is a message */
    enum el_phase phase;  /* not looked at below, */
    double bytes;         /* and neither is the payload, */
    double bus_bytes;     /* likewise: bytes that cross the slowest link, by the operation's factor and group (busbw) */
};

/* One member's. */
struct el_collectives {
    size_t n_steps, n;
    struct el_span *spans;     /* [n_steps][n] */
    struct el_collective *ops; /* [n] */
    struct el_span *passes;    /* [n_steps]: from the first kernel of forward to the last of backward; empty: none */
};

void el_collectives_free(struct el_collectives *collectives);

/* What one operation of the step comes to over the steps. */
struct el_collective_figures {
    double skew_s, transfer_s; /* means */
    double skew_median_s;
};

/* Which operation of each member each of member m's is: [n of m][n_members], -1: that member has no part in it. All
 * members have the same n_steps. To be freed; NULL: no memory. */
int *el_collectives_match(const struct el_collectives *members, int n_members, int m);
/* With member m's matches: when the last one that it waits for arrived, latest_ns[n_steps][n of m]. */
void el_collectives_latest(const struct el_collectives *members, int n_members, int m, const int *matches,
                           int64_t *latest_ns);
/* Of one operation of each step: `match` is a row of the matches. late_s[n_members]: medians, as one step that was
 * disturbed does not count; 0 of who has no part in it. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_collectives_figures(const struct el_collectives *members, int n_members, const int *match,
                                      struct el_collective_figures *figures_p, double *late_s);
