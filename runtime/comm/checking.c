/* The checking mode: before each collective all members tell one another which one they are about to begin. It costs a
 * small all-gather each time, and needs nothing of a backend but that. */
#include <stdlib.h>

#include "runtime/comm/member.h"

/* What has to be the same, and the number to name it by; without holes, as it crosses hosts. */
struct el_comm_header {
    uint64_t count, number;
    int32_t verb, reduction, dtype, algorithm, root, zero;
};
_Static_assert(sizeof(struct el_comm_header) == 40, "no holes");

/* Member `rank`'s header has its place among those of all. */
static struct el_comm_task exchange_of(const struct el_comm *comm)
{
    return (struct el_comm_task){.verb = EL_COMM_ALL_GATHER,
                                 .dtype = EL_U8,
                                 .algorithm = comm->backend->ops->choose ? EL_COMM_DIRECT : EL_COMM_AUTO,
                                 .count = sizeof *comm->headers,
                                 .data = comm->headers ? &comm->headers[comm->rank] : NULL,
                                 .result = comm->headers};
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

/* Who fails first aborts the group: before that all are to know as much. A second exchange ends on nobody before the
 * first has ended on all; what it brings is not looked at. */
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
    comm->headers[comm->rank] = (struct el_comm_header){.count = task->count,
                                                        .number = task->number,
                                                        .verb = (int32_t)task->verb,
                                                        .reduction = (int32_t)task->reduction,
                                                        .dtype = (int32_t)task->dtype,
                                                        .algorithm = (int32_t)task->algorithm,
                                                        .root = task->root};
    EL_TRY(comm->backend->ops->run(comm->state, &exchange));
    for (int r = 0; r < comm->size; r++) {
        const struct el_comm_header *header = &comm->headers[r];
        struct el_comm_task other = {.verb = (enum el_comm_verb)header->verb,
                                     .reduction = (enum el_comm_reduction)header->reduction,
                                     .dtype = (enum el_dtype)header->dtype,
                                     .algorithm = (enum el_comm_algorithm)header->algorithm,
                                     .root = header->root,
                                     .number = header->number,
                                     .count = header->count};
        if (el_comm_same_task(task, &other)) continue;
        wait_until_all_know(comm);
        return el_comm_fail_different(comm->backend->name, comm->rank, task, r, &other);
    }
    return EL_OK;
}
