/* A program's life and queries; issue.c fills it. */
#include <stdlib.h>
#include <string.h>

#include "runtime/device/internal.h"

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
        if (!memory->arena || program->has_borrowed || el_device_is_kept(memory->device)) continue;
        memory->device->ops->unmap(memory->device->state, memory->arena, memory->arena_bytes);
        memory->device->reserved_bytes -= (int64_t)memory->arena_bytes;
    }
    for (int i = 0; i < program->n_buffers; i++) free(program->buffers[i]);
    free(program->buffers);
    free(program->memory);
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
    free(program->queues);
    free(program->tasks);
    free(program->infos);
    free(program->labels);
    free(program->waits);
    free(program->tensors);
    free(program->tensor_views);
    free(program->marks);
    free(program->wait_hooks);
    free(program->order);
    free(program->spans);
    free(program->cpu_ns);
    el_types_free(program->types);
    free((void *)program->done);
    free(program);
}

static void resolve_tasks(struct el_program *program)
{
    for (int t = 0; t < program->n_tensors; t++)
        for (int v = 0; v < EL_TENSOR_POINTERS; v++)
            program->tensors[t].p[v] = el_view_address(program->tensor_views[t].views[v]);
    for (int i = 0; i < program->n_tasks; i++) {
        struct el_task *task = &program->tasks[i];
        for (int v = 0; v < EL_ARGS_POINTERS; v++) {
            if (task->kind == EL_TASK_KERNEL) task->args.p[v] = el_view_address(task->views[v]);
            if (task->kind == EL_TASK_CALL) task->p[v] = el_view_address(task->views[v]);
        }
        if (task->kind == EL_TASK_KERNEL && program->tensors)
            task->args.tensors = program->tensors + task->first_tensor;
        if (task->kind != EL_TASK_KERNEL || !task->workspace) continue;
        task->args.workspace = (void *)task->workspace->address;
        task->args.workspace_bytes = task->workspace->bytes;
    }
}

static struct el_step_memory *memory_of(const struct el_program *program, const struct el_device *device)
{
    for (int d = 0; d < program->n_devices; d++)
        if (program->memory[d].device == device) return &program->memory[d];
    return NULL;
}

static size_t lent_bytes(const struct el_program *program, const struct el_step_memory *memory)
{
    const struct el_step_memory *lent = program->lender ? memory_of(program->lender, memory->device) : NULL;
    return lent ? lent->arena_bytes : 0;
}

/* On all devices or none: then the lender may be destroyed, or this program is large enough for its borrowers. */
static void borrow(struct el_program *program)
{
    program->has_borrowed = program->lender != NULL;
    for (int d = 0; d < program->n_devices; d++)
        program->has_borrowed &= program->memory[d].arena_bytes <= lent_bytes(program, &program->memory[d]);
    for (int d = 0; d < program->n_devices; d++) {
        struct el_step_memory *memory = &program->memory[d];
        if (memory->arena_bytes < lent_bytes(program, memory)) memory->arena_bytes = lent_bytes(program, memory);
    }
}

static enum el_status take_arena(const struct el_program *program, struct el_step_memory *memory)
{
    struct el_device *device = memory->device;
    if (program->has_borrowed) {
        memory->arena = memory_of(program->lender, device)->arena;
        return EL_OK;
    }
    EL_TRY(device->ops->map(device->state, memory->arena_bytes, &memory->arena));
    device->reserved_bytes += (int64_t)memory->arena_bytes;
    return EL_OK;
}

static enum el_status map_memory(struct el_program *program)
{
    borrow(program);
    for (int d = 0; d < program->n_devices; d++) {
        struct el_step_memory *memory = &program->memory[d];
        struct el_device *device = memory->device;
        if (device->ops->simulated || memory->arena_bytes == 0) continue;
        EL_TRY(take_arena(program, memory));
        for (int i = 0; i < program->n_buffers; i++) {
            struct el_step_buffer *buffer = program->buffers[i];
            if (buffer->buffer.device == device) buffer->buffer.address = memory->arena + buffer->offset;
        }
    }
    return EL_OK;
}

/* The text belongs to the plan. */
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

void el_program_fail(struct el_program *program, enum el_status status)
{
    el_program_keep(program, status);
}

void el_program_borrow(struct el_program *program, const struct el_program *lender)
{
    program->lender = lender;
}

bool el_program_has_borrowed(const struct el_program *program)
{
    return program->has_borrowed;
}

void el_program_use_graph(struct el_program *program)
{
    program->wants_graph = true;
}

enum el_status el_program_end(struct el_program *program)
{
    if (program->failure != EL_OK) return el_error_give(&program->error);
    program->ended = true;
    return el_program_keep(program, finish(program));
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
    EL_TRY(EL_PROGRAM_GROW(program->wait_hooks, program->n_wait_hooks, program->wait_hook_room));
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
    const struct el_step_memory *memory = memory_of(program, device);
    if (!memory) return NULL;
    int task = memory->peak_task < program->n_tasks ? memory->peak_task : program->n_tasks - 1;
    if (peak_phase_p && task >= 0) *peak_phase_p = program->infos[task].phase;
    return &memory->ledger;
}

int64_t el_program_elapsed_ns(const struct el_program *program)
{
    return program->whole.end_ns - program->whole.begin_ns;
}

double el_program_model_flops(const struct el_program *program)
{
    double flops = 0;
    for (int i = 0; i < program->n_tasks; i++) {
        const struct el_op_info *op = &program->infos[i];
        const bool passes = op->phase == EL_PHASE_FORWARD || op->phase == EL_PHASE_BACKWARD;
        if (passes && !op->again) flops += op->flops;
    }
    return flops;
}
