/* How ranks meet: rank 0 is the host and listens; the others are guests. Every guest makes two connections: `data` for
 * collectives and `alarm` (attendant.c).
 *
 *     guest                     host
 *     hello (rank, size, token) ->
 *                               <- noted, or refused with the reason
 *                               <- welcome, when all are there, or refused with the reason
 *
 * A stranger, a guest of another job, and a guest that contradicts rank 0 or an earlier one (another size, a rank
 * twice) are refused, and the meeting goes on. If not all ranks come, rank 0's error tells the last contradiction. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/bootstrap.h"
#include "runtime/comm/tcp/socket.h"

enum el_tcp_channel { EL_TCP_DATA, EL_TCP_ALARM, EL_TCP_CHANNELS };

/* To another rank; -1: not yet. */
struct el_tcp_link {
    int sockets[EL_TCP_CHANNELS];
};

#define EL_TCP_HELLO_MAGIC  "elguest"
#define EL_TCP_ANSWER_MAGIC "el-host"
enum { EL_TCP_MAGIC_BYTES = 8, EL_TCP_VERSION = 4, EL_TCP_ANSWER_TEXT_BYTES = 304 };

struct el_tcp_hello {
    char magic[EL_TCP_MAGIC_BYTES];
    uint32_t version, rank, size, channel;
    uint64_t token;
};

enum el_tcp_verdict { EL_TCP_NOTED, EL_TCP_WELCOME, EL_TCP_REFUSED };

struct el_tcp_answer {
    char magic[EL_TCP_MAGIC_BYTES];
    uint32_t verdict, zero;
    char text[EL_TCP_ANSWER_TEXT_BYTES];
};

/* Rank 0: fills links[1..size). Errors: as el_bootstrap_open_tcp; then closes all links. */
enum el_status el_tcp_host(const struct el_rendezvous *rendezvous, struct el_tcp_link *links);
enum el_status el_tcp_visit(const struct el_rendezvous *rendezvous, struct el_tcp_link *link);

/* A hash of the job's token and secret. */
uint64_t el_tcp_token(const struct el_rendezvous *rendezvous);
int64_t el_tcp_deadline_ns(const struct el_rendezvous *rendezvous);
double el_tcp_patience_s(const struct el_rendezvous *rendezvous);
void el_tcp_link_close(struct el_tcp_link *link);
