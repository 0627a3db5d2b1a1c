/* The communicator `mpi`: a rank's state from open to close, and how a failure reaches the others. The collectives
 * themselves are in algorithms.c; each runs as a job of the one thread that calls MPI (progress.h). */
#include <stdlib.h>

#include "runtime/comm/mpi/group.h"

enum { TAG_ALARM = 2 };

struct operation {
    struct el_mpi_group *group;
    const struct el_comm_task *task;
};

static enum el_status run_operation(void *context)
{
    static enum el_status (*const verbs[EL_COMM_VERB_COUNT])(struct el_mpi_group *, const struct el_comm_task *) = {
        [EL_COMM_ALL_REDUCE] = el_mpi_all_reduce,
        [EL_COMM_BROADCAST] = el_mpi_broadcast,
        [EL_COMM_REDUCE] = el_mpi_reduce,
    };
    const struct operation *operation = context;
    if (atomic_load(&operation->group->alarm.raised)) return el_fail(EL_ERR_PEER, "mpi communicator: a rank failed");
    return verbs[operation->task->verb](operation->group, operation->task);
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    struct operation operation = {.group = state, .task = task};
    return el_mpi_do(run_operation, &operation);
}

/* Empty messages leave at once: nobody waits for the requests. */
static enum el_status tell_others(void *context)
{
    struct el_mpi_group *group = context;
    for (int i = 0; i < group->size; i++) {
        MPI_Request request;
        if (i == group->rank) continue;
        EL_MPI_TRY(MPI_Isend(NULL, 0, MPI_BYTE, i, TAG_ALARM, group->comm, &request));
        EL_MPI_TRY(MPI_Request_free(&request));
    }
    return EL_OK;
}

static void abort_group(void *state)
{
    struct el_mpi_group *group = state;
    if (atomic_exchange(&group->alarm.told, 1)) return;
    atomic_store(&group->alarm.raised, 1);
    group->alarm_job = (struct el_mpi_job){.run = tell_others, .context = group};
    el_mpi_submit(&group->alarm_job);
}

static enum el_status run_open(void *context)
{
    struct el_mpi_group *group = context;
    EL_MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &group->comm));
    return el_mpi_check(MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_ALARM, group->comm, &group->alarm.message),
                        "MPI_Irecv");
}

/* After an alarm messages may still be on their way: the communicator is left to MPI_Finalize. */
static enum el_status run_close(void *context)
{
    struct el_mpi_group *group = context;
    if (group->alarm.message != MPI_REQUEST_NULL) {
        MPI_Cancel(&group->alarm.message);
        MPI_Wait(&group->alarm.message, MPI_STATUS_IGNORE);
    }
    if (!atomic_load(&group->alarm.raised)) EL_MPI_TRY(MPI_Comm_free(&group->comm));
    return EL_OK;
}

static void destroy(struct el_mpi_group *group)
{
    if (!group) return;
    free(group->inbox[0]);
    free(group->inbox[1]);
    free(group);
}

static void close_group(void *state)
{
    el_mpi_do(run_close, state); /* also: the alarm's job, before it in the queue, is done */
    destroy(state);
}

static struct el_mpi_group *create(const struct el_bootstrap *bootstrap)
{
    struct el_mpi_group *group = calloc(1, sizeof *group);
    if (!group) return NULL;
    group->rank = el_bootstrap_rank(bootstrap);
    group->size = el_bootstrap_size(bootstrap);
    group->alarm.message = MPI_REQUEST_NULL;
    for (int i = 0; i < 2; i++) {
        group->inbox[i] = aligned_alloc(64, EL_MPI_SEGMENT_BYTES);
        if (group->inbox[i]) continue;
        destroy(group);
        return NULL;
    }
    return group;
}

static enum el_status open_ranks(struct el_bootstrap *bootstrap, void **state_p)
{
    struct el_mpi_group *group = create(bootstrap);
    enum el_status status = group ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "mpi communicator: no memory");
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = el_mpi_do(run_open, group);
    if (status != EL_OK) {
        destroy(group);
        return status;
    }
    *state_p = group;
    return EL_OK;
}

static const struct el_comm_ops mpi_ops = {
    .run = {run, run, run},
    .traffic = el_mpi_traffic,
    .abort = abort_group,
    .close = close_group,
};

const struct el_comm_backend el_mpi_comm_backend = {.name = "mpi", .ops = &mpi_ops, .open_ranks = open_ranks};
