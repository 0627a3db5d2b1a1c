/* Collectives between rank 0 and each other rank. A message is kind, length, bytes; a wrong kind reveals ranks in
 * different collectives. */
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/comm/bootstrap_ops.h"
#include "runtime/comm/tcp/comm_tcp.h"
#include "runtime/comm/tcp/meeting.h"

/* TEXT_MAX: no valid text is longer. OTHER_FILES: open files beside the connections. */
enum { PATIENCE_S = 60, TEXT_MAX = 256 << 20, OTHER_FILES = 32 };

enum message_kind { MESSAGE_GATHER = 1, MESSAGE_BROADCAST };

struct message_head {
    uint32_t kind, zero;
    uint64_t bytes;
};

struct world {
    struct el_bootstrap base;
    struct el_tcp_group *group; /* NULL: size 1 */
};

uint64_t el_tcp_token(const struct el_rendezvous *rendezvous)
{
    const char *const parts[] = {rendezvous->token, rendezvous->secret};
    uint64_t hash = EL_HASH_BEGIN;
    for (int i = 0; i < 2; i++) {
        const char *part = parts[i] ? parts[i] : "";
        hash = el_hash(hash, part, strlen(part) + 1); /* with the terminator, which separates the parts */
    }
    /* torchrun calls unnamed jobs "none"; the port tells two of them apart. */
    return (hash ^ (uint64_t)rendezvous->port) * EL_HASH_PRIME;
}

double el_tcp_patience_s(const struct el_rendezvous *rendezvous)
{
    return rendezvous->patience_s > 0 ? rendezvous->patience_s : PATIENCE_S;
}

int64_t el_tcp_deadline_ns(const struct el_rendezvous *rendezvous)
{
    return el_clock_ns() + (int64_t)(el_tcp_patience_s(rendezvous) * 1e9);
}

void el_tcp_link_close(struct el_tcp_link *link)
{
    for (int i = 0; i < EL_TCP_CHANNELS; i++) {
        if (link->sockets[i] >= 0) close(link->sockets[i]);
        link->sockets[i] = -1;
    }
}

static int socket_to(const struct world *world, int rank)
{
    return atomic_load(&world->group->peers[rank].to[EL_TCP_LANE_DATA]);
}

static enum el_status send_message(struct world *world, int rank, enum message_kind kind, const void *data,
                                   size_t bytes)
{
    const struct message_head head = {.kind = kind, .bytes = bytes};
    int socket = socket_to(world, rank), number = el_tcp_write(socket, &head, sizeof head);
    if (number == 0) number = el_tcp_write(socket, data, bytes);
    return number == 0 ? EL_OK : el_tcp_fail_rank(world->group, rank, number);
}

static enum el_status read_bytes(struct world *world, int rank, void *data, size_t bytes)
{
    int number = el_tcp_read(socket_to(world, rank), data, bytes, -1);
    return number == 0 ? EL_OK : el_tcp_fail_rank(world->group, rank, number);
}

static enum el_status await_rank(struct world *world, int rank)
{
    struct pollfd waits = {.fd = socket_to(world, rank), .events = POLLIN};
    const double timeout_s = world->base.timeout_s;
    char silent[96] = "", reason[EL_TCP_REASON_BYTES];
    while (timeout_s > 0 && poll(&waits, 1, (int)(timeout_s * 1e3) + 1) == 0) {
        el_tcp_silent(world->group, silent, sizeof silent);
        if (!*silent) continue;
        snprintf(reason, sizeof reason, "rank %s does not answer for %g s (stopped?)", silent, timeout_s);
        el_tcp_give_up(world->group, reason); /* or each call would wait as long */
        return el_tcp_fail_aborted(world->group);
    }
    return EL_OK;
}

static enum el_status read_head(struct world *world, int rank, enum message_kind kind, size_t *bytes_p)
{
    struct message_head head;
    EL_TRY(await_rank(world, rank));
    EL_TRY(read_bytes(world, rank, &head, sizeof head));
    if (head.kind != kind)
        return el_fail(EL_ERR_INTERNAL, "bootstrap tcp: ranks %d and %d called different collectives", world->base.rank,
                       rank);
    *bytes_p = (size_t)head.bytes;
    return EL_OK;
}

static enum el_status read_text(struct world *world, int rank, char **text_p)
{
    size_t bytes = 0;
    EL_TRY(read_head(world, rank, MESSAGE_GATHER, &bytes));
    if (bytes > TEXT_MAX)
        return el_fail(EL_ERR_PEER, "bootstrap tcp: rank %d announces a text of %zu bytes: at most %d", rank, bytes,
                       TEXT_MAX);
    char *text = malloc(bytes + 1);
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap tcp: %zu bytes from rank %d: no memory", bytes, rank);
    enum el_status status = read_bytes(world, rank, text, bytes);
    if (status != EL_OK) {
        free(text);
        return status;
    }
    text[bytes] = 0;
    *text_p = text;
    return EL_OK;
}

static enum el_status gather(struct el_bootstrap *bootstrap, const char *text, char **texts)
{
    struct world *world = (struct world *)bootstrap;
    if (!texts) return send_message(world, 0, MESSAGE_GATHER, text, strlen(text));
    texts[0] = strdup(text);
    if (!texts[0]) return el_fail(EL_ERR_HOST_MEMORY, "gather: no memory");
    for (int rank = 1; rank < bootstrap->size; rank++) EL_TRY(read_text(world, rank, &texts[rank]));
    return EL_OK;
}

