/* Each rank listens on a port of its own; all know all addresses. Who has something to send connects: the other side's
 * kernel accepts, so no order can deadlock. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/share.h"
#include "runtime/comm/tcp/comm_tcp.h"

enum { CONNECT_S = 30, PAUSE_NS = 20000000 };
static const int64_t HELLO_NS = 2000000000;

#define MAGIC "el-mesh"

void el_tcp_name(const struct el_tcp_group *group, int rank, char name[EL_TCP_NAME_BYTES])
{
    snprintf(name, EL_TCP_NAME_BYTES, "rank %d (host %s)", rank, group->peers[rank].host);
}

/* A bootstrap without addresses serves ranks of one host, which use the loopback. Collective. */
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

enum el_status el_tcp_mesh_listen(struct el_tcp_group *group, const char *address, char row[EL_TCP_ROW_BYTES])
{
    char host[EL_TCP_HOST_BYTES] = "";
    int number = el_tcp_listen(address, 0, true, &group->listener);
    if (number != 0) {
        errno = number;
        return el_fail_errno("tcp communicator: cannot listen at %s", address);
    }
    gethostname(host, sizeof host - 1);
    snprintf(row, EL_TCP_ROW_BYTES, "%s %d %s", address, el_tcp_port(group->listener), host[0] ? host : "?");
    return EL_OK;
}

enum el_status el_tcp_mesh_learn(struct el_tcp_group *group, int rank, const char *row)
{
    struct el_tcp_peer *peer = &group->peers[rank];
    if (sscanf(row, "%63s %d %63s", peer->address, &peer->port, peer->host) == 3) return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "tcp communicator: '%s' is not an address (rank %d)", row, rank);
}

uint64_t el_tcp_mesh_key(void)
{
    uint64_t key;
    if (getrandom(&key, sizeof key, 0) == (ssize_t)sizeof key) return key;
    return (uint64_t)el_clock_ns() ^ (uint64_t)getpid() << 40; /* old kernel: only hard to guess */
}

static enum el_status share_list(struct el_tcp_group *group, struct el_bootstrap *bootstrap, const char *row)
{
    char *rows = calloc((size_t)group->size, EL_TCP_ROW_BYTES);
    enum el_status status =
        el_bootstrap_agree(bootstrap, rows ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "tcp communicator: no memory"));
    group->key = el_tcp_mesh_key();
    if (status == EL_OK) status = el_share_texts(bootstrap, row, EL_TCP_ROW_BYTES, rows);
    if (status == EL_OK) status = el_bootstrap_broadcast(bootstrap, &group->key, sizeof group->key);
    for (int i = 0; i < group->size && status == EL_OK; i++)
        status = el_tcp_mesh_learn(group, i, rows + (size_t)i * EL_TCP_ROW_BYTES);
    free(rows);
    return status;
}

/* Every rank makes all collective calls, whatever failed before. */
enum el_status el_tcp_mesh_open(struct el_tcp_group *group, struct el_bootstrap *bootstrap)
{
    char address[EL_TCP_ADDRESS_BYTES], row[EL_TCP_ROW_BYTES] = "";
    enum el_status status = find_address(bootstrap, address);
    if (status == EL_OK) status = el_tcp_mesh_listen(group, address, row);
    status = el_bootstrap_agree(bootstrap, status);
    return status == EL_OK ? share_list(group, bootstrap, row) : status;
}

static enum el_status connect_to(struct el_tcp_group *group, int rank, int *socket_p)
{
    const struct el_tcp_peer *peer = &group->peers[rank];
    int64_t deadline_ns = el_clock_ns() + (int64_t)CONNECT_S * 1000000000;
    char why[EL_TCP_WHY_BYTES], name[EL_TCP_NAME_BYTES];
    bool hopeless;
    if (group->deadline_ns && group->deadline_ns < deadline_ns) deadline_ns = group->deadline_ns;
    while (!el_tcp_connect(peer->address, peer->port, deadline_ns, socket_p, why, &hopeless)) {
        if (atomic_load(&group->aborted)) return el_tcp_fail_aborted(group);
        el_tcp_name(group, rank, name);
        if (hopeless || el_clock_ns() + PAUSE_NS > deadline_ns)
            return el_fail(EL_ERR_PEER, "tcp communicator: rank %d cannot reach %s at %s:%d: %s", group->rank, name,
                           peer->address, peer->port, why);
        el_clock_sleep_until(el_clock_ns() + PAUSE_NS);
    }
    return EL_OK;
}

