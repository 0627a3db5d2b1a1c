/* A program as a graph: the first run queues op by op; then all of it is captured, and later runs are one launch.
 *
 * What changes per run lies in pinned memory: batches, and the values that kernels take from the step, which the graph
 * first copies to the device. It may be refilled at the next run's begin, since a run waits for its streams. Host
 * calls (loading) cannot be captured and precede the launch. The first queue's stream begins the capture; the others
 * wait for an event in it before their first op, and it waits for them at the end. */
#include <stdlib.h>

#include "runtime/device/internal.h"

static const size_t NOWHERE = SIZE_MAX;

/* A device's kernel values, as pieces of pinned and device memory. */
struct values {
    size_t at, bytes;
    struct el_buffer *buffer;
};

struct el_async_graph {
    void *made;
    int64_t n_runs;
    char *pinned;
    size_t bytes;
    size_t *at;            /* [n_tasks] offsets in `pinned` of kernels' values */
    struct values *values; /* [n_devices] */
    void *fork, **joins;   /* events of the first stream, and [n_queues] of the others */
};

static struct el_device *device_of(const struct el_program *program, int id)
{
    return program->queues[program->tasks[id].queue]->device;
}

static const struct el_async_ops *async_of(const struct el_program *program)
{
    return program->queues[0]->device->ops->async;
}

static bool depends_on_step(const struct el_program *program, int id)
{
    const struct el_task *task = &program->tasks[id];
    _Alignas(EL_STEP_VALUES_BYTES) char values[EL_STEP_VALUES_BYTES];
    return task->kind == EL_TASK_KERNEL && task->kernel->step_values && device_of(program, id)->ops->computes &&
           task->kernel->step_values(&task->args, values);
}

/* A call whose work is captured; only if this thread makes no other members' calls, which it would have to group. */
static bool is_noted(const struct el_program *program, int id)
{
    const struct el_task *task = &program->tasks[id];
    bool noted = task->kind == EL_TASK_CALL && task->notes;
    for (int i = 0; i < program->n_tasks && noted && task->group.of; i++)
        noted = i == id || program->tasks[i].kind != EL_TASK_CALL ||
                !el_call_group_same(program->tasks[i].group, task->group);
    return noted;
}

static enum el_status check_task(const struct el_program *program, int id)
{
    const struct el_task *task = &program->tasks[id];
    const char *reason = NULL;
    if (task->kind == EL_TASK_COPY && !task->views[0].buffer) reason = "copies to the host";
    if (task->kind == EL_TASK_COPY && !task->views[1].buffer && task->copy_how != EL_COPY_PINNED)
        reason = "copies from memory that is not pinned, or waits for it";
    const bool noted = is_noted(program, id);
    if (task->kind == EL_TASK_CALL && program->infos[id].op_class != EL_CLASS_HOST && !noted)
        reason = "communicates by way of the host or of another device";
    for (int v = 0; task->kind == EL_TASK_CALL && !noted && !reason && v < EL_ARGS_POINTERS; v++)
        if (task->views[v].buffer) reason = "is a call that takes memory of the device";
    if (!reason) return EL_OK;
    return el_fail(EL_ERR_INVALID, "%s: '%s' %s, which a graph cannot: give --graph off", device_of(program, id)->name,
                   program->infos[id].label, reason);
}

/* Places each device's values contiguously in pinned memory. */
static void place(struct el_program *program, struct el_async_graph *graph)
{
    const struct el_async_run *run = program->async;
    for (int d = 0; d < run->n_devices; d++) {
        graph->values[d].at = graph->bytes;
        for (int id = 0; id < program->n_tasks; id++) {
            if (!depends_on_step(program, id) || device_of(program, id) != run->devices[d].device) continue;
            graph->at[id] = graph->bytes;
            graph->bytes += EL_STEP_VALUES_BYTES;
        }
        graph->values[d].bytes = graph->bytes - graph->values[d].at;
    }
}

static enum el_status allocate(struct el_program *program, struct el_async_graph *graph)
{
    struct el_device *first = program->queues[0]->device;
    const struct el_async_ops *async = async_of(program);
    for (int d = 0; d < program->async->n_devices; d++)
        if (graph->values[d].bytes > 0)
            EL_TRY(el_device_alloc(program->async->devices[d].device, EL_TAG_WORKSPACE, graph->values[d].bytes,
                                   "values of the step", &graph->values[d].buffer));
    if (graph->bytes > 0) {
        void *pinned;
        EL_TRY(el_device_host_alloc(first, true, graph->bytes, &pinned));
        graph->pinned = pinned;
    }
    program->async->active = NULL; /* the current device is unknown */
    EL_TRY(el_async_activate(program, first));
    return program->n_queues > 1 ? async->event_open(first->state, false, &graph->fork) : EL_OK;
}

