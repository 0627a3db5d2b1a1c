/* All descendants of a process, with the memory and CPU time of each, sampled from outside while they run.
 *
 *     el_process_tree_open("", getpid(), &tree);    its descendants from now on, without itself; "": this machine
 *     el_process_tree_discover(tree);               often (it is cheap): finds new ones
 *     el_process_tree_look(tree);                   a sample: CPU time and memory of all
 *     el_process_tree_look_shared(tree);            seldom: the Pss of one process
 *     tree->list[i];                                0 <= i < tree->n
 *     el_process_tree_close(tree);
 *
 * How they are found: the kernel numbers processes in sequence, and /proc/loadavg has the last number (0.5 us to read).
 * If it is unchanged there is no new process; else only the numbers between are searched. A process belongs to the tree
 * if its parent does. One whose parent ended must come back to the ancestor, or it is lost: make the ancestor a
 * subreaper (man PR_SET_CHILD_SUBREAPER). A process that starts and ends between two calls of discover is missed; its
 * CPU time is in the children's time of its parent.
 *
 * Units: nanoseconds of el_clock_ns, bytes. Threads: one. Errors: EL_ERR_HOST_MEMORY; a value that cannot be read is
 * unknown.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/base/status.h"

/* ---- one process as the system shows it: who it is, its CPU time, its memory (process.c) ----
 *
 *     el_process_open("", pid, &process);      "" is this machine; tests give the root of a recorded one
 *     el_process_identify(&process, &identity);
 *     el_process_look(&process, &look);        any number of times; false: it is gone
 *     el_process_pss_bytes(&process);
 *     el_process_close(&process);
 *
 * The files stay open, so that a sample costs two reads (about 20 us), and a number that the system gives to another
 * process is never taken for this one. Files of /proc/PID: stat, status, cmdline, environ, smaps_rollup.
 *
 * Resident memory has two parts: pages of files (its program, libraries, mapped data), which the kernel may drop and
 * processes share, and its own. It counts a page that several processes share in each of them. Pss counts such a page
 * in equal parts, so that sums are right; but the kernel walks the page tables for it (about 5 ms a GiB), and the
 * process cannot map memory meanwhile: read it rarely.
 *
 * Units: nanoseconds (the kernel tells CPU time in ticks of 10 ms) and bytes. Errors: what cannot be read is -1 or "".
 * Ownership: an open process holds two files, until it is closed. Threads: a process is used by one at a time.
 */

enum { EL_PROCESS_NAME_BYTES = 16, EL_PROCESS_COMMAND_BYTES = 256, EL_PROCESS_CPUS_BYTES = 64 };

struct el_process {
    pid_t pid;
    const char *root;
    int stat, status; /* open files; -1: closed */
};

struct el_process_look {
    char state; /* as ps has it: R, S, D, Z, ... */
    pid_t parent;
    int n_threads;
    char name[EL_PROCESS_NAME_BYTES]; /* the kernel's, 15 characters */
    int64_t cpu_ns;                   /* user and system, of all its threads, ended ones too */
    int64_t resident_bytes;           /* shared pages too; -1: unknown (it has ended, or is about to) */
    int64_t own_bytes;                /* of that what no file holds: what the process made itself; -1: unknown */
    int64_t peak_bytes;               /* the highest since it became this program, as the kernel keeps it; -1 */
    uint64_t program;                 /* another number: it has become another program by exec; 0: not known */
};

/* Slow to change, and read when `program` or the name has changed. */
struct el_process_identity {
    char command[EL_PROCESS_COMMAND_BYTES]; /* its arguments, by blanks; cut */
    char executable[EL_PROCESS_NAME_BYTES]; /* the last part of the program's path, cut */
    char cpus[EL_PROCESS_CPUS_BYTES];       /* that it may use: "0-3,8"; cut with "..." */
    int n_cpus;                             /* how many those are, of the whole list; 0: unknown */
    int rank;                               /* as a launcher told it in its environment; -1: none */
    char launcher[EL_PROCESS_NAME_BYTES];   /* "torchrun", "Open MPI", ... */
};

