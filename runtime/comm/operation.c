/* An operation: its op in the program, its bytes, cases without transport, failures. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/hash.h"
#include "runtime/comm/member.h"
#include "runtime/comm/rounds.h"

/* Per part. Where whole parts move, they are expected. */
static size_t expected_count(const struct el_comm *comm, const struct el_comm_op *op)
{
    const bool whole = comm->state && comm->backend->ops->asynchronous;
    return op->expected > 0 && !whole ? (size_t)((double)op->count * op->expected + 0.5) : op->count;
}

static struct el_comm_shape shape_of(const struct el_comm *comm, const struct el_comm_op *op)
{
    struct el_comm_shape shape = {.verb = op->verb,
                                  .rank = comm->rank,
                                  .size = comm->size,
                                  .root = op->root,
                                  .count = expected_count(comm, op),
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

static struct el_comm_traffic traffic_of(const struct el_comm *comm, const struct el_comm_shape *shape)
{
    if (!comm->state || shape->count == 0) return (struct el_comm_traffic){0, 0};
    return comm->backend->ops->traffic ? comm->backend->ops->traffic(comm->state, shape)
                                       : el_comm_rounds_traffic(shape);
}

struct el_comm_traffic el_comm_traffic(const struct el_comm *comm, const struct el_comm_op *op)
{
    const struct el_comm_shape shape = shape_of(comm, op);
    return traffic_of(comm, &shape);
}

static int64_t chunk_of(const struct el_comm_shape *s, int i)
{
    i = el_comm_wrap(i, s->size);
    return (int64_t)(el_comm_chunk(s->count, s->size, i + 1) - el_comm_chunk(s->count, s->size, i));
}

/* The rank that moves the most bytes in an all-reduce: direct, the owner of the largest chunk; ring, the one that
 * skips the smallest ones. */
static int busiest(const struct el_comm_shape *s)
{
    const bool ring = s->algorithm == EL_COMM_RING;
    int64_t most = INT64_MIN;
    int rank = 0;
    for (int r = 0; r < s->size && s->verb == EL_COMM_ALL_REDUCE; r++) {
        const int64_t weight = ring ? -chunk_of(s, r) - 2 * chunk_of(s, r + 1) - chunk_of(s, r + 2) : chunk_of(s, r);
        if (weight > most) rank = r;
        if (weight > most) most = weight;
    }
    return rank;
}

static uint64_t most_bytes(const struct el_comm *comm, const struct el_comm_shape *shape)
{
    const int ranks[] = {shape->rank, 0, shape->size - 1, shape->root, busiest(shape)};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        struct el_comm_shape other = *shape;
        other.rank = ranks[i];
        const struct el_comm_traffic traffic = traffic_of(comm, &other);
        if (traffic.sent_bytes + traffic.received_bytes > most) most = traffic.sent_bytes + traffic.received_bytes;
    }
    return most;
}

/* Cached: messages are counted one by one, and many operations of a program have one shape. */
static enum el_status know(struct el_comm *comm, const struct el_comm_op *op, const struct el_comm_known **known_p)
{
    const struct el_comm_shape s = shape_of(comm, op);
    if (!comm->known) comm->known = calloc(EL_COMM_VERB_COUNT, sizeof *comm->known);
    if (!comm->known) return el_fail_errno("operations of %d members", comm->size);
    struct el_comm_known *known = &comm->known[op->verb];
    const struct el_comm_shape *k = &known->shape;
    if (k->size != s.size || k->count != s.count || k->element_bytes != s.element_bytes || k->root != s.root ||
        k->rank != s.rank || k->algorithm != s.algorithm) {
        *known = (struct el_comm_known){s, el_comm_messages(&s), traffic_of(comm, &s)};
        if (!el_comm_verb_row(op->verb)->is_link) known->messages.most_bytes = most_bytes(comm, &s);
    }
    *known_p = known;
    return EL_OK;
}

enum { VIEW_DATA, VIEW_RESULT, VIEW_USED };

struct arguments {
    size_t count, expected; /* of a part */
    int root, tag;
    int32_t used_each, unit; /* 0: whole parts */
    uint8_t verb, reduction, dtype, algorithm;
    bool has_result, back;
};
_Static_assert(sizeof(struct arguments) <= EL_CALL_ARGUMENT_BYTES, "a call cannot take it along");

static struct arguments arguments_of(const struct el_comm *comm, const struct el_comm_op *op)
{
    return (struct arguments){.count = op->count,
                              .expected = expected_count(comm, op),
                              .root = op->root,
                              .tag = op->tag,
                              .used_each = el_comm_is_given(op->used) ? (int32_t)op->used_each : 0,
                              .unit = (int32_t)op->unit,
                              .verb = (uint8_t)op->verb,
                              .reduction = el_comm_verb_row(op->verb)->reduces ? (uint8_t)op->reduction : 0,
                              .dtype = (uint8_t)op->dtype,
                              .algorithm = (uint8_t)shape_of(comm, op).algorithm,
                              .has_result = el_comm_is_given(op->result) && el_comm_gets(comm, op->verb, op->root),
                              .back = op->back};
}

static struct el_comm_task make_task(const struct el_comm *comm, const struct arguments *arguments, void *data,
                                     void *result, const void *used)
{
    bool gets = el_comm_gets(comm, arguments->verb, arguments->root);
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
                                                                 : NULL,
                                 .used = {.counts = arguments->used_each > 0 ? used : NULL,
                                          .size = comm->size,
                                          .each = arguments->used_each,
                                          .unit = arguments->unit,
                                          .back = arguments->back}};
}

