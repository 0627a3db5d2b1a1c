/* One host thread queues all ops on asynchronous streams and waits only at the end. Waits between streams are events.
 * Host calls (loading) run in their turn, ahead of the device; what later copies read is left alone until the step's
 * end, but for copies by way of our own pinned stages. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/device/internal.h"

/* Interval of hooks while the host waits; time for streams to end after a failure. */
enum { HOOKS_EVERY_NS = 1000000, END_AFTER_FAILURE_S = 5 };

static const struct el_async_ops *async_of(const struct el_program *program, int id)
{
    return program->queues[program->tasks[id].queue]->device->ops->async;
}

static struct el_device *device_of(const struct el_program *program, int id)
{
    return program->queues[program->tasks[id].queue]->device;
}

enum el_status el_async_activate(struct el_program *program, const struct el_device *device)
{
    if (program->async->active == device) return EL_OK;
    EL_TRY(device->ops->async->activate(device->state));
    program->async->active = device;
    return EL_OK;
}

static enum el_status open_streams(struct el_program *program)
{
    struct el_async_run *run = program->async;
    for (int q = 0; q < program->n_queues; q++) {
        struct el_queue *queue = program->queues[q];
        EL_TRY(el_async_activate(program, queue->device));
        EL_TRY(el_device_stream(queue->device, queue->stream, &run->streams[q]));
        int d = 0;
        while (d < run->n_devices && run->devices[d].device != queue->device) d++;
        if (d < run->n_devices) continue;
        run->devices[run->n_devices++] = (struct el_async_device){.device = queue->device, .stream = run->streams[q]};
    }
    return EL_OK;
}

static enum el_status prepare_task(struct el_program *program, int id)
{
    struct el_task *task = &program->tasks[id];
    struct el_async_run *run = program->async;
    struct el_device *device = device_of(program, id);
    EL_TRY(el_async_activate(program, device));
    if (task->awaited) EL_TRY(device->ops->async->event_open(device->state, false, &run->done[id]));
    if (task->kind != EL_TASK_KERNEL || !device->ops->computes) return EL_OK;
    task->args.native = device->ops->async->stream_native(run->streams[task->queue]);
    return task->kernel->prepare ? task->kernel->prepare(&task->args, &task->args.plan) : EL_OK;
}

/* All staged copies from the host to one device. */
static enum el_status prepare_copies(struct el_program *program, struct el_device *device)
{
    const struct el_async_ops *async = device->ops->async;
    size_t *bytes = async->prepare_copies ? calloc((size_t)program->n_tasks + 1, sizeof *bytes) : NULL;
    int n = 0;
    if (!async->prepare_copies) return EL_OK;
    if (!bytes) return el_fail_errno("a program of %d ops", program->n_tasks);
    for (int id = 0; id < program->n_tasks; id++) {
        const struct el_task *task = &program->tasks[id];
        bool staged = task->kind == EL_TASK_COPY && !task->views[1].buffer && !task->copy_how;
        if (staged && device_of(program, id) == device) bytes[n++] = task->copy_bytes;
    }
    enum el_status status = el_async_activate(program, device);
    if (status == EL_OK) status = async->prepare_copies(device->state, bytes, n);
    free(bytes);
    return status;
}

enum el_status el_async_prepare(struct el_program *program)
{
    struct el_async_run *run = calloc(1, sizeof *run);
    size_t n = (size_t)program->n_tasks + 1;
    if (!run) return el_fail_errno("a program of %d ops", program->n_tasks);
    program->async = run;
    run->order = calloc(n, sizeof *run->order);
    run->done = calloc(n, sizeof *run->done);
    run->streams = calloc((size_t)program->n_queues + 1, sizeof *run->streams);
    run->devices = calloc((size_t)program->n_queues + 1, sizeof *run->devices);
    if (!run->order || !run->done || !run->streams || !run->devices)
        return el_fail_errno("a program of %d ops", program->n_tasks);
    EL_TRY(el_program_order(program, run->order));
    EL_TRY(open_streams(program));
    for (int id = 0; id < program->n_tasks; id++) EL_TRY(prepare_task(program, id));
    for (int d = 0; d < run->n_devices; d++) EL_TRY(prepare_copies(program, run->devices[d].device));
    return program->wants_graph ? el_async_graph_prepare(program) : EL_OK;
}

void el_async_destroy(struct el_program *program)
{
    struct el_async_run *run = program->async;
    if (!run) return;
    el_async_graph_destroy(program);
    el_async_spans_close(program);
    for (int id = 0; run->done && id < program->n_tasks; id++)
        if (run->done[id]) async_of(program, id)->event_close(run->done[id]);
    free(run->order);
    free(run->done);
    free(run->streams);
    free(run->devices);
    free(run);
    program->async = NULL;
}

static enum el_status run_kernel(struct el_program *program, struct el_task *task)
{
    struct el_error error;
    task->args.step = program->step;
    const enum el_status status = el_kernel_run(task->kernel, &task->args);
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &error);
    return el_fail(status, "%s: %s", program->queues[task->queue]->device->name, error.text);
}

