/* The communicator between GPUs of one process for which one thread issues, without NCCL: copies from device to device,
 * and sums on the root by its own kernels, its own data first, then by rank. Where NCCL is absent, or devices share a
 * card; what moves is what a real root would take and give.
 *
 * Every operation is a star round the root, on the members' communication streams: they wait for one another by events,
 * and the host for nothing. */
#include <stdlib.h>

#include "runtime/comm/comm_ops.h"

enum { SCRATCH_BYTES = 4 << 20 };

struct peer_member {
    struct peer_group *group;
    int rank;
    struct el_comm_place place;
    struct el_buffer *scratch; /* a root's: what it adds next */
};

struct peer_group {
    int n, open;
    struct peer_member members[];
};

static bool sums_here(const struct peer_member *member, const struct el_comm_task *task)
{
    return task->verb != EL_COMM_BROADCAST && member->rank == task->root;
}

/* A root's scratch lives across steps: up to 4 MiB, whatever is summed. */
static enum el_status reserve(void *state, const struct el_comm_task *task)
{
    struct peer_member *member = state;
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    if (!sums_here(member, task) || el_device_is_simulated(member->place.device)) return EL_OK;
    if (bytes > SCRATCH_BYTES) bytes = SCRATCH_BYTES;
    if (member->scratch && member->scratch->bytes >= bytes) return EL_OK;
    el_device_free(member->scratch);
    member->scratch = NULL;
    return el_device_alloc(member->place.device, EL_TAG_WORKSPACE, bytes, "scratch of a reduce", &member->scratch);
}

static enum el_status copy(const struct peer_member *to, void *destination, const struct peer_member *from,
                           const void *source, size_t bytes)
{
    if (destination == source) return EL_OK;
    return el_device_enqueue_copy(to->place.device, to->place.stream, destination, to->place.device, source,
                                  from->place.device, bytes);
}

/* What `member` does next comes after what `other` has been given so far. */
static enum el_status follow(const struct peer_member *member, const struct peer_member *other)
{
    if (member == other) return EL_OK;
    return el_device_enqueue_wait(member->place.device, member->place.stream, other->place.device, other->place.stream);
}

/* result[count] += data[count], a scratchful at a time. */
static enum el_status add(const struct peer_member *root, const struct el_comm_task *sum,
                          const struct peer_member *from, const void *data)
{
    size_t width = el_dtype_bytes(sum->dtype), step = root->scratch->bytes / width;
    for (size_t at = 0; at < sum->count; at += step) {
        size_t n = sum->count - at < step ? sum->count - at : step;
        void *scratch = (void *)root->scratch->address;
        struct el_kernel_args args = {.p = {scratch, (char *)sum->result + at * width}, .d = {(int64_t)n}};
        EL_TRY(copy(root, scratch, from, (const char *)data + at * width, n * width));
        EL_TRY(el_device_enqueue_kernel(root->place.device, root->place.stream, EL_OP_ADD, sum->dtype, &args));
    }
    return EL_OK;
}

/* The root waits for all, and all for the root: then their data may be used again. */
static enum el_status reduce(const struct el_comm_part *parts, int n, const struct el_comm_task *sum)
{
    const struct peer_member *root = parts[sum->root].state;
    if (!root->scratch || root->scratch->bytes < el_dtype_bytes(sum->dtype))
        return el_fail(EL_ERR_INTERNAL, "peer communicator: no scratch was reserved");
    EL_TRY(copy(root, sum->result, root, sum->data, sum->count * el_dtype_bytes(sum->dtype)));
    for (int i = 0; i < n; i++) {
        if (i == sum->root) continue;
        EL_TRY(follow(root, parts[i].state));
        EL_TRY(add(root, sum, parts[i].state, parts[i].task.data));
    }
    for (int i = 0; i < n; i++) EL_TRY(follow(parts[i].state, root));
    return EL_OK;
}

static enum el_status broadcast(const struct el_comm_part *parts, int n, const struct el_comm_task *source)
{
    const struct peer_member *root = parts[source->root].state;
    for (int i = 0; i < n; i++) {
        const struct peer_member *member = parts[i].state;
        if (i == source->root) continue;
        EL_TRY(follow(member, root));
        EL_TRY(copy(member, parts[i].task.data, root, source->data, source->count * el_dtype_bytes(source->dtype)));
    }
    for (int i = 0; i < n; i++) EL_TRY(follow(root, parts[i].state));
    return EL_OK;
}

static enum el_status enqueue(const struct el_comm_part *parts, int n)
{
    const struct peer_group *group = ((struct peer_member *)parts->state)->group;
    if (n != group->n)
        return el_fail(EL_ERR_INTERNAL, "peer communicator: one thread has to issue for all %d members", group->n);
    struct el_comm_task task = parts[parts->task.root].task;
    for (int i = 0; i < n; i++) {
        int rank = ((const struct peer_member *)parts[i].state)->rank;
        if (rank != i) /* parts[root] would not be the root's */
            return el_fail(EL_ERR_INTERNAL, "peer communicator: member %d was issued as number %d: issue by rank", rank,
                           i);
        if (!el_comm_same_task(&parts[i].task, &task))
            return el_fail(EL_ERR_INTERNAL, "peer communicator: members issued different operations");
    }
    if (task.verb == EL_COMM_ALL_REDUCE) task.result = task.data;
    if (task.verb != EL_COMM_BROADCAST) EL_TRY(reduce(parts, n, &task));
    return task.verb == EL_COMM_REDUCE ? EL_OK : broadcast(parts, n, &task);
}

/* A star: a root gives to, or takes from, every other member; an all-reduce does both. */
static struct el_comm_traffic traffic(const struct el_comm_shape *shape)
{
    uint64_t all = (uint64_t)shape->count * shape->element_bytes;
    uint64_t mine = shape->rank == shape->root ? all * ((uint64_t)shape->size - 1) : all;
    bool root = shape->rank == shape->root;
    if (shape->verb == EL_COMM_ALL_REDUCE) return (struct el_comm_traffic){mine, mine};
    return (shape->verb == EL_COMM_BROADCAST) == root ? (struct el_comm_traffic){mine, 0}
                                                      : (struct el_comm_traffic){0, mine};
}

/* Nothing here waits for a member. */
static void abort_group(void *state)
{
    (void)state;
}

static void close_member(void *state)
{
    struct peer_member *member = state;
    struct peer_group *group = member->group;
    el_device_free(member->scratch);
    if (--group->open == 0) free(group);
}

static enum el_status open_members(const struct el_comm_place *places, int n, void **states)
{
    if (n < 1) return el_fail(EL_ERR_INVALID, "peer communicator: %d members", n);
    struct peer_group *group = calloc(1, sizeof *group + (size_t)n * sizeof *group->members);
    if (!group) return el_fail(EL_ERR_HOST_MEMORY, "peer communicator: no memory for %d members", n);
    group->n = group->open = n;
    for (int i = 0; i < n; i++) {
        group->members[i] = (struct peer_member){.group = group, .rank = i, .place = places[i]};
        states[i] = &group->members[i];
    }
    return EL_OK;
}

static const struct el_comm_ops peer_ops = {
    .verbs = EL_COMM_FIRST_VERBS,
    .asynchronous = true,
    .enqueue = enqueue,
    .reserve = reserve,
    .traffic = traffic,
    .abort = abort_group,
    .close = close_member,
};

const struct el_comm_backend el_comm_peer_backend = {.name = "peer", .ops = &peer_ops, .open_members = open_members};
