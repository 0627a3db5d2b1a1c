/* What a launched process does: its part of one trial, and rank 0 the document that tells of it.
 *
 *     evenload worker measure|gate RESULT REPEAT ORDER ID --mode ... (options of `run`)
 *     evenload worker comm|verify|explain RESULT ...                 (of theirs; the rows are in bench/commands.c)
 *
 * `run` started as a rank by a user's mpirun or torchrun goes the same way, without a RESULT.
 * Collective: all ranks of the job.
 */
#pragma once

#include "bench/machine/host.h"
#include "bench/trial/trial.h"
#include "runtime/comm/bootstrap.h"
#include "runtime/device/costs.h"
#include "runtime/device/machine.h"
#include "runtime/launch/launch.h"

struct el_job {
    const struct el_trial *trial;
    const struct el_dataset *dataset;
    struct el_bootstrap *bootstrap;
    int repeat, order;
};

struct el_job_sources;

/* The devices of this process: all of a trial of one process, else the rank's own. */
struct el_job_devices {
    struct el_device **devices;
    int n, first;            /* position of devices[0] in the job */
    struct el_layout layout; /* of the whole job */
    bool time_sliced;        /* a device's communication stream has no core of its own */
    /* Of simulated devices; NULL: there are none, or nothing was measured. */
    struct el_costs *costs;
    struct el_job_sources *sources;
};

/* What times of simulated devices come from where none was measured, and what they rest on, device by device. */
struct el_job_sources {
    struct el_machine machine;
    struct el_cost_use *uses; /* [n] */
};
enum el_status el_job_open_devices(const struct el_job *job, struct el_job_devices *devices_p);
/* The same with these costs instead of those that the trial names; they are kept until the devices are closed. */
enum el_status el_job_open_with_costs(const struct el_job *job, const struct el_costs *costs,
                                      struct el_job_devices *devices_p);
/* Whether each of so many devices beside the first has a core of its own. Errors: EL_ERR_INVALID naming --beside. */
enum el_status el_job_check_beside(const struct el_device_name *first, int beside);
/* The CPUs on which the trial's devices and those beside them compute, each once, as far as this host has devices of
 * these names. Returns how many of cpus[0..EL_MEMBERS_MAX) it filled; 0: their devices are no CPUs, or are simulated.
 */
int el_job_device_cpus(const struct el_job *job, int *cpus);
/* The k-th of those that train beside it, from 0. Errors: those of the check. */
enum el_status el_job_open_beside(const struct el_job *job, int k, struct el_device **device_p);
/* Where they train: `comm` of the trial, of which `auto` is chosen by all ranks. Collective. */
struct el_train_place el_job_place(const struct el_job *job, struct el_job_devices *devices);
void el_job_close_devices(struct el_job_devices *devices);

/* Trains and measures. Rank 0 gets the repeat's document, also of a failure (status and reason in it); others NULL. The
 * status is this rank's own: a document was made in any case but EL_ERR_HOST_MEMORY. */
enum el_status el_job_measure(const struct el_job *job, json_t **repeat_p);
/* {"status", "reason", "loss", "reference_loss", "worst", "parameter"} of the mode's first steps against the
 * reference's, likewise. */
enum el_status el_job_gate(const struct el_job *job, json_t **verdict_p);

/* gather.c. Collective, also for ranks that failed: every rank gives its status and its part (stolen; may be NULL).
 * Rank 0 gets the parts in order of ranks in a new array, and in `error_p` the failure that explains the others (EL_OK:
 * none); other ranks get NULL and their own. */
enum el_status el_job_gather(const struct el_job *job, enum el_status mine, json_t *part, json_t **parts_p,
                             struct el_error *error_p);

/* predict.c. What a simulated launch's times are worth, for its document: {"machine" (el_machine_json), "costs",
 * "devices", "records" (bench/trial/costs.h), "all_ms" (of all ops that were priced), "outside", "other_ranks",
 * "borrowed", "by_rates": {"ms", "op", "bytes", "low_bytes", "high_bytes", "ranks", "measured_ranks"} of the ops whose
 * times rest on that, and the largest one; "step_ms": {"draws": [mean step of each draw], "launches", "low", "high",
 * "reason" (why there is no interval)}}. `draw`: with an interval, for which it trains once a draw. New reference. */
enum el_status el_job_predict(const struct el_job *job, const struct el_job_devices *devices, bool draw,
                              json_t **prediction_p);

/* A worker's exit status where it could not write its result: what the parent must not take for a failed trial. The
 * second where there is no room for it, so that the parent knows even if the log had no room either. */
enum { EL_WORKER_CANNOT_WRITE = 74, EL_WORKER_NO_ROOM = 75 };

/* A started process of any command: its arguments from RESULT on, and what it leaves. */
struct el_worker {
    char **arguments;
    struct el_options options;
    struct el_bootstrap *bootstrap;
    json_t *document; /* rank 0's, to be written into RESULT */
    bool unwritten;   /* what failed is that it could not write a result of its own */
};

/* "KIND RESULT ... --option=value ...": the first `n_fixed` words behind KIND are for `work`; the last of them stands
 * where the name of `command` would, whose options follow. */
struct el_worker_row {
    const char *kind; /* NULL: the end of a list */
    unsigned command;
    int n_fixed;
    enum el_status (*work)(struct el_worker *worker);
};
/* The subcommand that no user types: argv[0] is the kind. Returns the exit status, and says what failed. */
int el_worker_main(const struct el_worker_row *rows, int argc, char **argv);
/* Joins the other ranks, or a worker on its own itself. Errors: the bootstraps' own. */
enum el_status el_worker_join(struct el_worker *worker, bool several);
enum el_status el_worker_measure(struct el_worker *worker);
enum el_status el_worker_gate(struct el_worker *worker);

/* A started process among the others of its job. `place`: of this process. `tcp` where it says where to meet, waiting
 * `patience_s` at most (0: its default), else `mpi`. Blocking. Collective. Errors: the bootstraps' own. */
enum el_status el_join(const struct el_launch_place *place, double patience_s, struct el_bootstrap **bootstrap_p);
/* With the place that the environment says. */
enum el_status el_join_environment(struct el_bootstrap **bootstrap_p);

/* gather.c. Of ranks of a user's own launcher, before they do anything else together: whether all were given the same
 * program, command and options (but for those of which the row says per_rank), and found the same data. Collective.
 * Errors: EL_ERR_INVALID on rank 0, naming the first rank that differs and in what; EL_ERR_PEER on the others. */
enum el_status el_job_compare_options(struct el_bootstrap *bootstrap, unsigned command,
                                      const struct el_options *options);
enum el_status el_job_compare_data(struct el_bootstrap *bootstrap, const struct el_dataset *dataset);
/* Likewise of any ranks, before the first step: whether all go on from the same checkpoint, and see the same folder of
 * checkpoints. */
enum el_status el_job_compare_checkpoints(struct el_bootstrap *bootstrap, const struct el_trial *trial);
