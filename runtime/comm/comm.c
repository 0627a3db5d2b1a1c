/* The list of communicators and the wrappers round them: arguments, bytes, the op in the program, and what needs no
 * transport at all. Only this file calls the hooks of comm_ops.h; how bytes move is not its business. */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/comm/comm_ops.h"
#include "runtime/comm/mpi/module.h"

struct el_comm {
    const struct el_comm_backend *backend;
    struct el_comm_place place;
    void *state; /* NULL: a group of one that needs no transport */
    int rank, size;
    struct el_comm *first; /* of this process's members, open as long as operations are run: what tells groups apart */
    struct el_comm_part *parts; /* the first member's: [n_parts], of the operation being enqueued */
    int n_parts;                /* members in this process */
    uint64_t issued;            /* operations: members issue the same ones in the same order */
    bool muted;
};

static const struct {
    const char *name;
    bool has_result; /* on its root */
} verbs[EL_COMM_VERB_COUNT] = {
    [EL_COMM_ALL_REDUCE] = {.name = "all_reduce"},
    [EL_COMM_BROADCAST] = {.name = "broadcast"},
    [EL_COMM_REDUCE] = {.name = "reduce", .has_result = true},
};

/* What a group of one has before its first operation: many of them never have one. */
enum { NO_STREAM = EL_STREAM_COMPUTE };

static const struct el_comm_backend self_backend = {.name = "self"};
/* Stands for the module's own row until a group of more than one opens the module. */
static const struct el_comm_backend mpi_backend = {.name = "mpi"};

static const struct el_comm_backend *const between_ranks[] = {&mpi_backend, &el_comm_shm_backend, &el_comm_tcp_backend,
                                                              &el_comm_nccl_backend};

static void release(struct el_comm *comm)
{
    if (!comm) return;
    if (comm->place.stream != NO_STREAM) el_device_give_back_stream(comm->place.device, comm->place.stream);
    free(comm->parts);
    free(comm);
}

static enum el_status create(const struct el_comm_backend *backend, struct el_device *device, int rank, int size,
                             struct el_comm **comm_p)
{
    struct el_comm *comm = calloc(1, sizeof *comm);
    if (!comm) return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", backend->name);
    *comm = (struct el_comm){
        .backend = backend, .place.device = device, .rank = rank, .size = size, .first = comm, .n_parts = 1};
    enum el_status status = size > 1 ? el_device_take_stream(device, &comm->place.stream) : EL_OK;
    if (status == EL_OK)
        *comm_p = comm;
    else
        free(comm);
    return status;
}

enum el_status el_comm_open_self(struct el_device *device, struct el_comm **comm_p)
{
    return create(&self_backend, device, 0, 1, comm_p);
}

/* Fills made[0..n), as far as it gets. */
static enum el_status open_members(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                   struct el_comm **made, struct el_comm_place *places, void **states)
{
    for (int i = 0; i < n; i++) {
        EL_TRY(create(backend, devices[i], i, n, &made[i]));
        made[i]->first = made[0];
        made[i]->n_parts = n;
        places[i] = made[i]->place;
    }
    made[0]->parts = calloc((size_t)n, sizeof *made[0]->parts);
    if (!made[0]->parts) return el_fail(EL_ERR_HOST_MEMORY, "communicator %s: no memory", backend->name);
    if (n > 1) EL_TRY(backend->open_members(places, n, states));
    for (int i = 0; i < n; i++) made[i]->state = states[i];
    return EL_OK;
}

enum el_status el_comm_open_with(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                 struct el_comm **comms)
{
    if (n < 1) return el_fail(EL_ERR_INVALID, "local communicator: %d members", n);
    void **states = calloc((size_t)n, sizeof *states);
    struct el_comm **made = calloc((size_t)n, sizeof(struct el_comm *));
    struct el_comm_place *places = calloc((size_t)n, sizeof *places);
    enum el_status status = states && made && places ? open_members(backend, devices, n, made, places, states)
                                                     : el_fail(EL_ERR_HOST_MEMORY, "local communicator: no memory");
    for (int i = 0; made && i < n; i++) {
        if (status == EL_OK)
            comms[i] = made[i];
        else
            release(made[i]);
    }
    free(places);
    free(made);
    free(states);
    return status;
}

