/* Everybody with everybody, in place: what a member takes from the others' data, and, of an all-reduce, what it writes
 * into their results. Parts are combined by rank: the same bits whichever member combines them. */
#include <string.h>

#include "runtime/comm/combine.h"
#include "runtime/comm/shared/engine.h"

static void copy(char *to, const char *from, size_t bytes)
{
    if (to != from) memcpy(to, from, bytes);
}

/* Part `part` of every member's data. */
static void combine_part(const struct el_shared_pull *pull, int part)
{
    const struct el_comm_task *task = pull->task;
    const void *ins[EL_SHARED_MEMBERS_MAX];
    void *out = pull->result;
    size_t at = (size_t)part * pull->data_stride * el_dtype_bytes(task->dtype);
    for (int i = 0; i < pull->size; i++) ins[i] = pull->data[i] + at;
    el_combine(task->reduction, task->dtype, pull->size, &out, 1, ins, pull->size, pull->count);
}

/* Part `part` of every member's data, each into its own part of the result: first its own, then onwards, so that not
 * all read from one at a time. */
static void take_from_all(const struct el_shared_pull *pull, int part)
{
    size_t width = el_dtype_bytes(pull->task->dtype), at = (size_t)part * pull->data_stride * width;
    for (int k = 0; k < pull->size; k++) {
        int i = (pull->rank + k) % pull->size;
        copy(pull->result + (size_t)i * pull->result_stride * width, pull->data[i] + at, pull->count * width);
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
