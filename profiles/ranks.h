/* Ranks beside one another: who comes late, who waits for whom, and what the waiting is to be blamed on. Pure
 * arithmetic over el_collectives of a record or of traces: both give the same rows for the same job.
 *
 *     el_ranks_arrivals(members, n, rows);             last_pct, late_s, late_low_s, caused_s
 *     rows[i].name = ...; .compute_s = ...;            the rest, from whoever measured it
 *     el_ranks_blame(rows, n, step_s, &blame);
 *
 * With the arrivals s_r and ends e_r of a collective (profiles/collectives.h), over the steps:
 *     a step's place     of a rank: of its collectives in that step the one with the largest skew
 *     late_r             mean over the steps of s_r - mean of the other members' s, at the step's place
 *     last_r             share of the steps in which no s is later than s_r there; several at once share it
 *     caused_r           a step: each other member's time in waits at collectives that r comes last at, the sum over
 *                        the members; collectives in flight at the same time count once
 * One place a step: in all further collectives of a step the others are held up by the same lateness. Messages are in
 * no row: who receives waits for the schedule of a pipeline. Units: seconds, bytes, per cent. Threads: any.
 */
#pragma once

#include <stdbool.h>

#include "profiles/collectives.h"

/* One rank (or device), a step on average. */
struct el_rank_row {
    const char *name;
    double last_pct, late_s;
    double late_low_s; /* the lower quartile of its lateness: in three of four steps it is at least as late */
    double caused_s;
    double compute_s; /* |C| */
    double wait_s, transfer_s;
    double exposed_s, wait_exposed_s; /* of communication, and of its waits, what no computation hides */
    double sent_bytes;
};

/* Fills the four figures of arrivals of rows[n_members]; 0 where there is no collective. All members have the same
 * n_steps. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_ranks_arrivals(const struct el_collectives *members, int n_members, struct el_rank_row *rows);

#define EL_BLAMES(X)                                                                                                   \
    X(EVEN, "even")         /* neither waits nor transfers are worth speaking of */                                    \
    X(STAYS, "stays")       /* a rank is late in most steps */                                                         \
    X(AT_TIMES, "at times") /* nearly all waits are for one rank, but in few steps */                                  \
    X(WANDERS, "wanders")   /* different ranks are last in different steps */                                          \
    X(WIRE, "wire")         /* transfers take longer than waits */
#define EL_BLAME_MEMBER(name, text) EL_BLAME_##name,
enum el_blame_kind { EL_BLAMES(EL_BLAME_MEMBER) EL_BLAME_COUNT };
const char *el_blame_name(enum el_blame_kind kind);

/* Of a step: less is no news. Equal ranks of ddp on two quiet cores wait for 2.1 to 2.4 %. */
#define EL_RANKS_WORTH 0.05
/* Of all waits: so many are one rank's. Even odds between two ranks give one of them so many of 20 steps in 1 of 80. */
#define EL_RANKS_ONE   0.8

struct el_ranks_blame {
    enum el_blame_kind kind;
    int who;    /* who causes most waits; -1: nobody waits for a time worth speaking of, or the wire makes late */
    bool stays; /* that one is late in three of four steps, by half of what is worth speaking of or more */
    int n_late; /* so many are late in this way */
    double caused_pct; /* of all waits: those for it */
    double late_s;     /* its row's */
    double step_s;
    double wait_s;     /* exposed, a step: for `who` where it is one (stays, at times), the mean of the others; else the
                        * mean of all */
    double transfer_s; /* exposed, a step, mean of all */
};

/* What is asked of n rows with a step of step_s. n < 2, or step_s that is no time: even. */
void el_ranks_blame(const struct el_rank_row *rows, int n, double step_s, struct el_ranks_blame *blame_p);