enum el_status el_comm_open_local(struct el_device *const *devices, int n, struct el_comm **comms)
{
    return el_comm_open_with(el_comm_choose_members(devices, n, false), devices, n, comms);
}

enum el_status el_comm_open_together(struct el_device *const *devices, int n, struct el_comm **comms)
{
    return el_comm_open_with(el_comm_choose_members(devices, n, true), devices, n, comms);
}

static enum el_status open_group(const struct el_comm_backend **backend, struct el_bootstrap *bootstrap,
                                 const struct el_comm_place *place, void **state_p)
{
    if ((*backend)->open_on) return (*backend)->open_on(bootstrap, place->device, state_p);
    if (*backend == &mpi_backend) {
        const struct el_mpi_module *module;
        if (strcmp(el_bootstrap_kind(bootstrap), "mpi") != 0)
            return el_fail(EL_ERR_INVALID, "communicator mpi: needs the bootstrap mpi");
        EL_TRY(el_mpi_module_open(&module));
        *backend = module->comm;
    }
    EL_TRY((*backend)->open_ranks(bootstrap, state_p));
    return el_device_is_asynchronous(place->device) ? el_staged_wrap(place, backend, state_p) : EL_OK;
}

enum el_status el_comm_open_ranks(const char *kind, struct el_bootstrap *bootstrap, struct el_device *device,
                                  struct el_comm **comm_p)
{
    const struct el_comm_backend *backend = NULL;
    for (size_t i = 0; i < sizeof between_ranks / sizeof between_ranks[0]; i++)
        if (strcmp(kind, between_ranks[i]->name) == 0) backend = between_ranks[i];
    if (!backend) return el_fail(EL_ERR_ABSENT, "communicator %s: not one between ranks (mpi, shm, tcp, nccl)", kind);
    int rank = el_bootstrap_rank(bootstrap), size = el_bootstrap_size(bootstrap);
    struct el_comm *comm;
    EL_TRY(create(backend, device, rank, size, &comm));
    enum el_status status = size > 1 ? open_group(&comm->backend, bootstrap, &comm->place, &comm->state) : EL_OK;
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
    return comm->place.device;
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

struct el_comm_traffic el_comm_traffic(const struct el_comm *comm, const struct el_comm_op *op)
{
    struct el_comm_shape shape = {.verb = op->verb,
                                  .rank = comm->rank,
                                  .size = comm->size,
                                  .root = op->root,
                                  .count = op->count,
                                  .element_bytes = el_dtype_bytes(op->dtype)};
    if (!comm->state || op->count == 0) return (struct el_comm_traffic){0, 0};
    return comm->backend->ops->traffic ? comm->backend->ops->traffic(&shape) : el_comm_traffic_direct(&shape);
}

/* What a call takes along, and the places of its buffers among its views. */
enum { VIEW_DATA, VIEW_RESULT };

struct arguments {
    enum el_comm_verb verb;
    enum el_dtype dtype;
    int root;
    size_t count;
};
_Static_assert(sizeof(struct arguments) <= EL_CALL_ARGUMENT_BYTES, "a call cannot take it along");

static struct el_comm_task task_of(const struct el_call_args *args)
{
    const struct arguments *arguments = args->arguments;
    return (struct el_comm_task){.verb = arguments->verb,
                                 .dtype = arguments->dtype,
                                 .root = arguments->root,
                                 .count = arguments->count,
                                 .data = args->p[VIEW_DATA],
                                 .result = args->p[VIEW_RESULT],
                                 .stream = args->stream};
}

/* A planted wire: the payload takes so much longer, and no core is used meanwhile. */
static void wait_for_wire(const struct el_comm *comm, const struct el_comm_task *task)
{
    double ms_per_mib = el_device_inject(comm->place.device)->wire_ms_per_mib;
    if (ms_per_mib <= 0) return;
    double mib = (double)task->count * (double)el_dtype_bytes(task->dtype) / (1 << 20);
    el_clock_sleep_until(el_clock_ns() + (int64_t)(mib * ms_per_mib * 1e6));
}

/* A group of one: only a reduce has something to do. */
static enum el_status run_alone(const struct el_comm *comm, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    struct el_device *device = comm->place.device;
    if (task->verb != EL_COMM_REDUCE || task->result == task->data) return EL_OK;
    if (el_device_is_asynchronous(device))
        return el_device_enqueue_copy(device, comm->place.stream, task->result, device, task->data, device, bytes);
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
    parts[args->member] = (struct el_comm_part){.state = comm->state, .task = task_of(args)};
    if (args->member + 1 < args->n_members) return EL_OK;
    return comm->backend->ops->enqueue(parts, args->n_members);
}

static enum el_status run_on_host(struct el_comm *comm, const struct el_comm_task *task)
{
    /* At once where the stream is this thread. */
    EL_TRY(el_device_stream_synchronize(comm->place.device, comm->place.stream));
    EL_TRY(comm->backend->ops->run(comm->state, task));
    wait_for_wire(comm, task);
    return EL_OK;
}

static enum el_status run(const struct el_call_args *args)
{
    struct el_comm *comm = args->context;
    struct el_comm_task task = task_of(args);
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

/* What the transport has to know beforehand. */
static enum el_status announce(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op)
{
    struct el_comm_task task = {.verb = op->verb, .dtype = op->dtype, .root = op->root, .count = op->count};
    const struct el_comm_ops *ops = comm->state ? comm->backend->ops : NULL;
    if (ops && ops->poll) EL_TRY(el_program_on_wait(program, poll, comm));
    return ops && ops->reserve ? ops->reserve(comm->state, &task) : EL_OK;
}

static enum el_status queue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op, int *id_p)
{
    const struct arguments arguments = {.verb = op->verb, .dtype = op->dtype, .root = op->root, .count = op->count};
    struct el_comm_traffic traffic = el_comm_traffic(comm, op);
    bool has_result = verbs[op->verb].has_result && comm->rank == op->root;
    struct el_call_op call = {
        .head = {.label = op->label ? op->label : verbs[op->verb].name,
                 .phase = op->phase,
                 .sent_bytes = traffic.sent_bytes,
                 .received_bytes = traffic.received_bytes},
        .op_class = EL_CLASS_COMM,
        .run = run,
        .context = comm,
        .arguments = &arguments,
        .argument_bytes = sizeof arguments,
        .views = {[VIEW_DATA] = op->data, [VIEW_RESULT] = has_result ? op->result : el_view_host(NULL)},
        .bytes = (double)op->count * (double)el_dtype_bytes(op->dtype),
        .group = {.of = comm->first, .number = comm->issued++, .n_members = comm->first->n_parts}};
    return el_program_call(program, comm->place.device, comm->place.stream, &call, id_p);
}

enum el_status el_comm_issue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op,
                             int *op_id_p)
{
    struct el_device *device = comm->place.device;
    int id = -1;
    if (op->root < 0 || op->root >= comm->size)
        return el_fail(EL_ERR_INVALID, "%s: root %d of %d members", verbs[op->verb].name, op->root, comm->size);
    if (comm->place.stream == NO_STREAM) EL_TRY(el_device_take_stream(device, &comm->place.stream));
    EL_TRY(announce(comm, program, op));
    EL_TRY(el_program_wait(program, device, comm->place.stream, el_program_last(program, device, EL_STREAM_COMPUTE)));
    EL_TRY(queue(comm, program, op, &id));
    if (op->join) EL_TRY(el_program_wait(program, device, EL_STREAM_COMPUTE, id));
    if (op_id_p) *op_id_p = id;
    return EL_OK;
}

enum el_status el_comm_exchange(struct el_comm *comm, const struct el_comm_op *op)
{
    struct el_comm_task task = {.verb = op->verb,
                                .dtype = op->dtype,
                                .root = op->root,
                                .count = op->count,
                                .data = (void *)op->data.offset,
                                .result = (void *)op->result.offset};
    if (el_device_is_asynchronous(comm->place.device))
        return el_fail(EL_ERR_INVALID, "communicator %s: exchanges device memory", comm->backend->name);
    if (task.count == 0) return EL_OK;
    if (!comm->state) return run_alone(comm, &task);
    enum el_status status = comm->backend->ops->run(comm->state, &task);
    if (status != EL_OK) el_comm_abort(comm);
    return status;
}
