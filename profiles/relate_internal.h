/* What the files that relate traces share: relate_match.c finds operations, relate_clock.c the clocks, relate_time.c
 * what each member did in a step, relate.c joins them. Nobody else includes it. */
#pragma once

#include "profiles/relate.h"

/* A member's part in an operation. */
struct el_relate_entry {
    uint64_t class, order; /* what kind, and which of it */
    size_t member, call;
    int64_t step;
    bool link, syncs;
    struct el_span span; /* on the common clock, once that is known */
};

struct el_relate {
    const struct el_kineto_trace *traces;
    size_t n_traces;
    struct el_relation *relation;
    struct el_relate_entry *entries; /* by class, order and member */
    size_t n;
    int64_t origin_ns; /* of the entries' times */
};

/* An operation that several members took part in. */
struct el_relate_operation {
    size_t first, n;    /* its entries */
    size_t step, place; /* which step, and which operation of the step it is */
    int64_t latest_ns, end_ns;
};

struct el_relate_work {
    struct el_relate relate;
    int64_t *steps; /* numbers of the profiler's, rising, [relation->n_steps]; NULL: it has none */
    struct el_relate_operation *runs;
    size_t n_runs, n_places;
};

/* All entries, in order. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_relate_match(struct el_relate *relate);
/* Behind the run of entries of one operation that begins at `first`. */
size_t el_relate_run(const struct el_relate *relate, size_t first);
/* Which of the profiler's steps has this number; SIZE_MAX: none. Without steps all is one. */
size_t el_relate_step(const struct el_relate_work *work, int64_t number);
/* Fills member m's parts and the rest of its row, whose arrivals are there (relate_time.c). Errors: EL_ERR_HOST_MEMORY.
 */
enum el_status el_relate_measure(const struct el_relate_work *work, size_t m);
/* Fills the clocks, and moves the entries' spans. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_relate_clocks(struct el_relate *relate);
