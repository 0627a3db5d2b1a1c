/* Operations in place, on memory that all members reach. */
#include <string.h>

#include "runtime/comm/combine.h"
#include "runtime/comm/shared/engine.h"

/* ---- direct: parts are combined by rank, so the bits do not depend on the member ---- */

static void copy(char *to, const char *from, size_t bytes)
{
    if (to != from) memcpy(to, from, bytes);
}

static void combine_part(const struct el_shared_pull *pull, int part)
{
    const struct el_comm_task *task = pull->task;
    const void *ins[EL_SHARED_MEMBERS_MAX];
    void *out = pull->result;
    size_t at = (size_t)part * pull->data_stride * el_dtype_bytes(task->dtype);
    for (int i = 0; i < pull->size; i++) ins[i] = pull->data[i] + at;
    el_combine(task->reduction, task->dtype, pull->size, &out, 1, ins, pull->size, pull->count);
}

/* Begins with its own part, so that members read from different ones. */
static void take_from_all(const struct el_shared_pull *pull, int part)
{
    size_t width = el_dtype_bytes(pull->task->dtype), at = (size_t)part * pull->data_stride * width;
    for (int k = 0; k < pull->size; k++) {
        int i = (pull->rank + k) % pull->size;
        size_t count = el_comm_used(&pull->task->used, i, true, pull->begin, pull->count);
        copy(pull->result + (size_t)i * pull->result_stride * width, pull->data[i] + at, count * width);
    }
}

static void take_from_root(const struct el_shared_pull *pull, int part)
{
    size_t width = el_dtype_bytes(pull->task->dtype), at = (size_t)part * pull->data_stride * width;
    copy(pull->result, pull->data[pull->task->root] + at, pull->count * width);
}

void el_shared_pull(const struct el_shared_pull *pull)
{
    if (!pull->result) return;
    switch (pull->task->verb) {
    case EL_COMM_ALL_REDUCE:
    case EL_COMM_REDUCE:
        combine_part(pull, 0);
        break;
    case EL_COMM_REDUCE_SCATTER:
        combine_part(pull, pull->rank);
        break;
    case EL_COMM_BROADCAST:
        take_from_root(pull, 0);
        break;
    case EL_COMM_SCATTER:
        take_from_root(pull, pull->rank);
        break;
    case EL_COMM_ALL_GATHER:
    case EL_COMM_GATHER:
        take_from_all(pull, 0);
        break;
    case EL_COMM_ALL_TO_ALL:
        take_from_all(pull, pull->rank);
        break;
    default:
        break;
    }
}

void el_shared_give_chunk(const struct el_shared *shared, const struct el_comm_task *task)
{
    size_t width = el_dtype_bytes(task->dtype);
    size_t begin = el_comm_chunk(task->count, shared->size, shared->rank);
    size_t end = el_comm_chunk(task->count, shared->size, shared->rank + 1);
    const void *ins[EL_SHARED_MEMBERS_MAX];
    void *outs[EL_SHARED_MEMBERS_MAX];
    for (int i = 0; i < shared->size; i++) {
        ins[i] = shared->data[i] + begin * width;
        outs[i] = shared->results[i] + begin * width;
    }
    el_combine(task->reduction, task->dtype, shared->size, outs, shared->size, ins, shared->size, end - begin);
}

enum el_status el_shared_direct(struct el_shared *shared, const struct el_comm_task *task)
{
    struct el_shared_pull pull = {.task = task,
                                  .rank = shared->rank,
                                  .size = shared->size,
                                  .data = shared->data,
                                  .data_stride = task->count,
                                  .result = shared->results[shared->rank],
                                  .result_stride = task->count,
                                  .count = task->count};
    if (!el_shared_touch(shared)) return el_shared_leave(shared);
    if (task->verb == EL_COMM_ALL_REDUCE)
        el_shared_give_chunk(shared, task);
    else
        el_shared_pull(&pull);
    el_shared_untouch(shared);
    return el_shared_meet(shared);
}

/* ---- messages (rounds.h), pulled by the receiver from where the sender's half of the round says.
 *
 * After k rounds a member has made k + 1 steps since the meeting (the first: its own copy). Before a round it waits
 * until the sender has made all earlier rounds, and until the receiver of its last message has taken it, since new
 * data may overwrite that. ---- */

static struct el_comm_sides sides_of(const struct el_shared *shared, int rank, size_t width)
{
    return (struct el_comm_sides){shared->data[rank], shared->results[rank], shared->scratches[rank], width};
}

/* `at`: on the sender. */
static void take(const struct el_shared *shared, const struct el_comm_task *task, const struct el_comm_message *message,
                 struct el_comm_slice at)
{
    size_t width = el_dtype_bytes(task->dtype);
    const struct el_comm_sides theirs = sides_of(shared, message->peer, width),
                               mine = sides_of(shared, shared->rank, width);
    const char *from = el_comm_address(&theirs, at), *own = el_comm_address(&mine, message->own);
    char *to = el_comm_address(&mine, message->at);
    const void *ins[] = {own, from};
    void *out = to;
    if (own)
        el_combine(task->reduction, task->dtype, message->last ? shared->size : 0, &out, 1, ins, 2, message->count);
    else
        memcpy(to, from, message->count * width);
}

static enum el_status receive(struct el_shared *shared, const struct el_comm_task *task,
                              const struct el_comm_message *message, int round)
{
    struct el_comm_shape theirs = el_comm_task_shape(task, message->peer, shared->size);
    if (message->count == 0) return EL_OK;
    if (!el_shared_touch(shared)) return el_shared_leave(shared);
    take(shared, task, message, el_comm_round(&theirs, round).send.at);
    el_shared_untouch(shared);
    return EL_OK;
}

enum el_status el_shared_rounds(struct el_shared *shared, const struct el_comm_task *task)
{
    struct el_comm_shape shape = el_comm_task_shape(task, shared->rank, shared->size);
    int n_rounds = el_comm_rounds(&shape), taker = -1; /* of the last message */
    const struct el_comm_sides mine = sides_of(shared, shared->rank, shape.element_bytes);
    el_comm_copy_own(&mine, &shape);
    el_shared_step(shared);
    for (int i = 0; i < n_rounds; i++) {
        struct el_comm_round round = el_comm_round(&shape, i);
        if (taker >= 0) EL_TRY(el_shared_wait(shared, taker, shared->steps));
        if (round.receive.peer >= 0) {
            EL_TRY(el_shared_wait(shared, round.receive.peer, shared->steps));
            EL_TRY(receive(shared, task, &round.receive, i));
        }
        el_shared_step(shared);
        taker = round.send.peer;
    }
    return taker >= 0 ? el_shared_wait(shared, taker, shared->steps) : EL_OK;
}