enum el_status el_async_copy(struct el_program *program, const struct el_task *task)
{
    struct el_view to = task->views[0], from = task->views[1];
    struct el_copy copy = {.destination = el_view_address(to),
                           .to = to.buffer ? to.buffer->device->state : NULL,
                           .source = el_view_address(from),
                           .from = from.buffer ? from.buffer->device->state : NULL,
                           .bytes = task->copy_bytes,
                           .how = task->copy_how};
    if (copy.bytes == 0) return EL_OK;
    return program->queues[task->queue]->device->ops->async->copy(program->async->streams[task->queue], &copy);
}

enum el_status el_async_call(struct el_program *program, int id, int member, int n_members, enum el_call_graph graph)
{
    struct el_task *task = &program->tasks[id];
    struct el_async_run *run = program->async;
    struct el_call_args args = {.context = task->context,
                                .arguments = task->arguments,
                                .p = task->p,
                                .step = program->step,
                                .stream = async_of(program, id)->stream_handle(run->streams[task->queue]),
                                .member = member,
                                .n_members = n_members,
                                .graph = graph};
    int64_t begin_ns = el_clock_ns();
    enum el_status status = task->run(&args);
    if (task->blocks) run->queue_ns -= el_clock_ns() - begin_ns;
    run->active = NULL; /* a call may have changed the current device */
    return status;
}

static enum el_status run_task(struct el_program *program, int id, int member, int n_members)
{
    struct el_task *task = &program->tasks[id];
    EL_TRY(el_async_activate(program, device_of(program, id)));
    switch (task->kind) {
    case EL_TASK_KERNEL:
        return device_of(program, id)->ops->computes ? run_kernel(program, task) : EL_OK;
    case EL_TASK_COPY:
        return el_async_copy(program, task);
    case EL_TASK_CALL:
        return el_async_call(program, id, member, n_members, EL_CALL_QUEUES);
    }
    return EL_OK;
}

/* For whoever looks after calls of CUDA's that do not return. NULL: none is made. */
static void note_issuing(const struct el_program *program, struct el_device *device, const char *label)
{
    device->issues_first = !program->async->has_ended;
    if (label) device->issuing = label;
    device->issuing_since_ns = label ? el_clock_ns() : 0;
}

static void note_no_call(const struct el_program *program, const int *ids, int n)
{
    for (int i = 0; i < n; i++) note_issuing(program, device_of(program, ids[i]), NULL);
}

/* Host calls are timed by the host's clock, other ops by events. */
static enum el_status begin_op(struct el_program *program, int id)
{
    const struct el_task *task = &program->tasks[id];
    const struct el_async_ops *async = async_of(program, id);
    struct el_async_run *run = program->async;
    struct el_queue *queue = program->queues[task->queue];
    void *stream = run->streams[task->queue];
    if (queue->stream == EL_STREAM_COMPUTE && queue->tasks[0] == id) EL_TRY(el_inject_begin_step(queue->device));
    note_issuing(program, queue->device, program->infos[id].label);
    EL_TRY(el_async_activate(program, queue->device));
    for (int w = 0; w < task->n_waits; w++)
        EL_TRY(async->stream_wait(stream, run->done[program->waits[task->first_wait + w]]));
    if (!program->timed) return EL_OK;
    if (run->begin[id]) return run->follows[id] ? EL_OK : async->event_record(run->begin[id], stream);
    program->spans[id].begin_ns = el_clock_ns();
    return EL_OK;
}

static enum el_status end_op(struct el_program *program, int id)
{
    const struct el_async_ops *async = async_of(program, id);
    struct el_async_run *run = program->async;
    void *stream = run->streams[program->tasks[id].queue];
    note_issuing(program, device_of(program, id), program->infos[id].label);
    if (program->timed && !run->begin[id]) program->spans[id].end_ns = el_clock_ns();
    EL_TRY(el_async_activate(program, device_of(program, id)));
    if (program->timed && run->begin[id]) EL_TRY(async->event_record(run->end[id], stream));
    return run->done[id] ? async->event_record(run->done[id], stream) : EL_OK;
}

/* Host calls, and copies that the host waits for, may take as long as they take. */
static bool waits(const struct el_task *task)
{
    return task->kind == EL_TASK_CALL || (task->kind == EL_TASK_COPY && task->copy_how & EL_COPY_WAITS);
}

/* One op, or a group's calls: first all waits, then the calls, then the end events, as the last call may enqueue for
 * all. */
static enum el_status issue(struct el_program *program, const int *ids, int n)
{
    const struct el_watch *watch = program->watch;
    enum el_status status = EL_OK;
    for (int i = 0; i < n && status == EL_OK; i++) status = begin_op(program, ids[i]);
    if (waits(&program->tasks[ids[0]])) note_no_call(program, ids, n);
    for (int i = 0; i < n && status == EL_OK; i++) {
        const struct el_op_info *infos = program->infos;
        int at = (int)(ids - program->async->order) + i;
        const int *order = program->async->order;
        if (watch) watch->op_begin(watch->context, &infos[ids[i]], at ? &infos[order[at - 1]] : NULL);
        status = run_task(program, ids[i], i, n);
        bool last = at + 1 == program->n_tasks;
        if (watch) watch->op_end(watch->context, &infos[ids[i]], last ? NULL : &infos[order[at + 1]]);
    }
    for (int i = 0; i < n && status == EL_OK; i++) status = end_op(program, ids[i]);
    note_no_call(program, ids, n);
    return status;
}

