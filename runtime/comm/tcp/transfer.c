/* An operation of the communicator `tcp` as two streams of bytes, one that leaves to the next rank and one that comes
 * from the one before. What leaves is what came, some way behind, and before that what this rank has of its own
 * (`ahead`): so the whole operation is one loop that moves either stream as far as it can, pipelined to the byte, and
 * sleeps in poll when neither moves. The order of the stretches of memory that a stream runs through is the ring's
 * (ring.h).
 *
 * Reduce is a chain that begins and ends at the root: its data goes out, every rank adds its own to what passes, and
 * the sum comes back. Partial sums pass through `stage`, a circle of bytes, as a rank's own data must stay what it is.
 *
 * Each stream begins with a header, so that ranks that issue different operations find out.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "runtime/comm/ring.h"
#include "runtime/comm/sum.h"
#include "runtime/comm/tcp/group.h"

/* One call of send takes so much at most: then what has come is looked at again. */
enum { SEND_BYTES = 512 * 1024 };

struct header {
    uint32_t number; /* of the operation */
    uint16_t verb, dtype;
    uint32_t root, zero;
    uint64_t count;
};

/* A piece of memory that a stream runs through. */
struct stretch {
    char *at;
    const char *own; /* what comes is added to this, the sum goes to `at`; NULL: it goes to `at` as it is */
    size_t bytes;
};

struct stream {
    size_t n_stretches, i; /* all of them, and the present one; 0: nothing flows this way */
    size_t done;           /* bytes of the present one */
    uint64_t moved;        /* bytes of all, the header's too */
};

struct transfer {
    struct el_tcp_group *group;
    const struct el_comm_task *task;
    size_t width;
    struct stream out, in;
    uint64_t ahead;  /* bytes that may leave before anything has come */
    uint64_t window; /* by how much what came may be before what left; 0: no limit */
    size_t pending;  /* bytes in the inbox: of an element that has not all come */
    bool out_blocked, in_blocked;
    struct header mine, theirs;
};

/* ---- stretches ---- */

static struct stretch chunk_of(const struct transfer *t, int i)
{
    int size = t->group->size, chunk = el_ring_wrap(i, size);
    size_t begin = el_comm_chunk(t->task->count, size, chunk);
    return (struct stretch){.at = (char *)t->task->data + begin * t->width,
                            .bytes = (el_comm_chunk(t->task->count, size, chunk + 1) - begin) * t->width};
}

static size_t all_bytes(const struct transfer *t)
{
    return t->task->count * t->width;
}

/* Turn `k` round the circle of a reduce's partial sums. */
static struct stretch stage_of(const struct transfer *t, size_t k)
{
    size_t begin = k * EL_TCP_STAGE_BYTES, left = all_bytes(t) - begin;
    return (struct stretch){.at = t->group->stage,
                            .own = (const char *)t->task->data + begin,
                            .bytes = left < EL_TCP_STAGE_BYTES ? left : EL_TCP_STAGE_BYTES};
}

/* Stretch 0 is the header. */
static struct stretch out_stretch(struct transfer *t)
{
    size_t k = t->out.i - 1;
    if (t->out.i == 0) return (struct stretch){.at = (char *)&t->mine, .bytes = sizeof t->mine};
    if (t->task->verb == EL_COMM_ALL_REDUCE) return chunk_of(t, t->group->rank - (int)k);
    if (t->window) return stage_of(t, k);
    return (struct stretch){.at = t->task->data, .bytes = all_bytes(t)};
}

static struct stretch in_stretch(struct transfer *t)
{
    size_t k = t->in.i - 1;
    if (t->in.i == 0) return (struct stretch){.at = (char *)&t->theirs, .bytes = sizeof t->theirs};
    if (t->task->verb == EL_COMM_ALL_REDUCE) {
        struct stretch chunk = chunk_of(t, t->group->rank - (int)k - 1);
        if (k < (size_t)t->group->size - 1) chunk.own = chunk.at;
        return chunk;
    }
    if (t->window) return stage_of(t, k);
    return (struct stretch){.at = t->task->verb == EL_COMM_REDUCE ? t->task->result : t->task->data,
                            .bytes = all_bytes(t)};
}

static void set_streams(struct transfer *t)
{
    int n = t->group->size, place = el_ring_place(t->group->rank, t->task->root, n);
    size_t turns = (all_bytes(t) + EL_TCP_STAGE_BYTES - 1) / EL_TCP_STAGE_BYTES;
    switch (t->task->verb) {
    case EL_COMM_ALL_REDUCE:
        t->out.n_stretches = t->in.n_stretches = 1 + 2 * ((size_t)n - 1);
        t->ahead = chunk_of(t, t->group->rank).bytes;
        break;
    case EL_COMM_BROADCAST:
        t->out.n_stretches = place == n - 1 ? 0 : 2;
        t->in.n_stretches = place == 0 ? 0 : 2;
        t->ahead = place == 0 ? all_bytes(t) : 0;
        break;
    default:
        t->out.n_stretches = t->in.n_stretches = place == 0 ? 2 : 1 + turns;
        t->ahead = place == 0 ? all_bytes(t) : 0;
        t->window = place == 0 ? 0 : EL_TCP_STAGE_BYTES;
    }
}

/* ---- moving ---- */

static bool is_over(const struct stream *stream)
{
    return stream->i == stream->n_stretches;
}

static uint64_t payload(const struct stream *stream)
{
    return stream->moved > sizeof(struct header) ? stream->moved - sizeof(struct header) : 0;
}

static void advance(struct stream *stream, const struct stretch *stretch, size_t bytes)
{
    stream->moved += bytes;
    stream->done += bytes;
    if (stream->done < stretch->bytes) return;
    stream->i++;
    stream->done = 0;
}

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

