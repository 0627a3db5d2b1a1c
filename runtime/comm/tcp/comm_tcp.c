/* The communicator `tcp`: a ring of sockets between ranks on any hosts, the place that gloo has in PyTorch. This file
 * opens, aborts and closes it; how an operation's bytes move is transfer.c's.
 *
 * Each rank listens at the address by which it and rank 0 reach each other, on a port of its own; rank 0 hands the list
 * of addresses round; each connects to the next rank. A rank that is gone or gives up closes its connections: both
 * neighbours notice at once, give up too, and so it goes round the ring.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/choose.h"
#include "runtime/comm/ring.h"
#include "runtime/comm/share.h"
#include "runtime/comm/tcp/group.h"
#include "runtime/comm/tcp/socket.h"

enum { CONNECT_S = 30, HELLO_S = 2, ROW_BYTES = 96 };

struct hello {
    char magic[8];
    uint64_t key; /* of this group, from rank 0 */
    uint64_t rank;
};
#define HELLO_MAGIC "el-ring"

/* What rank 0 hands round: where each rank listens. */
struct list {
    uint64_t key;
    char rows[][ROW_BYTES]; /* [size] "address port" */
};

static void abort_group(void *state)
{
    struct el_tcp_group *group = state;
    atomic_store(&group->aborted, 1);
    eventfd_write(group->wake, 1);
    shutdown(group->next, SHUT_RDWR);
    shutdown(group->before, SHUT_RDWR);
}

static void close_group(void *state)
{
    struct el_tcp_group *group = state;
    if (!group) return;
    if (group->next >= 0) close(group->next);
    if (group->before >= 0) close(group->before);
    if (group->wake >= 0) close(group->wake);
    free(group->inbox);
    free(group->stage);
    free(group);
}

/* ---- the list of addresses ---- */

/* Bootstraps that know no address serve ranks of one host: there the loopback is one. Collective. */
static enum el_status find_address(struct el_bootstrap *bootstrap, char address[EL_TCP_ADDRESS_BYTES])
{
    el_bootstrap_address(bootstrap, address, EL_TCP_ADDRESS_BYTES);
    bool known = address[0] != 0;
    if (known) return EL_OK;
    bool one_host = el_comm_on_one_host(bootstrap);
    snprintf(address, EL_TCP_ADDRESS_BYTES, "127.0.0.1");
    if (one_host) return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "tcp communicator: the bootstrap %s knows no addresses between hosts: use --comm mpi, or "
                   "start the ranks with torchrun's variables",
                   el_bootstrap_kind(bootstrap));
}

static enum el_status listen_there(const char *address, int *listener_p, char row[ROW_BYTES])
{
    int number = el_tcp_listen(address, 0, true, listener_p);
    if (number != 0) {
        errno = number;
        return el_fail_errno("tcp communicator: cannot listen at %s", address);
    }
    snprintf(row, ROW_BYTES, "%s %d", address, el_tcp_port(*listener_p));
    return EL_OK;
}

/* Everyone's row, and rank 0's key. Collective. */
static enum el_status share_list(struct el_bootstrap *bootstrap, const char *row, struct list *list)
{
    if (getrandom(&list->key, sizeof list->key, 0) != (ssize_t)sizeof list->key) /* an old kernel: hard to guess only */
        list->key = (uint64_t)el_clock_ns() ^ (uint64_t)getpid() << 40;
    EL_TRY(el_share_texts(bootstrap, row, ROW_BYTES, list->rows[0]));
    return el_bootstrap_broadcast(bootstrap, &list->key, sizeof list->key);
}

/* ---- the ring ---- */

static enum el_status connect_next(struct el_tcp_group *group, const struct list *list, int64_t deadline_ns)
{
    char address[ROW_BYTES], why[EL_TCP_WHY_BYTES];
    int rank = el_ring_wrap(group->rank + 1, group->size), port = 0;
    bool hopeless;
    if (sscanf(list->rows[rank], "%95s %d", address, &port) != 2)
        return el_fail(EL_ERR_INTERNAL, "tcp communicator: '%s' is no address of rank %d", list->rows[rank], rank);
    if (!el_tcp_connect(address, port, deadline_ns, &group->next, why, &hopeless))
        return el_fail(EL_ERR_PEER, "tcp communicator: rank %d cannot reach rank %d at %s:%d: %s", group->rank, rank,
                       address, port, why);
    const struct hello hello = {.magic = HELLO_MAGIC, .key = list->key, .rank = (uint64_t)group->rank};
    int number = el_tcp_write(group->next, &hello, sizeof hello);
    if (number == 0) return EL_OK;
    return el_fail(EL_ERR_PEER, "tcp communicator: rank %d is gone (%s)", rank, strerror(number));
}

