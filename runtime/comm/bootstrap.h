/* How the processes of a job find each other: rank, size, gather, broadcast, barrier, abort.
 *
 * Members: `self` (one process), `mpi` (the ranks of MPI_COMM_WORLD, in a module opened at first use).
 * Collective: gather, broadcast, barrier and agree are to be called by all ranks, in the same order.
 * Threads: calls are made by one thread at a time, and never while a step runs.
 */
#ifndef EL_COMM_BOOTSTRAP_H
#define EL_COMM_BOOTSTRAP_H

#include <stddef.h>

#include "runtime/base/status.h"

struct el_bootstrap;

/* `kind`: "self" or "mpi". Blocking. Collective. Errors: EL_ERR_ABSENT (no such module, with what to install). */
enum el_status el_bootstrap_open(const char *kind, struct el_bootstrap **bootstrap_p);
/* NULL is legal. Collective. */
void el_bootstrap_close(struct el_bootstrap *bootstrap);

int el_bootstrap_rank(const struct el_bootstrap *bootstrap);
int el_bootstrap_size(const struct el_bootstrap *bootstrap);
const char *el_bootstrap_kind(const struct el_bootstrap *bootstrap);
/* The library's version, "Open MPI 4.1.4"; "" for self. */
const char *el_bootstrap_library(const struct el_bootstrap *bootstrap);

/* Every rank gives a text; rank 0 gets all of them in rank order in a new array of `size` new strings (each to be
 * freed, then the array); others get NULL. */
enum el_status el_bootstrap_gather(struct el_bootstrap *bootstrap, const char *text, char ***texts_p);
/* Rank 0's bytes reach all. */
enum el_status el_bootstrap_broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes);
enum el_status el_bootstrap_barrier(struct el_bootstrap *bootstrap);
/* Ranks agree on an outcome: every rank gives its own status and gets EL_OK only if all gave EL_OK; where its own was
 * EL_OK it gets EL_ERR_PEER with the message of the lowest rank that failed. */
enum el_status el_bootstrap_agree(struct el_bootstrap *bootstrap, enum el_status mine);
/* Ends the whole job at once, with the status. Does not return for mpi. */
void el_bootstrap_abort(struct el_bootstrap *bootstrap, int exit_status);

#endif
