/* The communicator `mpi`: a rank's state from open to close, and how a failure reaches the others. The collectives
 * themselves are in algorithms.c; each runs as a job of the one thread that calls MPI (progress.h). */
#include <stdlib.h>

#include "runtime/comm/mpi/group.h"

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
    struct el_mpi_group *group = operation->group;
    for (int i = 0; i < 2; i++) group->in[i] = group->out[i] = MPI_REQUEST_NULL;
    /* Before anything is posted: after an alarm no receive may match what another rank has given up sending. */
    enum el_status status = el_mpi_alarm_check(&group->alarm) ? el_fail(EL_ERR_PEER, "mpi communicator: a rank failed")
                                                              : verbs[operation->task->verb](group, operation->task);
    if (status != EL_OK) {
        struct el_error cause;
        el_error_take(status, &cause);
        el_mpi_alarm_raise(&group->alarm);
        el_mpi_alarm_give_up(&group->alarm, group->in, group->out);
        return el_error_give(&cause);
    }
    return EL_OK;
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    struct operation operation = {.group = state, .task = task};
    return el_mpi_do(run_operation, &operation);
}

static enum el_status tell_others(void *context)
{
    el_mpi_alarm_tell(&((struct el_mpi_group *)context)->alarm);
    return EL_OK;
}

/* A running operation finds the alarm and tells the others when it has stopped; the job is for when there is none. */
static void abort_group(void *state)
{
    struct el_mpi_group *group = state;
    if (atomic_exchange(&group->aborted, 1)) return;
    el_mpi_alarm_raise(&group->alarm);
    group->alarm_job = (struct el_mpi_job){.run = tell_others, .context = group};
    el_mpi_submit(&group->alarm_job);
}

static enum el_status run_open(void *context)
{
    struct el_mpi_group *group = context;
    EL_MPI_TRY(MPI_Comm_dup(MPI_COMM_WORLD, &group->comm));
    el_mpi_alarm_open(&group->alarm, group->comm, group->rank, group->size);
    return EL_OK;
}

/* After an alarm messages may still be on their way: the communicator is left to MPI_Finalize. */
static enum el_status run_close(void *context)
{
    struct el_mpi_group *group = context;
    el_mpi_alarm_close(&group->alarm);
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
    .verbs = EL_COMM_FIRST_VERBS,
    .run = run,
    .traffic = el_mpi_traffic,
    .abort = abort_group,
    .close = close_group,
};

const struct el_comm_backend el_mpi_comm_backend = {.name = "mpi", .ops = &mpi_ops, .open_ranks = open_ranks};