enum el_status el_tcp_mesh_to(struct el_tcp_group *group, int rank, enum el_tcp_lane lane, int *socket_p)
{
    const struct el_tcp_introduction hello = {
        .magic = MAGIC, .key = group->key, .rank = (uint32_t)group->rank, .lane = (uint32_t)lane};
    int made = atomic_load(&group->peers[rank].to[lane]);
    if (made < 0) {
        EL_TRY(connect_to(group, rank, &made));
        int number = el_tcp_write(made, &hello, sizeof hello);
        if (number != 0) {
            close(made);
            return el_tcp_fail_rank(group, rank, number);
        }
        if (lane == EL_TCP_LANE_ALARM) el_tcp_expect_answers(made);
        atomic_store(&group->peers[rank].to[lane], made);
        eventfd_write(group->bell, 1);
    }
    *socket_p = made;
    return EL_OK;
}

static bool belongs_here(const struct el_tcp_group *group, const struct el_tcp_introduction *hello)
{
    return memcmp(hello->magic, MAGIC, sizeof hello->magic) == 0 && hello->key == group->key &&
           hello->rank < (uint32_t)group->size && hello->lane < EL_TCP_LANES &&
           atomic_load(&group->peers[hello->rank].from[hello->lane]) < 0;
}

static struct el_tcp_guest dismiss(struct el_tcp_group *group, int i)
{
    struct el_tcp_guest guest = group->guests[i];
    memmove(&group->guests[i], &group->guests[i + 1], (size_t)(--group->n_guests - i) * sizeof guest);
    return guest;
}

static void hear(struct el_tcp_group *group, int i)
{
    struct el_tcp_guest *guest = &group->guests[i];
    struct el_tcp_introduction *hello = &guest->introduction;
    ssize_t got = recv(guest->socket, (char *)hello + guest->have, sizeof *hello - guest->have, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got > 0) guest->have += (size_t)got;
    if (got > 0 && guest->have < sizeof *hello) return;
    const struct el_tcp_guest known = dismiss(group, i);
    if (got <= 0 || !belongs_here(group, &known.introduction)) {
        close(known.socket);
        return;
    }
    if (known.introduction.lane == EL_TCP_LANE_ALARM) el_tcp_expect_answers(known.socket);
    atomic_store(&group->peers[known.introduction.rank].from[known.introduction.lane], known.socket);
    eventfd_write(group->news, 1);
}

static void hear_all(struct el_tcp_group *group)
{
    for (int i = group->n_guests - 1; i >= 0; i--) hear(group, i);
}

/* A new guest is heard before it can be the first of many: members introduce themselves at once. */
void el_tcp_mesh_take(struct el_tcp_group *group)
{
    int socket;
    hear_all(group);
    for (int i = 0; i < EL_TCP_GUESTS; i++) {
        int number = el_tcp_accept(group->listener, el_clock_ns(), &socket);
        if (group->n_guests == EL_TCP_GUESTS || (number == EMFILE && group->n_guests > 0))
            close(dismiss(group, 0).socket);
        if (number != 0) return;
        group->guests[group->n_guests] = (struct el_tcp_guest){.socket = socket, .since_ns = el_clock_ns()};
        hear(group, group->n_guests++);
    }
}

void el_tcp_mesh_take_all(struct el_tcp_group *group)
{
    struct pollfd polls[EL_TCP_GUESTS];
    el_tcp_mesh_take(group);
    while (group->n_guests > 0) {
        int64_t left_ns = group->guests[0].since_ns + HELLO_NS - el_clock_ns();
        for (int i = 0; i < group->n_guests; i++)
            polls[i] = (struct pollfd){.fd = group->guests[i].socket, .events = POLLIN};
        if (left_ns <= 0)
            close(dismiss(group, 0).socket);
        else
            poll(polls, (nfds_t)group->n_guests, (int)(left_ns / 1000000) + 1);
        hear_all(group);
    }
}

void el_tcp_mesh_close(struct el_tcp_group *group)
{
    for (int i = 0; i < group->size; i++)
        for (int lane = 0; lane < EL_TCP_LANES; lane++) {
            int to = atomic_exchange(&group->peers[i].to[lane], -1);
            int from = atomic_exchange(&group->peers[i].from[lane], -1);
            if (to >= 0) close(to);
            if (from >= 0) close(from);
        }
    while (group->n_guests > 0) close(dismiss(group, 0).socket);
    if (group->listener >= 0) close(group->listener);
    group->listener = -1;
}
