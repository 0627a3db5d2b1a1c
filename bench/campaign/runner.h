/* Launching one repeat of one trial, and making sure that there is a document of it, whatever happened.
 *
 *     el_runner_init(&runner, &store);                       finds this program's own path
 *     el_runner_measure(&runner, &trial, repeat, order, &document);
 *     el_runner_gate(&runner, &trial, &verdict);
 *
 * A launch that crashed is a document with status and reason, and its last lines of log on standard error. Interrupted
 * (el_runner_interrupted) nothing is written. Errors: EL_ERR_IO (disk full, folder not writable).
 */
#pragma once

#include <limits.h>

#include "bench/campaign/store.h"
#include "runtime/launch/launch.h"

struct el_runner {
    const struct el_store *store;
    char program[PATH_MAX];
    void (*tick)(void *context, double elapsed_s); /* optional: about ten times a second */
    void *context;
    bool (*leave)(void *context); /* optional, likewise: true ends the job, without a document */
    void *of_leave;
};

enum el_status el_runner_init(struct el_runner *runner, const struct el_store *store);
enum el_status el_runner_measure(const struct el_runner *runner, const struct el_trial *trial, int repeat, int order,
                                 json_t **document_p);
/* The same, and again from its last checkpoint, up to trial->max_restarts times, where a rank is lost: the document has
 * `restarts` then, each with its reason, step and devices. With --elastic the trial becomes that of the devices that
 * the last one had. What happened is in DIR/events.csv (events.h). */
enum el_status el_restart_measure(const struct el_runner *runner, struct el_trial *trial, int repeat, int order,
                                  json_t **document_p);
enum el_status el_runner_gate(const struct el_runner *runner, const struct el_trial *trial, json_t **verdict_p);

/* Whether a launch that left this document is worth another: too little memory stays too little, but whatever else
 * ended it may have been an accident. NULL: there was none yet. */
bool el_runner_may_pass(const json_t *document);

/* From here on SIGINT, SIGTERM and (unless it is ignored) SIGHUP set a flag, which ends the launch in progress. */
void el_runner_catch_signals(void);
bool el_runner_interrupted(void);

/* What a launch of the trial adds to its ranks' environment: "NAME=value", NULL at the end; NULL where it adds nothing.
 * CUDA loads a kernel's code at its first launch, and may then wait for what runs on the card, under a lock of the
 * whole process: where threads of one process (ddp with --procs 1) have cards of their own, a collective that waits for
 * another thread's could never end. There all code is loaded at the start, unless the user decided otherwise
 * (`given`: CUDA_MODULE_LOADING as it is set, or NULL). */
const char *const *el_runner_environment(const struct el_trial *trial, const char *given);
/* The same for each rank, to have its number behind it: NCCL takes ranks that share a card where each has an
 * NCCL_HOSTID of its own. NULL where none is needed or the user gave one. */
const char *el_runner_numbered(const struct el_trial *trial, const char *given);

/* Whether ranks can be started through mpirun here: EL_ERR_ABSENT with what to install. */
enum el_status el_runner_check_mpi(void);
/* Whether a trial of several processes can be launched here, by the launcher it asks for. */
enum el_status el_runner_check_launcher(const struct el_trial *trial);

/* Following a launch that is one long job: what rank 0 says in its log, as progress, and why it failed, in a rank's own
 * words. The rank prints a line like "[3/40] all_reduce, 1 MiB" whenever it turns to something else.
 *
 *     struct el_follow follow = {.gap_s = 5};
 *     el_store_path(store, follow.logs, "logs/verify");
 *     el_follow_launch(&follow, store, &trial, words, EL_CMD_VERIFY, options);
 */
struct el_follow {
    char logs[EL_PATH_BYTES]; /* the folder of the launch's logs */
    double gap_s;             /* elsewhere than on a terminal, at least so long between two lines */
    bool quiet, terminal;     /* elsewhere than on a terminal each line is printed, and none twice */
    double said_s;
    char now[128]; /* the last such line */
};

/* Blocking. Interrupted: EL_OK. Errors: EL_ERR_PEER: the job failed, in the failed rank's own
 * words where it has any, else in those of the first that has; EL_ERR_IO: its result could not be written;
 * EL_ERR_ABSENT: nobody can launch it. */
enum el_status el_follow_launch(struct el_follow *follow, const struct el_store *store, const struct el_trial *trial,
                                const char *const *words, unsigned command, const struct el_options *options);
