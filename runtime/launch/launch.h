/* Starting the processes of a job and seeing them to their end: one process, or ranks, through mpirun or by ourselves.
 *
 *     struct el_launch_spec spec = {.argv = argv, .procs = 2, .log_dir = "run/logs/t1", .timeout_s = 60};
 *     el_launch_run(&spec, &result);               blocking; result.reason says what went wrong, if anything did
 *     el_launch_log_tail(log_dir, result.failed_rank, 5, text, sizeof text);
 *
 * and in the program that was started:
 *
 *     el_launch_environment(el_launch_getenv, NULL, &place);   was this process started as a rank?
 *     el_launch_rank_init();                                   ends with its parent, whatever ends that
 *
 * The launching process is never a rank itself. Whatever a job started is gone when el_launch_run returns, also after
 * mpirun was killed: every process of a job carries a token in its environment, by which it is found. Each rank writes
 * LOG_DIR/rank-N.log (standard output and error), mpirun LOG_DIR/launcher.log. While ranks run, LOG_DIR/rank-N.pid
 * names them.
 *
 * Ranks that evenload starts get their places in torchrun's variables; they meet at a port that this process
 * has taken and rank 0 inherits, and share a random secret, so that no other program can come between.
 *
 * The job does not inherit that this process may itself be in an MPI or Slurm job; the user's own OMPI_MCA_ settings
 * stay, and win over ours.
 *
 * Threads: a job is started and waited for by one thread, which lives until the job has ended (the job ends with it).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* Who starts several ranks: mpirun, or this process itself. */
enum el_launch_by { EL_LAUNCH_BY_MPIRUN, EL_LAUNCH_BY_OWN };

struct el_launch_spec {
    char *const *argv;    /* program and its arguments, NULL at the end; the program is looked up on PATH */
    int procs;            /* 1: started directly; above: ranks, all on this host */
    enum el_launch_by by; /* of several */
    const char *log_dir;  /* made if it does not exist (its parent must) */
    int out, err; /* of one process that is somebody else's: files for what it prints, in place of a log and of log_dir;
                     its environment stays as it is, and nothing outlives this process. 0: none */
    const char *const *environment; /* "NAME=value" added for the job, NULL at the end; may be NULL */
    const char *numbered; /* "NAME=value-": ranks of EL_LAUNCH_BY_OWN get it with their number behind; may be NULL */
    double timeout_s;     /* 0: none */
    double grace_s;       /* between SIGTERM and SIGKILL; 0: 2 seconds */
    /* Optional: called about 10 times a second; false ends the job (Ctrl-C: let the handler set a flag). */
    bool (*progress)(void *context, double elapsed_s);
    void *context;
};

struct el_launch_result {
    bool ok;         /* all ranks ended with exit status 0 */
    int exit_status; /* of the process, or of the first failing rank where known, else of mpirun; -1 by a signal */
    int signal;      /* that ended it; 0 if none */
    int failed_rank; /* the first that failed; -1: none, or not known */
    bool timed_out;
    bool stopped;       /* when its time was over: by SIGSTOP, a process that was started here */
    bool cancelled;     /* by `progress` */
    bool out_of_memory; /* killed while the kernel ended a process of this host because memory ran out */
    double wall_s;
    double cpu_s;       /* of all processes, but those that nobody waited for (of mpirun's ranks: its own alone) */
    int64_t peak_bytes; /* the largest resident set of a process */
    char reason[512];   /* "" if ok; else "rank 1 was killed by signal 9 (Killed)"; mpirun's own words where it is to
                           blame */
};

/* Blocking until the job has ended, by itself or at its time-out. A job that failed is EL_OK with the reason in the
 * result. Errors: EL_ERR_ABSENT (no mpirun: with what to install; no such program), EL_ERR_IO (log folder, fork). */
enum el_status el_launch_run(const struct el_launch_spec *spec, struct el_launch_result *result_p);

/* The last `lines` lines of a rank's log (rank < 0: of mpirun's), "" if there is none. */
void el_launch_log_tail(const char *log_dir, int rank, int lines, char *text, size_t bytes);

/* The full path of a program on PATH (or of one with a slash in its name), for free(). Errors: EL_ERR_ABSENT. */
enum el_status el_launch_find_program(const char *name, char **path_p);

/* For a started process, first thing in main: it is killed when its parent dies. Harmless elsewhere. */
void el_launch_rank_init(void);

/* What the environment says of this process. */
struct el_launch_place {
    bool is_rank;
    int rank, size, local_rank; /* -1: unknown */
    int local_size;             /* ranks on this host; -1: unknown */
    const char *launcher;       /* "Open MPI", "PMIx", "PMI", "torchrun", "evenload"; "" if not a rank */
    /* Where rank 0 is to be met, by torchrun's variables; NULL: ranks of an MPI find one another by it. */
    const char *host;
    int port, n_ports;  /* that port, or one of so many from there on */
    int listener;       /* rank 0 of our own launcher: the socket that listens there; -1 */
    const char *token;  /* of the job */
    const char *secret; /* that all ranks of the job and nobody else know; "" */
};

/* The variable of the secret: a user's for ranks that a launcher of his own starts. */
#define EL_LAUNCH_SECRET "EVENLOAD_SECRET"

/* `get` is getenv or a fake one. Pure otherwise. Errors: EL_ERR_INVALID for values that make no sense, by name. */
enum el_status el_launch_environment(const char *(*get)(void *context, const char *name), void *context,
                                     struct el_launch_place *place_p);
/* The real one. */
const char *el_launch_getenv(void *context, const char *name);

/* The environment of a job: `from`, of ranks of ours without what ties a process to the MPI or Slurm job it is in, then
 * `extra`, then our settings for mpirun (when `with_mpi`) where neither names them. One block of memory for free().
 * NULL: no memory. */
char **el_launch_make_environment(char *const *from, const char *const *extra, bool with_mpi, bool is_ours);

/* Whether the kernel ended a process because memory ran out: all that is known about a SIGKILL without the log.
 *
 *     before = el_oom_kills("");
 *     ... a process is killed ...
 *     el_oom_explain(before, el_oom_kills(""), words, sizeof words);
 */

/* Processes of this host that the kernel's out-of-memory killer has ended since the boot, those of memory cgroups
 * included; -1: unknown (before Linux 4.13). `root`: "" is this machine; tests give the root of a recorded one. */
int64_t el_oom_kills(const char *root);
/* What follows "killed by signal 9", with the two counts before and after: "" where the kernel ended nothing. Returns
 * whether it ended something. */
bool el_oom_explain(int64_t before, int64_t after, char *text, size_t bytes);
