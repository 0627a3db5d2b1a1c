/* Spans of an asynchronous run, by timed events read after it. An anchor relates a device's clock to the host's: an
 * event recorded and awaited between two host clock readings, whose distance bounds the error. It is set after the
 * run, outside what is timed. Host calls use the host's clock (execute_async.c). */
#include <stdlib.h>

#include "runtime/base/clock.h"
#include "runtime/device/internal.h"

/* A wide anchor, from a busy host, is repeated. */
enum { ANCHOR_TRIES = 3, ANCHOR_CLOSE_NS = 20000 };

static enum el_status open_event(struct el_program *program, int id, void **event_p)
{
    struct el_device *device = program->queues[program->tasks[id].queue]->device;
    EL_TRY(el_async_activate(program, device));
    return device->ops->async->event_open(device->state, true, event_p);
}

static enum el_status open_anchors(struct el_program *program)
{
    struct el_async_run *run = program->async;
    for (int d = 0; d < run->n_devices; d++) {
        struct el_async_device *on = &run->devices[d];
        EL_TRY(el_async_activate(program, on->device));
        EL_TRY(on->device->ops->async->event_open(on->device->state, true, &on->anchor));
    }
    return EL_OK;
}

/* In issue order: an op directly behind another one of its stream begins at that one's end, which halves the events;
 * not if it waits for another stream, or a call in between may have let the stream run dry. `last`: per queue, the op
 * before; -1: none. */
static enum el_status open_events(struct el_program *program, int *last)
{
    struct el_async_run *run = program->async;
    for (int q = 0; q < program->n_queues; q++) last[q] = -1;
    for (int i = 0; i < program->n_tasks; i++) {
        int id = run->order[i];
        const struct el_task *task = &program->tasks[id];
        bool call = task->kind == EL_TASK_CALL;
        int before = call || task->n_waits ? -1 : last[task->queue];
        for (int q = 0; call && q < program->n_queues; q++) last[q] = -1;
        if (program->infos[id].op_class == EL_CLASS_HOST) continue;
        run->follows[id] = before >= 0;
        if (run->follows[id])
            run->begin[id] = run->end[before];
        else
            EL_TRY(open_event(program, id, &run->begin[id]));
        EL_TRY(open_event(program, id, &run->end[id]));
        if (!call) last[task->queue] = id;
    }
    return EL_OK;
}

enum el_status el_async_spans_open(struct el_program *program)
{
    struct el_async_run *run = program->async;
    if (run->begin) return EL_OK;
    size_t n = (size_t)program->n_tasks + 1;
    int *last = calloc((size_t)program->n_queues + 1, sizeof *last);
    run->begin = calloc(n, sizeof *run->begin);
    run->end = calloc(n, sizeof *run->end);
    run->follows = calloc(n, sizeof *run->follows);
    bool enough = last && run->begin && run->end && run->follows;
    enum el_status status = enough ? open_events(program, last) : el_fail_errno("events of %d ops", program->n_tasks);
    free(last);
    return status == EL_OK ? open_anchors(program) : status;
}

static enum el_status set_anchor(struct el_program *program, struct el_async_device *on)
{
    const struct el_async_ops *async = on->device->ops->async;
    EL_TRY(el_async_activate(program, on->device));
    for (int i = 0; i < ANCHOR_TRIES && (i == 0 || on->error_ns > ANCHOR_CLOSE_NS); i++) {
        int64_t before_ns = el_clock_ns();
        EL_TRY(async->event_record(on->anchor, on->stream));
        EL_TRY(async->stream_synchronize(on->stream));
        int64_t after_ns = el_clock_ns();
        on->anchor_ns = before_ns + (after_ns - before_ns) / 2;
        on->error_ns = (after_ns - before_ns + 1) / 2;
    }
    return EL_OK;
}

static struct el_async_device *device_of(struct el_program *program, int id)
{
    struct el_async_run *run = program->async;
    int d = 0;
    while (run->devices[d].device != program->queues[program->tasks[id].queue]->device) d++;
    return &run->devices[d];
}

/* Clamps to the host's bounds of the run. */
static int64_t within(const struct el_span *whole, int64_t ns)
{
    return ns < whole->begin_ns ? whole->begin_ns : ns > whole->end_ns ? whole->end_ns : ns;
}

/* Both ends relative to the same anchor, so that rounding keeps the order of a stream's events. */
static enum el_status read_span(struct el_program *program, int id)
{
    struct el_async_run *run = program->async;
    const struct el_async_device *on = device_of(program, id);
    const struct el_async_ops *async = on->device->ops->async;
    int64_t from_begin_ns, from_end_ns;
    EL_TRY(el_async_activate(program, on->device));
    EL_TRY(async->event_elapsed(run->begin[id], on->anchor, &from_begin_ns));
    EL_TRY(async->event_elapsed(run->end[id], on->anchor, &from_end_ns));
    program->spans[id].begin_ns = within(&program->whole, on->anchor_ns - from_begin_ns);
    program->spans[id].end_ns = within(&program->whole, on->anchor_ns - from_end_ns);
    return EL_OK;
}

enum el_status el_async_spans_read(struct el_program *program)
{
    struct el_async_run *run = program->async;
    program->span_error_ns = 0;
    for (int d = 0; d < run->n_devices; d++) {
        EL_TRY(set_anchor(program, &run->devices[d]));
        if (run->devices[d].error_ns > program->span_error_ns) program->span_error_ns = run->devices[d].error_ns;
    }
    for (int id = 0; id < program->n_tasks; id++)
        if (run->begin[id]) EL_TRY(read_span(program, id));
    return EL_OK;
}

void el_async_spans_close(struct el_program *program)
{
    struct el_async_run *run = program->async;
    for (int id = 0; id < program->n_tasks; id++) {
        const struct el_async_ops *async = program->queues[program->tasks[id].queue]->device->ops->async;
        if (run->begin && run->follows && run->begin[id] && !run->follows[id]) async->event_close(run->begin[id]);
        if (run->end && run->end[id]) async->event_close(run->end[id]);
    }
    for (int d = 0; d < run->n_devices; d++)
        if (run->devices[d].anchor) run->devices[d].device->ops->async->event_close(run->devices[d].anchor);
    free(run->begin);
    free(run->end);
    free(run->follows);
}
