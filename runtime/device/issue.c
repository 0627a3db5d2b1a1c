/* Issuing: queues ops, and records waits and memory marks. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/internal.h"

static bool is_queue_of(const struct el_queue *queue, const struct el_device *device, int stream)
{
    return queue->device == device && queue->stream == stream;
}

static struct el_queue *find_queue(const struct el_program *program, const struct el_device *device, int stream)
{
    if (stream < 0 || stream >= EL_DEVICE_STREAMS_MAX) return NULL;
    int hint = device->queue_hints[stream];
    if (hint < program->n_queues && is_queue_of(program->queues[hint], device, stream)) return program->queues[hint];
    for (int q = 0; q < program->n_queues; q++) {
        if (is_queue_of(program->queues[q], device, stream)) return program->queues[q];
    }
    return NULL;
}

static enum el_status queue_of(struct el_program *program, struct el_device *device, int stream,
                               struct el_queue **queue_p)
{
    struct el_queue *queue = find_queue(program, device, stream);
    if (!queue) {
        if (stream < 0 || stream >= EL_DEVICE_STREAMS_MAX) {
            return el_fail(EL_ERR_INTERNAL, "%s: stream %d does not exist", device->name, stream);
        }
        EL_TRY(EL_PROGRAM_GROW(program->queues, program->n_queues, program->queue_room));
        queue = calloc(1, sizeof *queue);
        if (!queue) return el_fail_errno("%s: a queue", device->name);
        *queue = (struct el_queue){.program = program, .device = device, .stream = stream, .index = program->n_queues};
        program->queues[program->n_queues++] = queue;
    }
    device->queue_hints[stream] = queue->index;
    *queue_p = queue;
    return EL_OK;
}

static enum el_status memory_of(struct el_program *program, struct el_device *device, struct el_step_memory **memory_p)
{
    int d = device->memory_hint;
    if (d >= program->n_devices || program->memory[d].device != device)
        for (d = 0; d < program->n_devices && program->memory[d].device != device;) d++;
    if (d == program->n_devices) {
        EL_TRY(EL_PROGRAM_GROW(program->memory, d, program->device_room));
        program->memory[program->n_devices++] = (struct el_step_memory){.device = device};
    }
    device->memory_hint = d;
    *memory_p = &program->memory[d];
    return EL_OK;
}

static enum el_status note(struct el_program *program, const struct el_device *device, enum el_tag tag, int64_t bytes)
{
    EL_TRY(EL_PROGRAM_GROW(program->marks, program->n_marks, program->mark_room));
    program->marks[program->n_marks++] =
        (struct el_mark){.op = program->n_tasks, .device = device->spec.position, .tag = tag, .bytes = bytes};
    return EL_OK;
}

static enum el_status add_bytes(struct el_program *program, struct el_step_memory *memory, enum el_tag tag,
                                size_t bytes)
{
    el_ledger_add(&memory->ledger, tag, bytes);
    return note(program, memory->device, tag, (int64_t)bytes);
}

static enum el_status remove_bytes(struct el_program *program, struct el_step_memory *memory, enum el_tag tag,
                                   size_t bytes)
{
    el_ledger_remove(&memory->ledger, tag, bytes);
    return note(program, memory->device, tag, -(int64_t)bytes);
}

static enum el_status allocate(struct el_program *program, struct el_device *device, enum el_tag tag, size_t bytes,
                               struct el_buffer_part part, const char *name, struct el_buffer **buffer_p)
{
    struct el_step_memory *memory = NULL;
    EL_TRY(memory_of(program, device, &memory));
    EL_TRY(el_device_check_limit(device, memory->ledger.live_bytes, bytes, tag, name));
    EL_TRY(EL_PROGRAM_GROW(program->buffers, program->n_buffers, program->buffer_room));
    struct el_step_buffer *made = calloc(1, sizeof *made);
    if (!made) return el_fail_errno("%s: '%s'", device->name, name);
    made->buffer = (struct el_buffer){.device = device, .tag = tag, .bytes = bytes, .name = name};
    made->part = part;
    made->allocated = program->mark_clock++;
    made->freed = -1;
    program->buffers[program->n_buffers++] = made;
    size_t peak = memory->ledger.peak_bytes;
    if (bytes > part.bytes || !bytes) EL_TRY(add_bytes(program, memory, tag, bytes - part.bytes));
    if (part.bytes) EL_TRY(add_bytes(program, memory, part.tag, part.bytes));
    if (memory->ledger.peak_bytes > peak) memory->peak_task = program->n_tasks;
    *buffer_p = &made->buffer;
    return EL_OK;
}

enum el_status el_program_alloc_padded(struct el_program *program, struct el_device *device, enum el_tag tag,
                                       size_t bytes, size_t padding, const char *name, struct el_buffer **buffer_p)
{
    *buffer_p = NULL;
    if (program->failure != EL_OK) return el_error_give(&program->error);
    struct el_buffer_part gaps = {EL_TAG_PADDING, padding};
    return el_program_keep(program, allocate(program, device, tag, bytes, gaps, name, buffer_p));
}

enum el_status el_program_alloc(struct el_program *program, struct el_device *device, enum el_tag tag, size_t bytes,
                                const char *name, struct el_buffer **buffer_p)
{
    return el_program_alloc_padded(program, device, tag, bytes, 0, name, buffer_p);
}

void el_program_free(struct el_program *program, struct el_buffer *buffer)
{
    struct el_step_memory *memory = NULL;
    if (!buffer || memory_of(program, buffer->device, &memory) != EL_OK) return;
    struct el_step_buffer *gone = (struct el_step_buffer *)buffer;
    gone->freed = program->mark_clock++;
    if (buffer->bytes > gone->part.bytes || !buffer->bytes)
        el_program_keep(program, remove_bytes(program, memory, buffer->tag, buffer->bytes - gone->part.bytes));
    if (gone->part.bytes) el_program_keep(program, remove_bytes(program, memory, gone->part.tag, gone->part.bytes));
}

static enum el_status append(struct el_program *program, struct el_device *device, int stream,
                             const struct el_op_head *head, const char *fallback, struct el_task **task_p,
                             struct el_op_info **info_p)
{
    struct el_queue *queue;
    EL_TRY(queue_of(program, device, stream, &queue));
    int id = program->n_tasks;
    EL_TRY(EL_PROGRAM_GROW(program->tasks, id, program->task_room));
    EL_TRY(EL_PROGRAM_GROW(program->infos, id, program->info_room));
    EL_TRY(EL_PROGRAM_GROW(program->labels, id, program->label_room));
    EL_TRY(EL_PROGRAM_GROW(queue->tasks, queue->n_tasks, queue->room));
    struct el_task *task = &program->tasks[id];
    *task = (struct el_task){.queue = queue->index, .first_wait = program->n_waits};
    for (int i = 0; i < queue->n_pending; i++) {
        EL_TRY(EL_PROGRAM_GROW(program->waits, program->n_waits, program->wait_room));
        program->waits[program->n_waits++] = queue->pending[i];
        program->tasks[queue->pending[i]].awaited = true;
    }
    task->n_waits = queue->n_pending;
    queue->n_pending = 0;
    program->labels[id] = strdup(head->label ? head->label : fallback); /* last: freed only for counted tasks */
    if (!program->labels[id]) return el_fail_errno("an op's name");
    program->infos[id] = (struct el_op_info){.label = program->labels[id],
                                             .phase = head->phase,
                                             .again = head->again,
                                             .device = device->spec.position,
                                             .stream = stream,
                                             .first_wait = task->first_wait,
                                             .n_waits = task->n_waits,
                                             .sent_bytes = head->sent_bytes,
                                             .received_bytes = head->received_bytes,
                                             .peer = -1,
                                             .piece = program->piece};
    task->pause_ns = el_inject_pause_ns(device, program->labels[id]);
    queue->tasks[queue->n_tasks++] = id;
    program->n_tasks++;
    *task_p = task;
    *info_p = &program->infos[id];
    return EL_OK;
}

