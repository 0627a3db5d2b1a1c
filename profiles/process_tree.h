/* All processes that descend from one, and what each held and did: found while they live, looked at from outside.
 *
 *     el_process_tree_open("", getpid(), &tree);    its descendants from now on, itself left out; "": this machine
 *     el_process_tree_discover(tree);               often, it is cheap: finds new ones
 *     el_process_tree_look(tree);                   at each sample: everyone's CPU time and memory
 *     el_process_tree_look_shared(tree);            seldom: the Pss of one process
 *     el_process_tree_at(tree, i);  0 <= i < el_process_tree_count(tree)
 *     el_process_tree_close(tree);
 *
 * How they are found: the kernel numbers processes one after the other, and /proc/loadavg has the last number (0.5 us
 * to read). Where it has not moved nobody was born; where it has, only the numbers between are looked up. A process
 * belongs to the tree if its parent does. One that lost its parent must come back to the ancestor, or it is lost: make
 * that a subreaper (man PR_SET_CHILD_SUBREAPER). What lives and dies between two calls of discover is not seen; its
 * CPU time is in its parent's children's time.
 *
 * Units: nanoseconds of el_clock_ns, bytes. Threads: one. Errors: EL_ERR_HOST_MEMORY; what cannot be read is unknown.
 */
#ifndef EL_PROFILES_PROCESS_TREE_H
#define EL_PROFILES_PROCESS_TREE_H

#include "profiles/process.h"
#include "runtime/base/status.h"

/* More are counted and not followed. */
enum { EL_TREE_PROCESSES_MAX = 4096 };

struct el_tree_process {
    struct el_process process;
    struct el_process_identity identity; /* of the program that it was last */
    struct el_process_look look;         /* the last */
    pid_t parent;                        /* when it was found */
    int above;                           /* place of that parent in the tree; -1: the ancestor, or lost */
    bool alive, looked;
    int64_t begin_ns, end_ns; /* first and last look */
    int64_t again_ns;         /* while it is young: when it is looked at again */
    /* Memory is that of the program it was last: another one began anew. */
    int64_t peak_bytes; /* the highest resident memory, by the kernel's own mark at the last look too; -1: unknown */
    int64_t own_peak_bytes;     /* the highest seen of its own memory; -1: unknown */
    double resident_byte_s;     /* for the mean over its life: resident bytes times seconds ... */
    double looked_s;            /* ... over so many */
    int64_t pss_bytes;          /* the highest that was read; -1: unknown */
    int64_t pss_resident_bytes; /* the highest resident memory at a reading: a larger peak_bytes was not covered */
    int64_t pss_ns;             /* the last reading; 0: none */
    int n_threads;              /* the most */
};

struct el_process_tree;

/* `root` must stay. */
enum el_status el_process_tree_open(const char *root, pid_t ancestor, struct el_process_tree **tree_p);
void el_process_tree_close(struct el_process_tree *tree); /* NULL is legal */

/* The number of a process that was started just now: where /proc/loadavg does not agree (some containers show another
 * system's), it is not believed again, and every discovery goes through all processes of the machine. */
void el_process_tree_expect(struct el_process_tree *tree, pid_t pid);
/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_process_tree_discover(struct el_process_tree *tree);
void el_process_tree_look(struct el_process_tree *tree);
/* As above, of those that are new: about 10, 20, 40 and 80 ms old. Call as often as discover. Returns whether there
 * were any.
 */
bool el_process_tree_look_young(struct el_process_tree *tree);
/* Of one child that has ended and was not yet waited for: its last CPU time. */
void el_process_tree_look_at(struct el_process_tree *tree, pid_t pid);
/* Reads the Pss of one process: of one that was never read, else of the one that grew most since its readings. Reads
 * nothing where none grew by 5 % and all were read within 2 s. */
void el_process_tree_look_shared(struct el_process_tree *tree);

int el_process_tree_count(const struct el_process_tree *tree);
const struct el_tree_process *el_process_tree_at(const struct el_process_tree *tree, int i);
/* The living one of this number; -1: none. */
int el_process_tree_find(const struct el_process_tree *tree, pid_t pid);
/* That were found and not followed, for want of room. */
int el_process_tree_not_followed(const struct el_process_tree *tree);

#endif
