/* What ops cost on simulated devices, as measured: curves of time over bytes.
 *
 *     costs.rows[costs.n++] = (struct el_cost_row){"all_reduce", "ring", n_points, {{bytes, ns}, ...}};
 *     costs.ops[costs.n_ops++] = (struct el_cost_op){"linear_forward out", EL_PHASE_FORWARD, n_points, {...}};
 *     spec.costs = &costs;  el_device_open(&spec, &device);
 *     el_costs_ns(&costs, &messages, &basis)      el_costs_op_ns(&costs, &op, beside, &ns, &basis)
 *
 * A collective or message is so many rounds of messages, one after another, and each takes the time of one message of
 * the largest one's bytes. That time is latency + bytes / bandwidth between two neighbouring points: one pair for all
 * sizes would not do, as what fits into a cache goes at another rate than what does not. Below the first point it is
 * the first's, less as the line does that is fitted through all points (latency_ns, ns_per_byte); above the last one
 * the last pair goes on, where its time rises.
 *
 * A collective of another number of ranks than was measured has the algorithm's closed form: its rounds, each with the
 * time of the largest message that the same data had on the measured ranks, less or more as the fitted line says. So a
 * ring's all-reduce of S bytes is in proportion to 2 (n - 1) (latency + S / (n bandwidth)), and for the measured n it
 * is what was measured. Points of a curve would not do: a smaller message may go at another rate because it fits into a
 * cache, and a ring of more ranks would come out faster.
 *
 * A kernel's, copy's or host call's time is that of ops of its name and phase, which with the same model are the same
 * work on as many samples: its bytes grow with them. Between two measured sizes it is on the line through both. Beyond
 * them, only what computes little (under one FLOP a byte) may go on, by bytes: how fast a matrix product is at another
 * size is not known from this one. An op of no such name goes by the bytes of its kernel's other ops if it computes
 * little, and a copy by `copy`. Host calls that were not measured are left to the backend.
 *
 * Messages and copies are priced as measured on memory that was not touched for long, since so it is in a step
 * (bench/trial/costs.c takes those times where a record has them).
 *
 * Devices of one machine slow each other down just by working: an op has a time beside `n_beside` devices that do the
 * same as well as alone, where both were measured. An op that was measured in one way only has that time in both. All
 * times are device 0's; how much slower or faster others were beside it is `pace_ratio`.
 *
 * Units: bytes, nanoseconds. Ownership: a plain value, of a size for the heap. Threads: any; nothing is kept.
 */
#pragma once

#include <stdbool.h>

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

enum { EL_COST_NAME_BYTES = 16, EL_COST_POINTS_MAX = 64, EL_COST_ROWS_MAX = 96 };
enum { EL_COST_DEVICES_MAX = 64 };
enum { EL_COST_LABEL_BYTES = 72, EL_COST_OP_POINTS_MAX = 12, EL_COST_OPS_MAX = 4096 };

struct el_cost_point {
    double bytes, ns; /* of a message, or an op; its time */
};

struct el_cost_row {
    char verb[EL_COST_NAME_BYTES], algorithm[EL_COST_NAME_BYTES];
    int ranks;                      /* that it was measured with; 0: not known, and any number is taken for it */
    double latency_ns, ns_per_byte; /* the line through all points, by relative errors; both 0: there is none */
    int n;
    struct el_cost_point points[EL_COST_POINTS_MAX]; /* by bytes, rising */
};

struct el_cost_op {
    char label[EL_COST_LABEL_BYTES]; /* "linear_forward out": a kernel's name and a node's */
    enum el_phase phase;
    bool beside; /* of the times beside other devices */
    int n;
    struct el_cost_point points[EL_COST_OP_POINTS_MAX]; /* by bytes, rising */
};

struct el_costs {
    int n;
    struct el_cost_row rows[EL_COST_ROWS_MAX];
    bool on_cores;           /* communication is work of cores, not of links by themselves; */
    bool shares_core;        /* and a device has no second one for it: what it takes, compute loses */
    struct el_cost_row copy; /* of bytes within a device's memory; n 0: not measured */
    int n_beside;            /* devices that worked beside the measured one; 0: never any */
    /* Of device d of a job: its times over device 0's, as they were beside each other. 0: not known, as 1. */
    double pace_ratio[EL_COST_DEVICES_MAX];
    int n_paced; /* records it is the mean of */
    int n_ops;   /* 0: only what communicates was measured */
    struct el_cost_op ops[EL_COST_OPS_MAX];
};

/* What a time rests on beside a point, or a line between two, that was measured of this very op. */
enum {
    EL_COST_OUTSIDE = 1,     /* a size outside those that were measured */
    EL_COST_OTHER_RANKS = 2, /* another number of ranks */
    EL_COST_BORROWED = 4,    /* another operation, algorithm or op */
    EL_COST_BY_RATES = 8,    /* nothing that was measured: the machine's rates */
    EL_COST_KINDS = 4
};

struct el_cost_basis {
    unsigned how;                 /* bits as above */
    double low_bytes, high_bytes; /* that were measured */
    int ranks;                    /* likewise; 0: not known, or the op has none */
};

/* What the times of a device's ops rest on, added up; all 0 before. Threads: one at a time. */
struct el_cost_use {
    double all_ns;
    struct el_cost_share {
        double ns, largest_ns; /* of all such ops, and of the one that is named */
        char label[EL_COST_LABEL_BYTES];
        double bytes; /* of that one: of its largest message, or of the op */
        int ranks;
        struct el_cost_basis basis;
    } shares[EL_COST_KINDS]; /* by bit */
};
void el_cost_use_add(struct el_cost_use *use, const struct el_op_info *op, double ns,
                     const struct el_cost_basis *basis);

/* Of a collective, whose rows are of calls in place: what it copies of its own comes on top.
 * By the row of this verb and algorithm; else of the verb, else of the algorithm, else the first; of several the one
 * of as many ranks. `costs` has rows with points. `basis_p` may be NULL. Errors: none. */
double el_costs_ns(const struct el_costs *costs, const struct el_op_messages *messages, struct el_cost_basis *basis_p);

/* Of anything else, alone or beside n_beside devices; -1: left to the backend. `basis_p` may be NULL. Errors:
 * EL_ERR_INVALID where no measured op says it, naming the op. */
enum el_status el_costs_op_ns(const struct el_costs *costs, const struct el_op_info *op, bool beside, double *ns_p,
                              struct el_cost_basis *basis_p);

/* Adds a point in its place; of a size that is known already the new one stands. No room: it is left out. Returns the
 * new number of points. */
int el_costs_add_point(struct el_cost_point *points, int n, int capacity, struct el_cost_point point);
