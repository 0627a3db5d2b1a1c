/* The list of communicators and the wrappers round them: arguments, bytes, the op in the program, and what needs no
 * transport at all. Only this file calls the hooks of comm_ops.h; how bytes move is not its business. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/comm/comm_ops.h"
#include "runtime/comm/mpi/module.h"

struct el_comm {
    const struct el_comm_backend *backend;
    struct el_device *device;
    void *state; /* NULL: a group of one that needs no transport */
    int rank, size;
    uint64_t group;             /* the same for all members of this process; tells groups apart */
    struct el_comm *first;      /* of this process's members; lives as long as operations are run */
    struct el_comm_part *parts; /* the first member's: [n_parts], of the operation being enqueued */
    int n_parts;                /* members in this process */
    uint16_t issued;            /* operations: members issue the same ones in the same order */
    bool muted;
};

static const struct el_comm_backend self_backend = {.name = "self"};
/* Stands for the module's own row until a group of more than one opens the module. */
static const struct el_comm_backend mpi_backend = {.name = "mpi"};

static const struct el_comm_backend *const between_ranks[] = {&mpi_backend, &el_comm_shm_backend, &el_comm_tcp_backend,
                                                              &el_comm_nccl_backend};

/* NULL, with the message kept, where there is no memory. */
static struct el_comm *create(const struct el_comm_backend *backend, struct el_device *device, int rank, int size)
{
    struct el_comm *comm = calloc(1, sizeof *comm);
    if (comm)
        *comm = (struct el_comm){
            .backend = backend, .device = device, .rank = rank, .size = size, .first = comm, .n_parts = 1};
    else
        el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", backend->name);
    return comm;
}

static void release(struct el_comm *comm)
{
    if (comm) free(comm->parts);
    free(comm);
}

enum el_status el_comm_open_self(struct el_device *device, struct el_comm **comm_p)
{
    struct el_comm *comm = create(&self_backend, device, 0, 1);
    if (!comm) return EL_ERR_HOST_MEMORY;
    *comm_p = comm;
    return EL_OK;
}

/* Fills made[0..n), as far as it gets. */
static enum el_status open_members(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                   struct el_comm **made, void **states)
{
    for (int i = 0; i < n; i++)
        if (!(made[i] = create(backend, devices[i], i, n))) return EL_ERR_HOST_MEMORY;
    made[0]->parts = calloc((size_t)n, sizeof *made[0]->parts);
    if (!made[0]->parts) return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", backend->name);
    if (n > 1) EL_TRY(backend->open_members(devices, n, states));
    for (int i = 0; i < n; i++) {
        made[i]->state = states[i];
        made[i]->group = (uint64_t)(uintptr_t)made[0];
        made[i]->first = made[0];
        made[i]->n_parts = n;
    }
    return EL_OK;
}

enum el_status el_comm_open_with(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                 struct el_comm **comms)
{
    if (n < 1) return el_fail(EL_ERR_INVALID, "local communicator: %d members", n);
    void **states = calloc((size_t)n, sizeof *states);
    struct el_comm **made = calloc((size_t)n, sizeof(struct el_comm *));
    enum el_status status = states && made ? open_members(backend, devices, n, made, states)
                                           : el_fail(EL_ERR_HOST_MEMORY, "local communicator: no memory");
    for (int i = 0; made && i < n; i++) {
        if (status == EL_OK)
            comms[i] = made[i];
        else
            release(made[i]);
    }
    free(made);
    free(states);
    return status;
}

enum el_status el_comm_open_local(struct el_device *const *devices, int n, struct el_comm **comms)
{
    return el_comm_open_with(el_comm_choose_members(devices, n, false), devices, n, comms);
}

enum el_status el_comm_open_controller(struct el_device *const *devices, int n, struct el_comm **comms)
{
    return el_comm_open_with(el_comm_choose_members(devices, n, true), devices, n, comms);
}

static enum el_status open_group(const struct el_comm_backend **backend, struct el_bootstrap *bootstrap,
                                 struct el_device *device, void **state_p)
{
    if ((*backend)->open_on) return (*backend)->open_on(bootstrap, device, state_p);
    if (*backend == &mpi_backend) {
        const struct el_mpi_module *module;
        if (strcmp(el_bootstrap_kind(bootstrap), "mpi") != 0)
            return el_fail(EL_ERR_INVALID, "communicator mpi: needs the bootstrap mpi");
        EL_TRY(el_mpi_module_open(&module));
        *backend = module->comm;
    }
    EL_TRY((*backend)->open_ranks(bootstrap, state_p));
    return el_device_is_asynchronous(device) ? el_staged_wrap(device, backend, state_p) : EL_OK;
}