static enum el_status broadcast(struct el_bootstrap *bootstrap, void *data, size_t bytes)
{
    struct world *world = (struct world *)bootstrap;
    size_t coming = 0;
    for (int rank = 1; bootstrap->rank == 0 && rank < bootstrap->size; rank++)
        EL_TRY(send_message(world, rank, MESSAGE_BROADCAST, data, bytes));
    if (bootstrap->rank == 0) return EL_OK;
    EL_TRY(read_head(world, 0, MESSAGE_BROADCAST, &coming));
    if (coming != bytes)
        return el_fail(EL_ERR_INTERNAL, "bootstrap tcp: rank %d awaits %zu bytes, and rank 0 sends %zu",
                       bootstrap->rank, bytes, coming);
    return read_bytes(world, 0, data, bytes);
}

/* Rank 0 may have several; the ring's neighbour uses the last rank's. */
static void address(const struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    const struct world *world = (const struct world *)bootstrap;
    char mine[EL_TCP_ADDRESS_BYTES];
    if (bootstrap->size == 1) return;
    el_tcp_address(socket_to(world, bootstrap->rank == 0 ? bootstrap->size - 1 : 0), false, mine);
    snprintf(text, bytes, "%s", mine);
}

static void end_job(struct el_bootstrap *bootstrap, int exit_status)
{
    struct world *world = (struct world *)bootstrap;
    if (bootstrap->size == 1) _exit(exit_status);
    el_tcp_end_job(world->group, exit_status);
}

static void silent(struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    if (bootstrap->size > 1) el_tcp_silent(((struct world *)bootstrap)->group, text, bytes);
}

static void close_world(struct el_bootstrap *bootstrap)
{
    el_tcp_close(((struct world *)bootstrap)->group);
    free(bootstrap);
}

static const struct el_bootstrap_ops tcp_ops = {
    .kind = "tcp",
    .gather = gather,
    .broadcast = broadcast,
    .address = address,
    .silent = silent,
    .abort = end_job,
    .close = close_world,
};

static void take_link(struct el_tcp_peer *peer, struct el_tcp_link link)
{
    atomic_store(&peer->to[EL_TCP_LANE_DATA], link.sockets[EL_TCP_DATA]);
    atomic_store(&peer->to[EL_TCP_LANE_ALARM], link.sockets[EL_TCP_ALARM]);
    el_tcp_address(link.sockets[EL_TCP_ALARM], true, peer->host);
    el_tcp_expect_answers(link.sockets[EL_TCP_ALARM]);
}

static enum el_status meet(const struct el_rendezvous *rendezvous, struct world *world)
{
    bool host = rendezvous->rank == 0;
    if (rendezvous->size == 1) return EL_OK;
    struct el_tcp_link *links = calloc((size_t)rendezvous->size, sizeof *links);
    world->group = el_tcp_create("bootstrap tcp", rendezvous->rank, rendezvous->size);
    enum el_status status = links && world->group ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "bootstrap tcp: no memory");
    for (int i = 0; links && i < rendezvous->size; i++) links[i] = (struct el_tcp_link){.sockets = {-1, -1}};
    if (status == EL_OK) status = host ? el_tcp_host(rendezvous, links) : el_tcp_visit(rendezvous, &links[0]);
    if (world->group) world->group->of_job = true;
    for (int i = host; status == EL_OK && i < (host ? rendezvous->size : 1); i++)
        take_link(&world->group->peers[i], links[i]);
    free(links);
    return status == EL_OK ? el_tcp_attend(world->group) : status;
}

enum el_status el_bootstrap_check_files(int ranks)
{
    struct rlimit limit;
    if (ranks <= 1 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return EL_OK;
    unsigned long long need = EL_TCP_CHANNELS * ((unsigned long long)ranks - 1) + OTHER_FILES;
    if (need <= limit.rlim_cur) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "bootstrap tcp: %d ranks need %llu open files on rank 0, and %llu are allowed: start fewer ranks, "
                   "or raise the limit (ulimit -n)",
                   ranks, need, (unsigned long long)limit.rlim_cur);
}

static enum el_status check(const struct el_rendezvous *r)
{
    if (r->size < 1 || r->rank < 0 || r->rank >= r->size)
        return el_fail(EL_ERR_INVALID, "bootstrap tcp: rank %d of %d ranks", r->rank, r->size);
    if (r->size > 1 && (!r->host || !r->host[0] || r->port < 1 || r->port > 65535))
        return el_fail(EL_ERR_INVALID, "bootstrap tcp: '%s:%d' is no place to meet at: set MASTER_ADDR and MASTER_PORT",
                       r->host ? r->host : "", r->port);
    return r->rank == 0 ? el_bootstrap_check_files(r->size) : EL_OK;
}

enum el_status el_bootstrap_open_tcp(const struct el_rendezvous *rendezvous, struct el_bootstrap **bootstrap_p)
{
    EL_TRY(check(rendezvous));
    struct world *world = calloc(1, sizeof *world);
    if (!world) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap tcp: no memory");
    world->base = (struct el_bootstrap){.ops = &tcp_ops, .rank = rendezvous->rank, .size = rendezvous->size};
    enum el_status status = meet(rendezvous, world);
    if (status == EL_OK)
        *bootstrap_p = &world->base;
    else
        close_world(&world->base);
    return status;
}