static enum el_status open_queues(struct el_program *program, struct el_async_graph *graph)
{
    const struct el_async_ops *async = async_of(program);
    for (int q = 0; q < program->n_queues; q++) {
        struct el_device *device = program->queues[q]->device;
        EL_TRY(el_async_activate(program, device));
        EL_TRY(async->graph_prepare(program->async->streams[q]));
        if (q > 0) EL_TRY(async->event_open(device->state, false, &graph->joins[q]));
    }
    return EL_OK;
}

enum el_status el_async_graph_prepare(struct el_program *program)
{
    size_t n = (size_t)program->n_tasks + 1;
    if (!async_of(program)->capture_begin)
        return el_fail(EL_ERR_ABSENT, "%s: this backend makes no graphs", program->queues[0]->device->name);
    for (int id = 0; id < program->n_tasks; id++) EL_TRY(check_task(program, id));
    struct el_async_graph *graph = program->async->graph = calloc(1, sizeof *graph);
    if (!graph) return el_fail_errno("a graph");
    graph->at = malloc(n * sizeof *graph->at);
    graph->values = calloc((size_t)program->async->n_devices + 1, sizeof *graph->values);
    graph->joins = calloc((size_t)program->n_queues + 1, sizeof *graph->joins);
    if (!graph->at || !graph->values || !graph->joins) return el_fail_errno("a graph of %d ops", program->n_tasks);
    for (size_t i = 0; i < n; i++) graph->at[i] = NOWHERE;
    place(program, graph);
    EL_TRY(allocate(program, graph));
    return open_queues(program, graph);
}

void el_async_graph_destroy(struct el_program *program)
{
    struct el_async_graph *graph = program->async->graph;
    if (!graph) return;
    const struct el_async_ops *async = async_of(program);
    el_async_activate(program, program->queues[0]->device);
    if (graph->made && !el_device_is_kept(program->queues[0]->device)) async->graph_close(graph->made);
    if (graph->fork) async->event_close(graph->fork);
    for (int q = 0; graph->joins && q < program->n_queues; q++)
        if (graph->joins[q]) async->event_close(graph->joins[q]);
    for (int d = 0; graph->values && d < program->async->n_devices; d++) el_device_free(graph->values[d].buffer);
    el_device_host_free(program->queues[0]->device, true, graph->pinned);
    free(graph->at);
    free(graph->values);
    free(graph->joins);
    free(graph);
    program->async->graph = NULL;
}

static const void *values_of(const struct el_program *program, int id)
{
    const struct el_async_graph *graph = program->async->graph;
    int d = 0;
    while (program->async->devices[d].device != device_of(program, id)) d++;
    return (const char *)(graph->values[d].buffer->address + (graph->at[id] - graph->values[d].at));
}

static enum el_status note_kernel(struct el_program *program, int id)
{
    struct el_task *task = &program->tasks[id];
    if (!device_of(program, id)->ops->computes) return EL_OK;
    if (depends_on_step(program, id)) task->args.step_values = values_of(program, id);
    enum el_status status = el_kernel_run(task->kernel, &task->args);
    task->args.step_values = NULL;
    return status;
}

/* A host call leaves only its place in the stream. */
static enum el_status note_task(struct el_program *program, int id)
{
    const struct el_task *task = &program->tasks[id];
    const struct el_async_run *run = program->async;
    void *stream = run->streams[task->queue];
    EL_TRY(el_async_activate(program, device_of(program, id)));
    for (int w = 0; w < task->n_waits; w++)
        EL_TRY(async_of(program)->stream_wait(stream, run->done[program->waits[task->first_wait + w]]));
    if (task->kind == EL_TASK_KERNEL) EL_TRY(note_kernel(program, id));
    if (task->kind == EL_TASK_COPY) EL_TRY(el_async_copy(program, task));
    if (task->kind == EL_TASK_CALL && task->notes) EL_TRY(el_async_call(program, id, 0, 1, EL_CALL_NOTES));
    EL_TRY(el_async_activate(program, device_of(program, id)));
    return run->done[id] ? async_of(program)->event_record(run->done[id], stream) : EL_OK;
}