static int group_size(const struct el_program *program, int at)
{
    const int *order = program->async->order;
    const struct el_task *first = &program->tasks[order[at]];
    int n = 1;
    if (first->kind != EL_TASK_CALL || !first->group.of) return 1;
    for (; at + n < program->n_tasks; n++) {
        const struct el_task *task = &program->tasks[order[at + n]];
        if (task->kind != EL_TASK_CALL || !el_call_group_same(task->group, first->group)) break;
    }
    return n;
}

static enum el_status issue_all(struct el_program *program)
{
    for (int at = 0, n; at < program->n_tasks; at += n) {
        n = group_size(program, at);
        EL_TRY(issue(program, &program->async->order[at], n));
    }
    return EL_OK;
}

static void call_hooks(struct el_program *program)
{
    for (int h = 0; h < program->n_wait_hooks; h++) {
        enum el_status status = program->wait_hooks[h].hook(program->wait_hooks[h].context);
        if (status != EL_OK) el_program_keep_failure(program, status);
    }
}

static bool all_idle(struct el_program *program)
{
    for (int q = 0; q < program->n_queues; q++) {
        const struct el_async_ops *async = program->queues[q]->device->ops->async;
        bool idle = true;
        enum el_status status = el_async_activate(program, program->queues[q]->device);
        if (status == EL_OK) status = async->stream_query(program->async->streams[q], &idle);
        if (status != EL_OK) el_program_keep_failure(program, status);
        if (status == EL_OK && !idle) return false;
    }
    return true;
}

/* Polls the hooks, and after a failure limits the wait: a collective without its peer does not end. False: streams did
 * not end. */
static bool watch_streams(struct el_program *program)
{
    int64_t hooks_ns = el_clock_ns(), failed_ns = 0;
    while (!all_idle(program)) {
        int64_t now_ns = el_clock_ns();
        if (now_ns - hooks_ns >= HOOKS_EVERY_NS && !atomic_load(&program->failed)) {
            call_hooks(program);
            program->async->active = NULL;
            hooks_ns = now_ns;
        }
        if (atomic_load(&program->failed) && !failed_ns) failed_ns = now_ns;
        if (failed_ns && now_ns - failed_ns > END_AFTER_FAILURE_S * INT64_C(1000000000)) return false;
        if (failed_ns)
            nanosleep(&(struct timespec){.tv_nsec = HOOKS_EVERY_NS}, NULL);
        else
            sched_yield();
    }
    return true;
}

/* Freeing memory or streams would hang; the end of the process stops them. */
static void leave(struct el_program *program)
{
    static const char words[] = "; streams did not end within %d s of this and are left to the end of the process";
    char *text = program->run_error.text;
    size_t used = strlen(text);
    el_device_leave();
    snprintf(text + used, sizeof program->run_error.text - used, words, END_AFTER_FAILURE_S);
}

/* Reports device failures. A graph's first stream is behind all others. */
static void synchronize(struct el_program *program, bool graph)
{
    for (int q = 0; q < (graph ? 1 : program->n_queues); q++) {
        const struct el_async_ops *async = program->queues[q]->device->ops->async;
        enum el_status status = el_async_activate(program, program->queues[q]->device);
        if (status == EL_OK) status = async->stream_synchronize(program->async->streams[q]);
        if (status != EL_OK) el_program_keep_failure(program, status);
    }
}

static enum el_status launch_graph(struct el_program *program)
{
    struct el_device *device = program->queues[0]->device;
    note_issuing(program, device, "a step's graph");
    enum el_status status = el_async_graph_launch(program);
    note_issuing(program, device, NULL);
    return status;
}

enum el_status el_async_execute(struct el_program *program)
{
    enum el_status status = program->timed ? el_async_spans_open(program) : EL_OK;
    program->async->active = NULL;
    program->async->queue_ns = 0;
    program->whole.begin_ns = el_clock_ns();
    bool graph = !program->timed && el_async_graph_is_made(program);
    if (status == EL_OK) status = graph ? launch_graph(program) : issue_all(program);
    program->async->queue_ns += el_clock_ns() - program->whole.begin_ns;
    if (status != EL_OK) el_program_keep_failure(program, status);
    bool watched = program->n_wait_hooks > 0 || atomic_load(&program->failed);
    if (!watched || watch_streams(program))
        synchronize(program, graph);
    else
        leave(program);
    if (program->n_wait_hooks > 0 && !atomic_load(&program->failed))
        call_hooks(program); /* an abort ends streams too */
    program->whole.end_ns = el_clock_ns();
    if (atomic_load(&program->failed)) return el_error_give(&program->run_error);
    program->async->has_ended = true;
    if (program->timed) EL_TRY(el_async_spans_read(program));
    return program->wants_graph ? el_async_graph_make(program) : EL_OK;
}