/* As nccl-tests: the larger one of a member's data and result. */
static double payload_bytes(const struct el_comm *comm, enum el_comm_verb verb, enum el_dtype dtype, size_t count)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(verb);
    double parts = row->all_data || row->all_result ? comm->size : 1;
    return (double)count * (double)el_dtype_bytes(dtype) * parts;
}

static struct el_comm_task task_of(const struct el_comm *comm, const struct el_call_args *args)
{
    const void *used = el_device_computes(comm->place.device) ? args->p[VIEW_USED] : NULL; /* else never written */
    struct el_comm_task task = make_task(comm, args->arguments, args->p[VIEW_DATA], args->p[VIEW_RESULT], used);
    task.stream = args->stream;
    return task;
}

static double wire_bytes(const struct el_comm *comm, const struct el_comm_task *task)
{
    double given = 0, got = 0;
    if (!task->used.counts || el_device_is_asynchronous(comm->place.device))
        return payload_bytes(comm, task->verb, task->dtype, task->count);
    for (int r = 0; r < comm->size; r++) {
        given += (double)el_comm_used(&task->used, r, false, 0, task->count);
        got += (double)el_comm_used(&task->used, r, true, 0, task->count);
    }
    return (given > got ? given : got) * (double)el_dtype_bytes(task->dtype);
}

/* Injected delay; uses no core. */
static void wait_for_wire(const struct el_comm *comm, const struct el_comm_task *task)
{
    double ms_per_mib = el_device_inject(comm->place.device)->wire_ms_per_mib;
    if (ms_per_mib <= 0) return;
    double mib = wire_bytes(comm, task) / (1 << 20);
    el_clock_sleep_until(el_clock_ns() + (int64_t)(mib * ms_per_mib * 1e6));
}

/* Injected error in the first element. */
static void make_wrong(const struct el_comm *comm, const struct el_comm_task *task)
{
    double wrong = el_device_inject(comm->place.device)->wrong;
    if (wrong == 0 || !task->result || task->count == 0) return;
    if (task->dtype == EL_F32) *(float *)task->result += (float)wrong;
    if (task->dtype == EL_F64) *(double *)task->result += wrong;
}

static enum el_status run_alone(const struct el_comm *comm, const struct el_comm_task *task)
{
    size_t bytes = task->count * el_dtype_bytes(task->dtype);
    struct el_device *device = comm->place.device;
    if (!task->result || task->result == task->data) return EL_OK;
    if (el_device_is_asynchronous(device))
        return el_device_enqueue_copy(device, comm->place.stream, task->result, device, task->data, device, bytes);
    memcpy(task->result, task->data, el_comm_used(&task->used, 0, true, 0, task->count) * el_dtype_bytes(task->dtype));
    return EL_OK;
}

/* Where one thread issues for several members, the last call enqueues for all; earlier ones store their parts. */
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
    EL_TRY(el_device_stream_synchronize(comm->place.device, comm->place.stream));
    EL_TRY(comm->backend->ops->run(comm->state, task));
    make_wrong(comm, task);
    wait_for_wire(comm, task);
    return EL_OK;
}

