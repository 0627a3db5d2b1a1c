/* How a job's processes find each other.
 *
 * Bootstraps: `self` (one process), `mpi` (the ranks of MPI_COMM_WORLD), `tcp` (ranks meet at a host and port, as
 * under torchrun). All ranks call gather, broadcast, barrier and agree in the same order. Threads: one at a time,
 * never while a step runs; silent and abort by any. Errors: EL_ERR_PEER where a rank is gone (named if known);
 * EL_ERR_HOST_MEMORY. */
#pragma once

#include <stddef.h>

#include "runtime/base/status.h"

struct el_bootstrap;

/* `kind`: "self" or "mpi". Collective. Errors: EL_ERR_ABSENT (no such module, with what to install). */
enum el_status el_bootstrap_open(const char *kind, struct el_bootstrap **bootstrap_p);

struct el_rendezvous {
    int rank, size;
    const char *host; /* rank 0's: a name, or an IPv4 or IPv6 address */
    int port;
    int n_ports;       /* ports to try from this one upwards; 0: 1 */
    int listener;      /* rank 0: a socket already listening there, taken over; else -1 */
    const char *token; /* of this job; NULL: "" */
    /* Processes without it are refused. It crosses the network as a hash, all else unencrypted: the network must be
     * trusted. NULL: "" */
    const char *secret;
    double patience_s; /* for all ranks to arrive; 0: 60 s */
};

/* The bootstrap `tcp`. If a rank dies, every other rank's running or next call fails with EL_ERR_PEER and names it.
 * Collective. Errors: EL_ERR_TIMEOUT (who did not come, or what was unreachable), EL_ERR_INVALID (no rendezvous,
 * open-file limit), EL_ERR_IO (port in use), EL_ERR_PEER (refused by rank 0, or a rank left). */
enum el_status el_bootstrap_open_tcp(const struct el_rendezvous *rendezvous, struct el_bootstrap **bootstrap_p);

/* EL_ERR_INVALID if rank 0 of so many `tcp` ranks would exceed the open-file limit. */
enum el_status el_bootstrap_check_files(int ranks);

/* NULL is legal. Collective. */
void el_bootstrap_close(struct el_bootstrap *bootstrap);

int el_bootstrap_rank(const struct el_bootstrap *bootstrap);
int el_bootstrap_size(const struct el_bootstrap *bootstrap);
const char *el_bootstrap_kind(const struct el_bootstrap *bootstrap);
/* "Open MPI 4.1.4"; "" for self and tcp. */
const char *el_bootstrap_library(const struct el_bootstrap *bootstrap);
/* The numeric address of this rank on the network of rank 0; "" if unknown. */
void el_bootstrap_address(const struct el_bootstrap *bootstrap, char *text, size_t bytes);

/* Rank 0 gets a new array of `size` new strings by rank (the caller frees both); others get NULL. */
enum el_status el_bootstrap_gather(struct el_bootstrap *bootstrap, const char *text, char ***texts_p);
enum el_status el_bootstrap_broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes);
enum el_status el_bootstrap_barrier(struct el_bootstrap *bootstrap);
/* `mine` if it failed; else EL_ERR_PEER with the message of the lowest rank that failed; else EL_OK. */
enum el_status el_bootstrap_agree(struct el_bootstrap *bootstrap, enum el_status mine);
/* Gives up ranks (tcp) that delay a collective call so long and do not answer. 0: never. */
void el_bootstrap_set_timeout(struct el_bootstrap *bootstrap, double timeout_s);
double el_bootstrap_timeout(const struct el_bootstrap *bootstrap);
/* The connected ranks (rank 0: all) that do not answer, as "1, 3"; mpi sees only stopped processes of its host. Blocks
 * up to a second. Threads: any. */
void el_bootstrap_silent(struct el_bootstrap *bootstrap, char *text, size_t bytes);
/* Ends the job at once; the status is nonzero. Does not return for mpi and tcp. Threads: any. */
void el_bootstrap_abort(struct el_bootstrap *bootstrap, int exit_status);
