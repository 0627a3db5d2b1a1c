/* Whether the other ranks of this host live: for libraries that notice neither death nor stop.
 *
 *     el_presence_open(bootstrap, &presence);
 *     el_presence_check(presence);      now and then, while waiting
 *     el_presence_raise(presence);      this rank has stopped
 *     el_presence_close(presence);
 *
 * Threads: check and raise, any. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "runtime/comm/bootstrap.h"

struct el_presence;

/* Collective. Errors: the bootstrap's, EL_ERR_HOST_MEMORY. Without shared memory, stopped ranks are not seen. */
enum el_status el_presence_open(struct el_bootstrap *bootstrap, struct el_presence **presence_p);
/* NULL is legal. Local. */
void el_presence_close(struct el_presence *presence);
/* EL_ERR_PEER naming a rank that is gone or has stopped. A system call per rank of this host. */
enum el_status el_presence_check(struct el_presence *presence);
bool el_presence_is_raised(const struct el_presence *presence);
/* "rank 2 (process 4711) is stopped": the first rank of this host that a signal or debugger holds. False: none. */
bool el_presence_find_stopped(const struct el_presence *presence, char *text, size_t bytes);
/* A tracer's (strace) brief stops do not count. */
bool el_presence_is_stopped(const struct el_presence *presence, int rank);
void el_presence_raise(struct el_presence *presence);