/* Others who come are turned away. */
static enum el_status accept_before(struct el_tcp_group *group, int listener, uint64_t key, int64_t deadline_ns)
{
    int before = el_ring_wrap(group->rank - 1, group->size), number;
    const struct hello wanted = {.magic = HELLO_MAGIC, .key = key, .rank = (uint64_t)before};
    struct hello hello;
    int socket;
    while ((number = el_tcp_accept(listener, deadline_ns, &socket)) == 0) {
        int64_t soon_ns = el_clock_ns() + (int64_t)HELLO_S * 1000000000;
        if (el_tcp_read(socket, &hello, sizeof hello, soon_ns) == 0 && memcmp(&hello, &wanted, sizeof hello) == 0) {
            group->before = socket;
            return EL_OK;
        }
        close(socket);
    }
    return el_fail(EL_ERR_PEER, "tcp communicator: rank %d did not connect to rank %d: %s", before, group->rank,
                   strerror(number));
}

static enum el_status join_ring(struct el_tcp_group *group, int listener, const struct list *list)
{
    int64_t deadline_ns = el_clock_ns() + (int64_t)CONNECT_S * 1000000000;
    EL_TRY(connect_next(group, list, deadline_ns)); /* nobody waits here: the listener takes it */
    return accept_before(group, listener, list->key, deadline_ns);
}

/* ---- life ---- */

static struct el_tcp_group *create(const struct el_bootstrap *bootstrap)
{
    struct el_tcp_group *group = calloc(1, sizeof *group);
    if (!group) return NULL;
    group->rank = el_bootstrap_rank(bootstrap);
    group->size = el_bootstrap_size(bootstrap);
    group->next = group->before = -1;
    group->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    group->inbox = aligned_alloc(64, EL_TCP_INBOX_BYTES);
    group->stage = aligned_alloc(64, EL_TCP_STAGE_BYTES);
    if (group->wake >= 0 && group->inbox && group->stage) return group;
    close_group(group);
    return NULL;
}

/* Every rank calls every collective of this, whatever failed before: nobody is left waiting. */
static enum el_status open_ring(struct el_tcp_group *group, struct el_bootstrap *bootstrap, struct list *list)
{
    char address[EL_TCP_ADDRESS_BYTES], row[ROW_BYTES] = "";
    int listener = -1;
    enum el_status status = find_address(bootstrap, address);
    if (status == EL_OK) status = listen_there(address, &listener, row);
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = share_list(bootstrap, row, list);
    if (status == EL_OK) status = el_bootstrap_agree(bootstrap, join_ring(group, listener, list));
    if (listener >= 0) close(listener);
    return status;
}

static enum el_status open_ranks(struct el_bootstrap *bootstrap, void **state_p)
{
    struct el_tcp_group *group = create(bootstrap);
    struct list *list = calloc(1, sizeof *list + (size_t)el_bootstrap_size(bootstrap) * ROW_BYTES);
    bool made = group && list;
    enum el_status status =
        el_bootstrap_agree(bootstrap, made ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "tcp communicator: no memory"));
    if (made && status == EL_OK) status = open_ring(group, bootstrap, list);
    free(list);
    if (status != EL_OK) {
        close_group(group);
        return status;
    }
    *state_p = group;
    return EL_OK;
}

/* A reduce goes once round the whole ring. */
static struct el_comm_traffic traffic(const struct el_comm_shape *shape)
{
    uint64_t all = (uint64_t)shape->count * shape->element_bytes;
    return shape->verb == EL_COMM_REDUCE ? (struct el_comm_traffic){all, all} : el_ring_traffic(shape);
}

static const struct el_comm_ops tcp_ops = {
    .verbs = EL_COMM_FIRST_VERBS,
    .run = el_tcp_run,
    .traffic = traffic,
    .abort = abort_group,
    .close = close_group,
};

const struct el_comm_backend el_comm_tcp_backend = {.name = "tcp", .ops = &tcp_ops, .open_ranks = open_ranks};