_Static_assert((int)EL_OP_SIZES == (int)EL_ARGS_SIZES, "an observer is told of all sizes");

static struct el_op_kernel describe_kernel(const struct el_kernel_op *op)
{
    struct el_op_kernel kernel = {.name = el_op_name(op->op), .dtype = el_dtype_name(op->dtype)};
    memcpy(kernel.d, op->args.d, sizeof kernel.d);
    for (int i = 0; i < EL_ARGS_POINTERS; i++)
        if (op->views[i].buffer || op->views[i].offset) kernel.operands |= 1u << i;
    return kernel;
}

/* On a GPU its libraries are asked. */
static enum el_status make_scratch(struct el_program *program, struct el_device *device, int stream,
                                   const struct el_kernel *kernel, const struct el_kernel_op *op,
                                   struct el_buffer **scratch_p)
{
    const struct el_async_ops *async = device->ops->async;
    struct el_workspace workspace = {0};
    struct el_kernel_args args = op->args;
    void *opened;
    *scratch_p = NULL;
    if (!kernel->workspace) return EL_OK;
    if (async && device->ops->computes) {
        EL_TRY(async->activate(device->state));
        EL_TRY(el_device_stream(device, stream, &opened));
        args.native = async->stream_native(opened);
    }
    EL_TRY(kernel->workspace(&args, &workspace));
    if (!workspace.bytes) return EL_OK;
    struct el_buffer_part part = {EL_TAG_PADDING, workspace.padding_bytes};
    if (workspace.allowance_bytes) part = (struct el_buffer_part){EL_TAG_ALLOWANCE, workspace.allowance_bytes};
    return allocate(program, device, EL_TAG_WORKSPACE, workspace.bytes, part, "workspace", scratch_p);
}