static uint64_t operation_of(const struct el_comm *comm, const struct el_call_op *call)
{
    const struct el_call_message *link = &call->message;
    const uint64_t words[] = {comm->number,         link->of != NULL,   call->group.number,
                              (unsigned)link->from, (unsigned)link->to, (unsigned)link->tag};
    return el_hash(EL_HASH_BEGIN, words, sizeof words);
}

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
    return task->count == 0 && task->verb != EL_COMM_BARRIER && !el_comm_verb_row(task->verb)->is_link;
}

/* A graph's operation is recorded once and moves data at each launch. */
static enum el_status run_in_graph(struct el_comm *comm, const struct el_call_args *args, struct el_comm_task *task)
{
    const bool again = args->graph == EL_CALL_AGAIN;
    if (again) task->number = ++comm->run[0];
    if (comm->muted) return el_fail(EL_ERR_INTERNAL, "communicator %s: a graph is not muted", comm->backend->name);
    if (again) EL_TRY(fail_operation(comm, task, el_comm_check_others(comm, task)));
    if (moves_nothing(task)) return EL_OK;
    if (!comm->state) return again ? EL_OK : run_alone(comm, task);
    if (!again) EL_TRY(fail_operation(comm, task, enqueue(comm, args, task)));
    comm->backend->ops->graph(comm->state, again);
    return EL_OK;
}

/* What moved beyond what the program's ops say. */
static void count_beyond(struct el_comm *comm, const struct el_comm_task *task, size_t expected)
{
    const int64_t width = (int64_t)el_dtype_bytes(task->dtype);
    for (int r = 0; r < comm->size; r++) {
        if (r == comm->rank || !task->used.counts || el_device_is_asynchronous(comm->place.device)) continue;
        const size_t sent = el_comm_used(&task->used, r, false, 0, task->count);
        const size_t received = el_comm_used(&task->used, r, true, 0, task->count);
        comm->beyond[0] += ((int64_t)sent - (int64_t)expected) * width;
        comm->beyond[1] += ((int64_t)received - (int64_t)expected) * width;
    }
}

void el_comm_beyond(const struct el_comm *comm, int64_t bytes_p[2])
{
    memcpy(bytes_p, comm->beyond, sizeof comm->beyond);
}

static enum el_status run(const struct el_call_args *args)
{
    struct el_comm *comm = args->context;
    struct el_comm_task task = task_of(comm, args);
    bool is_link = el_comm_verb_row(task.verb)->is_link;
    if (args->graph != EL_CALL_QUEUES) return run_in_graph(comm, args, &task);
    task.number = ++comm->run[is_link];
    if (comm->muted && !is_link) return EL_OK;
    EL_TRY(fail_operation(comm, &task, el_comm_check_others(comm, &task)));
    if (moves_nothing(&task)) return EL_OK;
    if (comm->muted) task.count = 0; /* the receiver still waits for the send */
    if (!comm->state) return run_alone(comm, &task);
    count_beyond(comm, &task, ((const struct arguments *)args->arguments)->expected);
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

static enum el_status announce(struct el_comm *comm, struct el_program *program, const struct arguments *arguments)
{
    struct el_comm_task task = make_task(comm, arguments, NULL, NULL, NULL);
    const struct el_comm_ops *ops = comm->state ? comm->backend->ops : NULL;
    if (ops && ops->poll) EL_TRY(el_program_on_wait(program, poll, comm));
    return ops && ops->reserve ? ops->reserve(comm->state, &task) : EL_OK;
}

static struct el_op_messages describe(const struct el_comm *comm, const struct el_comm_op *op,
                                      const struct el_comm_known *known)
{
    struct el_op_messages messages = known->messages;
    messages.dtype = el_dtype_name(op->dtype);
    messages.given = known->shape.count * el_comm_gives(comm, op->verb, op->root);
    messages.got = known->shape.count * el_comm_gets(comm, op->verb, op->root);
    messages.partner = el_comm_verb_row(op->verb)->has_root ? op->root : -1;
    messages.tag = op->tag;
    const size_t part = op->count * el_dtype_bytes(op->dtype);
    const struct el_view place = op->result;
    if (op->verb == EL_COMM_ALL_GATHER && place.buffer &&
        (op->data.buffer != place.buffer || op->data.offset != place.offset + (size_t)comm->rank * part))
        messages.copied_bytes = part;
    return messages;
}

static enum el_status queue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op,
                            const struct arguments *arguments, int *id_p)
{
    const struct el_comm_known *known = NULL;
    EL_TRY(know(comm, op, &known));
    struct el_call_op call = {
        .head = {.label = op->label ? op->label : el_comm_verb_row(op->verb)->name,
                 .phase = op->phase,
                 .sent_bytes = known->traffic.sent_bytes,
                 .received_bytes = known->traffic.received_bytes},
        .op_class = EL_CLASS_COMM,
        .blocks = comm->state && !comm->backend->ops->asynchronous,
        .notes = (!comm->state || comm->backend->ops->graph) && !el_comm_verb_row(op->verb)->is_link,
        .run = run,
        .context = comm,
        .arguments = arguments,
        .argument_bytes = sizeof *arguments,
        .views = {[VIEW_DATA] = op->data, [VIEW_RESULT] = arguments->has_result ? op->result : el_view_host(NULL)},
        .bytes = payload_bytes(comm, op->verb, op->dtype, known->shape.count),
        .communicator = comm->name,
        .messages = describe(comm, op, known)};
    bool sends = op->verb == EL_COMM_SEND;
    call.views[VIEW_USED] = op->used;
    if (el_comm_verb_row(op->verb)->is_link)
        call.message = (struct el_call_message){comm->group, sends ? comm->rank : op->root,
                                                sends ? op->root : comm->rank, op->tag, sends};
    else
        call.group = (struct el_call_group){comm->group, comm->issued++, comm->n_parts};
    call.operation = operation_of(comm, &call);
    return el_program_call(program, comm->place.device, comm->place.stream, &call, id_p);
}

