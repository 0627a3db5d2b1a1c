/* Child processes (one program, mpirun, or our launcher's ranks) and their descendants. Linux: reads /proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/status.h"

struct el_child {
    pid_t pid; /* also its process group */
    bool ended;
    int wait_status;    /* when ended */
    double cpu_s;       /* when ended: including awaited descendants */
    int64_t peak_bytes; /* when ended: the largest resident set among these */
};

struct el_child_spec {
    const char *program; /* full path */
    char *const *command, *const *environment;
    const char *log; /* for stdout and stderr; NULL: `out` and `err` */
    int out, err;
    int death_signal; /* sent when this process dies */
    int kept_file;    /* inherited under the same number; -1: none */
};

/* Forks and returns when the child has become a program. `become` must exec, or return with errno on failure; only
 * async-signal-safe calls. A child that takes longer than `patience_ms` (-1: no limit) is killed. Returns the PID, or
 * -1 with errno. */
pid_t el_child_fork(void (*become)(const void *context), const void *context, int patience_ms);
/* A child in its own group, with empty stdin and default signals. Returns after its exec. Errors: EL_ERR_IO with the
 * reason. */
enum el_status el_child_start(const struct el_child_spec *spec, struct el_child *child_p);

/* Blocks until another child ends or `patience_ns` passes; reaps. Returns whether all have ended. */
bool el_children_wait(struct el_child *children, int n, int64_t patience_ns);
/* Total CPU time, and the largest resident set. */
void el_children_used(const struct el_child *children, int n, double *cpu_s_p, int64_t *peak_bytes_p);
/* To the groups of running children. */
void el_children_signal(const struct el_child *children, int n, int signal);

/* Of the children with a nonzero status: one killed by a signal, else the first; -1: none. */
int el_children_failed(const struct el_child *children, int n);

/* Identifies all of a job's processes: mpirun gives each rank its own group, so signals to a group do not reach the
 * job. */
#define EL_LAUNCH_TOKEN         "EL_LAUNCH_TOKEN"
/* For a foreign program's job. */
#define EL_LAUNCH_COMMAND_TOKEN "EL_SHELL_TOKEN"
/* For our launcher's rank 0: the inherited socket's number. */
#define EL_LAUNCH_LISTENER      "EL_LAUNCH_LISTENER"

/* Kills each process with `token` ("EL_LAUNCH_TOKEN=...") in its environment until none is left, and reaps those that
 * became our children. Returns the number killed. */
int el_process_set_kill(const char *token);

enum { EL_NUMBERS_BYTES = 4096 };

/* This process's children ("17 4711"); "" if the kernel does not tell. */
void el_children_list(char numbers[EL_NUMBERS_BYTES]);
/* Kills and reaps children not in `before`: adopted orphans, even without an environment. */
void el_orphans_end(const char before[EL_NUMBERS_BYTES]);

/* A guard process outlives this one: when this one ends in any way, it kills all processes with a token and removes a
 * folder. PR_SET_PDEATHSIG alone does not reach grandchildren.
 *
 *     el_guard_start("EL_SHELL_TOKEN=17-4711.", "", &guard);     before starting what it guards, with that variable
 *     el_guard_stop(&guard);                                     nothing is killed, nothing removed
 */
struct el_guard {
    pid_t pid;
    int life; /* a pipe's end that closes when this process ends */
};

/* `folder`: removed recursively; "": none. Errors: EL_ERR_IO. */
enum el_status el_guard_start(const char *token, const char *folder, struct el_guard *guard_p);
/* All zeros are legal. */
void el_guard_stop(struct el_guard *guard);
