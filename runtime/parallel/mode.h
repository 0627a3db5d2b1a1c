/* A mode: a layout and a schedule for one step. The contract for authors; the registry is mode.c, docs/adding.md adds
 * one. A mode never names a backend.
 *
 *     layout(config, n_processes, &layout)         at any time, before anything is open
 *     setup(worker)                                members are open, and have their initial weights
 *     begin_round(worker, r), issue(worker, program, r)      for r = 0 .. rounds - 1, each before its first step
 *     read_loss(worker, &loss)                     after each step; mute(worker, on) between blocks of steps
 *     teardown(worker)                             before members are closed
 *
 * A worker is one host thread with the members that it issues for, as the layout says; all of them share its program.
 * Its hooks are called by that thread, one at a time, and each worker of the job gets the same calls in the same order.
 * A forecast calls setup, begin_round, issue and teardown too, on simulated devices and without data.
 *
 * Timing: issue computes nothing and blocks on nothing; in a step that is run again (config.capture) it is not called.
 * Memory: what lives across steps is allocated in setup and begin_round, what a step needs by marks in its program.
 * Errors: a hook's failure ends the job on all workers, and teardown follows it, also where setup failed half-way.
 */
#ifndef EL_MODE_H
#define EL_MODE_H

#include "runtime/comm/comm.h"
#include "runtime/parallel/feed.h"
#include "runtime/parallel/parts.h"
#include "runtime/parallel/shard.h"

/* A device of a worker: what it holds, and what it is given to compute with: a feed a micro-step. Micro-step k of part
 * p of n loads part p + k n of n times their number, so that each is a rank's share of a larger job. */
struct el_member {
    struct el_shard shard;
    struct el_feed *feeds; /* [n_accumulate] */
};

struct el_worker {
    const struct el_train_config *config;
    const struct el_parts *parts;
    const struct el_graph *graph; /* the whole model's; a member's part of it is its shard's */
    const struct el_layout *layout;
    int first;                     /* position of its first member in the job */
    struct el_comm *world;         /* all workers of the job, on the first member's device; never NULL */
    struct el_comm *const *worlds; /* [n_members]: the same on each member's device; worlds[0] is `world` */
    struct el_comm *data;          /* of a stage: the workers that have a copy of it; NULL: this one alone, or all */
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
    struct el_comm *data;             /* as in el_worker */
    const struct el_dataset *dataset; /* NULL: nothing can be loaded (forecasts) */
};

/* Opens its members as the layout has them. What `spec` points to must outlive it. After a failure too it is to be
 * closed. */
enum el_status el_worker_open(struct el_worker *worker, const struct el_worker_spec *spec);
void el_worker_close(struct el_worker *worker);
/* Whoever waits for this worker's part of something need not any more. Threads: any, until it is closed. */
void el_worker_abort(struct el_worker *worker);
/* Among the workers that have a copy of what this one has: those of its stage, or all; NULL: it is the only one. */
struct el_comm *el_worker_copies(const struct el_worker *worker);
/* What goes to the devices of a stage that is fed at all. */
enum el_feed_what el_worker_feeds(const struct el_parts *parts, int stage);

/* What the configuration says of communicators: algorithm and time-out. Collective. Errors: EL_ERR_ABSENT where this
 * one has no choice of algorithms, or no time-out, and one was asked for. */
enum el_status el_worker_set_comm(const struct el_train_config *config, struct el_comm *comm);

/* The values of all workers are summed (or the first one's taken) in place: a step of its own, that no ledger sees.
 * Blocking. Collective: all workers call it, between steps. Errors: EL_ERR_PEER where another worker failed. */
enum el_status el_worker_sum(struct el_worker *worker, double *values, int64_t n);
enum el_status el_worker_take_first(struct el_worker *worker, double *values, int64_t n);

struct el_mode_ops {
    struct el_mode_info info;
    bool hidden; /* not offered on the command line */
    /* Required. Where each device stands (layout.h has the usual ones): as `n_processes` processes where the mode can
     * be split so, else, and for 0, as it can. */
    void (*layout)(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
    /* Steps 0 .. rounds-2 each have a program of their own, all later ones share the last (ddp rebuilds its buckets
     * after the first). */
    int rounds;
    /* Optional: default is nothing. Once, members are open; may run programs of its own (ddp: equal weights
     * everywhere). */
    enum el_status (*setup)(struct el_worker *worker);
    /* Optional: default is nothing. Before a round is issued, when no program exists: persistent memory of the round.
     */
    enum el_status (*begin_round)(struct el_worker *worker, int round);
    /* Required. Issues one training step. Failures may be left to the program. */
    enum el_status (*issue)(struct el_worker *worker, struct el_program *program, int round);
    /* Optional: default is the first member's loss. Between steps. */
    enum el_status (*read_loss)(struct el_worker *worker, double *loss_p);
    /* Optional: default is each owner's own. The buffers of the model's copy `rank` of n_devices, all of which are on
     * the only device. Between steps. */
    const struct el_view *(*buffers)(const struct el_worker *worker, int rank);
    /* Optional: default is `world` and `data`. Between steps: el_comm_mute. */
    void (*mute)(struct el_worker *worker, bool muted);
    /* Optional: default is nothing. Frees `state`, which may be NULL. */
    void (*teardown)(struct el_worker *worker);
};

const struct el_mode_ops *el_mode_ops_find(const char *name);

/* What a mode must equal, computed on one device (reference.c). */
extern const struct el_mode_ops el_mode_reference;

#endif