/* `root` must stay. Returns whether there is such a process; a thread is none. */
bool el_process_open(const char *root, pid_t pid, struct el_process *process_p);
void el_process_close(struct el_process *process);
bool el_process_look(const struct el_process *process, struct el_process_look *look_p);
void el_process_identify(const struct el_process *process, struct el_process_identity *identity_p);
/* -1: not readable (another user's). */
int64_t el_process_pss_bytes(const struct el_process *process);

/* The parent of a process without opening it for good; -1: there is no such process. */
pid_t el_process_parent(const char *root, pid_t pid);

/* ---- a tree of them (process_tree.c) ---- */

/* Further ones are counted and not followed. */
enum { EL_TREE_PROCESSES_MAX = 4096, EL_TREE_MISSING_MAX = 256 };

struct el_tree_process {
    struct el_process process;
    struct el_process_identity identity; /* of its last program */
    struct el_process_look look;         /* the last sample */
    pid_t parent;                        /* when it was found */
    int above;                           /* index of that parent in the tree; -1: the ancestor, or lost */
    bool alive, looked;
    int64_t begin_ns, end_ns; /* first and last sample */
    int64_t again_ns;         /* while it is young: when the next sample is due */
    /* Memory is of its last program: exec resets it. */
    int64_t peak_bytes;     /* the highest resident memory, by samples and the kernel's high-water mark; -1: unknown */
    int64_t own_peak_bytes; /* the highest sample of its own memory; -1: unknown */
    double resident_byte_s; /* for the mean over its life: resident bytes x seconds ... */
    double looked_s;        /* ... over these seconds */
    int64_t pss_bytes;      /* the highest that was read; -1: unknown */
    int64_t pss_resident_bytes; /* the highest resident memory at a reading: a larger peak_bytes was not covered */
    int64_t pss_ns;             /* the last reading; 0: none */
    int n_threads;              /* the highest */
};

struct el_process_tree {
    struct el_tree_process *list[EL_TREE_PROCESSES_MAX]; /* [n], as they were found: a child after its parent */
    int n, n_not_followed;                               /* not followed: found when the tree was full */
    /* process_tree.c's own */
    const char *root;
    pid_t ancestor;
    int loadavg;                        /* open file; -1: none, or wrong */
    pid_t last;                         /* the last number given out; 0: unknown */
    pid_t missing[EL_TREE_MISSING_MAX]; /* numbers that had no process yet: tried once more */
    int n_missing;
    int alive[EL_TREE_PROCESSES_MAX], n_alive; /* places in `list`, oldest first */
};

/* `root` must outlive the tree. */
enum el_status el_process_tree_open(const char *root, pid_t ancestor, struct el_process_tree **tree_p);
void el_process_tree_close(struct el_process_tree *tree); /* NULL is legal */

/* The number of a process that was started just now. If /proc/loadavg disagrees (some containers show another
 * system's), it is not used again, and each discovery goes through all processes of the machine. */
void el_process_tree_expect(struct el_process_tree *tree, pid_t pid);
/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_process_tree_discover(struct el_process_tree *tree);
void el_process_tree_look(struct el_process_tree *tree);
/* The same for new processes, at ages of about 10, 20, 40 and 80 ms. Call as often as discover. Returns whether there
 * were any. */
bool el_process_tree_look_young(struct el_process_tree *tree);
/* The last sample of a child that has ended and was not yet waited for: its CPU time. */
void el_process_tree_look_at(struct el_process_tree *tree, pid_t pid);
/* Reads the Pss of one process: of one that was never read, else of the one that grew most since its readings. Reads
 * nothing where none grew by 5 % and all were read within 2 s. */
void el_process_tree_look_shared(struct el_process_tree *tree);

/* The index of the running process with this number; -1: none. */
int el_process_tree_find(const struct el_process_tree *tree, pid_t pid);
