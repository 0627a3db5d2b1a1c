/* What zero's files share: a step's gradients while it is issued. Nobody else includes it. */
#pragma once

#include "runtime/modes/mode.h"
#include "runtime/modes/pipeline/flight.h"
#include "runtime/worker/copies.h"

enum { EL_ZERO_NONE = -1 };

/* A unit's gradients in a step. */
struct el_zero_unit {
    struct el_buffer *whole; /* before they are reduced; of zero1 from step to step */
    struct el_buffer *own;   /* this rank's part, reduced: allocated in the step, unless gradients are kept */
    struct el_buffer *added; /* the same of a later micro-step, or beside kept ones: still to be added */
    struct el_buffer *sent;  /* --comm-hook: what is reduced, in a type of its own */
    int n_missing;           /* gradients of this micro-step that have not come */
    int reduced_op;
};

struct el_zero {
    struct el_worker *worker;
    const struct el_shard *shard;
    int stage;
    bool each;                     /* micro-step's gradients are reduced */
    struct el_comm *comm, *across; /* of those with the other parts, and of those with the same; NULL: none */
    struct el_zero_unit *units;
    struct el_gathered *gathered; /* zero3's, else NULL */
    struct el_line *line;         /* of stages; NULL: there is one */
    struct el_program *program;   /* of the step that is issued */
    struct el_view *grads;        /* its gradients */
    int in_flight;                /* the unit whose reduction is not waited for yet; EL_ZERO_NONE */
};

/* The type of whole gradients; reduced parts of them are as parameters are stored. */
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

/* Kept gradients of the unit: this rank's part of them; NULL: the step's own. */
static inline struct el_buffer *el_zero_kept_part(const struct el_zero *zero, int u)
{
    return zero->stage > 1 ? zero->shard->grads[el_zero_row(zero, u)->first_param].buffer : NULL;
}

/* ---- grads.c ---- */

/* Gradients are born in their unit's memory: for those of `node`, which goes backward. */
void el_zero_make_grads(struct el_zero *zero, const struct el_node *node);
void el_zero_place_grads(struct el_zero *zero, int u);
/* Parameter `p` has its gradient; with the unit's last one they are reduced. `zero` is the context. */
void el_zero_ready(void *zero, int p);
/* Waits until the own part of the unit in flight is reduced, adds it to what was there, and frees the rest. */
void el_zero_settle(struct el_zero *zero);
