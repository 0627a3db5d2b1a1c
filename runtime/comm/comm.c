/* The list of communicators and the wrappers round them: arguments, bytes, the op in the program, and what needs no
 * transport at all. Only this file calls the hooks of comm_ops.h; how bytes move is not its business. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/comm/comm_ops.h"
#include "runtime/comm/mpi/module.h"
#include "runtime/comm/rounds.h"

struct el_comm {
    const struct el_comm_backend *backend;
    struct el_comm_place place;
    void *state; /* NULL: a group of one that needs no transport */
    int rank, size;
    struct el_comm *first; /* of this process's members, open as long as operations are run: what tells groups apart */
    struct el_comm_part *parts; /* the first member's: [n_parts], of the operation being enqueued */
    int n_parts;                /* members in this process */
    uint64_t issued;            /* operations: members issue the same ones in the same order */
    uint64_t run;               /* operations that have begun */
    bool muted;
    enum el_comm_algorithm forced; /* EL_COMM_AUTO: the backend's choice */
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
    int rank = el_bootstrap_rank(bootstrap), size = el_bootstrap_size(bootstrap);
    if ((*backend)->open_on) return (*backend)->open_on(bootstrap, place->device, state_p);
    if (*backend == &mpi_backend) {
        const struct el_mpi_module *module;
        if (strcmp(el_bootstrap_kind(bootstrap), "mpi") != 0)
            return el_fail(EL_ERR_INVALID, "communicator mpi: needs the bootstrap mpi");
        EL_TRY(el_mpi_module_open(&module));
        *backend = module->comm;
    }
    EL_TRY((*backend)->open_ranks(bootstrap, state_p));
    return el_device_is_asynchronous(place->device) ? el_staged_wrap(place, rank, size, backend, state_p) : EL_OK;
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

bool el_comm_has_verb(const struct el_comm *comm, enum el_comm_verb verb)
{
    return comm->state ? comm->backend->ops->verbs >> verb & 1 : !el_comm_verb_row(verb)->is_link;
}

bool el_comm_has_reduction(const struct el_comm *comm, enum el_comm_reduction reduction, enum el_dtype dtype)
{
    bool (*reduces)(enum el_comm_reduction, enum el_dtype) = comm->state ? comm->backend->ops->reduces : NULL;
    return el_comm_reduces(reduction, dtype) && (!reduces || reduces(reduction, dtype));
}

enum el_status el_comm_set_algorithm(struct el_comm *comm, enum el_comm_algorithm algorithm)
{
    if (algorithm != EL_COMM_AUTO && comm->state && !comm->backend->ops->choose)
        return el_fail(EL_ERR_ABSENT, "communicator %s: its library chooses the algorithm, not '%s'",
                       comm->backend->name, el_comm_algorithm_name(algorithm));
    comm->forced = algorithm;
    return EL_OK;
}

enum el_status el_comm_alloc(struct el_comm *comm, enum el_tag tag, size_t bytes, const char *name,
                             struct el_buffer **buffer_p)
{
    struct el_device *device = comm->place.device;
    struct el_lent_memory memory;
    if (!comm->state || !comm->backend->ops->alloc || el_device_is_simulated(device))
        return el_device_alloc(device, tag, bytes, name, buffer_p);
    enum el_status mine = el_device_has_room(device, tag, bytes, name);
    EL_TRY(comm->backend->ops->alloc(comm->state, bytes, mine, &memory));
    enum el_status status = el_device_adopt(device, tag, bytes, name, &memory, buffer_p);
    if (status != EL_OK) memory.release(memory.owner);
    return status;
}

void el_comm_abort(struct el_comm *comm)
{
    if (comm->state) comm->backend->ops->abort(comm->state);
}

void el_comm_mute(struct el_comm *comm, bool muted)
{
    comm->muted = muted;
}

enum el_status el_comm_set_timeout(struct el_comm *comm, double seconds)
{
    if (seconds < 0)
        return el_fail(EL_ERR_INVALID, "communicator %s: a time-out of %g s", comm->backend->name, seconds);
    if (!comm->state) return EL_OK;
    if (comm->backend->ops->set_timeout)
        comm->backend->ops->set_timeout(comm->state, (int64_t)(seconds * 1e9));
    else if (seconds > 0)
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no time-out", comm->backend->name);
    return EL_OK;
}

static struct el_comm_shape shape_of(const struct el_comm *comm, const struct el_comm_op *op)
{
    struct el_comm_shape shape = {.verb = op->verb,
                                  .rank = comm->rank,
                                  .size = comm->size,
                                  .root = op->root,
                                  .count = op->count,
                                  .element_bytes = el_dtype_bytes(op->dtype)};
    enum el_comm_algorithm (*choose)(const struct el_comm_shape *) = comm->state ? comm->backend->ops->choose : NULL;
    if (choose && comm->forced == EL_COMM_AUTO) shape.algorithm = choose(&shape);
    if (choose && comm->forced != EL_COMM_AUTO)
        shape.algorithm = el_comm_has_algorithm(op->verb, comm->forced) ? comm->forced : EL_COMM_DIRECT;
    return shape;
}

