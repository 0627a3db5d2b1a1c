/* The communicator `mpi`: a rank's state from open to close, and how a failure reaches the others. What an operation's
 * messages are: collective.c; whose turn it is to call MPI: calls.h. */
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mpi/module/comm_mpi.h"
#include "runtime/comm/rounds.h"

/* Before anything is posted it looks for an alarm: after one, no receive may match what another rank has given up
 * sending. */
static enum el_status run_in_turn(struct el_mpi_group *group, const struct el_comm_task *task)
{
    enum el_status status;
    struct el_error cause;
    group->alarm.began_ns = el_clock_ns();
    for (int i = 0; i < 2; i++) group->in[i] = group->out[i] = MPI_REQUEST_NULL;
    if (el_mpi_alarm_check(&group->alarm))
        status = el_fail(EL_ERR_PEER, "mpi communicator: a rank failed");
    else if (task->verb == EL_COMM_SEND)
        status = el_mpi_send(group, task);
    else if (task->verb == EL_COMM_RECV)
        status = el_mpi_receive(group, task);
    else
        status = task->verb == EL_COMM_BARRIER ? el_mpi_barrier(group) : el_mpi_collective(group, task);
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &cause);
    el_mpi_alarm_raise(&group->alarm);
    el_mpi_alarm_give_up(&group->alarm, group->in, group->out);
    return el_error_give(&cause);
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    struct el_mpi_group *group = state;
    el_mpi_enter();
    group->running = true;
    enum el_status status = run_in_turn(group, task);
    group->running = false;
    el_mpi_leave();
    return status;
}

/* Between steps. */
static enum el_status reserve(void *state, const struct el_comm_task *task)
{
    struct el_mpi_group *group = state;
    struct el_comm_shape shape = el_comm_task_shape(task, group->rank, group->size);
    size_t bytes = el_comm_scratch(&shape) * shape.element_bytes;
    if (bytes <= group->scratch_bytes) return EL_OK;
    char *larger = malloc(bytes);
    if (!larger) return el_fail_errno("mpi communicator: %zu bytes of workspace", bytes);
    free(group->scratch);
    group->scratch = larger;
    group->scratch_bytes = bytes;
    return EL_OK;
}

/* Rings spare bandwidth where all give and all get; a root is served directly. */
static enum el_comm_algorithm choose(const struct el_comm_shape *shape)
{
    bool ring = shape->verb == EL_COMM_ALL_REDUCE || shape->verb == EL_COMM_BROADCAST;
    return ring ? EL_COMM_RING : EL_COMM_DIRECT;
}

static void set_timeout(void *state, int64_t timeout_ns)
{
    ((struct el_mpi_group *)state)->alarm.timeout_ns = timeout_ns;
}

static void abort_group(void *state)
{
    struct el_mpi_group *group = state;
    el_mpi_alarm_raise(&group->alarm);
    el_mpi_enter();
    if (!group->running) el_mpi_alarm_tell(&group->alarm);
    el_mpi_leave();
}

static void destroy(struct el_mpi_group *group)
{
    if (!group) return;
    free(group->inbox[0]);
    free(group->inbox[1]);
    free(group->scratch);
    free(group);
}

/* After an alarm messages may still be on their way: the communicator is left to MPI_Finalize. */
static void close_group(void *state)
{
    struct el_mpi_group *group = state;
    el_mpi_mail_close(group);
    el_mpi_enter();
    el_mpi_alarm_close(&group->alarm);
    if (!atomic_load(&group->alarm.raised)) MPI_Comm_free(&group->comm);
    el_mpi_leave();
    destroy(group);
}

