/* A mode: a layout and a schedule for one step. The contract for authors; the registry is mode.c, docs/adding.md adds
 * one. A mode never names a backend.
 *
 *     resolve(&config), check(&config, &layout)    once, when the configuration is checked
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
#pragma once

#include "runtime/modes/mode_info.h"
#include "runtime/worker/copies.h"
#include "runtime/worker/worker.h"

struct el_mode_ops {
    struct el_mode_info info;
    bool hidden; /* not offered on the command line */
    /* Optional: default is nothing. What its options make of each other, before the layout is asked for. */
    void (*resolve)(struct el_train_config *config);
    /* Optional: default is nothing. Its own options, with the layout that they have: EL_ERR_INVALID names the one to
     * change. */
    enum el_status (*check)(struct el_train_config *config, const struct el_layout *layout);
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
    /* Optional: default is those of its members. Feed `i` of those that a step loads from; NULL: there are no more. */
    struct el_feed *(*feed)(struct el_worker *worker, int i);
    /* Optional: default is the first member's loss. Between steps. */
    enum el_status (*read_loss)(struct el_worker *worker, double *loss_p);
    /* Optional: default is each owner's own. The buffers of the model's copy `rank` of n_devices, all of which are on
     * the only device. Between steps. */
    el_copies_views *buffers;
    /* Optional: default is all of the worker's communicators. Between steps: el_comm_mute. */
    void (*mute)(struct el_worker *worker, bool muted);
    /* Optional: default is nothing. Frees `state`, which may be NULL. */
    void (*teardown)(struct el_worker *worker);
};

const struct el_mode_ops *el_mode_ops_find(const char *name);

/* What a mode must equal, computed on one device (reference.c). */
extern const struct el_mode_ops el_mode_reference;
