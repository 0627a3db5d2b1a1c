/* What collectives and links cost on simulated devices, as measured: curves of time over the bytes of a message.
 *
 *     costs.rows[costs.n++] = (struct el_cost_row){"all_reduce", "ring", n_points, {{bytes, ns}, ...}};
 *     spec.costs = &costs;  el_device_open(&spec, &device);
 *     el_costs_ns(&costs, &messages)
 *
 * An operation is so many rounds of messages, one after another, and each takes the time of one message of the largest
 * one's bytes. That time is latency + bytes / bandwidth between two neighbouring points: one pair for all sizes would
 * not do, as what fits into a cache goes at another rate than what does not. Below the first point it is the first's,
 * above the last one the last pair goes on.
 *
 * Units: bytes, nanoseconds. Ownership: a plain value. Threads: any; nothing is kept. Errors: none.
 */
#ifndef EL_DEVICE_COSTS_H
#define EL_DEVICE_COSTS_H

#include "runtime/base/probe.h"

enum { EL_COST_NAME_BYTES = 16, EL_COST_POINTS_MAX = 64, EL_COST_ROWS_MAX = 48 };

struct el_cost_point {
    double bytes, ns; /* of a message; its time */
};

struct el_cost_row {
    char verb[EL_COST_NAME_BYTES], algorithm[EL_COST_NAME_BYTES];
    int n;
    struct el_cost_point points[EL_COST_POINTS_MAX]; /* by bytes, rising */
};

struct el_costs {
    int n;
    struct el_cost_row rows[EL_COST_ROWS_MAX];
};

/* By the row of this verb and algorithm; else of the verb, else of the algorithm, else the first. `costs` has rows with
 * points. */
double el_costs_ns(const struct el_costs *costs, const struct el_op_messages *messages);

#endif
