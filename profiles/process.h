/* One process as the system shows it: who it is, its CPU time, its memory.
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
#ifndef EL_PROFILES_PROCESS_H
#define EL_PROFILES_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

#endif