enum el_status el_comm_open_ranks(const char *kind, struct el_bootstrap *bootstrap, struct el_device *device,
                                  struct el_comm **comm_p)
{
    const struct el_comm_backend *backend = NULL;
    for (size_t i = 0; i < sizeof between_ranks / sizeof between_ranks[0]; i++)
        if (strcmp(kind, between_ranks[i]->name) == 0) backend = between_ranks[i];
    if (!backend) return el_fail(EL_ERR_ABSENT, "communicator %s: not one between ranks (mpi, shm, tcp, nccl)", kind);
    int rank = el_bootstrap_rank(bootstrap), size = el_bootstrap_size(bootstrap);
    struct el_comm *comm = create(backend, device, rank, size);
    if (!comm) return EL_ERR_HOST_MEMORY;
    enum el_status status = size > 1 ? open_group(&comm->backend, bootstrap, device, &comm->state) : EL_OK;
    if (status != EL_OK) {
        release(comm);
        return status;
    }
    *comm_p = comm;
    return EL_OK;
}

void el_comm_close(struct el_comm *comm)
{
    if (comm && comm->state) comm->backend->ops->close(comm->state);
    release(comm);
}

int el_comm_rank(const struct el_comm *comm)
{
    return comm->rank;
}

int el_comm_size(const struct el_comm *comm)
{
    return comm->size;
}

const char *el_comm_backend(const struct el_comm *comm)
{
    return comm->backend->name;
}

struct el_device *el_comm_device(const struct el_comm *comm)
{
    return comm->device;
}

void el_comm_abort(struct el_comm *comm)
{
    if (comm->state) comm->backend->ops->abort(comm->state);
}

void el_comm_mute(struct el_comm *comm, bool muted)
{
    comm->muted = muted;
}

struct el_comm_traffic el_comm_traffic_direct(const struct el_comm_shape *shape)
{
    uint64_t all = (uint64_t)shape->count * shape->element_bytes, others = (uint64_t)shape->size - 1;
    size_t begin = el_comm_chunk(shape->count, shape->size, shape->rank);
    uint64_t mine = (el_comm_chunk(shape->count, shape->size, shape->rank + 1) - begin) * shape->element_bytes;
    bool root = shape->rank == shape->root;
    switch (shape->verb) {
    case EL_COMM_ALL_REDUCE: /* gives the other chunks to their owners and its own sum to everybody; gets as much */
        return (struct el_comm_traffic){all - mine + others * mine, others * mine + all - mine};
    case EL_COMM_BROADCAST:
        return root ? (struct el_comm_traffic){others * all, 0} : (struct el_comm_traffic){0, all};
    default:
        return root ? (struct el_comm_traffic){0, others * all} : (struct el_comm_traffic){all, 0};
    }
}

void el_comm_traffic(const struct el_comm *comm, enum el_comm_verb verb, size_t count, enum el_dtype dtype, int root,
                     uint64_t *sent_bytes_p, uint64_t *received_bytes_p)
{
    struct el_comm_shape shape = {.verb = verb,
                                  .rank = comm->rank,
                                  .size = comm->size,
                                  .root = root,
                                  .count = count,
                                  .element_bytes = el_dtype_bytes(dtype)};
    struct el_comm_traffic traffic = {0, 0};
    const struct el_comm_ops *ops = comm->state ? comm->backend->ops : NULL;
    if (ops && count > 0) {
        traffic = ops->traffic ? ops->traffic(&shape) : el_comm_traffic_direct(&shape);
    }
    *sent_bytes_p = traffic.sent_bytes;
    *received_bytes_p = traffic.received_bytes;
}

/* An op owns nothing: what it needs besides its data travels as host "addresses" among the call's views. */
enum { SLOT_DATA, SLOT_RESULT, SLOT_COUNT, SLOT_KIND };

static struct el_view as_view(uintptr_t value)
{
    return (struct el_view){.buffer = NULL, .offset = value};
}

static uintptr_t pack_kind(const struct el_comm_task *task)
{
    return (uintptr_t)task->verb | (uintptr_t)task->dtype << 4 | (uintptr_t)task->root << 8;
}

static struct el_comm_task unpack(const struct el_call_args *args)
{
    uintptr_t kind = (uintptr_t)args->p[SLOT_KIND];
    return (struct el_comm_task){.verb = (enum el_comm_verb)(kind & 15),
                                 .dtype = (enum el_dtype)(kind >> 4 & 15),
                                 .root = (int)(kind >> 8),
                                 .count = (size_t)(uintptr_t)args->p[SLOT_COUNT],
                                 .data = args->p[SLOT_DATA],
                                 .result = args->p[SLOT_RESULT],
                                 .stream = args->stream};
}

/* A planted wire: the payload takes so much longer, and no core is used meanwhile. */
static void wait_for_wire(const struct el_comm *comm, const struct el_comm_task *task)
{
    double ms_per_mib = el_device_inject(comm->device)->wire_ms_per_mib;
    if (ms_per_mib <= 0) return;
    double mib = (double)task->count * (double)el_dtype_bytes(task->dtype) / (1 << 20);
    el_clock_sleep_until(el_clock_ns() + (int64_t)(mib * ms_per_mib * 1e6));
}

