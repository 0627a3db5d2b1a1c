/* Runs a job's processes to their end: one process, or ranks by mpirun or by ourselves.
 *
 *     struct el_launch_spec spec = {.argv = argv, .procs = 2, .log_dir = "run/logs/t1", .timeout_s = 60};
 *     el_launch_run(&spec, &result);               blocking; result.reason says what went wrong, if anything did
 *     el_launch_log_tail(log_dir, result.failed_rank, 5, text, sizeof text);
 *
 * and in the started program:
 *
 *     el_launch_environment(el_launch_getenv, NULL, &place);   was this process started as a rank?
 *     el_launch_rank_init();                                   ends with its parent, whatever ends that
 *
 * The launching process is no rank. When el_launch_run returns, all processes of the job are gone: they are found by a
 * token in their environment. Each rank writes LOG_DIR/rank-N.log, mpirun LOG_DIR/launcher.log; LOG_DIR/rank-N.pid
 * exists while ranks run. Our own ranks get torchrun's variables, a port that this process holds and rank 0 inherits,
 * and a random secret. The job does not inherit this process's MPI or Slurm identity; the user's OMPI_MCA_ settings
 * override ours.
 *
 * Threads: one thread starts and awaits a job, and must live until its end (the job ends with it). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

enum el_launch_by { EL_LAUNCH_BY_MPIRUN, EL_LAUNCH_BY_OWN };

struct el_launch_spec {
    char *const *argv; /* NULL-terminated; looked up on PATH */
    int procs;         /* 1: started directly; more: ranks on this host */
    enum el_launch_by by;
    const char *log_dir; /* made if missing (its parent must exist) */
    int out, err;        /* of a foreign single process, instead of logs; it keeps its environment. 0: none */
    const char *const *environment; /* added "NAME=value", NULL-terminated; may be NULL */
    const char *numbered;           /* "NAME=value-", completed by the rank, for our own; may be NULL */
    double timeout_s;               /* 0: none */
    double grace_s;                 /* from SIGTERM to SIGKILL; 0: 2 seconds */
    /* Optional: called about 10 times a second; false ends the job. */
    bool (*progress)(void *context, double elapsed_s);
    void *context;
};

struct el_launch_result {
    bool ok;         /* all exit statuses are 0 */
    int exit_status; /* of the process, the first failing rank if known, or mpirun; -1: by a signal */
    int signal;
    int failed_rank; /* the first; -1: none or unknown */
    bool timed_out;
    bool stopped; /* in SIGSTOP at the time-out */
    bool cancelled;
    bool out_of_memory; /* killed while the kernel's out-of-memory killer was active */
    double wall_s;
    double cpu_s;       /* with mpirun: its own */
    int64_t peak_bytes; /* the largest resident set */
    char reason[512];   /* "rank 1 was killed by signal 9 (Killed)", or mpirun's text */
};

/* Blocking. A failed job is EL_OK, with the reason in the result. Errors: EL_ERR_ABSENT (no mpirun or program),
 * EL_ERR_IO (log folder, fork). */
enum el_status el_launch_run(const struct el_launch_spec *spec, struct el_launch_result *result_p);

/* Of a rank, or mpirun (rank < 0). */
void el_launch_log_tail(const char *log_dir, int rank, int lines, char *text, size_t bytes);

/* For free(). Errors: EL_ERR_ABSENT. */
enum el_status el_launch_find_program(const char *name, char **path_p);

/* First thing in main: dies with its parent. Harmless elsewhere. */
void el_launch_rank_init(void);

struct el_launch_place {
    bool is_rank;
    int rank, size, local_rank; /* -1: unknown */
    int local_size;
    const char *launcher; /* "Open MPI", "PMIx", "PMI", "torchrun", "srun", "evenload"; "": no rank */
    /* Rank 0's host, from torchrun's or srun's variables; NULL: MPI ranks. */
    const char *host;
    int port, n_ports; /* n_ports from `port` on */
    int listener;      /* our own rank 0: the listening socket; else -1 */
    const char *token;
    const char *secret; /* "" */
};

/* Set by users who start ranks by their own launcher. */
#define EL_LAUNCH_SECRET "EVENLOAD_SECRET"
enum { EL_LAUNCH_SECRET_BYTES = 33 };
/* A random one. Errors: EL_ERR_IO. */
enum el_status el_launch_make_secret(char secret[EL_LAUNCH_SECRET_BYTES]);

/* `get`: getenv or a fake. Pure otherwise. Errors: EL_ERR_INVALID naming a bad variable. */
enum el_status el_launch_environment(const char *(*get)(void *context, const char *name), void *context,
                                     struct el_launch_place *place_p);
const char *el_launch_getenv(void *context, const char *name);

/* A job's environment: `extra`, then `from` (`is_ours`: without MPI and Slurm identity), then mpirun settings
 * (`with_mpi`); the first value of a name wins. One block for free(); NULL: no memory. */
char **el_launch_make_environment(char *const *from, const char *const *extra, bool with_mpi, bool is_ours);

/* Whether the kernel's out-of-memory killer was active: all that is known about a SIGKILL without the kernel log.
 *
 *     before = el_oom_kills("");
 *     ... a process is killed ...
 *     el_oom_explain(before, el_oom_kills(""), words, sizeof words);
 */

/* Kills on this host since boot; -1: unknown (before Linux 4.13). `root`: "", or a test's. */
int64_t el_oom_kills(const char *root);
/* Text to follow "killed by signal 9"; false, and "": no kill. */
bool el_oom_explain(int64_t before, int64_t after, char *text, size_t bytes);
