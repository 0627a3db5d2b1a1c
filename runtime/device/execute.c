/* Runs a program on synchronous devices: each queue on its stream's thread. A wait spins for microseconds and then
 * sleeps, since polling on few cores distorts the measurement. Only ops that another stream waits for announce their
 * end. */
#include "runtime/base/clock.h"
#include "runtime/base/futex.h"
#include "runtime/device/internal.h"

enum { SPIN_NS = 3000, SPIN_READS = 16 };

static void wait_for(_Atomic uint32_t *word, uint32_t wanted)
{
    if (atomic_load_explicit(word, memory_order_acquire) == wanted) return;
    for (int64_t until = el_clock_ns() + SPIN_NS; el_clock_ns() < until;) {
        for (int i = 0; i < SPIN_READS; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) == wanted) return;
        }
    }
    for (uint32_t seen; (seen = atomic_load_explicit(word, memory_order_acquire)) != wanted;)
        el_futex_wait(word, seen, false, -1);
}

static void announce(_Atomic uint32_t *word, uint32_t value)
{
    atomic_store_explicit(word, value, memory_order_release);
    el_futex_wake(word, false);
}

void el_program_keep_failure(struct el_program *program, enum el_status status)
{
    if (atomic_exchange(&program->claimed, 1) == 0) {
        el_error_take(status, &program->run_error);
        atomic_store_explicit(&program->failed, 1, memory_order_release);
        if (program->on_failure) program->on_failure(program->failure_context);
    }
}

static enum el_status run_task(struct el_program *program, struct el_device *device, struct el_task *task)
{
    if (task->pause_ns > 0) el_clock_sleep_until(el_clock_ns() + task->pause_ns);
    switch (task->kind) {
    case EL_TASK_KERNEL: {
        if (!device->ops->computes) return EL_OK;
        task->args.step = program->step;
        if (task->stretch == 0) return el_kernel_run(task->kernel, &task->args);
        int64_t begin_ns = el_clock_ns();
        enum el_status status = el_kernel_run(task->kernel, &task->args);
        el_inject_spin(begin_ns, task->stretch);
        return status;
    }
    case EL_TASK_COPY:
        return device->ops->copy(el_view_address(task->views[0]), el_view_address(task->views[1]), task->copy_bytes);
    case EL_TASK_CALL: {
        struct el_call_args args = {.context = task->context,
                                    .arguments = task->arguments,
                                    .p = task->p,
                                    .step = program->step,
                                    .n_members = 1};
        return task->run(&args);
    }
    }
    return EL_OK;
}

/* Collectives and copies also record the thread's CPU time, which tells waiting from using the compute core. That
 * clock costs twenty times the other, so kernels go without. */
static enum el_status run_timed(struct el_program *program, struct el_device *device, int id)
{
    enum el_op_class op_class = program->infos[id].op_class;
    if (!program->timed || program->wall_only || (op_class != EL_CLASS_COMM && op_class != EL_CLASS_COPY))
        return run_task(program, device, &program->tasks[id]);
    int64_t begin_ns = el_clock_thread_ns();
    enum el_status status = run_task(program, device, &program->tasks[id]);
    program->cpu_ns[id] = el_clock_thread_ns() - begin_ns;
    return status;
}

static void run_op(struct el_program *program, const struct el_queue *queue, int i)
{
    const struct el_watch *watch = program->watch;
    int id = queue->tasks[i];
    const struct el_op_info *info = &program->infos[id];
    if (watch) watch->op_begin(watch->context, info, i ? &program->infos[queue->tasks[i - 1]] : NULL);
    if (!atomic_load_explicit(&program->failed, memory_order_acquire)) {
        enum el_status status = run_timed(program, queue->device, id);
        if (status != EL_OK) el_program_keep_failure(program, status);
    }
    bool last = i + 1 == queue->n_tasks;
    if (watch) watch->op_end(watch->context, info, last ? NULL : &program->infos[queue->tasks[i + 1]]);
}

/* After a failure the remaining ops are skipped, but announced, so that nobody waits for ever. */
static void run_queue(void *argument)
{
    struct el_queue *queue = argument;
    struct el_program *program = queue->program;
    uint32_t run = atomic_load_explicit(&program->run, memory_order_acquire);
    enum el_status injected = queue->stream == EL_STREAM_COMPUTE ? el_inject_begin_step(queue->device) : EL_OK;
    if (injected != EL_OK) el_program_keep_failure(program, injected);
    int64_t now = program->timed ? el_clock_ns() : 0;
    for (int i = 0; i < queue->n_tasks; i++) {
        int id = queue->tasks[i];
        struct el_task *task = &program->tasks[id];
        for (int w = 0; w < task->n_waits; w++) wait_for(&program->done[program->waits[task->first_wait + w]], run);
        if (task->n_waits && program->timed) now = el_clock_ns();
        run_op(program, queue, i);
        if (program->timed) {
            program->spans[id].begin_ns = now;
            program->spans[id].end_ns = now = el_clock_ns();
        }
        if (task->awaited) announce(&program->done[id], run);
    }
    if (atomic_fetch_sub_explicit(&program->pending, 1, memory_order_acq_rel) == 1)
        el_futex_wake(&program->pending, false);
}

