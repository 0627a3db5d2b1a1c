/* A thread per group that sleeps until somebody connects, mail comes, or a neighbour raises an alarm.
 *
 * Each rank has an alarm connection to the next rank (in the bootstrap: rank 0 with each other), on which it tells
 * that it gave up. A rank that ends without a farewell is gone, and so is one whose host stops answering keep-alives
 * (el_tcp_expect_answers). Whoever notices tells its neighbours, and so on round the ring. Data connections have no
 * such limit: a rank that computes for long is not gone. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/tcp/comm_tcp.h"

enum alarm_kind { FAREWELL = 1, GIVEN_UP, END_JOB, ASK, ANSWER };

struct alarm_message {
    uint32_t kind;
    int32_t rank, exit_status; /* of END_JOB: who ends it */
    uint32_t zero;
    char reason[EL_TCP_REASON_BYTES];
};

enum { HALF_MESSAGE_NS = 1000000000, PATIENCE_NS = 1000000000 };

/* Under the mutex. If a message does not fit into the connection's buffer, nobody reads there any more. */
static void tell(struct el_tcp_group *group, const struct alarm_message *message, int only, int but)
{
    for (int i = 0; i < group->size; i++) {
        if (i == but || (only >= 0 && i != only)) continue;
        int sockets[] = {atomic_load(&group->peers[i].to[EL_TCP_LANE_ALARM]),
                         atomic_load(&group->peers[i].from[EL_TCP_LANE_ALARM])};
        for (int k = 0; k < 2; k++)
            if (sockets[k] >= 0) send(sockets[k], message, sizeof *message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void shut_all(struct el_tcp_group *group)
{
    for (int i = 0; i < group->size; i++)
        for (int lane = 0; lane < EL_TCP_LANES; lane++) {
            if (lane == EL_TCP_LANE_ALARM) continue;
            shutdown(atomic_load(&group->peers[i].to[lane]), SHUT_RDWR);
            shutdown(atomic_load(&group->peers[i].from[lane]), SHUT_RDWR);
        }
}

void el_tcp_give_up(struct el_tcp_group *group, const char *reason)
{
    struct alarm_message message = {.kind = GIVEN_UP};
    snprintf(message.reason, sizeof message.reason, "%s", reason);
    pthread_mutex_lock(&group->mutex);
    if (!atomic_load(&group->aborted)) {
        memcpy(group->reason, message.reason, sizeof group->reason);
        tell(group, &message, -1, -1);
        atomic_store(&group->aborted, 1);
        shut_all(group);
        eventfd_write(group->news, 1);
        pthread_cond_broadcast(&group->failure);
    }
    pthread_mutex_unlock(&group->mutex);
}

enum el_status el_tcp_fail_aborted(struct el_tcp_group *group)
{
    pthread_mutex_lock(&group->mutex);
    enum el_status status = el_fail(EL_ERR_PEER, "%s: %s", group->kind, group->reason);
    pthread_mutex_unlock(&group->mutex);
    return status;
}

/* Waits for the reason: a rank that gives up sends it before it closes anything. */
enum el_status el_tcp_fail_rank(struct el_tcp_group *group, int rank, int number)
{
    int64_t until_ns = el_clock_ns() + PATIENCE_NS;
    char name[EL_TCP_NAME_BYTES];
    bool late = false;
    pthread_mutex_lock(&group->mutex);
    while (!atomic_load(&group->aborted) && !group->peers[rank].left && !late)
        late = !el_clock_cond_wait(&group->failure, &group->mutex, until_ns);
    pthread_mutex_unlock(&group->mutex);
    if (atomic_load(&group->aborted)) return el_tcp_fail_aborted(group);
    if (!late && group->of_job) return el_fail(EL_ERR_PEER, "%s: rank %d has left the job", group->kind, rank);
    el_tcp_name(group, rank, name);
    return el_fail(EL_ERR_PEER, "%s: %s has ended (%s)", group->kind, name,
                   number ? strerror(number) : "it closed its connection");
}

enum el_status el_tcp_wait(struct el_tcp_group *group, struct pollfd *polls, int n, int rank)
{
    struct timespec left = {0};
    char name[EL_TCP_NAME_BYTES];
    eventfd_t count;
    int64_t left_ns = group->deadline_ns ? group->deadline_ns - el_clock_ns() : 0;
    if (left_ns > 0) left = (struct timespec){.tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000};
    polls[0] = (struct pollfd){.fd = group->news, .events = POLLIN};
    int ready = ppoll(polls, (nfds_t)n, group->deadline_ns ? &left : NULL, NULL);
    if (ready < 0 && errno != EINTR) return el_fail_errno("tcp communicator: poll");
    if (ready > 0 && polls[0].revents) eventfd_read(group->news, &count);
    if (atomic_load(&group->aborted)) return el_tcp_fail_aborted(group);
    if (ready != 0 || !group->deadline_ns || el_clock_ns() < group->deadline_ns) return EL_OK;
    el_tcp_name(group, rank, name);
    return el_fail(EL_ERR_PEER, "tcp communicator: rank %d waited %g s for %s", group->rank,
                   (double)group->timeout_ns * 1e-9, name);
}

static int failing(int exit_status)
{
    return exit_status & 0xff ? exit_status : 1;
}

void el_tcp_end_job(struct el_tcp_group *group, int exit_status)
{
    const struct alarm_message message = {.kind = END_JOB, .rank = group->rank, .exit_status = failing(exit_status)};
    pthread_mutex_lock(&group->mutex);
    tell(group, &message, -1, -1);
    _exit(message.exit_status);
}

static int next_silent(const struct el_tcp_group *group, int rank)
{
    while (rank < group->size &&
           (group->peers[rank].answered || atomic_load(&group->peers[rank].to[EL_TCP_LANE_ALARM]) < 0))
        rank++;
    return rank;
}

void el_tcp_silent(struct el_tcp_group *group, char *text, size_t bytes)
{
    const struct alarm_message ask = {.kind = ASK};
    const int64_t until_ns = el_clock_ns() + PATIENCE_NS;
    size_t used = 0;
    pthread_mutex_lock(&group->mutex);
    for (int i = 0; i < group->size; i++) group->peers[i].answered = false;
    tell(group, &ask, -1, -1);
    while (next_silent(group, 0) < group->size)
        if (!el_clock_cond_wait(&group->failure, &group->mutex, until_ns)) break;
    for (int i = next_silent(group, 0); i < group->size && used + 16 < bytes; i = next_silent(group, i + 1))
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", used ? ", " : "", i);
    pthread_mutex_unlock(&group->mutex);
}

static void take(struct el_tcp_group *group, int rank, const struct alarm_message *message)
{
    const struct alarm_message answer = {.kind = ANSWER};
    struct el_tcp_peer *peer = &group->peers[rank];
    peer->left |= message->kind == FAREWELL;
    peer->answered |= message->kind == ANSWER;
    if (message->kind == ASK) tell(group, &answer, rank, -1);
    if (message->kind != END_JOB) return;
    if (group->rank == 0) tell(group, message, -1, rank);
    fprintf(stderr, "evenload: rank %d ends: rank %d ended the job with exit status %d\n", group->rank, message->rank,
            failing(message->exit_status));
    _exit(failing(message->exit_status));
}

/* Only the attendant reads there and changes `left`. */
static void hear(struct el_tcp_group *group, int rank, int socket)
{
    struct alarm_message message = {.kind = 0};
    char reason[EL_TCP_REASON_BYTES];
    int number = el_tcp_read(socket, &message, sizeof message, el_clock_ns() + HALF_MESSAGE_NS);
    bool silent = number == ETIMEDOUT || number == EHOSTUNREACH || number == ENETUNREACH;
    if (number == 0 && message.kind == GIVEN_UP) {
        message.reason[sizeof message.reason - 1] = 0;
        el_tcp_give_up(group, message.reason);
    } else if (number != 0) {
        snprintf(reason, sizeof reason, "rank %d %s (host %s)", rank, silent ? "does not answer" : "is gone",
                 group->peers[rank].host);
        el_tcp_give_up(group, reason);
    }
    pthread_mutex_lock(&group->mutex);
    if (number == 0)
        take(group, rank, &message);
    else
        group->peers[rank].left = true;
    pthread_cond_broadcast(&group->failure);
    pthread_mutex_unlock(&group->mutex);
}

struct rota {
    struct pollfd *polls; /* [2 + EL_TCP_GUESTS + 4 * size] */
    struct duty {
        int rank;
        enum el_tcp_lane lane;
        bool from;
    } * duties;
    bool *ended; /* [2 * size] mail to and from a rank: nothing more will come */
    int n;
};

static void add(struct rota *rota, int socket, int rank, enum el_tcp_lane lane, bool from)
{
    if (socket < 0) return;
    rota->duties[rota->n] = (struct duty){rank, lane, from};
    rota->polls[rota->n++] = (struct pollfd){.fd = socket, .events = POLLIN};
}

static void gather(struct el_tcp_group *group, struct rota *rota)
{
    rota->n = 0;
    add(rota, group->bell, -1, 0, false);
    add(rota, group->listener, -1, 0, true);
    for (int i = 0; i < group->n_guests; i++) add(rota, group->guests[i].socket, -1, 0, true);
    for (int i = 0; i < group->size; i++) {
        struct el_tcp_peer *peer = &group->peers[i];
        if (!peer->left) {
            add(rota, atomic_load(&peer->to[EL_TCP_LANE_ALARM]), i, EL_TCP_LANE_ALARM, false);
            add(rota, atomic_load(&peer->from[EL_TCP_LANE_ALARM]), i, EL_TCP_LANE_ALARM, true);
        }
        if (!rota->ended[2 * i]) add(rota, atomic_load(&peer->to[EL_TCP_LANE_MAIL]), i, EL_TCP_LANE_MAIL, false);
        if (!rota->ended[2 * i + 1]) add(rota, atomic_load(&peer->from[EL_TCP_LANE_MAIL]), i, EL_TCP_LANE_MAIL, true);
    }
}

/* A rank that left had connected before its farewell if it sent anything, so its mail ends with that connection. */
static void note_end_of_mail(struct el_tcp_group *group, const struct rota *rota, int rank)
{
    struct el_tcp_peer *peer = &group->peers[rank];
    if (peer->left && atomic_load(&peer->from[EL_TCP_LANE_MAIL]) < 0) el_tcp_mesh_take_all(group);
    bool made = atomic_load(&peer->from[EL_TCP_LANE_MAIL]) >= 0;
    if (made ? !rota->ended[2 * rank + 1] : !peer->left) return;
    atomic_store(&peer->post.ended, true);
    eventfd_write(group->news, 1);
}

static void serve(struct el_tcp_group *group, struct rota *rota, int i)
{
    struct duty duty = rota->duties[i];
    if (duty.rank < 0)
        el_tcp_mesh_take(group);
    else if (duty.lane == EL_TCP_LANE_ALARM && !group->peers[duty.rank].left)
        hear(group, duty.rank, rota->polls[i].fd);
    else if (duty.lane == EL_TCP_LANE_MAIL)
        rota->ended[2 * duty.rank + duty.from] =
            !(duty.from ? el_tcp_mail_take(group, duty.rank) : el_tcp_mail_hear(group, duty.rank));
    if (duty.rank >= 0) note_end_of_mail(group, rota, duty.rank);
}

static void *live(void *context)
{
    struct el_tcp_group *group = context;
    size_t places = 2 + EL_TCP_GUESTS + 4 * (size_t)group->size;
    struct rota rota = {.polls = calloc(places, sizeof *rota.polls),
                        .duties = calloc(places, sizeof *rota.duties),
                        .ended = calloc(2 * (size_t)group->size, sizeof *rota.ended)};
    bool on = rota.polls && rota.duties && rota.ended;
    eventfd_t rings;
    if (!on) el_tcp_give_up(group, "no memory to watch the connections");
    prctl(PR_SET_NAME, "el-tcp");
    while (on) {
        gather(group, &rota);
        if (poll(rota.polls, (nfds_t)rota.n, -1) < 0) continue;
        if (rota.polls[0].revents) eventfd_read(group->bell, &rings);
        on = !atomic_load(&group->dismissed);
        for (int i = 1; on && i < rota.n; i++)
            if (rota.polls[i].revents) serve(group, &rota, i);
    }
    free(rota.polls);
    free(rota.duties);
    free(rota.ended);
    return NULL;
}

enum el_status el_tcp_attend(struct el_tcp_group *group)
{
    int number = pthread_create(&group->attendant, NULL, live, group);
    group->attended = number == 0;
    return number == 0 ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "%s: no thread: %s", group->kind, strerror(number));
}

void el_tcp_dismiss(struct el_tcp_group *group)
{
    const struct alarm_message farewell = {.kind = FAREWELL};
    if (!group->attended) return;
    atomic_store(&group->dismissed, 1);
    eventfd_write(group->bell, 1);
    pthread_join(group->attendant, NULL);
    pthread_mutex_lock(&group->mutex);
    if (!atomic_load(&group->aborted)) tell(group, &farewell, -1, -1);
    pthread_mutex_unlock(&group->mutex);
}