enum el_comm_algorithm el_comm_algorithm(const struct el_comm *comm, const struct el_comm_op *op)
{
    return shape_of(comm, op).algorithm;
}

struct el_comm_traffic el_comm_traffic(const struct el_comm *comm, const struct el_comm_op *op)
{
    struct el_comm_shape shape = shape_of(comm, op);
    if (!comm->state || op->count == 0) return (struct el_comm_traffic){0, 0};
    return comm->backend->ops->traffic ? comm->backend->ops->traffic(&shape) : el_comm_rounds_traffic(&shape);
}

/* What a call takes along, and the places of its buffers among its views. */
enum { VIEW_DATA, VIEW_RESULT };

struct arguments {
    size_t count;
    int root, tag;
    uint8_t verb, reduction, dtype, algorithm;
    bool has_data, has_result;
};
_Static_assert(sizeof(struct arguments) <= EL_CALL_ARGUMENT_BYTES, "a call cannot take it along");

/* What this member gives and gets; a result that was left out is `data`. */
static struct arguments arguments_of(const struct el_comm *comm, const struct el_comm_op *op)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(op->verb);
    bool is_root = comm->rank == op->root;
    return (struct arguments){.count = op->count,
                              .root = op->root,
                              .tag = op->tag,
                              .verb = (uint8_t)op->verb,
                              .reduction = (uint8_t)op->reduction,
                              .dtype = (uint8_t)op->dtype,
                              .algorithm = (uint8_t)shape_of(comm, op).algorithm,
                              .has_data = op->data.buffer || op->data.offset,
                              .has_result =
                                  (op->result.buffer || op->result.offset) && (is_root || !row->result_on_root)};
}

static struct el_comm_task make_task(const struct el_comm *comm, const struct arguments *arguments, void *data,
                                     void *result)
{
    bool gets = comm->rank == arguments->root || !el_comm_verb_row(arguments->verb)->result_on_root;
    return (struct el_comm_task){.verb = arguments->verb,
                                 .reduction = arguments->reduction,
                                 .dtype = arguments->dtype,
                                 .algorithm = arguments->algorithm,
                                 .root = arguments->root,
                                 .tag = arguments->tag,
                                 .count = arguments->count,
                                 .data = data,
                                 .result = arguments->has_result ? result
                                           : gets                ? data
                                                                 : NULL};
}

static struct el_comm_task task_of(const struct el_comm *comm, const struct el_call_args *args)
{
    struct el_comm_task task = make_task(comm, args->arguments, args->p[VIEW_DATA], args->p[VIEW_RESULT]);
    task.stream = args->stream;
    return task;
}

/* A planted wire: the payload takes so much longer, and no core is used meanwhile. */
static void wait_for_wire(const struct el_comm *comm, const struct el_comm_task *task)
{
    double ms_per_mib = el_device_inject(comm->place.device)->wire_ms_per_mib;
    if (ms_per_mib <= 0) return;
    double mib = (double)task->count * (double)el_dtype_bytes(task->dtype) / (1 << 20);
    el_clock_sleep_until(el_clock_ns() + (int64_t)(mib * ms_per_mib * 1e6));
}

/* A group of one: what it gives is what it gets. */
static enum el_status run_alone(const struct el_comm *comm, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    struct el_device *device = comm->place.device;
    if (!task->result || task->result == task->data) return EL_OK;
    if (el_device_is_asynchronous(device))
        return el_device_enqueue_copy(device, comm->place.stream, task->result, device, task->data, device, bytes);
    memcpy(task->result, task->data, bytes);
    return EL_OK;
}

/* Where one thread issues for several members, the last one's call enqueues for all of them: the calls before it leave
 * their parts with the first member. */
static enum el_status enqueue(struct el_comm *comm, const struct el_call_args *args, const struct el_comm_task *task)
{
    struct el_comm_part own, *parts = args->n_members == 1 ? &own : comm->first->parts;
    if (args->n_members > comm->first->n_parts || args->member >= args->n_members)
        return el_fail(EL_ERR_INTERNAL, "communicator %s: %d calls at once for %d members", comm->backend->name,
                       args->n_members, comm->first->n_parts);
    parts[args->member] = (struct el_comm_part){.state = comm->state, .task = *task};
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

/* Says which operation failed, in front of why. */
static enum el_status fail_operation(struct el_comm *comm, const struct el_comm_task *task, enum el_status status)
{
    struct el_error error;
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &error);
    el_comm_abort(comm);
    return el_fail(status, "the %s number %" PRIu64 " of rank %d: %s", el_comm_verb_row(task->verb)->name, task->number,
                   comm->rank, error.text);
}

