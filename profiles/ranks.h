/* Lateness of ranks, who waits for whom, and the cause of waits, from el_collectives of a record or of traces.
 *
 *     el_ranks_arrivals(members, n, rows, NULL);       last_pct, late_s, late_low_s, caused_s
 *     rows[i].name = ...; .compute_s = ...;            the rest is the caller's
 *     el_ranks_blame(rows, n, step_s, &blame);
 *
 * With the arrivals s_r and ends e_r of a collective (profiles/collectives.h), over the steps:
 *
 *     a step's place     a rank's collective with the largest skew in that step
 *     late_r             mean over the steps of s_r - mean of the other members' s, at the step's place
 *     last_r             share of the steps in which no s is later than s_r there; ties share it
 *     caused_r           per step: the other members' waits at collectives at which r comes last, summed over members;
 *                        simultaneous collectives count once
 *
 * One place per step, because the same lateness delays all later collectives. Messages are excluded: receivers wait for
 * a pipeline's schedule. Units: seconds, bytes, per cent. Threads: any. */
#pragma once

#include <stdbool.h>

#include "profiles/collectives.h"

/* One rank (or device), mean step. */
struct el_rank_row {
    const char *name;
    double last_pct, late_s;
    double late_low_s; /* lower quartile of lateness: three of four steps are at least this late */
    double caused_s;
    double most_s;    /* caused in one step, the step with most */
    int64_t most_at;  /* that step */
    size_t n_steps;   /* 0: the steps are not known one by one */
    double compute_s; /* |C| */
    double wait_s, transfer_s;
    double exposed_s, wait_exposed_s; /* not hidden by computation: communication, and its waits */
    double sent_bytes;
};

/* Sets the four figures of arrivals in rows[n_members]; 0 without collectives. Equal n_steps. `late_s`: NULL, or
 * [n_members][n_steps] for each step's. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_ranks_arrivals(const struct el_collectives *members, int n_members, struct el_rank_row *rows,
                                 double *late_s);

#define EL_BLAMES(X)                                                                                                   \
    X(EVEN, "even")         /* waits and transfers are negligible */                                                   \
    X(STAYS, "stays")       /* one rank is late in most steps, or several are, by as much */                           \
    X(ONCE, "once")         /* nearly all waits are for one rank in one step: without it ranks are even */             \
    X(AT_TIMES, "at times") /* nearly all waits are for one rank, but in few steps */                                  \
    X(WANDERS, "wanders")   /* different ranks are last in different steps */                                          \
    X(WIRE, "wire")         /* transfers take longer than waits */
#define EL_BLAME_MEMBER(name, text) EL_BLAME_##name,
enum el_blame_kind { EL_BLAMES(EL_BLAME_MEMBER) EL_BLAME_COUNT };
const char *el_blame_name(enum el_blame_kind kind);

/* Of a step: less is negligible. Equal ranks of ddp on two quiet cores wait for 2.1 to 2.4 %. */
#define EL_RANKS_WORTH 0.05
/* Of all waits: one rank's share. Even odds between two ranks give this in 1 of 80 sets of 20 steps. */
#define EL_RANKS_ONE   0.8

struct el_ranks_blame {
    enum el_blame_kind kind;
    int who;           /* causes most waits; -1: negligible, or the wire is the cause */
    bool stays;        /* late in three of four steps by at least half of EL_RANKS_WORTH */
    int n_late;        /* ranks that are late in this way, by at least half as much */
    double caused_pct; /* their share of all waits */
    int64_t step;      /* once: which one (the caller's number, from most_at); -1 */
    double late_s;     /* its row's */
    double step_s;
    double wait_s; /* exposed, per step: for `who` (stays: all that are late) if it is one, mean of the others; else of
                      all. once: in that step */
    double transfer_s; /* exposed, per step, mean of all */
};

/* `who`, and in a blame that stays those who are late as it is. */
bool el_ranks_is_late(const struct el_rank_row *rows, int i, const struct el_ranks_blame *blame);
/* n < 2 or an invalid step_s: even. */
void el_ranks_blame(const struct el_rank_row *rows, int n, double step_s, struct el_ranks_blame *blame_p);
