/* A launched process: its part of a trial, and on rank 0 the document.
 *
 *     evenload worker measure|gate RESULT REPEAT ORDER ID --mode ... (options of `run`)
 *     evenload worker comm|verify|explain RESULT ...                 (rows: bench/commands.c)
 *
 * `run` as a rank of the user's mpirun or torchrun works alike, without RESULT. Collective: all ranks of the job. */
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
struct el_job_stuck;

/* This process's devices: all of a one-process trial, else the rank's. */
struct el_job_devices {
    struct el_device **devices;
    int n, first;            /* position of devices[0] in the job */
    struct el_layout layout; /* of the whole job */
    bool time_sliced;        /* a communication stream shares its device's core */
    /* of simulated devices; NULL: none, or nothing was measured */
    struct el_costs *costs;
    struct el_job_sources *sources;
    struct el_job_stuck *stuck; /* of asynchronous devices */
};

/* The basis of simulated times without measurements, by device. */
struct el_job_sources {
    struct el_machine machine;
    struct el_cost_use *uses; /* [n] */
};
enum el_status el_job_open_devices(const struct el_job *job, struct el_job_devices *devices_p);
/* Uses `costs` instead of the trial's; borrowed until close. */
enum el_status el_job_open_with_costs(const struct el_job *job, const struct el_costs *costs,
                                      struct el_job_devices *devices_p);
/* Whether each of `beside` devices beside the first has its own core. Errors: EL_ERR_INVALID naming --beside. */
enum el_status el_job_check_beside(const struct el_device_name *first, int beside);
/* CPUs of the trial's devices and those beside them on this host. Returns how many it filled; 0: not CPUs, or
 * simulated. */
int el_job_device_cpus(const struct el_job *job, int *cpus);
/* Opens the k-th device beside, from 0. Errors: the check's. */
enum el_status el_job_open_beside(const struct el_job *job, int k, struct el_device **device_p);
/* Resolves `auto` of the trial's `comm` by agreement. Collective. */
struct el_train_place el_job_place(const struct el_job *job, struct el_job_devices *devices);
void el_job_close_devices(struct el_job_devices *devices);

/* stuck.c: from now on ends the job, with a line, where a call that queues an op does not return within --comm-timeout.
 * Keeps open->devices. NULL: nothing is looked after. */
enum el_status el_job_watch_stuck(const struct el_job *job, struct el_job_devices *open);
void el_job_watch_end(struct el_job_stuck *stuck);

/* Rank 0 gets the repeat's document, after a failure with status and reason; others NULL. The status is this rank's
 * own; only EL_ERR_HOST_MEMORY leaves no document. */
enum el_status el_job_measure(const struct el_job *job, json_t **repeat_p);
/* {"status", "reason", "loss", "reference_loss", "worst", "parameter"}: the mode's first steps against the reference's.
 * As above. */
enum el_status el_job_gate(const struct el_job *job, json_t **verdict_p);

/* gather.c. Collective, also for failed ranks. Steals `part` (may be NULL). Rank 0 gets the parts in rank order in a
 * new array, and in `error_p` the failure that explains the others (EL_OK: none); others get NULL and their own. */
enum el_status el_job_gather(const struct el_job *job, enum el_status mine, json_t *part, json_t **parts_p,
                             struct el_error *error_p);

/* predict.c. The quality of a simulated launch's times: {"machine" (el_machine_json), "costs", "devices", "records"
 * (bench/trial/costs.h), "all_ms" (of all priced ops), "outside", "other_ranks", "borrowed", "by_rates": {"ms", "op",
 * "bytes", "low_bytes", "high_bytes", "ranks", "measured_ranks"} of the ops on that basis and the largest one;
 * "step_ms": {"draws": [mean step of each draw], "launches", "low", "high", "reason" (for no interval)}}. `draw`:
 * trains once per draw for the interval. New reference. */
enum el_status el_job_predict(const struct el_job *job, const struct el_job_devices *devices, bool draw,
                              json_t **prediction_p);

/* Exit statuses for an unwritten result, which is no failed trial (the second: no room, maybe not even for the log),
 * and of a rank that stuck.c ended, whose last words explain what the others saw. */
enum { EL_WORKER_CANNOT_WRITE = 74, EL_WORKER_NO_ROOM = 75, EL_WORKER_STUCK = 76 };

/* A started process: its arguments from RESULT on, and its result. */
struct el_worker {
    char **arguments;
    struct el_options options;
    struct el_bootstrap *bootstrap;
    json_t *document; /* rank 0's, written to RESULT */
    bool unwritten;   /* the failure is an unwritten result */
};

/* "KIND RESULT ... --option=value ...": `n_fixed` words after KIND are for `work`; options of `command` follow. */
struct el_worker_row {
    const char *kind; /* NULL ends a list */
    unsigned command;
    int n_fixed;
    enum el_status (*work)(struct el_worker *worker);
};
/* The hidden subcommand; argv[0] is the kind. Returns the exit status. */
int el_worker_main(const struct el_worker_row *rows, int argc, char **argv);
/* Joins the other ranks; `several` false: alone. Errors: the bootstraps'. */
enum el_status el_worker_join(struct el_worker *worker, bool several);
enum el_status el_worker_measure(struct el_worker *worker);
enum el_status el_worker_gate(struct el_worker *worker);

/* Joins a process to its job, by `tcp` if `place` has a host, waiting at most `patience_s` (0: default), else by `mpi`.
 * Blocking, collective. Errors: the bootstraps'. */
enum el_status el_join(const struct el_launch_place *place, double patience_s, struct el_bootstrap **bootstrap_p);
/* With the environment's place. */
enum el_status el_join_environment(struct el_bootstrap **bootstrap_p);

/* gather.c. For ranks of the user's own launcher: equal program, command, options (except per_rank ones) and data.
 * Collective. Errors: EL_ERR_INVALID on rank 0, naming the first rank that differs and how; EL_ERR_PEER on the
 * others. */
enum el_status el_job_compare_options(struct el_bootstrap *bootstrap, unsigned command,
                                      const struct el_options *options);
enum el_status el_job_compare_data(struct el_bootstrap *bootstrap, const struct el_dataset *dataset);
/* The same checkpoint, and a shared folder of checkpoints. Errors as above. */
enum el_status el_job_compare_checkpoints(struct el_bootstrap *bootstrap, const struct el_trial *trial);