/* A group of one: only a reduce has something to do. */
static enum el_status run_alone(const struct el_comm *comm, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    if (task->verb != EL_COMM_REDUCE || task->result == task->data) return EL_OK;
    if (el_device_is_asynchronous(comm->device))
        return el_device_enqueue_copy(comm->device, EL_STREAM_COMM, task->result, comm->device, task->data,
                                      comm->device, bytes);
    memcpy(task->result, task->data, bytes);
    return EL_OK;
}

/* Where one thread issues for several members, the last one's call enqueues for all of them: the calls before it leave
 * their parts with the first member. */
static enum el_status enqueue(struct el_comm *comm, const struct el_call_args *args)
{
    struct el_comm_part own, *parts = args->n_members == 1 ? &own : comm->first->parts;
    if (args->n_members > comm->first->n_parts || args->member >= args->n_members)
        return el_fail(EL_ERR_INTERNAL, "communicator %s: %d calls at once for %d members", comm->backend->name,
                       args->n_members, comm->first->n_parts);
    parts[args->member] = (struct el_comm_part){.state = comm->state, .task = unpack(args)};
    if (args->member + 1 < args->n_members) return EL_OK;
    return comm->backend->ops->enqueue(parts, args->n_members);
}

static enum el_status run_on_host(struct el_comm *comm, const struct el_comm_task *task)
{
    EL_TRY(el_device_stream_synchronize(comm->device, EL_STREAM_COMM)); /* at once where the stream is this thread */
    EL_TRY(comm->backend->ops->run[task->verb](comm->state, task));
    wait_for_wire(comm, task);
    return EL_OK;
}

static enum el_status run(const struct el_call_args *args)
{
    struct el_comm *comm = args->context;
    struct el_comm_task task = unpack(args);
    if (task.count == 0 || comm->muted) return EL_OK;
    if (!comm->state) return run_alone(comm, &task);
    enum el_status status = comm->backend->ops->asynchronous ? enqueue(comm, args) : run_on_host(comm, &task);
    if (status != EL_OK) el_comm_abort(comm);
    return status;
}

static enum el_status poll(void *context)
{
    struct el_comm *comm = context;
    if (comm->muted) return EL_OK;
    enum el_status status = comm->backend->ops->poll(comm->state);
    if (status != EL_OK) el_comm_abort(comm);
    return status;
}

static enum el_status issue(struct el_comm *comm, struct el_program *program, const struct el_op_head *head,
                            const struct el_comm_task *task, struct el_view data, struct el_view result, int *op_id_p)
{
    static const char *const names[] = {"all_reduce", "broadcast", "reduce"};
    if (task->root < 0 || task->root >= comm->size)
        return el_fail(EL_ERR_INVALID, "%s: root %d of %d members", names[task->verb], task->root, comm->size);
    struct el_call_op op = {.head = *head,
                            .op_class = EL_CLASS_COMM,
                            .run = run,
                            .context = comm,
                            .views = {[SLOT_DATA] = data,
                                      [SLOT_RESULT] = result,
                                      [SLOT_COUNT] = as_view(task->count),
                                      [SLOT_KIND] = as_view(pack_kind(task))},
                            .bytes = (double)task->count * (double)el_dtype_bytes(task->dtype),
                            .group = comm->group << 16 | comm->issued++};
    if (!op.head.label) op.head.label = names[task->verb];
    const struct el_comm_ops *ops = comm->state ? comm->backend->ops : NULL;
    if (ops && ops->poll) el_program_on_wait(program, poll, comm);
    if (ops && ops->reserve) EL_TRY(ops->reserve(comm->state, task));
    el_comm_traffic(comm, task->verb, task->count, task->dtype, task->root, &op.head.sent_bytes,
                    &op.head.received_bytes);
    return el_program_call(program, comm->device, EL_STREAM_COMM, &op, op_id_p);
}

enum el_status el_comm_all_reduce(struct el_comm *comm, struct el_program *program, const struct el_op_head *head,
                                  struct el_view data, size_t count, enum el_dtype dtype, int *op_id_p)
{
    struct el_comm_task task = {.verb = EL_COMM_ALL_REDUCE, .dtype = dtype, .count = count};
    return issue(comm, program, head, &task, data, as_view(0), op_id_p);
}

enum el_status el_comm_broadcast(struct el_comm *comm, struct el_program *program, const struct el_op_head *head,
                                 struct el_view data, size_t count, enum el_dtype dtype, int root, int *op_id_p)
{
    struct el_comm_task task = {.verb = EL_COMM_BROADCAST, .dtype = dtype, .count = count, .root = root};
    return issue(comm, program, head, &task, data, as_view(0), op_id_p);
}

enum el_status el_comm_reduce(struct el_comm *comm, struct el_program *program, const struct el_op_head *head,
                              struct el_view data, struct el_view result, size_t count, enum el_dtype dtype, int root,
                              int *op_id_p)
{
    struct el_comm_task task = {.verb = EL_COMM_REDUCE, .dtype = dtype, .count = count, .root = root};
    return issue(comm, program, head, &task, data, comm->rank == root ? result : as_view(0), op_id_p);
}
