/* Sockets as the bootstrap and the communicator `tcp` use them: made, tuned, and read and written as a whole.
 *
 * Functions that move bytes return 0 or a number of errno: ETIMEDOUT at the deadline, ECONNRESET where the other side
 * has ended. Deadlines are el_clock_ns() values; negative: none. Sockets are closed at exec and block unless said
 * otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

enum { EL_TCP_ADDRESS_BYTES = 64, EL_TCP_WHY_BYTES = 160 };

/* Listens on `host`'s own address where that is a loopback or `exact`, else on every address of this machine: a host's
 * name often resolves to a loopback on the host itself. Port 0: any free one. Returns 0 or a number of errno. */
int el_tcp_listen(const char *host, int port, bool exact, int *listener_p);
int el_tcp_port(int socket);
/* Waits for a connection; 0 or a number of errno. */
int el_tcp_accept(int listener, int64_t deadline_ns, int *socket_p);

/* One attempt at each of the host's addresses. Returns false with the reason in `why`; *hopeless_p: the name is not
 * known, so that another attempt is of no use. */
bool el_tcp_connect(const char *host, int port, int64_t deadline_ns, int *socket_p, char why[EL_TCP_WHY_BYTES],
                    bool *hopeless_p);

/* For connections whose other end always reads at once: they fail with ETIMEDOUT when what was sent has not been
 * acknowledged for 7 s. Others may not have it: there a receiver that is slow would count as gone. Where nothing is
 * being sent, every connection ends after 7 s of silence of the other host. */
void el_tcp_expect_answers(int socket);

int el_tcp_read(int socket, void *data, size_t bytes, int64_t deadline_ns);
int el_tcp_write(int socket, const void *data, size_t bytes);

/* The numeric address of this side or of the other; "?" where there is none. */
void el_tcp_address(int socket, bool other_side, char text[EL_TCP_ADDRESS_BYTES]);