static enum el_status fail_peer(const struct transfer *t, int rank, int number)
{
    if (atomic_load(&t->group->aborted)) return el_fail(EL_ERR_PEER, "tcp communicator: another rank failed");
    return el_fail(EL_ERR_PEER, "tcp communicator: rank %d is gone or gave up (%s)", el_ring_wrap(rank, t->group->size),
                   number ? strerror(number) : "closed its connection");
}

/* Bytes of the present stretch that are there to leave. */
static size_t sendable(const struct transfer *t, const struct stretch *stretch)
{
    uint64_t may = sizeof(struct header) + t->ahead + payload(&t->in) - t->out.moved;
    return least(least(stretch->bytes - t->out.done, may), SEND_BYTES);
}

static enum el_status push(struct transfer *t, bool *moved_p)
{
    t->out_blocked = false;
    while (!is_over(&t->out)) {
        struct stretch stretch = out_stretch(t);
        size_t bytes = sendable(t, &stretch);
        if (bytes == 0 && stretch.bytes > 0) return EL_OK;
        ssize_t put = bytes ? send(t->group->next, stretch.at + t->out.done, bytes, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
        if (put < 0 && errno == EINTR) continue;
        if (put < 0 && errno == EAGAIN) {
            t->out_blocked = true;
            return EL_OK;
        }
        if (put < 0) return fail_peer(t, t->group->rank + 1, errno);
        advance(&t->out, &stretch, (size_t)put);
        *moved_p = true;
        if (bytes == SEND_BYTES) return EL_OK;
    }
    return EL_OK;
}

/* Bytes of the present stretch that there is room for. */
static size_t receivable(const struct transfer *t, const struct stretch *stretch)
{
    size_t left = stretch->bytes - t->in.done - t->pending;
    if (t->in.i > 0 && t->window) left = least(left, t->window - (payload(&t->in) - payload(&t->out)) - t->pending);
    return stretch->own ? least(left, EL_TCP_INBOX_BYTES - t->pending) : left;
}

/* What came is in the inbox, behind what was pending: its whole elements are added. */
static void add(struct transfer *t, const struct stretch *stretch, size_t got)
{
    size_t have = t->pending + got, whole = have - have % t->width;
    const void *ins[] = {t->group->inbox, stretch->own + t->in.done};
    void *sum = stretch->at + t->in.done;
    el_sum(t->task->dtype, &sum, 1, ins, 2, whole / t->width);
    t->pending = have - whole;
    memmove(t->group->inbox, t->group->inbox + whole, t->pending);
    advance(&t->in, stretch, whole);
}

static enum el_status check_header(const struct transfer *t)
{
    if (memcmp(&t->mine, &t->theirs, sizeof t->mine) == 0) return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "tcp communicator: ranks %d and %d issued different operations",
                   el_ring_wrap(t->group->rank - 1, t->group->size), t->group->rank);
}

static enum el_status pull(struct transfer *t, bool *moved_p)
{
    t->in_blocked = false;
    while (!is_over(&t->in)) {
        struct stretch stretch = in_stretch(t);
        size_t bytes = receivable(t, &stretch);
        if (bytes == 0 && stretch.bytes > 0) return EL_OK;
        char *to = stretch.own ? t->group->inbox + t->pending : stretch.at + t->in.done;
        ssize_t got = bytes ? recv(t->group->before, to, bytes, MSG_DONTWAIT) : 0;
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && errno == EAGAIN) {
            t->in_blocked = true;
            return EL_OK;
        }
        if (got < 0 || (got == 0 && bytes > 0)) return fail_peer(t, t->group->rank - 1, got < 0 ? errno : 0);
        *moved_p = true;
        if (stretch.own)
            add(t, &stretch, (size_t)got);
        else
            advance(&t->in, &stretch, (size_t)got);
        if (t->in.moved == sizeof t->theirs) EL_TRY(check_header(t));
        if (bytes > 0 && stretch.own) return EL_OK; /* a sum may leave before the next one is made */
    }
    return EL_OK;
}

/* Until a connection that the transfer waits for has moved, has ended, or abort() was called. The next rank sends
 * nothing: whatever is to be read there is its end. */
static enum el_status wait_for_news(const struct transfer *t)
{
    struct pollfd polls[] = {
        {.fd = t->group->wake, .events = POLLIN},
        {.fd = is_over(&t->out) ? -1 : t->group->next, .events = (short)(POLLRDHUP | (t->out_blocked ? POLLOUT : 0))},
        {.fd = t->in_blocked ? t->group->before : -1, .events = POLLIN},
    };
    if (poll(polls, 3, -1) < 0 && errno != EINTR) return el_fail_errno("tcp communicator: poll");
    if (polls[0].revents) return fail_peer(t, t->group->rank, 0);
    if (polls[1].revents & (POLLRDHUP | POLLHUP | POLLERR)) return fail_peer(t, t->group->rank + 1, 0);
    return EL_OK;
}

enum el_status el_tcp_run(void *state, const struct el_comm_task *task)
{
    struct el_tcp_group *group = state;
    struct transfer t = {.group = group, .task = task, .width = el_dtype_bytes(task->dtype)};
    t.mine = (struct header){.number = group->issued++,
                             .verb = (uint16_t)task->verb,
                             .dtype = (uint16_t)task->dtype,
                             .root = (uint32_t)task->root,
                             .count = task->count};
    set_streams(&t);
    while (!is_over(&t.out) || !is_over(&t.in)) {
        bool moved = false;
        if (atomic_load(&group->aborted)) return fail_peer(&t, group->rank, 0);
        EL_TRY(push(&t, &moved));
        EL_TRY(pull(&t, &moved));
        if (!moved) EL_TRY(wait_for_news(&t));
    }
    return EL_OK;
}
