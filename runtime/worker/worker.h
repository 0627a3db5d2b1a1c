/* A worker: one host thread with its members, which share a program, and its groups.
 * Ownership: its spec's pointers must outlive it. Threads: the worker's, except el_worker_abort. */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/layout/parts.h"
#include "runtime/state/shard.h"
#include "runtime/worker/feed.h"

/* A device of a worker: its shard, and a feed per micro-step. Micro-step k of part p of n loads part p + k n of n *
 * n_accumulate, like a rank's share of a larger job. */
struct el_member {
    struct el_shard shard;
    struct el_feed *feeds;
};

struct el_worker {
    const struct el_train_config *config;
    const struct el_parts *parts; /* of its piece, with tensor parallelism */
    const struct el_graph *graph; /* the whole model's; a member's part is its shard's */
    const struct el_layout *layout;
    int first;                     /* its first member's position in the job */
    struct el_comm *world;         /* all workers of the job, on the first member's device; never NULL */
    struct el_comm *const *worlds; /* [n_members]: the same on each member's device; worlds[0] is `world` */
    /* Along each axis the workers that differ along it alone; `world` if all do; NULL: only this one, or an axis
     * without groups (graph.h). */
    struct el_comm *group[EL_AXIS_COUNT];
    struct el_member *members;
    int n_members;
    const char *comm; /* the mode's, from setup: how its members communicate in a step; NULL: not */
    void *state;      /* the mode's, from setup to teardown */
};

struct el_worker_spec {
    const struct el_train_config *config;
    const struct el_parts *parts;
    const struct el_layout *layout;
    int index;
    struct el_device *const *devices;
    struct el_comm *const *worlds;    /* one per member, with the same places in all workers */
    struct el_comm *const *group;     /* [EL_AXIS_COUNT]: those beside the world */
    const struct el_dataset *dataset; /* NULL: no loading (predictions) */
};

/* Opens its members by the layout. `spec`'s pointers must outlive it. Close it after a failure too. */
enum el_status el_worker_open(struct el_worker *worker, const struct el_worker_spec *spec);
void el_worker_close(struct el_worker *worker);
/* Releases everyone who waits for this worker. Threads: any, until it is closed. */
void el_worker_abort(struct el_worker *worker);
/* Its communicators, each once, from 0; NULL: no more. */
struct el_comm *el_worker_comm(const struct el_worker *worker, int i);
/* Whether a stage's devices get inputs or labels. */
enum el_feed_what el_worker_feeds(const struct el_parts *parts, int stage);

/* Applies the configuration's algorithm and time-out. Collective. Errors: EL_ERR_ABSENT: not supported by this
 * communicator, but requested. */
enum el_status el_worker_set_comm(const struct el_train_config *config, struct el_comm *comm);

/* Sums all workers' values in place (or takes the first one's), in a step of its own outside of ledgers. Blocking.
 * Collective: all workers, between steps. Errors: EL_ERR_PEER if another worker failed. */
enum el_status el_worker_sum(struct el_worker *worker, double *values, int64_t n);
/* The sum in the order of workers: its bits depend neither on `n` nor on the transport. Not for devices that do not
 * compute. */
enum el_status el_worker_sum_in_order(struct el_worker *worker, double *values, int64_t n);
enum el_status el_worker_take_first(struct el_worker *worker, double *values, int64_t n);
