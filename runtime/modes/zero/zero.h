/* Internal to zero's files: a step's gradients while it is issued. */
#pragma once

#include "runtime/modes/mode.h"
#include "runtime/modes/pipeline/flight.h"
#include "runtime/worker/copies.h"

enum { EL_ZERO_NONE = -1 };

struct el_zero_unit {
    struct el_buffer *whole; /* before reduction; in zero1 across steps */
    struct el_buffer *own;   /* this rank's reduced part: allocated in the step unless gradients are kept */
    struct el_buffer *added; /* the same of a later micro-step or beside kept ones: to be added */
    struct el_buffer *sent;  /* --comm-hook: what is reduced, in the hook's type */
    int n_missing;
    int reduced_op;
};

struct el_zero {
    struct el_worker *worker;
    const struct el_shard *shard;
    int stage;
    bool each;                     /* reduce each micro-step's gradients */
    struct el_comm *comm, *across; /* with the ranks of the other parts, and of the same part; NULL: none */
    struct el_zero_unit *units;
    struct el_gathered *gathered; /* zero3's, else NULL */
    struct el_line *line;
    struct el_program *program;
    struct el_view *grads;
    int in_flight; /* the unit whose reduction is pending; EL_ZERO_NONE */
};

/* The type of whole gradients; reduced parts have the parameters' stored type. */
static inline enum el_dtype el_zero_whole(const struct el_zero *zero)
{
    const struct el_train_config *config = zero->shard->config;
    return zero->each ? el_config_computed(config) : el_config_stored(config);
}
static inline size_t el_zero_width(const struct el_zero *zero)
{
    return el_dtype_bytes(el_zero_whole(zero));
}

static inline const struct el_unit *el_zero_row(const struct el_zero *zero, int u)
{
    return &zero->shard->units->units[u];
}

static inline int64_t el_zero_part(const struct el_zero *zero, int u)
{
    return el_zero_row(zero, u)->count / zero->shard->units->n_pieces;
}

static inline bool el_zero_has(const struct el_zero *zero, int p, int u)
{
    return zero->shard->units->of[p] == u;
}

/* This rank's part of the unit's kept gradients; NULL: the step's own. */
static inline struct el_buffer *el_zero_kept_part(const struct el_zero *zero, int u)
{
    return zero->stage > 1 ? zero->shard->grads[el_zero_row(zero, u)->first_param].buffer : NULL;
}

/* Allocates gradients in their unit's memory, for `node`'s backward. */
void el_zero_make_grads(struct el_zero *zero, const struct el_node *node);
void el_zero_place_grads(struct el_zero *zero, int u);
/* Parameter `p`'s gradient is ready; the unit's last one starts the reduction. `zero`: the context. */
void el_zero_ready(void *zero, int p);
/* Waits for the pending unit's part, adds it to existing gradients, and frees the rest. */
void el_zero_settle(struct el_zero *zero);
