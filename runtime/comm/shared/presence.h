/* Whether the other ranks of a job are still there and well: for communicators whose library notices neither a rank
 * that died nor one that stopped.
 *
 *     el_presence_open(bootstrap, &presence);
 *     el_presence_check(presence);      now and then, while waiting
 *     el_presence_raise(presence);      this rank has stopped
 *     el_presence_close(presence);
 *
 * It sees the ranks of its own host; of others it knows nothing. Threads: check and raise, any.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/comm/bootstrap.h"

struct el_presence;

/* Blocking. Collective. Errors: the bootstrap's, EL_ERR_HOST_MEMORY. Where ranks cannot share memory they only do not
 * see each other stop. */
enum el_status el_presence_open(struct el_bootstrap *bootstrap, struct el_presence **presence_p);
/* NULL is legal. Local. */
void el_presence_close(struct el_presence *presence);
/* EL_ERR_PEER naming a rank that is gone, or saying that one has stopped. Cost: a system call a rank of this host. */
enum el_status el_presence_check(struct el_presence *presence);
/* Whether a rank of this host has raised its hand. */
bool el_presence_is_raised(const struct el_presence *presence);
/* "rank 2 (process 4711) is stopped", for who has waited too long: the first rank of this host that a signal or a
 * debugger holds. Returns whether there is one. */
bool el_presence_find_stopped(const struct el_presence *presence, char *text, size_t bytes);
/* Whether a signal holds another rank of this host. A tracer (strace) holds it for a moment at each of its calls. */
bool el_presence_is_stopped(const struct el_presence *presence, int rank);
/* Tells all ranks of this host, once. */
void el_presence_raise(struct el_presence *presence);