static void prepare_queue(void *argument)
{
    struct el_queue *queue = argument;
    struct el_program *program = queue->program;
    for (int i = 0; i < queue->n_tasks && !atomic_load(&program->failed); i++) {
        struct el_task *task = &program->tasks[queue->tasks[i]];
        if (task->kind != EL_TASK_KERNEL || !task->kernel->prepare || !queue->device->ops->computes) continue;
        enum el_status status = task->kernel->prepare(&task->args, &task->args.plan);
        if (status != EL_OK) el_program_keep_failure(program, status);
    }
    if (atomic_fetch_sub_explicit(&program->pending, 1, memory_order_acq_rel) == 1)
        el_futex_wake(&program->pending, false);
}

static enum el_status on_all_queues(struct el_program *program, void (*work)(void *))
{
    void *stream;
    for (int q = 0; q < program->n_queues; q++)
        EL_TRY(el_device_stream(program->queues[q]->device, program->queues[q]->stream, &stream));
    atomic_store(&program->pending, (uint32_t)program->n_queues);
    for (int q = 0; q < program->n_queues; q++) {
        struct el_queue *queue = program->queues[q];
        EL_TRY(el_device_stream(queue->device, queue->stream, &stream));
        queue->device->ops->submit(stream, work, queue);
    }
    wait_for(&program->pending, 0);
    return atomic_load(&program->failed) ? el_error_give(&program->run_error) : EL_OK;
}

static bool simulated(const struct el_program *program)
{
    return program->joint || (program->n_queues > 0 && program->queues[0]->device->ops->simulated);
}

static bool asynchronous(const struct el_program *program)
{
    return program->n_queues > 0 && program->queues[0]->device->ops->async;
}

enum el_status el_program_prepare(struct el_program *program)
{
    if (simulated(program)) return el_resolve_prepare(program);
    if (asynchronous(program)) return el_async_prepare(program);
    if (program->wants_graph && program->n_queues > 0)
        return el_fail(EL_ERR_ABSENT, "%s: this backend makes no graphs", program->queues[0]->device->name);
    return on_all_queues(program, prepare_queue);
}

static enum el_status run_once(struct el_program *program)
{
    if (simulated(program)) return el_resolve_run(program);
    program->whole.begin_ns = el_clock_ns();
    if (asynchronous(program)) return el_async_execute(program);
    enum el_status status = on_all_queues(program, run_queue);
    program->whole.end_ns = el_clock_ns();
    return status;
}

void el_program_book(struct el_program *program)
{
    for (int d = 0; d < program->n_devices; d++)
        el_ledger_merge_step(&program->memory[d].device->ledger, &program->memory[d].ledger);
}

enum el_status el_program_run(struct el_program *program, uint64_t step, const struct el_probe *probe)
{
    if (!program->ended) return el_fail(EL_ERR_INTERNAL, "a program was run before its end");
    if (program->failure != EL_OK) return el_error_give(&program->error);
    program->step = step;
    program->timed = probe && probe->spans;
    program->wall_only = probe && probe->wall_only;
    program->watch = probe ? probe->watch : NULL;
    atomic_fetch_add(&program->run, 1);
    if (program->watch) program->watch->step_begin(program->watch->context, step);
    enum el_status status = run_once(program);
    if (program->watch && program->watch->step_end) program->watch->step_end(program->watch->context, step);
    EL_TRY(status);
    el_program_book(program);
    el_program_tell(program, probe);
    return EL_OK;
}

void el_program_tell(const struct el_program *program, const struct el_probe *probe)
{
    if (!probe || !probe->step) return;
    struct el_step_event event = {.step = program->step,
                                  .simulated = simulated(program),
                                  .whole = program->whole,
                                  .n_ops = program->n_tasks,
                                  .ops = program->infos,
                                  .spans = program->timed || simulated(program) ? program->spans : NULL,
                                  .span_error_ns = program->timed ? program->span_error_ns : 0,
                                  .queue_ns = asynchronous(program) ? program->async->queue_ns : 0,
                                  .cpu_ns = program->timed && !program->wall_only && !simulated(program) &&
                                                    !asynchronous(program)
                                                ? program->cpu_ns
                                                : NULL,
                                  .n_marks = program->n_marks,
                                  .marks = program->marks,
                                  .n_waits = program->n_waits,
                                  .waits = program->waits};
    probe->step(probe->context, &event);
}
