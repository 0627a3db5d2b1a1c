/* The communicator between members of one process: each member's communication thread reads and writes the other
 * members' memories directly; real copies, no staging.
 *
 * An operation lies between two meetings of all members: at the first each has posted where its data is, at the second
 * nobody touches another's data any more. All-reduce: each member sums its own chunk over all members in rank order and
 * writes the sum into all of them while it is in the cache (reduce-scatter and all-gather in one pass: a second pass
 * that copies the chunks would read and write each of them once more). It knows nothing of devices or programs.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/futex.h"
#include "runtime/comm/comm_ops.h"
#include "runtime/comm/flag.h"
#include "runtime/comm/sum.h"

enum { MEMBERS_MAX = 1024, SETTLE_NS = 10000000 };

struct local_member {
    struct el_flag meetings;
    struct local_group *group;
    int rank;
    uint32_t n_meetings;
    struct el_comm_task task; /* posted before a meeting, read by the others until the next one */
};

struct local_group {
    int n;
    _Atomic int open;
    _Atomic uint32_t aborted;
    _Atomic uint32_t touching; /* members that use others' memory just now */
    struct local_member members[];
};

/* After an abort a member may return, and its memory may go, only when no other member touches it any more. Whoever
 * starts touching counts itself before it looks for an abort (touch), whoever leaves looks after the abort. */
static enum el_status leave_aborted(struct local_group *group)
{
    uint32_t seen;
    while ((seen = atomic_load(&group->touching)) != 0) el_futex_wait(&group->touching, seen, false, SETTLE_NS);
    return el_fail(EL_ERR_PEER, "local communicator: another member failed");
}

static void untouch(struct local_group *group)
{
    atomic_fetch_sub(&group->touching, 1);
    if (atomic_load(&group->aborted)) el_futex_wake(&group->touching, false);
}

static bool touch(struct local_group *group)
{
    atomic_fetch_add(&group->touching, 1);
    if (!atomic_load(&group->aborted)) return true;
    untouch(group);
    return false;
}

static enum el_status meet(struct local_member *member)
{
    struct local_group *group = member->group;
    uint32_t count = ++member->n_meetings;
    el_flag_raise(&member->meetings, count);
    for (int i = 0; i < group->n; i++)
        if (el_flag_wait(&group->members[i].meetings, count, -1) != EL_FLAG_REACHED) return leave_aborted(group);
    return EL_OK;
}

static enum el_status check_same(const struct local_group *group, const struct el_comm_task *mine)
{
    for (int i = 0; i < group->n; i++) {
        if (!el_comm_same_task(&group->members[i].task, mine))
            return el_fail(EL_ERR_INTERNAL, "local communicator: members issued different operations");
    }
    return EL_OK;
}

static void all_reduce(const struct local_member *member, const struct el_comm_task *task)
{
    const struct local_group *group = member->group;
    size_t width = el_dtype_bytes(task->dtype);
    size_t begin = el_comm_chunk(task->count, group->n, member->rank);
    size_t end = el_comm_chunk(task->count, group->n, member->rank + 1);
    void *chunks[MEMBERS_MAX];
    for (int i = 0; i < group->n; i++) chunks[i] = (char *)group->members[i].task.data + begin * width;
    el_sum(task->dtype, chunks, group->n, (const void *const *)chunks, group->n, end - begin);
}

static void broadcast(const struct local_member *member, const struct el_comm_task *task)
{
    if (member->rank == task->root) return;
    memcpy(task->data, member->group->members[task->root].task.data, task->count * el_dtype_bytes(task->dtype));
}

static void reduce(const struct local_member *member, const struct el_comm_task *task)
{
    const struct local_group *group = member->group;
    if (member->rank != task->root) return;
    const void *ins[MEMBERS_MAX] = {task->data};
    void *result = task->result;
    for (int i = 0, k = 1; i < group->n; i++)
        if (i != task->root) ins[k++] = group->members[i].task.data;
    el_sum(task->dtype, &result, 1, ins, group->n, task->count);
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    static void (*const verbs[EL_COMM_VERB_COUNT])(const struct local_member *, const struct el_comm_task *) = {
        [EL_COMM_ALL_REDUCE] = all_reduce, [EL_COMM_BROADCAST] = broadcast, [EL_COMM_REDUCE] = reduce};
    struct local_member *member = state;
    struct local_group *group = member->group;
    member->task = *task;
    EL_TRY(meet(member));
    EL_TRY(check_same(group, task));
    if (!touch(group)) return leave_aborted(group);
    verbs[task->verb](member, task);
    untouch(group);
    return meet(member);
}

static void abort_group(void *state)
{
    struct local_group *group = ((struct local_member *)state)->group;
    atomic_store(&group->aborted, 1);
    for (int i = 0; i < group->n; i++) el_flag_abort(&group->members[i].meetings);
}

static void close_member(void *state)
{
    struct local_group *group = ((struct local_member *)state)->group;
    if (atomic_fetch_sub(&group->open, 1) == 1) free(group);
}

static const struct el_comm_ops local_ops = {
    .verbs = EL_COMM_FIRST_VERBS,
    .run = run,
    .abort = abort_group,
    .close = close_member,
};

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    (void)places;
    if (n > MEMBERS_MAX) return el_fail(EL_ERR_INVALID, "local communicator: at most %d members", MEMBERS_MAX);
    size_t bytes = sizeof(struct local_group) + (size_t)n * sizeof(struct local_member);
    struct local_group *group = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!group) return el_fail(EL_ERR_HOST_MEMORY, "local communicator: no memory for %d members", n);
    memset(group, 0, bytes);
    group->n = n;
    atomic_init(&group->open, n);
    for (int i = 0; i < n; i++) {
        group->members[i].group = group;
        group->members[i].rank = i;
        states[i] = &group->members[i];
    }
    return EL_OK;
}

const struct el_comm_backend el_comm_local_backend = {.name = "local", .ops = &local_ops, .open_members = open_members};
