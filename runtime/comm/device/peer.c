/* GPUs of one issuing thread, where NCCL is absent or devices share a card: copies, and sums by the receiver's
 * kernels, its own data first, then by rank. An all-reduce's root is member 0. Receivers pull on their communication
 * streams; members wait for one another by events, and the host never waits. */
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/comm/rounds.h"

enum { SCRATCH_BYTES = 4 << 20 };

struct peer_member {
    struct peer_group *group;
    int rank;
    struct el_comm_place place;
    struct el_buffer *scratch; /* a root's: what it adds next */
};

struct peer_group {
    int n;
    _Atomic int open;
    struct peer_member members[];
};

static bool sums_here(const struct peer_member *member, const struct el_comm_task *task)
{
    return el_comm_verb_row(task->verb)->reduces &&
           (task->verb == EL_COMM_REDUCE_SCATTER || member->rank == task->root);
}

/* At most 4 MiB; kept across steps. */
static enum el_status reserve(void *state, const struct el_comm_task *task)
{
    struct peer_member *member = state;
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    if (!sums_here(member, task) || el_device_is_simulated(member->place.device)) return EL_OK;
    if (bytes > SCRATCH_BYTES) bytes = SCRATCH_BYTES;
    if (member->scratch && member->scratch->bytes >= bytes) return EL_OK;
    el_device_free(member->scratch);
    member->scratch = NULL;
    return el_device_alloc(member->place.device, EL_TAG_WORKSPACE, bytes, "workspace of a reduce", &member->scratch);
}

static enum el_status copy(const struct peer_member *to, void *destination, const struct peer_member *from,
                           const void *source, size_t bytes)
{
    if (destination == source) return EL_OK;
    return el_device_enqueue_copy(to->place.device, to->place.stream, destination, to->place.device, source,
                                  from->place.device, bytes);
}

/* `member` waits for all work enqueued on `other` so far. */
static enum el_status follow(const struct peer_member *member, const struct peer_member *other)
{
    if (member == other) return EL_OK;
    return el_device_enqueue_wait(member->place.device, member->place.stream, other->place.device, other->place.stream);
}

/* destination[count] += source[count], by pieces of the scratch size. */
static enum el_status add(const struct peer_member *to, char *destination, const struct peer_member *from,
                          const char *source, const struct el_comm_task *task)
{
    if (!to->scratch || to->scratch->bytes < el_dtype_bytes(task->dtype))
        return el_fail(EL_ERR_INTERNAL, "peer communicator: no workspace was reserved");
    size_t width = el_dtype_bytes(task->dtype), step = to->scratch->bytes / width;
    for (size_t at = 0; at < task->count; at += step) {
        size_t n = task->count - at < step ? task->count - at : step;
        void *scratch = (void *)to->scratch->address;
        struct el_kernel_args args = {.p = {scratch, destination + at * width}, .d = {(int64_t)n}};
        EL_TRY(copy(to, scratch, from, source + at * width, n * width));
        EL_TRY(el_device_enqueue_kernel(to->place.device, to->place.stream, EL_OP_ADD, task->dtype, &args));
    }
    return EL_OK;
}

static enum el_status divide(const struct peer_member *member, void *result, const struct el_comm_task *task)
{
    struct el_kernel_args args = {
        .p = {result, result}, .d = {(int64_t)task->count}, .s = {1.0 / (double)member->group->n}};
    return el_device_enqueue_kernel(member->place.device, member->place.stream, EL_OP_SCALE, task->dtype, &args);
}

static enum el_status pull_all(const struct el_comm_part *parts, int n, const struct el_comm_task *task, int to)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(task->verb);
    const struct peer_member *member = parts[to].state;
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    char *result = parts[to].task.result;
    for (int k = 0; k < n; k++) {
        int from = k == 0 ? to : k <= to ? k - 1 : k;
        if (!el_comm_goes(task, from, to)) continue;
        /* The broadcast half of an all-reduce sends the reduced result. */
        bool again = task->verb == EL_COMM_BROADCAST && parts[from].task.verb == EL_COMM_ALL_REDUCE;
        const char *source = again ? parts[from].task.result : parts[from].task.data;
        source += row->all_data ? (size_t)to * bytes : 0;
        char *destination = result + (row->all_result ? (size_t)from * bytes : 0);
        if (row->has_root) EL_TRY(follow(member, parts[from].state));
        if (row->reduces && from != to)
            EL_TRY(add(member, destination, parts[from].state, source, task));
        else
            EL_TRY(copy(member, destination, parts[from].state, source, bytes));
    }
    if (row->reduces && task->reduction == EL_COMM_AVERAGE && el_comm_goes(task, to, to))
        return divide(member, result, task);
    return EL_OK;
}

