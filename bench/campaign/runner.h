/* Launches one repeat of one trial; there is always a document of it.
 *
 *     el_runner_init(&runner, &store);                       finds this program's own path
 *     el_runner_measure(&runner, &trial, repeat, order, &document);
 *     el_runner_gate(&runner, &trial, &verdict);
 *
 * A crash gives a document with status and reason, and the log's last lines on standard error; an interruption
 * (el_runner_interrupted) none. Errors: EL_ERR_IO. */
#pragma once

#include <limits.h>

#include "bench/campaign/store.h"
#include "runtime/launch/launch.h"

struct el_runner {
    const struct el_store *store;
    char program[PATH_MAX];
    void (*tick)(void *context, double elapsed_s); /* optional: about ten times per second */
    void *context;
    bool (*leave)(void *context); /* optional, as often; true ends the job without a document */
    void *of_leave;
};

enum el_status el_runner_init(struct el_runner *runner, const struct el_store *store);
enum el_status el_runner_measure(const struct el_runner *runner, const struct el_trial *trial, int repeat, int order,
                                 json_t **document_p);
/* Restarts from the last checkpoint after a lost rank, at most trial->max_restarts times (the document's `restarts`).
 * --elastic: the trial gets the last launch's devices. Events: DIR/events.csv (events.h). */
enum el_status el_restart_measure(const struct el_runner *runner, struct el_trial *trial, int repeat, int order,
                                  json_t **document_p);
enum el_status el_runner_gate(const struct el_runner *runner, const struct el_trial *trial, json_t **verdict_p);

/* Whether another launch may succeed: not after memory ran out. NULL: no launch yet. */
bool el_runner_may_pass(const json_t *document);

/* SIGINT, SIGTERM and SIGHUP (unless ignored) set a flag that ends the launch in progress. */
void el_runner_catch_signals(void);
bool el_runner_interrupted(void);

/* What ranks of a mode on GPUs have in their environment, "NAME=value", ends with NULL. CUDA loads a kernel at its
 * first launch and may then wait for the card: two ranks' messages, each of which waits for what the other loads, would
 * never end, so that all code is loaded at the start; nor would messages behind each other in a hardware queue, of
 * which CUDA has 8 a card unless asked for 32. Without messages, NCCL starts the operations of a card's communicators
 * in the order of the host's calls, which is the same in all ranks. */
const char *const *el_rank_environment(const char *mode);
/* For a trial's processes, without those that the user has set. So that one process with a thread per card loads all
 * code at the start: a collective that waits for another thread's could deadlock. */
enum { EL_RANK_VARIABLES = 4 };
void el_runner_environment(const struct el_trial *trial, const char *(*get)(void *context, const char *name),
                           const char *list[EL_RANK_VARIABLES]);
/* The same by rank, with the rank's number appended: NCCL accepts ranks on one card if each has its own NCCL_HOSTID.
 * NULL: not needed, or given by the user. */
const char *el_runner_numbered(const struct el_trial *trial, const char *given);

/* Whether mpirun can start ranks here; EL_ERR_ABSENT says what to install. */
enum el_status el_runner_check_mpi(void);
/* Whether the trial's launcher can start several processes here. */
enum el_status el_runner_check_launcher(const struct el_trial *trial);

/* Follows a launch that is one long job: shows rank 0's log lines ("[3/40] all_reduce, 1 MiB") as progress, and the
 * failed rank's own error.
 *
 *     struct el_follow follow = {.gap_s = 5};
 *     el_store_path(store, follow.logs, "logs/verify");
 *     el_follow_launch(&follow, store, &trial, words, EL_CMD_VERIFY, options); */
struct el_follow {
    char logs[EL_PATH_BYTES]; /* the launch's log folder */
    double gap_s;             /* minimum between two lines if not on a terminal */
    bool quiet, terminal;     /* not on a terminal: each new line is printed */
    double said_s;
    char now[128]; /* the last line */
};

/* Blocking. Interrupted: EL_OK. Errors: EL_ERR_PEER with a rank's own error; EL_ERR_IO: unwritten result;
 * EL_ERR_ABSENT: no launcher. */
enum el_status el_follow_launch(struct el_follow *follow, const struct el_store *store, const struct el_trial *trial,
                                const char *const *words, unsigned command, const struct el_options *options);
