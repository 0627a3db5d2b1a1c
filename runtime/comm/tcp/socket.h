/* Sockets of `tcp`. Functions return 0 or an errno: ETIMEDOUT at the deadline, ECONNRESET where the other side closed.
 * Deadlines are el_clock_ns() values; negative: none. Sockets are close-on-exec, and block unless said otherwise. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

enum { EL_TCP_ADDRESS_BYTES = 64, EL_TCP_WHY_BYTES = 160 };

/* Listens on `host`'s address if that is a loopback or `exact`, else on all of this machine, since a host's name often
 * resolves to a loopback on itself. Port 0: any. */
int el_tcp_listen(const char *host, int port, bool exact, int *listener_p);
int el_tcp_port(int socket);
int el_tcp_accept(int listener, int64_t deadline_ns, int *socket_p);

/* Tries each of the host's addresses once. False: the reason is in `why`; *hopeless_p: the name is unknown, retrying
 * is useless. */
bool el_tcp_connect(const char *host, int port, int64_t deadline_ns, int *socket_p, char why[EL_TCP_WHY_BYTES],
                    bool *hopeless_p);

/* Fails with ETIMEDOUT when data is unacknowledged for 7 s; only for connections that the other end always reads at
 * once. Idle connections always end after 7 s without the other host. */
void el_tcp_expect_answers(int socket);

int el_tcp_read(int socket, void *data, size_t bytes, int64_t deadline_ns);
int el_tcp_write(int socket, const void *data, size_t bytes);

/* The numeric address of this side or the other; "?" if none. */
void el_tcp_address(int socket, bool other_side, char text[EL_TCP_ADDRESS_BYTES]);
