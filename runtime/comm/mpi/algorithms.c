/* Collectives over MPI's point-to-point messages, ours so that their sums have a fixed order and their waits are
 * el_mpi_wait's: a ring for all-reduce (ring.h), a chain for broadcast, and a root that takes everything for reduce;
 * all of them cut into segments. They know nothing of devices.
 */
#include <string.h>

#include "runtime/comm/mpi/group.h"
#include "runtime/comm/ring.h"
#include "runtime/comm/sum.h"

enum { TAG_DATA = 1 };

/* A stretch of data that travels. */
struct stretch {
    char *at;
    size_t bytes;
    int peer;
};

/* Length of the segment that begins there; 0 behind the end. */
static size_t segment(const struct stretch *stretch, size_t begin)
{
    if (begin >= stretch->bytes) return 0;
    return stretch->bytes - begin < EL_MPI_SEGMENT_BYTES ? stretch->bytes - begin : EL_MPI_SEGMENT_BYTES;
}

static enum el_status post_receive(struct el_mpi_group *group, const struct stretch *in, size_t begin, char *inbox,
                                   MPI_Request *request_p)
{
    size_t bytes = segment(in, begin);
    *request_p = MPI_REQUEST_NULL;
    if (bytes == 0) return EL_OK;
    EL_MPI_TRY(
        MPI_Irecv(inbox ? inbox : in->at + begin, (int)bytes, MPI_BYTE, in->peer, TAG_DATA, group->comm, request_p));
    return EL_OK;
}

static enum el_status post_send(struct el_mpi_group *group, const struct stretch *out, size_t begin,
                                MPI_Request *request_p)
{
    size_t bytes = segment(out, begin);
    *request_p = MPI_REQUEST_NULL;
    if (bytes == 0) return EL_OK;
    EL_MPI_TRY(MPI_Isend(out->at + begin, (int)bytes, MPI_BYTE, out->peer, TAG_DATA, group->comm, request_p));
    return EL_OK;
}

static void add(const char *from, char *to, size_t bytes, enum el_dtype dtype)
{
    const void *ins[] = {from, to};
    void *out = to;
    el_sum(dtype, &out, 1, ins, 2, bytes / el_dtype_bytes(dtype));
}

static enum el_status wait_out(struct el_mpi_group *group)
{
    return el_mpi_wait(&group->out[0], &group->out[1], &group->alarm);
}

/* One step of a ring: `out` leaves while `in` comes, into its place, or, where `sum`, added to it. The next segment is
 * always on its way while one is added; of each kind two requests take turns. */
static enum el_status exchange(struct el_mpi_group *group, const struct stretch *out, const struct stretch *in,
                               bool sum, enum el_dtype dtype)
{
    size_t most = out->bytes > in->bytes ? out->bytes : in->bytes;
    EL_TRY(post_receive(group, in, 0, sum ? group->inbox[0] : NULL, &group->in[0]));
    for (size_t at = 0, i = 0; at < most; at += EL_MPI_SEGMENT_BYTES, i++) {
        size_t now = i % 2, next = 1 - now;
        EL_TRY(post_send(group, out, at, &group->out[now]));
        EL_TRY(post_receive(group, in, at + EL_MPI_SEGMENT_BYTES, sum ? group->inbox[next] : NULL, &group->in[next]));
        EL_TRY(el_mpi_wait(&group->in[now], &group->out[next], &group->alarm));
        if (sum) add(group->inbox[now], in->at + at, segment(in, at), dtype);
    }
    return wait_out(group);
}

static struct stretch chunk_of(const struct el_mpi_group *group, const struct el_comm_task *task, int i, int peer)
{
    int chunk = el_ring_wrap(i, group->size);
    size_t width = el_dtype_bytes(task->dtype), begin = el_comm_chunk(task->count, group->size, chunk);
    return (struct stretch){.at = (char *)task->data + begin * width,
                            .bytes = (el_comm_chunk(task->count, group->size, chunk + 1) - begin) * width,
                            .peer = (peer + group->size) % group->size};
}

enum el_status el_mpi_all_reduce(struct el_mpi_group *group, const struct el_comm_task *task)
{
    int rank = group->rank;
    for (int round = 0; round < 2; round++)
        for (int step = 0; step < group->size - 1; step++) {
            struct stretch out = chunk_of(group, task, rank + round - step, rank + 1);
            struct stretch in = chunk_of(group, task, rank + round - step - 1, rank - 1);
            EL_TRY(exchange(group, &out, &in, round == 0, task->dtype));
        }
    return EL_OK;
}

/* Everyone passes on to the next rank what it has just got, one segment behind. */
enum el_status el_mpi_broadcast(struct el_mpi_group *group, const struct el_comm_task *task)
{
    int place = el_ring_place(group->rank, task->root, group->size);
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    struct stretch in = {task->data, place == 0 ? 0 : bytes, (group->rank - 1 + group->size) % group->size};
    struct stretch out = {task->data, place == group->size - 1 ? 0 : bytes, (group->rank + 1) % group->size};
    for (size_t at = 0; at < bytes; at += EL_MPI_SEGMENT_BYTES) {
        EL_TRY(post_receive(group, &in, at, NULL, &group->in[0]));
        EL_TRY(el_mpi_wait(&group->in[0], &group->out[0], &group->alarm));
        EL_TRY(post_send(group, &out, at, &group->out[0]));
    }
    return wait_out(group);
}

/* Message `k` of those the root of a reduce gets: of each segment one from each other rank, in rank order. */
static struct stretch message(const struct el_mpi_group *group, const struct el_comm_task *task, size_t k,
                              size_t *begin_p)
{
    size_t others = (size_t)group->size - 1;
    int peer = (int)(k % others);
    *begin_p = k / others * EL_MPI_SEGMENT_BYTES;
    return (struct stretch){.at = task->result,
                            .bytes = task->count * el_dtype_bytes(task->dtype),
                            .peer = peer < group->rank ? peer : peer + 1};
}

/* The next message is always on its way while one is added. */
static enum el_status take_all(struct el_mpi_group *group, const struct el_comm_task *task)
{
    size_t begin, next_begin;
    struct stretch in = message(group, task, 0, &begin);
    EL_TRY(post_receive(group, &in, begin, group->inbox[0], &group->in[0]));
    for (size_t k = 0; begin < in.bytes; k++) {
        struct stretch next = message(group, task, k + 1, &next_begin);
        EL_TRY(post_receive(group, &next, next_begin, group->inbox[(k + 1) % 2], &group->in[(k + 1) % 2]));
        EL_TRY(el_mpi_wait(&group->in[k % 2], NULL, &group->alarm));
        add(group->inbox[k % 2], in.at + begin, segment(&in, begin), task->dtype);
        in = next;
        begin = next_begin;
    }
    return EL_OK;
}

enum el_status el_mpi_reduce(struct el_mpi_group *group, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    if (group->rank == task->root) {
        if (task->result != task->data) memcpy(task->result, task->data, bytes);
        return take_all(group, task);
    }
    struct stretch out = {task->data, bytes, task->root};
    for (size_t at = 0, i = 0; at < bytes; at += EL_MPI_SEGMENT_BYTES, i++) {
        EL_TRY(el_mpi_wait(&group->out[i % 2], NULL, &group->alarm));
        EL_TRY(post_send(group, &out, at, &group->out[i % 2]));
    }
    return wait_out(group);
}

struct el_comm_traffic el_mpi_traffic(const struct el_comm_shape *shape)
{
    return shape->verb == EL_COMM_REDUCE ? el_comm_rounds_traffic(shape) : el_ring_traffic(shape);
}
