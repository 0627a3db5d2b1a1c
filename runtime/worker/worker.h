/* A worker: one host thread with the members that it issues for, as the layout says, and its groups. All of its members
 * share one program.
 *
 * Ownership: what its spec points to must outlive it. Threads: the worker's, but for el_worker_abort.
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/layout/parts.h"
#include "runtime/state/shard.h"
#include "runtime/worker/feed.h"

/* A device of a worker: what it holds, and what it is given to compute with: a feed a micro-step. Micro-step k of part
 * p of n loads part p + k n of n times their number, so that each is a rank's share of a larger job. */
struct el_member {
    struct el_shard shard;
    struct el_feed *feeds; /* [n_accumulate] */
};

struct el_worker {
    const struct el_train_config *config;
    const struct el_parts *parts; /* of its piece, where the model is cut across its layers */
    const struct el_graph *graph; /* the whole model's; a member's part of it is its shard's */
    const struct el_layout *layout;
    int first;                     /* position of its first member in the job */
    struct el_comm *world;         /* all workers of the job, on the first member's device; never NULL */
    struct el_comm *const *worlds; /* [n_members]: the same on each member's device; worlds[0] is `world` */
    /* Along each axis the workers that differ from this one along it alone: `world` where all do; NULL: this one alone,
     * or an axis without groups (graph.h). */
    struct el_comm *group[EL_AXIS_COUNT];
    struct el_member *members;
    int n_members;
    const char *comm; /* the mode's, from setup: what its members talk by in a step; NULL: they do not */
    void *state;      /* the mode's: set in setup, freed in teardown */
};

struct el_worker_spec {
    const struct el_train_config *config;
    const struct el_parts *parts;
    const struct el_layout *layout;
    int index;                        /* of the job's workers */
    struct el_device *const *devices; /* its members', opened */
    struct el_comm *const *worlds;    /* one a member, among those of the same place in all workers */
    struct el_comm *const *group;     /* [EL_AXIS_COUNT]: those beside the world */
    const struct el_dataset *dataset; /* NULL: nothing can be loaded (forecasts) */
};

/* Opens its members as the layout has them. What `spec` points to must outlive it. After a failure too it is to be
 * closed. */
enum el_status el_worker_open(struct el_worker *worker, const struct el_worker_spec *spec);
void el_worker_close(struct el_worker *worker);
/* Whoever waits for this worker's part of something need not any more. Threads: any, until it is closed. */
void el_worker_abort(struct el_worker *worker);
/* Its communicators, each once, from 0 on; NULL: there is no further one. */
struct el_comm *el_worker_comm(const struct el_worker *worker, int i);
/* What goes to the devices of a stage that is fed at all. */
enum el_feed_what el_worker_feeds(const struct el_parts *parts, int stage);

/* What the configuration says of communicators: algorithm and time-out. Collective. Errors: EL_ERR_ABSENT where this
 * one has no choice of algorithms, or no time-out, and one was asked for. */
enum el_status el_worker_set_comm(const struct el_train_config *config, struct el_comm *comm);

/* The values of all workers are summed (or the first one's taken) in place: a step of its own, that no ledger sees.
 * Blocking. Collective: all workers call it, between steps. Errors: EL_ERR_PEER where another worker failed. */
enum el_status el_worker_sum(struct el_worker *worker, double *values, int64_t n);
/* The sum in the order of the workers: its bits depend neither on `n` nor on how the transport adds. Devices that do
 * not compute have none. */
enum el_status el_worker_sum_in_order(struct el_worker *worker, double *values, int64_t n);
enum el_status el_worker_take_first(struct el_worker *worker, double *values, int64_t n);
