/* Processes that this one starts itself, and waits for: one program, mpirun, or the ranks of our own launcher; and what
 * such processes start in their turn. Linux: reads /proc. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/status.h"

struct el_child {
    pid_t pid; /* also its process group's */
    bool ended;
    int wait_status;    /* when it has ended */
    double cpu_s;       /* likewise: of it and of all that it has waited for */
    int64_t peak_bytes; /* likewise: the largest resident set of one of these */
};

struct el_child_spec {
    const char *program; /* full path */
    char *const *command, *const *environment;
    const char *log; /* its standard output and error; NULL: the files `out` and `err` are */
    int out, err;
    int death_signal; /* what it gets when this process dies */
    int kept_file;    /* that it inherits under the same number; -1: none */
};

/* Returns when the child has become a program, in which `become` ends unless it fails (with errno): it may make only
 * calls that are safe after fork. A child that takes longer than `patience_ms` (-1: any time) is killed. The child's
 * number, or -1 with errno. */
pid_t el_child_fork(void (*become)(const void *context), const void *context, int patience_ms);
/* A child in a group of its own, with an empty standard input and no signals blocked or caught. Returns when it has
 * become the program. Errors: EL_ERR_IO, with the reason why not. */
enum el_status el_child_start(const struct el_child_spec *spec, struct el_child *child_p);

/* Blocking until one more child has ended or `patience_ns` has passed; reaps what has ended. Returns whether all have.
 */
bool el_children_wait(struct el_child *children, int n, int64_t patience_ns);
/* The sum of their processor time, and the largest resident set. */
void el_children_used(const struct el_child *children, int n, double *cpu_s_p, int64_t *peak_bytes_p);
/* To the groups of those that have not ended. */
void el_children_signal(const struct el_child *children, int n, int signal);

/* Which child failed: of those that ended otherwise than with status 0 one that a signal killed, else the first; -1:
 * none. */
int el_children_failed(const struct el_child *children, int n);

/* By which all processes of a job are found, whoever their parents are: mpirun gives each rank a process group of its
 * own, so no signal to a group reaches a whole job. */
#define EL_LAUNCH_TOKEN         "EL_LAUNCH_TOKEN"
/* Of a job that is somebody else's program. */
#define EL_LAUNCH_COMMAND_TOKEN "EL_SHELL_TOKEN"
/* For rank 0 of our own launcher: the number of the socket that it takes over. */
#define EL_LAUNCH_LISTENER      "EL_LAUNCH_LISTENER"

/* Kills (SIGKILL) each process whose environment has `token` ("EL_LAUNCH_TOKEN=...") until there is none, and reaps
 * those that became children of this process. Returns how many were killed. */
int el_process_set_kill(const char *token);

enum { EL_NUMBERS_BYTES = 4096 };

/* The numbers of this process's children, as the kernel lists them ("17 4711"); "" where it does not. */
void el_children_list(char numbers[EL_NUMBERS_BYTES]);
/* Kills and reaps the children that are not in `before`: orphans that this process adopted, also those that cleared
 * their environment or are between two programs and have none. */
void el_orphans_end(const char before[EL_NUMBERS_BYTES]);

/* A process that outlives this one for a moment: when this one is gone, however it ended, it kills all that carry a
 * token in their environment, and removes a folder. What this process starts by PR_SET_PDEATHSIG dies with it by
 * itself, but not the children of that.
 *
 *     el_guard_start("EL_SHELL_TOKEN=17-4711.", "", &guard);     before what it guards is started with that variable
 *     el_guard_stop(&guard);                                     nothing is killed, nothing removed
 */
struct el_guard {
    pid_t pid;
    int life; /* a pipe's end that only this process has: it closes when this process ends */
};

/* `folder`: with all that is in it; "": none. Errors: EL_ERR_IO. */
enum el_status el_guard_start(const char *token, const char *folder, struct el_guard *guard_p);
/* A guard of zeros is legal. */
void el_guard_stop(struct el_guard *guard);
