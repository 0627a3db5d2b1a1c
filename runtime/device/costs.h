/* Measured costs of ops on simulated devices: time over bytes.
 *
 *     costs.rows[costs.n++] = (struct el_cost_row){"all_reduce", "ring", n_points, {{bytes, ns}, ...}};
 *     costs.ops[costs.n_ops++] = (struct el_cost_op){"linear_forward out", EL_PHASE_FORWARD, n_points, {...}};
 *     spec.costs = &costs;  el_device_open(&spec, &device);
 *     el_costs_ns(&costs, &messages, &basis)      el_costs_op_ns(&costs, &op, beside, &ns, &basis)
 *
 * A collective or message costs its rounds times one message of the largest one's bytes: latency + bytes / bandwidth
 * between two neighbouring points, since caches change the rate with the size. Below the first point: the first's
 * time, less by the fitted line through all points (latency_ns, ns_per_byte). Above the last: the last pair continues
 * if it rises.
 *
 * For another number of ranks than measured: the algorithm's rounds, each with the measured time of the largest
 * message of the same data, corrected by the fitted line. A ring's all-reduce of S bytes thus scales as 2 (n - 1)
 * (latency + S / (n bandwidth)), exact for the measured n. Smaller points of the curve would be too fast: caches.
 *
 * A kernel, copy or host call costs the time of ops with its name and phase, linear between two measured sizes. Beyond
 * them only ops under one FLOP per byte extrapolate, by bytes. An unmeasured light op goes by the bytes of its
 * kernel's other ops, a copy by `copy`; unmeasured host calls are left to the backend. Messages and copies are priced
 * on cold memory, as in a step (bench/trial/costs.c).
 *
 * An op has a time alone and one beside `n_beside` working devices of the machine; if only one was measured it is used
 * for both. Times are device 0's; `pace_ratio` scales the others. Units: bytes, nanoseconds. Threads: any. */
#pragma once

#include <stdbool.h>

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

enum { EL_COST_NAME_BYTES = 16, EL_COST_POINTS_MAX = 64, EL_COST_ROWS_MAX = 96 };
enum { EL_COST_DEVICES_MAX = 64 };
enum { EL_COST_LABEL_BYTES = 72, EL_COST_OP_POINTS_MAX = 12, EL_COST_OPS_MAX = 4096 };

struct el_cost_point {
    double bytes, ns;
};

struct el_cost_row {
    char verb[EL_COST_NAME_BYTES], algorithm[EL_COST_NAME_BYTES];
    int ranks;                      /* measured with; 0: unknown, fits any number */
    double latency_ns, ns_per_byte; /* the line through all points, fitted by relative errors; both 0: none */
    int n;
    struct el_cost_point points[EL_COST_POINTS_MAX]; /* by rising bytes */
};

struct el_cost_op {
    char label[EL_COST_LABEL_BYTES]; /* "linear_forward out": kernel and node */
    enum el_phase phase;
    bool beside; /* measured beside other devices */
    int n;
    struct el_cost_point points[EL_COST_OP_POINTS_MAX];
};

struct el_costs {
    int n;
    struct el_cost_row rows[EL_COST_ROWS_MAX];
    bool on_cores;           /* communication uses cores, not only links, */
    bool shares_core;        /* and shares the device's core with compute */
    struct el_cost_row copy; /* within a device's memory; n 0: not measured */
    int n_beside;            /* devices beside the measured one; 0: never any */
    /* Device d's times over device 0's, measured together. 0: unknown, as 1. */
    double pace_ratio[EL_COST_DEVICES_MAX];
    int n_paced;
    int n_ops; /* 0: only communication was measured */
    struct el_cost_op ops[EL_COST_OPS_MAX];
};

/* What a time rests on instead of measurements of this op and size. */
enum {
    EL_COST_OUTSIDE = 1, /* a size outside the measured ones */
    EL_COST_OTHER_RANKS = 2,
    EL_COST_BORROWED = 4, /* another operation, algorithm or op */
    EL_COST_BY_RATES = 8, /* not measured: the machine's rates */
    EL_COST_KINDS = 4
};

struct el_cost_basis {
    unsigned how; /* bits of the above */
    double low_bytes, high_bytes;
    int ranks; /* measured; 0: unknown, or none */
};

/* A device's times by basis; initially zero. Threads: one at a time. */
struct el_cost_use {
    double all_ns;
    struct el_cost_share {
        double ns, largest_ns; /* of all such ops; of the named one */
        char label[EL_COST_LABEL_BYTES];
        double bytes; /* the named one's largest message, or op */
        int ranks;
        struct el_cost_basis basis;
    } shares[EL_COST_KINDS];
};
void el_cost_use_add(struct el_cost_use *use, const struct el_op_info *op, double ns,
                     const struct el_cost_basis *basis);

/* Rows are of calls in place; own copies are added. Uses the row of this verb and algorithm; else of the verb, the
 * algorithm, the first; among several the one of as many ranks. `costs` must have points. `basis_p` may be NULL. */
double el_costs_ns(const struct el_costs *costs, const struct el_op_messages *messages, struct el_cost_basis *basis_p);

/* Any other op; -1: left to the backend. `basis_p` may be NULL. Errors: EL_ERR_INVALID where no measured op fits,
 * naming the op. */
enum el_status el_costs_op_ns(const struct el_costs *costs, const struct el_op_info *op, bool beside, double *ns_p,
                              struct el_cost_basis *basis_p);

/* Inserts a point, or replaces the one of its size; dropped if there is no room. Returns the new number. */
int el_costs_add_point(struct el_cost_point *points, int n, int capacity, struct el_cost_point point);
