/* How the processes of a job find each other: rank, size, gather, broadcast, barrier, abort.
 *
 * Members: `self` (one process), `mpi` (the ranks of MPI_COMM_WORLD, in a module opened at first use), `tcp` (ranks
 * that meet at a host and a port, as torchrun and our own launcher say them). Collective: gather, broadcast, barrier
 * and agree are to be called by all ranks, in the same order. Threads: calls are made by one thread at a time, and
 * never while a step runs; silent and abort by any.
 * Errors: of collective calls EL_ERR_PEER where a rank is gone, naming it where the bootstrap knows;
 * EL_ERR_HOST_MEMORY.
 */
#pragma once

#include <stddef.h>

#include "runtime/base/status.h"

struct el_bootstrap;

/* `kind`: "self" or "mpi". Blocking. Collective. Errors: EL_ERR_ABSENT (no such module, with what to install). */
enum el_status el_bootstrap_open(const char *kind, struct el_bootstrap **bootstrap_p);

/* Where the ranks of a job meet over TCP. */
struct el_rendezvous {
    int rank, size;
    const char *host;  /* of rank 0: a name or an address, IPv4 or IPv6 */
    int port;          /* rank 0 listens there */
    int n_ports;       /* this one and so many less one behind it are tried, where others may sit; 0: 1 */
    int listener;      /* rank 0: a socket that listens there already, taken over; else -1 */
    const char *token; /* the same in all processes of a job, another one in other jobs; NULL: "" */
    /* As the token, and known to nobody else: who does not know it is turned away. It crosses the network as a hash,
     * unencrypted, as all that ranks say to one another: the network has to be trusted. NULL: "" */
    const char *secret;
    double patience_s; /* how long all ranks may take to come; 0: 60 s */
};

/* The bootstrap `tcp`. A rank that dies is noticed by all, wherever they are: their next or running call here fails
 * with EL_ERR_PEER, which names it. Blocking. Collective. Errors: EL_ERR_TIMEOUT (who did not come, or what could not
 * be reached), EL_ERR_INVALID (no place to meet, or too many ranks for the open files allowed), EL_ERR_IO (port in
 * use), EL_ERR_PEER (refused by rank 0: another secret, other ranks; or one that left). */
enum el_status el_bootstrap_open_tcp(const struct el_rendezvous *rendezvous, struct el_bootstrap **bootstrap_p);

/* Whether this process may open as many files as rank 0 of so many ranks does by `tcp`. Errors: EL_ERR_INVALID. */
enum el_status el_bootstrap_check_files(int ranks);

/* NULL is legal. Collective. */
void el_bootstrap_close(struct el_bootstrap *bootstrap);

int el_bootstrap_rank(const struct el_bootstrap *bootstrap);
int el_bootstrap_size(const struct el_bootstrap *bootstrap);
const char *el_bootstrap_kind(const struct el_bootstrap *bootstrap);
/* The library's version, "Open MPI 4.1.4"; "" for self and tcp. */
const char *el_bootstrap_library(const struct el_bootstrap *bootstrap);
/* The numeric address by which this rank and rank 0 reach each other, so that other ranks find this one there; "" where
 * the bootstrap does not know. */
void el_bootstrap_address(const struct el_bootstrap *bootstrap, char *text, size_t bytes);

/* Every rank gives a text (copied); rank 0 gets all of them in rank order in a new array of `size` new strings (each to
 * be freed, then the array); others get NULL. */
enum el_status el_bootstrap_gather(struct el_bootstrap *bootstrap, const char *text, char ***texts_p);
/* Rank 0's bytes reach all. */
enum el_status el_bootstrap_broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes);
enum el_status el_bootstrap_barrier(struct el_bootstrap *bootstrap);
/* Ranks agree on an outcome: every rank gives its own status and gets EL_OK only if all gave EL_OK; where its own was
 * EL_OK it gets EL_ERR_PEER with the message of the lowest rank that failed. */
enum el_status el_bootstrap_agree(struct el_bootstrap *bootstrap, enum el_status mine);
/* A rank that has kept a collective call waiting for so long, and does not answer then, is given up (tcp): one that is
 * slow is waited for. 0: none is. */
void el_bootstrap_set_timeout(struct el_bootstrap *bootstrap, double timeout_s);
/* Which of the ranks that this one has a connection to (rank 0: all) do not answer, stopped or gone, as "1, 3"; "" if
 * all do. They answer in whatever call they are; mpi does not ask, but sees those of its own host that are stopped.
 * Blocking up to a second. Local. Threads: any. */
void el_bootstrap_silent(struct el_bootstrap *bootstrap, char *text, size_t bytes);
/* Ends the whole job at once, with the status, which is not 0. Does not return for mpi and tcp. Threads: any. */
void el_bootstrap_abort(struct el_bootstrap *bootstrap, int exit_status);
