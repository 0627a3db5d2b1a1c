/* All descendants of a process with memory and CPU time, sampled from outside.
 *
 *     el_process_tree_open("", getpid(), &tree);    its later descendants; "": this machine
 *     el_process_tree_discover(tree);               often (cheap): finds new ones
 *     el_process_tree_look(tree);                   a sample: CPU time and memory of all
 *     el_process_tree_look_shared(tree);            rarely: the Pss of one process
 *     tree->list[i];                                0 <= i < tree->n
 *     el_process_tree_close(tree);
 *
 * Only numbers after the last one in /proc/loadavg (0.5 us to read) are searched. A process belongs to the tree if its
 * parent does. Orphans must return to the ancestor: make it a subreaper (man PR_SET_CHILD_SUBREAPER). A process that
 * lives between two discoveries is missed; its CPU time is in its parent's children's time.
 *
 * Units: nanoseconds of el_clock_ns, bytes. Threads: one. Errors: EL_ERR_HOST_MEMORY; unreadable values are unknown. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/status.h"

/* ---- one process: identity, CPU time, memory (process.c) ----
 *
 *     el_process_open("", pid, &process);
 *     el_process_identify(&process, &identity);
 *     el_process_look(&process, &look);        repeatedly; false: it is gone
 *     el_process_pss_bytes(&process);
 *     el_process_close(&process);
 *
 * The files stay open: a sample costs two reads (about 20 us), and a reused number is never mistaken. Files of
 * /proc/PID: stat, status, cmdline, environ, smaps_rollup.
 *
 * Resident memory counts shared pages (program, libraries, mapped data) in each process. Pss divides them, so sums are
 * right, but the kernel walks the page tables (about 5 ms per GiB) and blocks the process's mappings meanwhile: read it
 * rarely.
 *
 * Units: nanoseconds (the kernel's ticks are 10 ms) and bytes. Unreadable values are -1 or "". Ownership: two files
 * until closed. Threads: one at a time per process. */

enum { EL_PROCESS_NAME_BYTES = 16, EL_PROCESS_COMMAND_BYTES = 256, EL_PROCESS_CPUS_BYTES = 64 };

struct el_process {
    pid_t pid;
    const char *root;
    int stat, status; /* open files; -1: closed */
};

struct el_process_look {
    char state; /* as in ps: R, S, D, Z, ... */
    pid_t parent;
    int n_threads;
    char name[EL_PROCESS_NAME_BYTES]; /* the kernel's, 15 characters */
    int64_t cpu_ns;                   /* user and system, of all threads, ended ones too */
    int64_t resident_bytes;           /* with shared pages; -1: unknown (ended, or about to) */
    int64_t own_bytes;                /* the part without a file; -1: unknown */
    int64_t peak_bytes;               /* the kernel's high-water mark since exec; -1 */
    uint64_t program;                 /* changes with exec; 0: unknown */
};

/* Changes rarely; read again when `program` or the name changes. */
struct el_process_identity {
    char command[EL_PROCESS_COMMAND_BYTES]; /* arguments, separated by blanks; cut */
    char executable[EL_PROCESS_NAME_BYTES]; /* last part of the program's path, cut */
    char cpus[EL_PROCESS_CPUS_BYTES];       /* allowed CPUs: "0-3,8"; cut with "..." */
    int n_cpus;                             /* of the whole list; 0: unknown */
    int rank;                               /* from a launcher's environment; -1: none */
    char launcher[EL_PROCESS_NAME_BYTES];   /* "torchrun", "Open MPI", ... */
};

/* `root` is borrowed. false: no such process, or a thread. */
bool el_process_open(const char *root, pid_t pid, struct el_process *process_p);
void el_process_close(struct el_process *process);
bool el_process_look(const struct el_process *process, struct el_process_look *look_p);
void el_process_identify(const struct el_process *process, struct el_process_identity *identity_p);
/* -1: not readable (another user's). */
int64_t el_process_pss_bytes(const struct el_process *process);

/* -1: no such process. */
pid_t el_process_parent(const char *root, pid_t pid);

/* ---- the tree (process_tree.c) ---- */

/* Further processes are counted, not followed. */
enum { EL_TREE_PROCESSES_MAX = 4096, EL_TREE_MISSING_MAX = 256 };

struct el_tree_process {
    struct el_process process;
    struct el_process_identity identity; /* of its last program */
    struct el_process_look look;         /* the last sample */
    pid_t parent;                        /* when found */
    int above;                           /* that parent's index in the tree; -1: the ancestor, or lost */
    bool alive, looked;
    int64_t begin_ns, end_ns; /* first and last sample */
    int64_t again_ns;         /* next sample while it is young */
    /* of its last program: exec resets memory */
    int64_t peak_bytes;         /* resident, by samples and the high-water mark; -1: unknown */
    int64_t own_peak_bytes;     /* of samples; -1: unknown */
    double resident_byte_s;     /* for the mean: resident bytes x seconds ... */
    double looked_s;            /* ... over these seconds */
    int64_t pss_bytes;          /* highest reading; -1: unknown */
    int64_t pss_resident_bytes; /* highest resident memory at a reading: a larger peak_bytes was not covered */
    int64_t pss_ns;             /* last reading; 0: none */
    int n_threads;              /* maximum */
};

struct el_process_tree {
    struct el_tree_process *list[EL_TREE_PROCESSES_MAX]; /* [n], as found: children after parents */
    int n, n_not_followed;                               /* not followed: found when the tree was full */
    /* private */
    const char *root;
    pid_t ancestor;
    int loadavg;                        /* open file; -1: none, or wrong */
    pid_t last;                         /* last number issued; 0: unknown */
    pid_t missing[EL_TREE_MISSING_MAX]; /* numbers without a process yet: tried once more */
    int n_missing;
    int alive[EL_TREE_PROCESSES_MAX], n_alive; /* indices in `list`, oldest first */
};

/* `root` must outlive the tree. */
enum el_status el_process_tree_open(const char *root, pid_t ancestor, struct el_process_tree **tree_p);
void el_process_tree_close(struct el_process_tree *tree); /* NULL is legal */

/* A child's number, just started. If /proc/loadavg disagrees (some containers show another system's), discoveries scan
 * all processes. */
void el_process_tree_expect(struct el_process_tree *tree, pid_t pid);
/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_process_tree_discover(struct el_process_tree *tree);
void el_process_tree_look(struct el_process_tree *tree);
/* Samples new processes at about 10, 20, 40 and 80 ms of age. Call as often as discover. Returns whether there were
 * any. */
bool el_process_tree_look_young(struct el_process_tree *tree);
/* A last sample of an ended child before it is reaped: its CPU time. */
void el_process_tree_look_at(struct el_process_tree *tree, pid_t pid);
/* Reads the Pss of the process that was never read, or grew most since. Nothing if none grew by 5 % and all were read
 * within 2 s. */
void el_process_tree_look_shared(struct el_process_tree *tree);

/* Index of the running process; -1: none. */
int el_process_tree_find(const struct el_process_tree *tree, pid_t pid);
