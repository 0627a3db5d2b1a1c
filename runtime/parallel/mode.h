/* A mode: a placement of the graph and a schedule for one step. The contract for authors; the registry is mode.c.
 *
 * A worker is one host thread with the members it issues for: one for an SPMD mode, all of them for a controller. A
 * mode never names a backend, and never says where its members live.
 */
#ifndef EL_MODE_H
#define EL_MODE_H

#include "runtime/parallel/member.h"

struct el_worker {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_member *members;
    int n_members;
    const char *comm; /* what a controller's own communicator is; NULL: it has none */
    void *state;      /* the mode's */
};

struct el_mode_ops {
    struct el_mode_info info;
    bool hidden; /* not offered on the command line */
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
    /* Optional: default is member 0's loss. Between steps. */
    enum el_status (*read_loss)(struct el_worker *worker, double *loss_p);
    /* Optional: default is member 0's communicator, where it has one. Between steps: el_comm_mute. */
    void (*mute)(struct el_worker *worker, bool muted);
    /* Optional: default is nothing. Frees `state`. */
    void (*teardown)(struct el_worker *worker);
};

const struct el_mode_ops *el_mode_ops_find(const char *name);

extern const struct el_mode_ops el_mode_single, el_mode_dp, el_mode_ddp, el_mode_reference;

#endif
