/* A mode: a layout and a schedule of one step. docs/adding.md adds one. A mode never names a backend.
 *
 *     resolve(&config), check(&config, &layout)    once, when the configuration is checked
 *     layout(config, n_processes, &layout)         at any time, before anything is open
 *     setup(worker)                                members are open, with initial weights
 *     begin_round(worker, r), issue(worker, program, r)      for r = 0 .. rounds - 1, each before its first step
 *     read_loss(worker, &loss)                     after each step; mute(worker, on) between blocks of steps
 *     teardown(worker)                             before members are closed
 *
 * The worker's thread calls the hooks one at a time, in the same order on all workers. A prediction calls setup,
 * begin_round, issue and teardown on simulated devices, without data. issue neither computes nor blocks; it is not
 * called for repeated steps (config.capture). Memory across steps is allocated in setup and begin_round, the rest by
 * marks in the program. Errors: a hook's failure ends the job on all workers, with teardown, also after a partial
 * setup. */
#pragma once

#include "runtime/modes/mode_info.h"
#include "runtime/worker/copies.h"
#include "runtime/worker/worker.h"

struct el_mode_ops {
    struct el_mode_info info;
    bool hidden; /* not on the command line */
    /* Optional; default: nothing. Resolves options that depend on one another, before the layout. */
    void (*resolve)(struct el_train_config *config);
    /* Optional; default: nothing. Checks its options with their layout: EL_ERR_INVALID names the one to change. */
    enum el_status (*check)(struct el_train_config *config, const struct el_layout *layout);
    /* Required. Each device's place (layout.h has the usual ones), in `n_processes` processes if possible; else, and
     * for 0, the mode's choice. */
    void (*layout)(const struct el_train_config *config, int n_processes, struct el_layout *layout_p);
    /* Steps 0 .. rounds-2 have a program each, later ones share the last (ddp rebuilds buckets after the first). */
    int rounds;
    /* Optional; default: nothing. Once; may run programs (ddp: equal weights everywhere). */
    enum el_status (*setup)(struct el_worker *worker);
    /* Optional; default: nothing. Allocates a round's persistent memory, while no program exists. */
    enum el_status (*begin_round)(struct el_worker *worker, int round);
    /* Required. Issues one training step; may leave failures to the program. */
    enum el_status (*issue)(struct el_worker *worker, struct el_program *program, int round);
    /* Optional; default: the members' feeds. A step's feed `i`; NULL: no more. */
    struct el_feed *(*feed)(struct el_worker *worker, int i);
    /* Optional; default: the first member's loss. Between steps. */
    enum el_status (*read_loss)(struct el_worker *worker, double *loss_p);
    /* Optional; default: each owner's own. Buffers of the model's copy `rank` of n_devices, all on the only device.
     * Between steps. */
    el_copies_views *buffers;
    /* Optional; default: all of the worker's communicators. Between steps: el_comm_mute. */
    void (*mute)(struct el_worker *worker, bool muted);
    /* Optional; default: nothing. Frees `state`, which may be NULL. */
    void (*teardown)(struct el_worker *worker);
};

const struct el_mode_ops *el_mode_ops_find(const char *name);

/* The expected result of a mode, computed on one device (reference.c). */
extern const struct el_mode_ops el_mode_reference;