/* Without a root all wait for one another before the first pull; with one, per pull. At the end each waits for those
 * that pulled from it, so that its data may be reused. */
static enum el_status move(const struct el_comm_part *parts, int n, const struct el_comm_task *task)
{
    bool all = !el_comm_verb_row(task->verb)->has_root;
    for (int to = 0; to < n && all; to++)
        for (int from = 0; from < n; from++) EL_TRY(follow(parts[to].state, parts[from].state));
    for (int to = 0; to < n && task->verb != EL_COMM_BARRIER; to++) EL_TRY(pull_all(parts, n, task, to));
    for (int to = 0; to < n; to++)
        for (int from = 0; from < n; from++)
            if (el_comm_goes(task, from, to)) EL_TRY(follow(parts[from].state, parts[to].state));
    return EL_OK;
}

static enum el_status check_parts(const struct el_comm_part *parts, int n)
{
    const struct peer_group *group = ((struct peer_member *)parts->state)->group;
    if (n != group->n)
        return el_fail(EL_ERR_INTERNAL, "peer communicator: one thread has to issue for all %d members", group->n);
    for (int i = 0; i < n; i++) {
        int rank = ((const struct peer_member *)parts[i].state)->rank;
        if (rank != i) /* parts[root] must be the root's */
            return el_fail(EL_ERR_INTERNAL, "peer communicator: member %d was issued as number %d: issue by rank", rank,
                           i);
        if (!el_comm_same_task(&parts[i].task, &parts->task))
            return el_comm_fail_different("peer", 0, &parts->task, i, &parts[i].task);
    }
    return EL_OK;
}

static enum el_status enqueue(const struct el_comm_part *parts, int n)
{
    EL_TRY(check_parts(parts, n));
    struct el_comm_task task = parts->task;
    if (task.verb != EL_COMM_ALL_REDUCE) return move(parts, n, &task);
    task.root = 0;
    task.verb = EL_COMM_REDUCE;
    EL_TRY(move(parts, n, &task));
    task.verb = EL_COMM_BROADCAST;
    return move(parts, n, &task);
}

static bool reduces(enum el_comm_reduction reduction, enum el_dtype dtype)
{
    return (reduction == EL_COMM_SUM || reduction == EL_COMM_AVERAGE) && (dtype == EL_F32 || dtype == EL_F64);
}

/* An all-reduce is a star around its root. */
static struct el_comm_traffic traffic(const void *state, const struct el_comm_shape *shape)
{
    (void)state;
    struct el_comm_shape star = *shape;
    star.algorithm = shape->verb == EL_COMM_ALL_REDUCE ? EL_COMM_PS : EL_COMM_DIRECT;
    return el_comm_rounds_traffic(&star);
}

static void abort_group(void *state)
{
    (void)state;
}

static void close_member(void *state)
{
    struct peer_member *member = state;
    struct peer_group *group = member->group;
    el_device_free(member->scratch);
    if (atomic_fetch_sub(&group->open, 1) == 1) free(group);
}

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    if (n < 1) return el_fail(EL_ERR_INVALID, "peer communicator: %d members", n);
    struct peer_group *group = calloc(1, sizeof *group + (size_t)n * sizeof *group->members);
    if (!group) return el_fail(EL_ERR_HOST_MEMORY, "peer communicator: no memory for %d members", n);
    group->n = n;
    atomic_init(&group->open, n);
    for (int i = 0; i < n; i++) {
        group->members[i] = (struct peer_member){.group = group, .rank = i, .place = places[i]};
        states[i] = &group->members[i];
    }
    return EL_OK;
}

static const struct el_comm_ops peer_ops = {
    .verbs = EL_COMM_COLLECTIVES,
    .reduces = reduces,
    .asynchronous = true,
    .enqueue = enqueue,
    .reserve = reserve,
    .traffic = traffic,
    .abort = abort_group,
    .close = close_member,
};

const struct el_comm_backend el_comm_peer_backend = {.name = "peer", .ops = &peer_ops, .open_members = open_members};