static enum el_status take_stream(struct el_comm *comm)
{
    return comm->place.stream == EL_COMM_NO_STREAM ? el_device_take_stream(comm->place.device, &comm->place.stream)
                                                   : EL_OK;
}

enum el_status el_comm_wait(struct el_comm *comm, struct el_program *program, int op_id)
{
    EL_TRY(take_stream(comm));
    return el_program_wait(program, comm->place.device, comm->place.stream, op_id);
}

enum el_status el_comm_issue(struct el_comm *comm, struct el_program *program, const struct el_comm_op *op,
                             int *op_id_p)
{
    struct el_device *device = comm->place.device;
    int id = -1;
    struct arguments arguments;
    EL_TRY(el_comm_check(comm, op));
    arguments = arguments_of(comm, op);
    EL_TRY(take_stream(comm));
    EL_TRY(announce(comm, program, &arguments));
    EL_TRY(el_program_wait(program, device, comm->place.stream, el_program_last(program, device, EL_STREAM_COMPUTE)));
    /* Its input may come from another communicator that no op has waited for yet, or its output lie where that one
     * reads. */
    EL_TRY(el_program_wait_like(program, device, comm->place.stream, EL_STREAM_COMPUTE));
    EL_TRY(queue(comm, program, op, &arguments, &id));
    if (op->join) EL_TRY(el_program_wait(program, device, EL_STREAM_COMPUTE, id));
    if (op_id_p) *op_id_p = id;
    return EL_OK;
}

enum el_status el_comm_exchange(struct el_comm *comm, const struct el_comm_op *op)
{
    EL_TRY(el_comm_check(comm, op));
    struct arguments arguments = arguments_of(comm, op);
    struct el_comm_task task =
        make_task(comm, &arguments, (void *)op->data.offset, (void *)op->result.offset, (void *)op->used.offset);
    if (el_device_is_asynchronous(comm->place.device))
        return el_fail(EL_ERR_INVALID, "communicator %s: exchanges device memory, not the host's", comm->backend->name);
    task.number = ++comm->run[el_comm_verb_row(op->verb)->is_link];
    EL_TRY(fail_operation(comm, &task, el_comm_check_others(comm, &task)));
    if (moves_nothing(&task)) return EL_OK;
    if (!comm->state) return run_alone(comm, &task);
    if (comm->backend->ops->reserve) EL_TRY(comm->backend->ops->reserve(comm->state, &task));
    return fail_operation(comm, &task, comm->backend->ops->run(comm->state, &task));
}
