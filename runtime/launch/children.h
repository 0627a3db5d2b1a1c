/* Child processes (a program, mpirun, or our own ranks) and their descendants, by /proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/status.h"

struct el_child {
    pid_t pid;
    bool ended;
    int wait_status;    /* when ended */
    double cpu_s;       /* likewise: including awaited descendants */
    int64_t peak_bytes; /* likewise: the largest resident set */
};

struct el_child_spec {
    const char *program;
    char *const *command, *const *environment;
    const char *log; /* for stdout and stderr; NULL: `out` and `err` */
    int out, err;
    int death_signal; /* sent when this process dies */
    int kept_file;    /* inherited under the same number; -1: none */
};

/* Returns when the child has become a program; `become` must exec, or return with errno, and be async-signal-safe. A
 * child that takes longer than `patience_ms` (-1: no limit) is killed. Returns the PID, or -1 with errno. */
pid_t el_child_fork(void (*become)(const void *context), const void *context, int patience_ms);
/* In its own group, with empty stdin and default signals. Returns after exec. Errors: EL_ERR_IO with the reason. */
enum el_status el_child_start(const struct el_child_spec *spec, struct el_child *child_p);

/* Blocks until another child ends or `patience_ns` passes; reaps. Returns whether all have ended. */
bool el_children_wait(struct el_child *children, int n, int64_t patience_ns);
/* The same until all have ended. */
bool el_children_await(struct el_child *children, int n, int64_t patience_ns);
void el_children_used(const struct el_child *children, int n, double *cpu_s_p, int64_t *peak_bytes_p);
/* To the groups of those running. */
void el_children_signal(const struct el_child *children, int n, int signal);

/* Of the children with a nonzero status: one killed by a signal, else the first; -1: none. */
int el_children_failed(const struct el_child *children, int n);

/* Identifies a job's processes: mpirun gives each rank its own group, so signals to a group do not reach the job. */
#define EL_LAUNCH_TOKEN         "EL_LAUNCH_TOKEN"
/* For a foreign program's job. */
#define EL_LAUNCH_COMMAND_TOKEN "EL_SHELL_TOKEN"
/* For our own rank 0: the inherited socket. */
#define EL_LAUNCH_LISTENER      "EL_LAUNCH_LISTENER"

/* Kills all processes with `token` ("EL_LAUNCH_TOKEN=...") in their environment, and reaps those that became our
 * children. Returns their number. */
int el_process_set_kill(const char *token);

enum { EL_NUMBERS_BYTES = 4096 };

/* "17 4711"; "": unknown. */
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
    int life;
};

/* `folder`: removed recursively; "": none. Errors: EL_ERR_IO. */
enum el_status el_guard_start(const char *token, const char *folder, struct el_guard *guard_p);
/* All zeros are legal. */
void el_guard_stop(struct el_guard *guard);
