/* What the files that relate traces share: relate_match.c finds operations, relate_clock.c the clocks, relate.c makes
 * figures of them. Nobody else includes it. */
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

/* All entries, in order. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_relate_match(struct el_relate *relate);
/* Behind the run of entries of one operation that begins at `first`. */
size_t el_relate_run(const struct el_relate *relate, size_t first);
/* Fills the clocks, and moves the entries' spans. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_relate_clocks(struct el_relate *relate);