/* The op itself shows its first tensor's views and the sum of all sizes. */
static enum el_status add_tensors(struct el_program *program, struct el_kernel_op *op)
{
    const size_t wanted = (size_t)program->n_tensors + (size_t)op->n_tensors;
    if (op->n_tensors == 0) return EL_OK;
    if (!EL_GROW(program->tensors, program->tensor_room, wanted) ||
        !EL_GROW(program->tensor_views, program->tensor_view_room, wanted))
        return el_fail_errno("an op of %d tensors", op->n_tensors);
    op->args.tensors = program->tensors + program->n_tensors;
    op->args.n_tensors = op->n_tensors;
    op->args.d[0] = 0;
    memcpy(op->views, op->tensors->views, sizeof op->tensors->views);
    for (int t = 0; t < op->n_tensors; t++) {
        program->tensor_views[program->n_tensors] = op->tensors[t];
        program->tensors[program->n_tensors++] = (struct el_kernel_tensor){.n = op->tensors[t].n};
        op->args.d[0] += op->tensors[t].n;
    }
    return EL_OK;
}

static enum el_status add_kernel(struct el_program *program, struct el_device *device, int stream,
                                 const struct el_kernel_op *op)
{
    const struct el_kernel *kernel = device->spec.kernels->find(op->op, op->dtype);
    if (!kernel) {
        return el_fail(EL_ERR_ABSENT, "%s: the %s kernels have no %s for %s", device->name, device->spec.kernels->name,
                       el_op_name(op->op), el_dtype_name(op->dtype));
    }
    struct el_buffer *scratch;
    EL_TRY(make_scratch(program, device, stream, kernel, op, &scratch));
    struct el_task *task;
    struct el_op_info *info;
    EL_TRY(append(program, device, stream, &op->head, el_op_name(op->op), &task, &info));
    task->kind = EL_TASK_KERNEL;
    task->kernel = kernel;
    task->args = op->args;
    task->args.plan = NULL;
    task->first_tensor = program->n_tensors - op->n_tensors;
    task->workspace = scratch;
    task->stretch = el_inject_stretch(device, info->label);
    memcpy(task->views, op->views, sizeof task->views);
    struct el_op_cost cost = el_op_cost(op->op, op->dtype, &op->args);
    info->op_class = EL_CLASS_COMPUTE;
    info->kernel = describe_kernel(op);
    info->flops = cost.flops;
    info->bytes = cost.bytes;
    el_program_free(program, scratch);
    return EL_OK;
}

enum el_status el_program_kernel(struct el_program *program, struct el_device *device, int stream,
                                 const struct el_kernel_op *op, int *op_id_p)
{
    struct el_kernel_op own = *op;
    if (program->failure != EL_OK) return el_error_give(&program->error);
    EL_TRY(el_program_keep(program, el_types_check(program, op)));
    EL_TRY(el_program_keep(program, add_tensors(program, &own)));
    EL_TRY(el_program_keep(program, add_kernel(program, device, stream, &own)));
    if (op_id_p) *op_id_p = program->n_tasks - 1;
    return EL_OK;
}

enum el_status el_program_copy(struct el_program *program, struct el_device *device, int stream,
                               const struct el_op_head *head, struct el_view destination, struct el_view source,
                               size_t bytes, int *op_id_p)
{
    if (program->failure != EL_OK) return el_error_give(&program->error);
    struct el_task *task;
    struct el_op_info *info;
    EL_TRY(el_program_keep(program, append(program, device, stream, head, "copy", &task, &info)));
    task->kind = EL_TASK_COPY;
    task->views[0] = destination;
    task->views[1] = source;
    task->copy_bytes = bytes;
    info->op_class = EL_CLASS_COPY;
    info->bytes = 2.0 * (double)bytes;
    const struct el_device *from = source.buffer ? source.buffer->device : NULL;
    if (destination.buffer && from != destination.buffer->device) info->received_bytes = bytes;
    if (from && from != device) info->peer = from->spec.position;
    if (op_id_p) *op_id_p = program->n_tasks - 1;
    return EL_OK;
}