static enum el_status create(int rank, int size, struct el_mpi_group **group_p)
{
    struct el_mpi_group *group = calloc(1, sizeof *group);
    if (!group) return el_fail(EL_ERR_HOST_MEMORY, "mpi communicator: no memory");
    group->rank = rank;
    group->size = size;
    group->alarm.message = MPI_REQUEST_NULL;
    for (int i = 0; i < 2; i++) {
        group->inbox[i] = aligned_alloc(64, EL_MPI_SEGMENT_BYTES);
        if (group->inbox[i]) continue;
        destroy(group);
        return el_fail(EL_ERR_HOST_MEMORY, "mpi communicator: no memory");
    }
    *group_p = group;
    return EL_OK;
}

/* Ranks begin together, between steps: nobody else needs a turn while the library waits for them all. */
static enum el_status open_ranks(struct el_bootstrap *bootstrap, void **state_p)
{
    struct el_mpi_group *group = NULL;
    enum el_status status = create(el_bootstrap_rank(bootstrap), el_bootstrap_size(bootstrap), &group);
    status = el_bootstrap_agree(bootstrap, status);
    el_mpi_enter();
    if (status == EL_OK) status = el_mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &group->comm), "MPI_Comm_dup");
    if (status == EL_OK) el_mpi_alarm_open(&group->alarm, group->comm, group->rank, group->size);
    el_mpi_leave();
    if (status != EL_OK) {
        destroy(group);
        return status;
    }
    *state_p = group;
    return EL_OK;
}

static enum el_status all_can(struct el_mpi_group *group, enum el_status mine)
{
    int32_t can = mine == EL_OK;
    const struct el_comm_task vote = {.verb = EL_COMM_ALL_REDUCE,
                                      .reduction = EL_COMM_MIN,
                                      .dtype = EL_I32,
                                      .algorithm = EL_COMM_PS,
                                      .count = 1,
                                      .data = &can,
                                      .result = &can};
    EL_TRY(run(group, &vote));
    if (mine != EL_OK || can) return mine;
    return el_fail(EL_ERR_PEER, "mpi communicator: another rank cannot take part in a split");
}

static enum el_status split_in_turn(struct el_mpi_group *group, struct el_comm_split *split, struct el_mpi_group *part)
{
    MPI_Comm comm;
    EL_MPI_TRY(MPI_Comm_split(group->comm, split->color < 0 ? MPI_UNDEFINED : split->color, split->key, &comm));
    split->rank = split->size = 0;
    if (!part) return EL_OK;
    EL_MPI_TRY(MPI_Comm_rank(comm, &split->rank));
    EL_MPI_TRY(MPI_Comm_size(comm, &split->size));
    part->comm = comm;
    part->rank = split->rank;
    part->size = split->size;
    if (part->size > 1) el_mpi_alarm_open(&part->alarm, comm, part->rank, part->size);
    return part->size > 1 ? EL_OK : el_mpi_check(MPI_Comm_free(&part->comm), "MPI_Comm_free");
}

/* MPI's own split ranks by key, and by rank where keys are equal. */
static enum el_status split_group(void *state, enum el_status mine, struct el_comm_split *split)
{
    struct el_mpi_group *group = state, *part = NULL;
    if (mine == EL_OK && split->color >= 0) mine = create(0, 1, &part);
    enum el_status status = all_can(group, mine);
    el_mpi_enter();
    if (status == EL_OK) status = split_in_turn(group, split, part);
    el_mpi_leave();
    if (status != EL_OK || split->size < 2) {
        destroy(part);
        part = NULL;
    }
    split->state = part;
    return status;
}

static const struct el_comm_ops mpi_ops = {
    .verbs = EL_COMM_COLLECTIVES | 1 << EL_COMM_SEND | 1 << EL_COMM_RECV,
    .run = run,
    .reserve = reserve,
    .choose = choose,
    .open_mailboxes = el_mpi_open_mailboxes,
    .split = split_group,
    .set_timeout = set_timeout,
    .abort = abort_group,
    .close = close_group,
};

const struct el_comm_backend el_mpi_comm_backend = {.name = "mpi", .ops = &mpi_ops, .open_ranks = open_ranks};
