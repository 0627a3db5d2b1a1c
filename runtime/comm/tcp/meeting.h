/* How ranks meet: rank 0 is the host, who listens; the others are guests, who come, say who they are, and are let in
 * when all have come. Every guest comes with two connections: `data` for the collectives and `alarm` for what may be
 * said at any time (attendant.c).
 *
 *     guest                     host
 *     hello (rank, size, token) ->
 *                               <- noted, or refused with the reason
 *                               <- welcome, when all are there, or refused with the reason why not
 *
 * One that does not speak so is a stray: it is turned away and the meeting goes on. So is a guest of another job, and
 * one that contradicts rank 0 or those who are there (another number of ranks, a rank twice): the first to come keeps
 * its place. What such a one was told is part of rank 0's message if then not all come.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/bootstrap.h"
#include "runtime/comm/tcp/socket.h"

enum el_tcp_channel { EL_TCP_DATA, EL_TCP_ALARM, EL_TCP_CHANNELS };

/* Between rank 0 and another rank; -1: not there yet. */
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

/* Rank 0: links[1..size) of all others. Errors: those of el_bootstrap_open_tcp; then all links are closed again. */
enum el_status el_tcp_host(const struct el_rendezvous *rendezvous, struct el_tcp_link *links);
/* Another rank: the link to rank 0. */
enum el_status el_tcp_visit(const struct el_rendezvous *rendezvous, struct el_tcp_link *link);

/* 64 bits of the job's token and secret. */
uint64_t el_tcp_token(const struct el_rendezvous *rendezvous);
/* When its patience ends, from now on. */
int64_t el_tcp_deadline_ns(const struct el_rendezvous *rendezvous);
double el_tcp_patience_s(const struct el_rendezvous *rendezvous);
void el_tcp_link_close(struct el_tcp_link *link);
