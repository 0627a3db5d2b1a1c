/* A collective of `tcp`: the rounds of rounds.h in order. One loop moves the outgoing and the incoming message
 * concurrently, combines on arrival, and sleeps when neither moves. Data to be forwarded leave while the rest still
 * arrives, so chains and rings are pipelined per byte. The first message to each rank has a header, which reveals
 * mismatched operations. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/base/clock.h"
#include "runtime/comm/combine.h"
#include "runtime/comm/rounds.h"
#include "runtime/comm/tcp/comm_tcp.h"

/* The most per call of send, before received data are handled. */
enum { SEND_BYTES = 512 * 1024 };

/* A message in flight; peer < 0: none. */
struct stream {
    int round, peer, socket;
    size_t head_done;
    char *at;
    const char *own; /* what to combine incoming data with; NULL: they overwrite */
    bool last;
    size_t bytes, done;
    bool blocked;
};

struct transfer {
    struct el_tcp_group *group;
    const struct el_comm_task *task;
    struct el_comm_shape shape;
    struct el_comm_sides sides;
    int n_rounds;
    struct stream out, in;
    size_t pending; /* bytes in the inbox: of an incomplete element */
    struct el_comm_header mine, theirs;
};

/* Dissemination barrier (Hensgen, Finkel and Manber, Two algorithms for barrier synchronization, 1988): after round
 * `i` each has heard of 2^(i+1) ranks. Headers only. */
static struct el_comm_round barrier_round(const struct transfer *t, int i)
{
    int n = t->group->size, distance = 1 << i;
    return (struct el_comm_round){.send = {.peer = (t->group->rank + distance) % n},
                                  .receive = {.peer = (t->group->rank + n - distance) % n}};
}

static int count_rounds(const struct transfer *t)
{
    int n = 0;
    if (t->task->verb != EL_COMM_BARRIER) return el_comm_rounds(&t->shape);
    while (1 << n < t->group->size) n++;
    return n;
}

static struct el_comm_round get_round(const struct transfer *t, int i)
{
    struct el_comm_round round = t->task->verb == EL_COMM_BARRIER ? barrier_round(t, i) : el_comm_round(&t->shape, i);
    bool moves = t->task->verb == EL_COMM_BARRIER;
    if (round.send.count == 0 && !moves) round.send.peer = -1;
    if (round.receive.count == 0 && !moves) round.receive.peer = -1;
    return round;
}

static void set_stream(const struct transfer *t, struct stream *stream, const struct el_comm_message *message,
                       uint64_t *headed)
{
    stream->peer = message->peer;
    stream->bytes = stream->done = 0;
    stream->blocked = false;
    stream->socket = -1;
    if (message->peer < 0) return;
    stream->head_done = *headed == t->group->collectives ? sizeof(struct el_comm_header) : 0;
    *headed = t->group->collectives;
    stream->at = el_comm_address(&t->sides, message->at);
    stream->own = el_comm_address(&t->sides, message->own);
    stream->last = message->last;
    stream->bytes = message->count * t->sides.width;
}

static bool is_over(const struct stream *stream)
{
    return stream->peer < 0 || (stream->head_done == sizeof(struct el_comm_header) && stream->done == stream->bytes);
}

static enum el_status begin_out(struct transfer *t, int i)
{
    struct el_comm_round round = get_round(t, i);
    t->out.round = i;
    set_stream(t, &t->out, &round.send, round.send.peer < 0 ? NULL : &t->group->peers[round.send.peer].headed_out);
    if (t->out.peer < 0) return EL_OK;
    return el_tcp_mesh_to(t->group, t->out.peer, EL_TCP_LANE_DATA, &t->out.socket);
}

static void begin_in(struct transfer *t, int i)
{
    struct el_comm_round round = get_round(t, i);
    t->in.round = i;
    set_stream(t, &t->in, &round.receive,
               round.receive.peer < 0 ? NULL : &t->group->peers[round.receive.peer].headed_in);
    t->pending = 0;
}

