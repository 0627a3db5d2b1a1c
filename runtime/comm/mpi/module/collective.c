/* A collective over MPI's point-to-point messages, round by round (rounds.h), cut into segments. It knows nothing of
 * devices.
 *
 * Not MPI's own collectives: what those combine has an order of the library's, and once begun they cannot be ended:
 * when a rank gives up, MPI_Iallreduce would go on writing into memory that may be gone. Two ranks that share a core:
 * from 4 to 64 MiB MPI_Iallreduce and these messages take the same time of the processor within a tenth, at 1 MiB these
 * took a sixth more. */
#include "runtime/comm/combine.h"
#include "runtime/comm/mpi/module/comm_mpi.h"
#include "runtime/comm/rounds.h"

enum { TAG_DATA = 1, TAG_BARRIER = 3, SWAP_BYTES = 16 * 1024 };

/* A stretch of data that travels; no bytes: none does. */
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

static struct stretch stretch_of(const struct el_comm_sides *sides, const struct el_comm_message *message)
{
    if (message->peer < 0 || message->count == 0) return (struct stretch){.peer = message->peer};
    return (struct stretch){
        .at = el_comm_address(sides, message->at), .bytes = message->count * sides->width, .peer = message->peer};
}

static enum el_status wait_for(struct el_mpi_group *group, MPI_Request *in, int from, MPI_Request *out, int to)
{
    group->alarm.waits_for = in && *in != MPI_REQUEST_NULL ? from : to;
    return el_mpi_wait(in, out, &group->alarm);
}

/* One round: `out` leaves while `in` comes, into its place, or is combined with the member's own. While one segment is
 * combined the next one of each kind is on its way, so that no rank waits for what another combines: an all-reduce of
 * 1 MiB takes 0.27 ms so, 0.38 where a segment is sent only when the one before has been combined. Of each kind two
 * requests take turns. */
static enum el_status exchange(struct el_mpi_group *group, const struct el_comm_task *task,
                               const struct el_comm_sides *sides, const struct el_comm_round *round)
{
    struct stretch out = stretch_of(sides, &round->send), in = stretch_of(sides, &round->receive);
    const char *own = in.bytes > 0 ? el_comm_address(sides, round->receive.own) : NULL;
    bool combines = own != NULL;
    size_t most = out.bytes > in.bytes ? out.bytes : in.bytes;
    EL_TRY(post_receive(group, &in, 0, combines ? group->inbox[0] : NULL, &group->in[0]));
    EL_TRY(post_send(group, &out, 0, &group->out[0]));
    for (size_t at = 0, i = 0; at < most; at += EL_MPI_SEGMENT_BYTES, i++) {
        size_t now = i % 2, next = 1 - now;
        char *inbox = combines ? group->inbox[next] : NULL;
        EL_TRY(post_receive(group, &in, at + EL_MPI_SEGMENT_BYTES, inbox, &group->in[next]));
        EL_TRY(post_send(group, &out, at + EL_MPI_SEGMENT_BYTES, &group->out[next]));
        EL_TRY(wait_for(group, &group->in[now], in.peer, &group->out[now], out.peer));
        if (!combines) continue;
        const void *ins[] = {own + at, group->inbox[now]};
        void *result = in.at + at;
        el_combine(task->reduction, task->dtype, round->receive.last ? group->size : 0, &result, 1, ins, 2,
                   segment(&in, at) / sides->width);
    }
    return EL_OK;
}

/* Few bytes between two ranks: each sends all of them and combines all, in one message's time instead of two. As many
 * bytes as by rounds, and the same bits: of two operands the first is rank 0's on both. */
static enum el_status swap(struct el_mpi_group *group, const struct el_comm_task *task)
{
    int other = 1 - group->rank, bytes = (int)(task->count * el_dtype_bytes(task->dtype));
    EL_MPI_TRY(MPI_Irecv(group->inbox[0], bytes, MPI_BYTE, other, TAG_DATA, group->comm, &group->in[0]));
    EL_MPI_TRY(MPI_Isend(task->data, bytes, MPI_BYTE, other, TAG_DATA, group->comm, &group->out[0]));
    EL_TRY(wait_for(group, &group->in[0], other, &group->out[0], other));
    const void *ins[] = {group->rank == 0 ? task->data : group->inbox[0],
                         group->rank == 0 ? group->inbox[0] : task->data};
    el_combine(task->reduction, task->dtype, group->size, &(void *){task->result}, 1, ins, 2, task->count);
    return EL_OK;
}

static bool swaps(const struct el_comm_shape *shape)
{
    return shape->verb == EL_COMM_ALL_REDUCE && shape->size == 2 && shape->algorithm != EL_COMM_PS &&
           shape->count * shape->element_bytes <= SWAP_BYTES;
}

enum el_status el_mpi_collective(struct el_mpi_group *group, const struct el_comm_task *task)
{
    struct el_comm_shape shape = el_comm_task_shape(task, group->rank, group->size);
    if (swaps(&shape)) return swap(group, task);
    const struct el_comm_sides sides = {task->data, task->result, group->scratch, shape.element_bytes};
    el_comm_copy_own(&sides, &shape);
    for (int i = 0, n = el_comm_rounds(&shape); i < n; i++) {
        struct el_comm_round round = el_comm_round(&shape, i);
        EL_TRY(exchange(group, task, &sides, &round));
    }
    return EL_OK;
}

/* In round i each tells the rank 2^i further on: after the last, everybody has heard of everybody. */
enum el_status el_mpi_barrier(struct el_mpi_group *group)
{
    for (int distance = 1; distance < group->size; distance *= 2) {
        int to = (group->rank + distance) % group->size, from = (group->rank - distance + group->size) % group->size;
        EL_MPI_TRY(MPI_Irecv(NULL, 0, MPI_BYTE, from, TAG_BARRIER, group->comm, &group->in[0]));
        EL_MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, to, TAG_BARRIER, group->comm, &group->out[0]));
        EL_TRY(wait_for(group, &group->in[0], from, &group->out[0], to));
    }
    return EL_OK;
}