void el_program_copy_how(struct el_program *program, int op_id, unsigned how)
{
    if (program->failure == EL_OK) program->tasks[op_id].copy_how = how;
}

static bool same_words(const struct el_call_message *a, const struct el_call_message *b)
{
    return a->of == b->of && a->from == b->from && a->to == b->to && a->tag == b->tag && a->sends == b->sends;
}

static int count_messages(const struct el_program *program, int at)
{
    const struct el_task *task = &program->tasks[at];
    if (!task->message.of) return 0;
    for (int i = at - 1; i >= 0; i--)
        if (same_words(&program->tasks[i].message, &task->message)) return program->tasks[i].message_number + 1;
    return 0;
}

enum el_status el_program_call(struct el_program *program, struct el_device *device, int stream,
                               const struct el_call_op *op, int *op_id_p)
{
    if (program->failure != EL_OK) return el_error_give(&program->error);
    struct el_task *task;
    struct el_op_info *info;
    if (op->argument_bytes > EL_CALL_ARGUMENT_BYTES)
        return el_program_keep(program, el_fail(EL_ERR_INTERNAL, "a call takes %zu bytes along", op->argument_bytes));
    EL_TRY(el_program_keep(program, append(program, device, stream, &op->head, "call", &task, &info)));
    task->kind = EL_TASK_CALL;
    if (op->arguments) memcpy(task->arguments, op->arguments, op->argument_bytes);
    task->run = op->run;
    task->context = op->context;
    task->blocks = op->blocks;
    task->notes = op->notes;
    task->group = op->group;
    task->message = op->message;
    task->message_number = count_messages(program, program->n_tasks - 1);
    memcpy(task->views, op->views, sizeof task->views);
    info->op_class = op->op_class;
    info->bytes = op->bytes;
    info->messages = op->messages;
    info->operation = op->operation;
    info->communicator = op->communicator;
    if (op->message.of) {
        info->operation += (uint64_t)task->message_number;
        info->link = op->message.sends ? EL_LINK_SEND : EL_LINK_RECEIVE;
    }
    if (op_id_p) *op_id_p = program->n_tasks - 1;
    return EL_OK;
}

void el_program_piece(struct el_program *program, struct el_op_piece piece)
{
    program->piece = piece;
}

enum el_status el_program_wait(struct el_program *program, struct el_device *device, int stream, int op_id)
{
    if (program->failure != EL_OK) return el_error_give(&program->error);
    if (op_id < 0) return EL_OK;
    struct el_queue *queue;
    EL_TRY(el_program_keep(program, queue_of(program, device, stream, &queue)));
    if (program->tasks[op_id].queue == queue->index) return EL_OK;
    for (int i = 0; i < queue->n_pending; i++) {
        if (queue->pending[i] == op_id) return EL_OK;
    }
    const int room = (int)(sizeof queue->pending / sizeof queue->pending[0]);
    for (int i = 0; i < queue->n_pending && queue->n_pending == room; i++) {
        if (program->tasks[queue->pending[i]].queue != program->tasks[op_id].queue) continue;
        if (queue->pending[i] < op_id) queue->pending[i] = op_id; /* a stream's later op covers the earlier one */
        return EL_OK;
    }
    if (queue->n_pending == room) {
        return el_program_keep(program, el_fail(EL_ERR_INTERNAL, "%s: too many waits before one op", device->name));
    }
    queue->pending[queue->n_pending++] = op_id;
    return EL_OK;
}

enum el_status el_program_wait_like(struct el_program *program, struct el_device *device, int stream, int other)
{
    const struct el_queue *queue = find_queue(program, device, other);
    for (int i = 0; queue && i < queue->n_pending; i++)
        EL_TRY(el_program_wait(program, device, stream, queue->pending[i]));
    return EL_OK;
}

int el_program_last(const struct el_program *program, const struct el_device *device, int stream)
{
    const struct el_queue *queue = find_queue(program, device, stream);
    return queue && queue->n_tasks ? queue->tasks[queue->n_tasks - 1] : -1;
}
