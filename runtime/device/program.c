/* Building a program: ops are put in their streams' queues, waits and memory marks are noted. Nothing computes here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device/internal.h"

/* Keeps the first failure, so that el_program_end can return it. */
static enum el_status keep(struct el_program *program, enum el_status status)
{
    if (status != EL_OK && program->failure == EL_OK) {
        program->failure = status;
        el_error_take(status, &program->error);
    }
    return status;
}

/* Grows an array of `size`-byte elements so that one more fits. `array_p`: to a pointer of any type, which is not a
 * void *: hence the copies. */
static enum el_status grow(void *array_p, int n, int *capacity, size_t size)
{
    void *array;
    if (n < *capacity) return EL_OK;
    int wanted = *capacity ? 2 * *capacity : 64;
    memcpy(&array, array_p, sizeof array);
    void *larger = realloc(array, (size_t)wanted * size);
    if (!larger) return el_fail_errno("a program of %d ops", wanted);
    memcpy(array_p, &larger, sizeof larger);
    *capacity = wanted;
    return EL_OK;
}

enum el_status el_program_create(struct el_program **program_p)
{
    struct el_program *program = calloc(1, sizeof *program);
    if (!program) return el_fail_errno("a program");
    *program_p = program;
    return EL_OK;
}

static void release_memory(struct el_program *program)
{
    for (int d = 0; d < program->n_devices; d++) {
        struct el_step_memory *memory = &program->memory[d];
        if (!memory->arena) continue;
        memory->device->ops->unmap(memory->device->state, memory->arena, memory->arena_bytes);
        memory->device->reserved_bytes -= (int64_t)memory->arena_bytes;
    }
    for (int i = 0; i < program->n_buffers; i++) free(program->buffers[i]);
    free(program->buffers);
}

void el_program_destroy(struct el_program *program)
{
    if (!program) return;
    el_joint_leave(program);
    for (int i = 0; i < program->n_tasks; i++) {
        struct el_task *task = &program->tasks[i];
        if (task->kind == EL_TASK_KERNEL && task->args.plan) {
            if (program->async) el_async_activate(program, program->queues[task->queue]->device);
            task->kernel->release(task->args.plan);
        }
        free(program->labels[i]);
    }
    el_async_destroy(program);
    release_memory(program);
    for (int q = 0; q < program->n_queues; q++) {
        free(program->queues[q]->tasks);
        free(program->queues[q]);
    }
    free(program->tasks);
    free(program->infos);
    free(program->labels);
    free(program->waits);
    free(program->marks);
    free(program->wait_hooks);
    free(program->order);
    free(program->spans);
    free(program->cpu_ns);
    free((void *)program->done);
    free(program);
}

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
        if (stream < 0 || stream >= EL_DEVICE_STREAMS_MAX || program->n_queues == EL_MEMBERS_QUEUES_MAX) {
            return el_fail(EL_ERR_INTERNAL, "%s: stream %d does not exist", device->name, stream);
        }
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
    int d = device->memory_hint < program->n_devices ? device->memory_hint : 0;
    if (program->memory[d].device != device)
        for (d = 0; d < program->n_devices && program->memory[d].device != device;) d++;
    if (d == EL_PROGRAM_DEVICES_MAX)
        return el_fail(EL_ERR_INTERNAL, "a program over more than %d devices", EL_PROGRAM_DEVICES_MAX);
    if (d == program->n_devices) program->n_devices++;
    program->memory[d].device = device;
    device->memory_hint = d;
    *memory_p = &program->memory[d];
    return EL_OK;
}