/* Whether the next outgoing message is the one arriving now. */
static bool goes_on(const struct transfer *t)
{
    if (t->out.round != t->in.round || t->out.round + 1 >= t->n_rounds || t->in.peer < 0) return false;
    struct el_comm_round next = get_round(t, t->out.round + 1);
    return next.send.peer >= 0 && el_comm_address(&t->sides, next.send.at) == t->in.at &&
           next.send.count * t->sides.width == t->in.bytes;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static enum el_status push_header(struct transfer *t, bool *moved_p)
{
    struct stream *out = &t->out;
    int more = out->bytes ? MSG_MORE : 0;
    while (out->head_done < sizeof t->mine) {
        ssize_t put = send(out->socket, (const char *)&t->mine + out->head_done, sizeof t->mine - out->head_done,
                           MSG_NOSIGNAL | MSG_DONTWAIT | more);
        if (put < 0 && errno == EINTR) continue;
        out->blocked = put < 0 && errno == EAGAIN;
        if (out->blocked) return EL_OK;
        if (put < 0) return el_tcp_fail_rank(t->group, out->peer, errno);
        out->head_done += (size_t)put;
        *moved_p = true;
    }
    return EL_OK;
}

static enum el_status push(struct transfer *t, bool *moved_p)
{
    struct stream *out = &t->out;
    if (is_over(out)) return EL_OK;
    EL_TRY(push_header(t, moved_p));
    while (out->head_done == sizeof t->mine && out->done < out->bytes) {
        size_t there = out->round > t->in.round ? t->in.done : out->bytes, bytes = least(there - out->done, SEND_BYTES);
        out->blocked = false;
        if (bytes == 0) return EL_OK;
        ssize_t put = send(out->socket, out->at + out->done, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (put < 0 && errno == EINTR) continue;
        out->blocked = put < 0 && errno == EAGAIN;
        if (out->blocked) return EL_OK;
        if (put < 0) return el_tcp_fail_rank(t->group, out->peer, errno);
        out->done += (size_t)put;
        *moved_p = true;
        if (bytes == SEND_BYTES) return EL_OK;
    }
    return EL_OK;
}

static enum el_status check_header(const struct transfer *t)
{
    const struct el_comm_task other = el_comm_header_task(&t->theirs);
    if (el_comm_same_task(t->task, &other)) return EL_OK;
    return el_comm_fail_different("tcp", t->group->rank, t->task, t->in.peer, &other);
}

static void combine(struct transfer *t, size_t got)
{
    struct stream *in = &t->in;
    size_t have = t->pending + got, whole = have - have % t->sides.width;
    const void *ins[] = {in->own + in->done, t->group->inbox};
    void *at = in->at + in->done;
    el_combine(t->task->reduction, t->task->dtype, in->last ? t->group->size : 0, &at, 1, ins, 2,
               whole / t->sides.width);
    t->pending = have - whole;
    memmove(t->group->inbox, t->group->inbox + whole, t->pending);
    in->done += whole;
}

/* One recv; *end_p: nothing more to read now. */
static enum el_status pull_once(struct transfer *t, bool *moved_p, bool *end_p)
{
    struct stream *in = &t->in;
    bool head = in->head_done < sizeof t->theirs, combines = !head && in->own;
    char *to = head ? (char *)&t->theirs + in->head_done : combines ? t->group->inbox + t->pending : in->at + in->done;
    size_t left = head ? sizeof t->theirs - in->head_done : in->bytes - in->done - t->pending;
    if (combines) left = least(left, EL_TCP_INBOX_BYTES - t->pending);
    ssize_t got = recv(in->socket, to, left, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) return EL_OK;
    in->blocked = *end_p = got < 0 && errno == EAGAIN;
    if (in->blocked) return EL_OK;
    if (got <= 0) return el_tcp_fail_rank(t->group, in->peer, got < 0 ? errno : 0);
    *moved_p = true;
    if (head)
        in->head_done += (size_t)got;
    else if (combines)
        combine(t, (size_t)got);
    else
        in->done += (size_t)got;
    *end_p = combines || is_over(in); /* combined data may leave first */
    return head && in->head_done == sizeof t->theirs ? check_header(t) : EL_OK;
}

static enum el_status pull(struct transfer *t, bool *moved_p)
{
    struct stream *in = &t->in;
    bool end = is_over(in);
    if (!end && in->socket < 0) in->socket = atomic_load(&t->group->peers[in->peer].from[EL_TCP_LANE_DATA]);
    if (!end && in->socket < 0) return EL_OK; /* the attendant will signal it */
    while (!end) EL_TRY(pull_once(t, moved_p, &end));
    return EL_OK;
}

static enum el_status go_on(struct transfer *t, bool *moved_p)
{
    bool out = is_over(&t->out), in = is_over(&t->in);
    int next = t->out.round + 1;
    if (out && ((in && t->in.round == t->out.round) || goes_on(t)) && next < t->n_rounds) {
        EL_TRY(begin_out(t, next));
        *moved_p = true;
    }
    if (in && t->in.round < t->out.round) {
        begin_in(t, t->in.round + 1);
        *moved_p = true;
    }
    return EL_OK;
}

static enum el_status wait_for_news(struct transfer *t)
{
    struct pollfd polls[] = {[1] = {.fd = t->out.blocked ? t->out.socket : -1, .events = POLLOUT},
                             [2] = {.fd = is_over(&t->in) ? -1 : t->in.socket, .events = POLLIN}};
    return el_tcp_wait(t->group, polls, 3, is_over(&t->in) ? t->out.peer : t->in.peer);
}

static enum el_status run_rounds(struct transfer *t)
{
    t->n_rounds = count_rounds(t);
    if (t->n_rounds == 0) return EL_OK;
    begin_in(t, 0);
    EL_TRY(begin_out(t, 0));
    for (;;) {
        bool moved = false;
        if (atomic_load(&t->group->aborted)) return el_tcp_fail_aborted(t->group);
        EL_TRY(push(t, &moved));
        EL_TRY(pull(t, &moved));
        EL_TRY(go_on(t, &moved));
        if (is_over(&t->out) && is_over(&t->in) && t->out.round == t->n_rounds - 1 && t->in.round == t->out.round)
            return EL_OK;
        if (!moved) EL_TRY(wait_for_news(t));
    }
}

enum el_status el_tcp_reserve(void *state, const struct el_comm_task *task)
{
    struct el_tcp_group *group = state;
    const struct el_comm_shape shape = el_comm_task_shape(task, group->rank, group->size);
    return el_comm_reserve_scratch("tcp", &shape, &group->scratch, &group->scratch_bytes);
}

static enum el_status collect(struct el_tcp_group *group, const struct el_comm_task *task)
{
    struct transfer t = {.group = group,
                         .task = task,
                         .shape = el_comm_task_shape(task, group->rank, group->size),
                         .mine = el_comm_task_header(task)};
    EL_TRY(el_tcp_reserve(group, task));
    group->collectives++;
    t.sides = (struct el_comm_sides){task->data, task->result, group->scratch, t.shape.element_bytes};
    el_comm_copy_own(&t.sides, &t.shape);
    return run_rounds(&t);
}

enum el_status el_tcp_run(void *state, const struct el_comm_task *task)
{
    static const char prefix[] = "tcp communicator: ";
    struct el_tcp_group *group = state;
    char reason[EL_TCP_REASON_BYTES];
    struct el_error error;
    group->deadline_ns = group->timeout_ns ? el_clock_ns() + group->timeout_ns : 0;
    enum el_status status = task->verb == EL_COMM_SEND   ? el_tcp_send(group, task)
                            : task->verb == EL_COMM_RECV ? el_tcp_receive(group, task)
                                                         : collect(group, task);
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &error);
    bool prefixed = strncmp(error.text, prefix, sizeof prefix - 1) == 0;
    snprintf(reason, sizeof reason, "rank %d gave up: %.180s", group->rank,
             error.text + (prefixed ? sizeof prefix - 1 : 0));
    el_tcp_give_up(group, reason);
    return el_error_give(&error);
}
