/* The messages of a ring or of a parameter server (rounds.h), each pulled by its receiver from the sender's memory,
 * which the sender's half of the round names.
 *
 * When a member has made k rounds it has made k + 1 steps since it met the others: the first says that its own copy is
 * made. Before a round it waits for two: for the sender to have made all rounds before, and for the receiver of its own
 * last message to have taken it, for what arrives may be put where that was. */
#include <string.h>

#include "runtime/comm/combine.h"
#include "runtime/comm/shared/engine.h"

static struct el_comm_sides sides_of(const struct el_shared *shared, int rank, size_t width)
{
    return (struct el_comm_sides){shared->data[rank], shared->results[rank], shared->scratches[rank], width};
}

/* `at` is where it lies on the sender. */
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