/* Writes down what the ledger is told, for observers. */
static enum el_status note(struct el_program *program, const struct el_device *device, enum el_tag tag, int64_t bytes)
{
    EL_TRY(grow(&program->marks, program->n_marks, &program->mark_capacity, sizeof *program->marks));
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

/* Marks an allocation; `padding` of its bytes are booked under their own tag. */
static enum el_status allocate(struct el_program *program, struct el_device *device, enum el_tag tag, size_t bytes,
                               size_t padding, const char *name, struct el_buffer **buffer_p)
{
    struct el_step_memory *memory = NULL;
    EL_TRY(memory_of(program, device, &memory));
    EL_TRY(el_device_check_limit(device, memory->ledger.live_bytes, bytes, tag, name));
    EL_TRY(grow(&program->buffers, program->n_buffers, &program->buffer_capacity, sizeof(struct el_step_buffer *)));
    struct el_step_buffer *made = calloc(1, sizeof *made);
    if (!made) return el_fail_errno("%s: '%s'", device->name, name);
    made->buffer = (struct el_buffer){.device = device, .tag = tag, .bytes = bytes, .name = name};
    made->padding_bytes = padding;
    made->allocated = program->mark_clock++;
    made->freed = -1;
    program->buffers[program->n_buffers++] = made;
    size_t peak = memory->ledger.peak_bytes;
    EL_TRY(add_bytes(program, memory, tag, bytes - padding));
    if (padding) EL_TRY(add_bytes(program, memory, EL_TAG_PADDING, padding));
    if (memory->ledger.peak_bytes > peak) memory->peak_task = program->n_tasks;
    *buffer_p = &made->buffer;
    return EL_OK;
}

enum el_status el_program_alloc(struct el_program *program, struct el_device *device, enum el_tag tag, size_t bytes,
                                const char *name, struct el_buffer **buffer_p)
{
    *buffer_p = NULL;
    if (program->failure != EL_OK) return el_error_give(&program->error);
    return keep(program, allocate(program, device, tag, bytes, 0, name, buffer_p));
}

void el_program_free(struct el_program *program, struct el_buffer *buffer)
{
    struct el_step_memory *memory = NULL;
    if (!buffer || memory_of(program, buffer->device, &memory) != EL_OK) return;
    struct el_step_buffer *gone = (struct el_step_buffer *)buffer;
    gone->freed = program->mark_clock++;
    keep(program, remove_bytes(program, memory, buffer->tag, buffer->bytes - gone->padding_bytes));
    if (gone->padding_bytes) keep(program, remove_bytes(program, memory, EL_TAG_PADDING, gone->padding_bytes));
}

/* Adds a task to its queue, with the waits that were given for it. */
static enum el_status append(struct el_program *program, struct el_device *device, int stream,
                             const struct el_op_head *head, const char *fallback, struct el_task **task_p,
                             struct el_op_info **info_p)
{
    struct el_queue *queue;
    EL_TRY(queue_of(program, device, stream, &queue));
    int id = program->n_tasks, capacity = program->task_capacity;
    EL_TRY(grow(&program->tasks, id, &capacity, sizeof(struct el_task)));
    capacity = program->task_capacity;
    EL_TRY(grow(&program->infos, id, &capacity, sizeof(struct el_op_info)));
    EL_TRY(grow(&program->labels, id, &program->task_capacity, sizeof(char *)));
    EL_TRY(grow(&queue->tasks, queue->n_tasks, &queue->capacity, sizeof(int)));
    struct el_task *task = &program->tasks[id];
    *task = (struct el_task){.queue = queue->index, .first_wait = program->n_waits};
    for (int i = 0; i < queue->n_pending; i++) {
        EL_TRY(grow(&program->waits, program->n_waits, &program->wait_capacity, sizeof(int)));
        program->waits[program->n_waits++] = queue->pending[i];
        program->tasks[queue->pending[i]].awaited = true;
    }
    task->n_waits = queue->n_pending;
    queue->n_pending = 0;
    program->labels[id] =
        strdup(head->label ? head->label : fallback); /* last: freed only for tasks that are counted */
    if (!program->labels[id]) return el_fail_errno("an op's name");
    program->infos[id] = (struct el_op_info){.label = program->labels[id],
                                             .phase = head->phase,
                                             .device = device->spec.position,
                                             .stream = stream,
                                             .waits = task->n_waits > 0,
                                             .sent_bytes = head->sent_bytes,
                                             .received_bytes = head->received_bytes,
                                             .peer = -1};
    queue->tasks[queue->n_tasks++] = id;
    program->n_tasks++;
    *task_p = task;
    *info_p = &program->infos[id];
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
    struct el_workspace workspace = {0};
    if (kernel->workspace) EL_TRY(kernel->workspace(&op->args, &workspace));
    struct el_buffer *scratch = NULL;
    if (workspace.bytes) {
        EL_TRY(allocate(program, device, EL_TAG_WORKSPACE, workspace.bytes, workspace.padding_bytes, "workspace",
                        &scratch));
    }
    struct el_task *task;
    struct el_op_info *info;
    EL_TRY(append(program, device, stream, &op->head, el_op_name(op->op), &task, &info));
    task->kind = EL_TASK_KERNEL;
    task->kernel = kernel;
    task->args = op->args;
    task->args.plan = NULL;
    task->workspace = scratch;
    task->stretch = el_inject_stretch(device, info->label);
    task->pause_ns = el_inject_pause_ns(device, info->label);
    memcpy(task->views, op->views, sizeof task->views);
    struct el_op_cost cost = el_op_cost(op->op, op->dtype, &op->args);
    info->op_class = EL_CLASS_COMPUTE;
    info->flops = cost.flops;
    info->bytes = cost.bytes;
    el_program_free(program, scratch);
    return EL_OK;
}

enum el_status el_program_kernel(struct el_program *program, struct el_device *device, int stream,
                                 const struct el_kernel_op *op, int *op_id_p)
{
    if (program->failure != EL_OK) return el_error_give(&program->error);
    EL_TRY(keep(program, add_kernel(program, device, stream, op)));
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
    EL_TRY(keep(program, append(program, device, stream, head, "copy", &task, &info)));
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

static bool same_words(const struct el_call_message *a, const struct el_call_message *b)
{
    return a->of == b->of && a->from == b->from && a->to == b->to && a->tag == b->tag && a->sends == b->sends;
}

/* How many messages with these words stand before task `at`: the nearest one knows. */
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
        return keep(program, el_fail(EL_ERR_INTERNAL, "a call takes %zu bytes along", op->argument_bytes));
    EL_TRY(keep(program, append(program, device, stream, &op->head, "call", &task, &info)));
    task->kind = EL_TASK_CALL;
    if (op->arguments) memcpy(task->arguments, op->arguments, op->argument_bytes);
    task->run = op->run;
    task->context = op->context;
    task->group = op->group;
    task->message = op->message;
    task->message_number = count_messages(program, program->n_tasks - 1);
    memcpy(task->views, op->views, sizeof task->views);
    info->op_class = op->op_class;
    info->bytes = op->bytes;
    info->messages = op->messages;
    if (op_id_p) *op_id_p = program->n_tasks - 1;
    return EL_OK;
}

enum el_status el_program_wait(struct el_program *program, struct el_device *device, int stream, int op_id)
{
    if (program->failure != EL_OK) return el_error_give(&program->error);
    if (op_id < 0) return EL_OK;
    struct el_queue *queue;
    EL_TRY(keep(program, queue_of(program, device, stream, &queue)));
    if (program->tasks[op_id].queue == queue->index) return EL_OK; /* in order anyway */
    for (int i = 0; i < queue->n_pending; i++) {
        if (queue->pending[i] == op_id) return EL_OK;
    }
    if (queue->n_pending == (int)(sizeof queue->pending / sizeof queue->pending[0])) {
        return keep(program, el_fail(EL_ERR_INTERNAL, "%s: too many waits before one op", device->name));
    }
    queue->pending[queue->n_pending++] = op_id;
    return EL_OK;
}

int el_program_last(const struct el_program *program, const struct el_device *device, int stream)
{
    const struct el_queue *queue = find_queue(program, device, stream);
    return queue && queue->n_tasks ? queue->tasks[queue->n_tasks - 1] : -1;
}

/* Turns views into addresses. */
static void resolve_tasks(struct el_program *program)
{
    for (int i = 0; i < program->n_tasks; i++) {
        struct el_task *task = &program->tasks[i];
        for (int v = 0; v < EL_ARGS_POINTERS; v++) {
            if (task->kind == EL_TASK_KERNEL) task->args.p[v] = el_view_address(task->views[v]);
            if (task->kind == EL_TASK_CALL) task->p[v] = el_view_address(task->views[v]);
        }
        if (task->kind == EL_TASK_KERNEL && task->workspace) task->args.workspace = (void *)task->workspace->address;
    }
}

static enum el_status map_memory(struct el_program *program)
{
    for (int d = 0; d < program->n_devices; d++) {
        struct el_step_memory *memory = &program->memory[d];
        struct el_device *device = memory->device;
        if (device->ops->simulated || memory->arena_bytes == 0) continue;
        EL_TRY(device->ops->map(device->state, memory->arena_bytes, &memory->arena));
        device->reserved_bytes += (int64_t)memory->arena_bytes;
        for (int i = 0; i < program->n_buffers; i++) {
            struct el_step_buffer *buffer = program->buffers[i];
            if (buffer->buffer.device == device) buffer->buffer.address = memory->arena + buffer->offset;
        }
    }
    return EL_OK;
}

/* What prepare() chose is told with the op: the text is its plan's. */
static void name_implementations(struct el_program *program)
{
    for (int i = 0; i < program->n_tasks; i++) {
        const struct el_task *task = &program->tasks[i];
        if (task->kind == EL_TASK_KERNEL && task->args.plan && task->kernel->describe)
            program->infos[i].how = task->kernel->describe(task->args.plan);
    }
}

static enum el_status finish(struct el_program *program)
{
    for (int q = 1; q < program->n_queues; q++) {
        if (program->queues[q]->device->ops != program->queues[0]->device->ops) {
            return el_fail(EL_ERR_INVALID, "%s and %s: one step cannot span devices of different backends",
                           program->queues[0]->device->name, program->queues[q]->device->name);
        }
    }
    EL_TRY(el_program_plan(program));
    EL_TRY(map_memory(program));
    resolve_tasks(program);
    program->spans = calloc((size_t)program->n_tasks + 1, sizeof *program->spans);
    program->done = calloc((size_t)program->n_tasks + 1, sizeof *program->done);
    program->cpu_ns = calloc((size_t)program->n_tasks + 1, sizeof *program->cpu_ns);
    if (!program->spans || !program->done || !program->cpu_ns) return el_fail_errno("a program's spans");
    EL_TRY(el_program_prepare(program));
    name_implementations(program);
    return EL_OK;
}

enum el_status el_program_end(struct el_program *program)
{
    if (program->failure != EL_OK) return el_error_give(&program->error);
    program->ended = true;
    return keep(program, finish(program));
}

void el_program_on_failure(struct el_program *program, void (*hook)(void *context), void *context)
{
    program->on_failure = hook;
    program->failure_context = context;
}

enum el_status el_program_on_wait(struct el_program *program, enum el_status (*hook)(void *context), void *context)
{
    for (int i = 0; i < program->n_wait_hooks; i++) {
        if (program->wait_hooks[i].hook == hook && program->wait_hooks[i].context == context) return EL_OK;
    }
    EL_TRY(
        grow(&program->wait_hooks, program->n_wait_hooks, &program->wait_hook_capacity, sizeof *program->wait_hooks));
    program->wait_hooks[program->n_wait_hooks++] = (struct el_wait_hook){.hook = hook, .context = context};
    return EL_OK;
}

int el_program_op_count(const struct el_program *program)
{
    return program->n_tasks;
}

const struct el_op_info *el_program_ops(const struct el_program *program)
{
    return program->infos;
}

const struct el_ledger *el_program_ledger(const struct el_program *program, const struct el_device *device,
                                          enum el_phase *peak_phase_p)
{
    for (int d = 0; d < program->n_devices; d++) {
        const struct el_step_memory *memory = &program->memory[d];
        if (memory->device != device) continue;
        int task = memory->peak_task < program->n_tasks ? memory->peak_task : program->n_tasks - 1;
        if (peak_phase_p && task >= 0) *peak_phase_p = program->infos[task].phase;
        return &memory->ledger;
    }
    return NULL;
}

int64_t el_program_elapsed_ns(const struct el_program *program)
{
    return program->whole.end_ns - program->whole.begin_ns;
}

double el_program_model_flops(const struct el_program *program)
{
    double flops = 0;
    for (int i = 0; i < program->n_tasks; i++) {
        enum el_phase phase = program->infos[i].phase;
        if (phase == EL_PHASE_FORWARD || phase == EL_PHASE_BACKWARD) flops += program->infos[i].flops;
    }
    return flops;
}
