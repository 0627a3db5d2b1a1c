/* Collectives and messages of several members on one clock: arrivals, waits, transfers.
 *
 * A member arrives when its communication stream begins the operation. With arrival s and end e, over the members r of
 * one operation (docs/metrics.md):
 *
 *     latest   = max s           skew     = max s - min s
 *     wait_r   = min(latest, e_r) - s_r    (a root may leave before the last one comes)
 *     transfer = max(0, max e - latest)    late_r = s_r - mean of the other members' s
 *
 * A message has two members; only its receiver waits. Units: nanoseconds in spans, seconds in results. Ownership: the
 * struct owns its arrays until el_collectives_free. Threads: any. */
#pragma once

#include "runtime/base/probe.h"
#include "runtime/base/status.h"

struct el_collective {
    uint64_t operation;   /* el_op_info.operation, equal for one operation's members */
    enum el_op_link link; /* whether it is a message */
    enum el_phase phase;  /* carried along */
    double bytes;         /* carried along */
    double bus_bytes; /* carried along: bytes across the slowest link, by the operation's factor and group (busbw) */
};

/* One member's. */
struct el_collectives {
    size_t n_steps, n;
    struct el_span *spans;     /* [n_steps][n] */
    struct el_collective *ops; /* [n] */
    struct el_span *passes;    /* [n_steps]: first forward kernel to last backward kernel; empty: none */
};

void el_collectives_free(struct el_collectives *collectives);

/* One operation over the steps. */
struct el_collective_figures {
    double skew_s, transfer_s; /* means */
    double skew_median_s;
};

/* Each member's operation that matches each of member m's: [n of m][n_members], -1: not a member. All have equal
 * n_steps. To be freed; NULL: no memory. */
int *el_collectives_match(const struct el_collectives *members, int n_members, int m);
/* The last arrival among the members it waits for, latest_ns[n_steps][n of m]. */
void el_collectives_latest(const struct el_collectives *members, int n_members, int m, const int *matches,
                           int64_t *latest_ns);
/* One operation of each step; `match`: a row of the matches. late_s[n_members]: medians, robust to a disturbed step; 0:
 * not a member. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_collectives_figures(const struct el_collectives *members, int n_members, const int *match,
                                      struct el_collective_figures *figures_p, double *late_s);
