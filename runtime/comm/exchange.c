/* What members exchange by a backend's all-gather: mailbox partners, and the next collective in the checking mode; and
 * the arithmetic of a split. */
#include <stdlib.h>

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/member.h"

static uint32_t ordered(int value)
{
    return (uint32_t)value ^ UINT32_C(0x80000000);
}

uint64_t el_comm_split_word(const struct el_comm_split *split)
{
    return (uint64_t)ordered(split->color) << 32 | ordered(split->key);
}

void el_comm_split_plan(const uint64_t *words, int n, int rank, struct el_comm_split *split, int *members)
{
    int size = 0;
    split->rank = split->size = 0;
    if (split->color < 0) return;
    for (int r = 0; r < n; r++) {
        if (words[r] >> 32 != words[rank] >> 32) continue;
        int at = size++;
        for (; at > 0 && words[members[at - 1]] > words[r]; at--) members[at] = members[at - 1];
        members[at] = r;
    }
    while (members[split->rank] != rank) split->rank++;
    split->size = size;
}

struct el_comm_task el_comm_tell_task(const struct el_comm_ops *ops, const void *mine, void *all, size_t bytes)
{
    return (struct el_comm_task){.verb = EL_COMM_ALL_GATHER,
                                 .dtype = EL_U8,
                                 .algorithm = ops->choose ? EL_COMM_DIRECT : EL_COMM_AUTO,
                                 .count = bytes,
                                 .data = (void *)mine,
                                 .result = all};
}

enum { CANNOT, CAN };

/* rows: [size][1 + size]: CANNOT or CAN, then whom each member names. */
static enum el_status compare(const uint8_t *rows, int rank, int size)
{
    size_t row = (size_t)size + 1;
    for (size_t a = 0; a < (size_t)size; a++)
        if (rows[a * row] == CANNOT) return el_fail(EL_ERR_PEER, "mailboxes: rank %zu has no room for them", a);
    for (size_t a = 0; a < (size_t)size; a++)
        for (size_t b = 0; b < (size_t)size; b++)
            if (rows[a * row + 1 + b] && !rows[b * row + 1 + a])
                return el_fail((int)a == rank ? EL_ERR_INVALID : EL_ERR_PEER,
                               "mailboxes: rank %zu names rank %zu, which does not name it", a, b);
    return EL_OK;
}

enum el_status el_comm_meet_partners(const struct el_comm_ops *ops, void *state, int rank, int size,
                                     enum el_status mine, const bool *partners)
{
    size_t row = (size_t)size + 1;
    uint8_t *rows = calloc((size_t)size, row);
    struct el_error own;
    if (!rows) { /* or the others would wait */
        ops->abort(state);
        return el_fail(EL_ERR_HOST_MEMORY, "mailboxes: no memory");
    }
    uint8_t *said = rows + (size_t)rank * row;
    el_error_take(mine, &own);
    said[0] = mine == EL_OK ? CAN : CANNOT;
    for (int r = 0; r < size && mine == EL_OK; r++) said[1 + r] = partners[r];
    const struct el_comm_task task = el_comm_tell_task(ops, said, rows, row);
    enum el_status status = ops->reserve ? ops->reserve(state, &task) : EL_OK;
    if (status == EL_OK) status = ops->run(state, &task);
    if (status == EL_OK && mine == EL_OK) status = compare(rows, rank, size);
    free(rows);
    return mine != EL_OK ? el_error_give(&own) : status;
}

static struct el_comm_task exchange_of(const struct el_comm *comm)
{
    return el_comm_tell_task(comm->backend->ops, &comm->headers[comm->rank], comm->headers, sizeof *comm->headers);
}

enum el_status el_comm_set_checking(struct el_comm *comm, bool checking)
{
    free(comm->headers);
    comm->headers = NULL;
    if (!checking || !comm->state) return EL_OK;
    if (el_device_is_asynchronous(comm->place.device) || !el_comm_has_verb(comm, EL_COMM_ALL_GATHER))
        return el_fail(EL_ERR_ABSENT, "communicator %s: members cannot compare the operations that they issue",
                       comm->backend->name);
    comm->headers = calloc((size_t)comm->size, sizeof *comm->headers);
    if (!comm->headers) return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", comm->backend->name);
    struct el_comm_task task = exchange_of(comm);
    return comm->backend->ops->reserve ? comm->backend->ops->reserve(comm->state, &task) : EL_OK;
}

/* The first to fail aborts the group, so all must have the headers first: a second exchange ends nowhere before the
 * first has ended everywhere. */
static void wait_until_all_know(struct el_comm *comm)
{
    struct el_error ignored;
    struct el_comm_task exchange = exchange_of(comm);
    enum el_status status = comm->backend->ops->run(comm->state, &exchange);
    if (status != EL_OK) el_error_take(status, &ignored);
}

enum el_status el_comm_check_others(struct el_comm *comm, const struct el_comm_task *task)
{
    if (!comm->headers || el_comm_verb_row(task->verb)->is_link) return EL_OK;
    struct el_comm_task exchange = exchange_of(comm);
    comm->headers[comm->rank] = el_comm_task_header(task);
    EL_TRY(comm->backend->ops->run(comm->state, &exchange));
    for (int r = 0; r < comm->size; r++) {
        const struct el_comm_task other = el_comm_header_task(&comm->headers[r]);
        if (el_comm_same_task(task, &other)) continue;
        wait_until_all_know(comm);
        return el_comm_fail_different(comm->backend->name, comm->rank, task, r, &other);
    }
    return EL_OK;
}
