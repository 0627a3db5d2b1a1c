/* The bootstrap `tcp`: collectives between rank 0 and each other rank, over the data connections of the meeting. A
 * message is its kind and its length, then its bytes; the kinds catch ranks that call different collectives. */
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/comm/bootstrap_ops.h"
#include "runtime/comm/tcp/meeting.h"
#include "runtime/comm/tcp/socket.h"

/* TEXT_MAX: no rank's text comes near; a length beyond it is not one of ours. OTHER_FILES: what a process has open
 * beside its connections. */
enum { PATIENCE_S = 60, TEXT_MAX = 256 << 20, OTHER_FILES = 32 };

enum message_kind { MESSAGE_GATHER = 1, MESSAGE_BROADCAST };

struct message_head {
    uint32_t kind, zero;
    uint64_t bytes;
};

struct world {
    struct el_bootstrap base;
    struct el_tcp_link *links; /* [n_links]: all ranks' on rank 0, the first one unused; elsewhere one */
    int n_links;
    struct el_tcp_watch watch;
};

/* ---- what meeting.h promises to both of its sides ---- */

uint64_t el_tcp_token(const struct el_rendezvous *rendezvous)
{
    const char *const parts[] = {rendezvous->token, rendezvous->secret};
    uint64_t hash = EL_HASH_BEGIN;
    for (int i = 0; i < 2; i++) {
        const char *part = parts[i] ? parts[i] : "";
        hash = el_hash(hash, part, strlen(part) + 1); /* with its end: where the other begins */
    }
    /* torchrun calls jobs "none" that were given no name: two of them side by side have different ports. */
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

/* ---- collectives ---- */

/* `link`: the other rank on rank 0, 0 elsewhere. */
static enum el_status send_message(struct world *world, int link, enum message_kind kind, const void *data,
                                   size_t bytes)
{
    const struct message_head head = {.kind = kind, .bytes = bytes};
    int socket = world->links[link].sockets[EL_TCP_DATA];
    if (el_tcp_write(socket, &head, sizeof head) == 0 && el_tcp_write(socket, data, bytes) == 0) return EL_OK;
    return el_tcp_watch_explain(&world->watch, link);
}

static enum el_status read_head(struct world *world, int link, enum message_kind kind, size_t *bytes_p)
{
    struct message_head head;
    if (el_tcp_read(world->links[link].sockets[EL_TCP_DATA], &head, sizeof head, -1) != 0)
        return el_tcp_watch_explain(&world->watch, link);
    if (head.kind != kind)
        return el_fail(EL_ERR_INTERNAL, "bootstrap tcp: ranks %d and %d called different collectives", world->base.rank,
                       link);
    *bytes_p = (size_t)head.bytes;
    return EL_OK;
}

static enum el_status read_bytes(struct world *world, int link, void *data, size_t bytes)
{
    if (el_tcp_read(world->links[link].sockets[EL_TCP_DATA], data, bytes, -1) == 0) return EL_OK;
    return el_tcp_watch_explain(&world->watch, link);
}

static enum el_status read_text(struct world *world, int link, char **text_p)
{
    size_t bytes;
    EL_TRY(read_head(world, link, MESSAGE_GATHER, &bytes));
    if (bytes > TEXT_MAX)
        return el_fail(EL_ERR_PEER, "bootstrap tcp: rank %d announces a text of %zu bytes: at most %d", link, bytes,
                       TEXT_MAX);
    char *text = malloc(bytes + 1);
    if (!text) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap tcp: %zu bytes from rank %d: no memory", bytes, link);
    enum el_status status = read_bytes(world, link, text, bytes);
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
    size_t coming;
    for (int rank = 1; bootstrap->rank == 0 && rank < bootstrap->size; rank++)
        EL_TRY(send_message(world, rank, MESSAGE_BROADCAST, data, bytes));
    if (bootstrap->rank == 0) return EL_OK;
    EL_TRY(read_head(world, 0, MESSAGE_BROADCAST, &coming));
    if (coming != bytes)
        return el_fail(EL_ERR_INTERNAL, "bootstrap tcp: rank %d awaits %zu bytes, and rank 0 sends %zu",
                       bootstrap->rank, bytes, coming);
    return read_bytes(world, 0, data, bytes);
}

/* Rank 0 may have several; the ring's neighbour comes in by the last rank's. */
static void address(const struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    const struct world *world = (const struct world *)bootstrap;
    char mine[EL_TCP_ADDRESS_BYTES];
    if (bootstrap->size == 1) return;
    el_tcp_address(world->links[bootstrap->rank == 0 ? bootstrap->size - 1 : 0].sockets[EL_TCP_DATA], false, mine);
    snprintf(text, bytes, "%s", mine);
}

/* ---- life ---- */

static void end_job(struct el_bootstrap *bootstrap, int exit_status)
{
    struct world *world = (struct world *)bootstrap;
    if (bootstrap->size == 1) _exit(exit_status);
    el_tcp_watch_end_job(&world->watch, exit_status);
}

static void silent(struct el_bootstrap *bootstrap, char *text, size_t bytes)
{
    if (bootstrap->size > 1) el_tcp_watch_silent(&((struct world *)bootstrap)->watch, text, bytes);
}

static void destroy(struct world *world)
{
    for (int i = 0; i < world->n_links; i++) el_tcp_link_close(&world->links[i]);
    free(world->links);
    free(world);
}

static void close_world(struct el_bootstrap *bootstrap)
{
    struct world *world = (struct world *)bootstrap;
    if (bootstrap->size > 1) el_tcp_watch_stop(&world->watch);
    destroy(world);
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

static enum el_status meet(const struct el_rendezvous *rendezvous, struct world *world)
{
    bool host = rendezvous->rank == 0;
    if (rendezvous->size == 1) return EL_OK;
    EL_TRY(host ? el_tcp_host(rendezvous, world->links) : el_tcp_visit(rendezvous, &world->links[0]));
    world->watch = (struct el_tcp_watch){
        .rank = rendezvous->rank, .first = host ? 1 : 0, .n_links = world->n_links, .links = world->links, .wake = -1};
    return el_tcp_watch_start(&world->watch);
}

/* Rank 0 keeps its connections to all others open. */
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

static struct world *create(const struct el_rendezvous *rendezvous)
{
    int n_links = rendezvous->rank == 0 ? rendezvous->size : 1;
    struct world *world = calloc(1, sizeof *world);
    struct el_tcp_link *links = calloc((size_t)n_links, sizeof *links);
    if (!world || !links) {
        free(world);
        free(links);
        return NULL;
    }
    world->base = (struct el_bootstrap){.ops = &tcp_ops, .rank = rendezvous->rank, .size = rendezvous->size};
    world->links = links;
    world->n_links = n_links;
    for (int i = 0; i < n_links; i++) links[i] = (struct el_tcp_link){.sockets = {-1, -1}};
    return world;
}

enum el_status el_bootstrap_open_tcp(const struct el_rendezvous *rendezvous, struct el_bootstrap **bootstrap_p)
{
    EL_TRY(check(rendezvous));
    struct world *world = create(rendezvous);
    if (!world) return el_fail(EL_ERR_HOST_MEMORY, "bootstrap tcp: no memory");
    enum el_status status = meet(rendezvous, world);
    if (status == EL_OK)
        *bootstrap_p = &world->base;
    else
        destroy(world);
    return status;
}