static enum el_status note_values(struct el_program *program)
{
    const struct el_async_graph *graph = program->async->graph;
    for (int d = 0; d < program->async->n_devices; d++) {
        const struct values *values = &graph->values[d];
        if (!values->buffer) continue;
        struct el_copy copy = {.destination = (void *)values->buffer->address,
                               .to = values->buffer->device->state,
                               .source = graph->pinned + values->at,
                               .bytes = values->bytes,
                               .how = EL_COPY_PINNED};
        EL_TRY(async_of(program)->copy(program->async->streams[0], &copy));
    }
    return EL_OK;
}

static enum el_status note_all(struct el_program *program)
{
    const struct el_async_ops *async = async_of(program);
    const struct el_async_graph *graph = program->async->graph;
    void **streams = program->async->streams;
    EL_TRY(note_values(program));
    if (graph->fork) EL_TRY(async->event_record(graph->fork, streams[0]));
    for (int q = 1; q < program->n_queues; q++) {
        EL_TRY(el_async_activate(program, program->queues[q]->device));
        EL_TRY(async->stream_wait(streams[q], graph->fork));
    }
    for (int i = 0; i < program->n_tasks; i++) EL_TRY(note_task(program, program->async->order[i]));
    for (int q = 1; q < program->n_queues; q++) {
        EL_TRY(el_async_activate(program, program->queues[q]->device));
        EL_TRY(async->event_record(graph->joins[q], streams[q]));
        EL_TRY(el_async_activate(program, program->queues[0]->device));
        EL_TRY(async->stream_wait(streams[0], graph->joins[q]));
    }
    return EL_OK;
}

/* The first failure is reported; the capture must end either way. */
enum el_status el_async_graph_make(struct el_program *program)
{
    struct el_async_graph *graph = program->async->graph;
    const struct el_async_ops *async = async_of(program);
    struct el_device *first = program->queues[0]->device;
    struct el_error error;
    if (graph->made) return EL_OK;
    EL_TRY(el_async_activate(program, first));
    enum el_status status = async->capture_begin(program->async->streams[0]);
    bool begun = status == EL_OK;
    if (begun) status = note_all(program);
    if (status == EL_OK) status = async->activate(first->state);
    el_error_take(status, &error);
    if (begun) status = async->capture_end(program->async->streams[0], error.status == EL_OK ? &graph->made : NULL);
    program->async->active = first;
    if (error.status == EL_OK) el_error_take(status, &error);
    if (error.status == EL_OK) return EL_OK;
    return el_fail(error.status, "%s; this was to make a step a graph, which --graph off does without", error.text);
}

bool el_async_graph_is_made(const struct el_program *program)
{
    return program->async->graph && program->async->graph->made;
}

/* Injections at the step's begin, then host calls. */
static enum el_status call_host(struct el_program *program)
{
    for (int q = 0; q < program->n_queues; q++)
        if (program->queues[q]->stream == EL_STREAM_COMPUTE) EL_TRY(el_inject_begin_step(program->queues[q]->device));
    for (int i = 0; i < program->n_tasks; i++) {
        int id = program->async->order[i];
        if (program->tasks[id].kind != EL_TASK_CALL) continue;
        EL_TRY(el_async_activate(program, device_of(program, id)));
        EL_TRY(el_async_call(program, id, 0, 1, program->tasks[id].notes ? EL_CALL_AGAIN : EL_CALL_QUEUES));
    }
    return EL_OK;
}

enum el_status el_async_graph_launch(struct el_program *program)
{
    struct el_async_graph *graph = program->async->graph;
    EL_TRY(call_host(program));
    for (int id = 0; id < program->n_tasks; id++) {
        struct el_task *task = &program->tasks[id];
        if (graph->at[id] == NOWHERE) continue;
        task->args.step = program->step;
        task->kernel->step_values(&task->args, graph->pinned + graph->at[id]);
    }
    graph->n_runs++;
    EL_TRY(el_async_activate(program, program->queues[0]->device));
    return async_of(program)->graph_launch(graph->made, program->async->streams[0]);
}

int64_t el_program_graph_runs(const struct el_program *program)
{
    return program->async && program->async->graph ? program->async->graph->n_runs : 0;
}
