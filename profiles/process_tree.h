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
#ifndef EL_PROFILES_PROCESS_TREE_H
#define EL_PROFILES_PROCESS_TREE_H

#include "profiles/process.h"
#include "runtime/base/status.h"

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
    struct el_tree_process **list; /* [n], as they were found: a child after its parent */
    int n, n_not_followed;         /* not followed: found when the tree was full */
    /* process_tree.c's own */
    const char *root;
    pid_t ancestor;
    int loadavg;                        /* open file; -1: none, or wrong */
    pid_t last;                         /* the last number given out; 0: unknown */
    pid_t missing[EL_TREE_MISSING_MAX]; /* numbers that had no process yet: tried once more */
    int n_missing, capacity;
    int *alive, n_alive; /* places in `list`, oldest first */
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

#endif