static bool moves_nothing(const struct el_comm_task *task)
{
    return task->count == 0 && task->verb != EL_COMM_BARRIER;
}

static enum el_status run(const struct el_call_args *args)
{
    struct el_comm *comm = args->context;
    struct el_comm_task task = task_of(comm, args);
    task.number = ++comm->run;
    if (moves_nothing(&task) || comm->muted) return EL_OK;
    if (!comm->state) return run_alone(comm, &task);
    return fail_operation(comm, &task,
                          comm->backend->ops->asynchronous ? enqueue(comm, args, &task) : run_on_host(comm, &task));
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
static enum el_status announce(struct el_comm *comm, struct el_program *program, const struct arguments *arguments)
{
    struct el_comm_task task = make_task(comm, arguments, NULL, NULL);
    const struct el_comm_ops *ops = comm->state ? comm->backend->ops : NULL;
    if (ops && ops->poll) EL_TRY(el_program_on_wait(program, poll, comm));
    return ops && ops->reserve ? ops->reserve(comm->state, &task) : EL_OK;
}

static enum el_status queue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op,
                            const struct arguments *arguments, int *id_p)
{
    struct el_comm_traffic traffic = el_comm_traffic(comm, op);
    struct el_call_op call = {
        .head = {.label = op->label ? op->label : el_comm_verb_row(op->verb)->name,
                 .phase = op->phase,
                 .sent_bytes = traffic.sent_bytes,
                 .received_bytes = traffic.received_bytes},
        .op_class = EL_CLASS_COMM,
        .run = run,
        .context = comm,
        .arguments = arguments,
        .argument_bytes = sizeof *arguments,
        .views = {[VIEW_DATA] = op->data, [VIEW_RESULT] = arguments->has_result ? op->result : el_view_host(NULL)},
        .bytes = (double)op->count * (double)el_dtype_bytes(op->dtype),
        .group = {.of = comm->first, .number = comm->issued++, .n_members = comm->first->n_parts}};
    return el_program_call(program, comm->place.device, comm->place.stream, &call, id_p);
}

static enum el_status check_op(const struct el_comm *comm, const struct el_comm_op *op)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(op->verb);
    if (op->root < 0 || op->root >= comm->size)
        return el_fail(EL_ERR_INVALID, "%s: root %d of %d members", row->name, op->root, comm->size);
    if (row->reduces && !el_comm_reduces(op->reduction, op->dtype))
        return el_fail(EL_ERR_INVALID, "%s: no %s of %s values", row->name, el_comm_reduction_name(op->reduction),
                       el_dtype_name(op->dtype));
    if (!el_comm_has_verb(comm, op->verb))
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no %s", comm->backend->name, row->name);
    if (row->reduces && !el_comm_has_reduction(comm, op->reduction, op->dtype))
        return el_fail(EL_ERR_ABSENT, "communicator %s: has no %s of %s values", comm->backend->name,
                       el_comm_reduction_name(op->reduction), el_dtype_name(op->dtype));
    return EL_OK;
}

enum el_status el_comm_issue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op,
                             int *op_id_p)
{
    struct el_device *device = comm->place.device;
    int id = -1;
    struct arguments arguments;
    EL_TRY(check_op(comm, op));
    arguments = arguments_of(comm, op);
    if (comm->place.stream == NO_STREAM) EL_TRY(el_device_take_stream(device, &comm->place.stream));
    EL_TRY(announce(comm, program, &arguments));
    EL_TRY(el_program_wait(program, device, comm->place.stream, el_program_last(program, device, EL_STREAM_COMPUTE)));
    EL_TRY(queue(comm, program, op, &arguments, &id));
    if (op->join) EL_TRY(el_program_wait(program, device, EL_STREAM_COMPUTE, id));
    if (op_id_p) *op_id_p = id;
    return EL_OK;
}

enum el_status el_comm_exchange(struct el_comm *comm, const struct el_comm_op *op)
{
    EL_TRY(check_op(comm, op));
    struct arguments arguments = arguments_of(comm, op);
    struct el_comm_task task = make_task(comm, &arguments, (void *)op->data.offset, (void *)op->result.offset);
    if (el_device_is_asynchronous(comm->place.device))
        return el_fail(EL_ERR_INVALID, "communicator %s: exchanges device memory", comm->backend->name);
    task.number = ++comm->run;
    if (moves_nothing(&task)) return EL_OK;
    if (!comm->state) return run_alone(comm, &task);
    return fail_operation(comm, &task, comm->backend->ops->run(comm->state, &task));
}
