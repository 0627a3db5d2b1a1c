/* How long ops of simulated devices take when other devices are busy, since cores and cards of one machine share
 * memory.
 *
 * An op has one rate alone and another beside n_beside busy devices (costs.h), and interpolates. Who is busy follows
 * from the last pass's spans. With a machine's rates, collectives hold some multiprocessors (machine.h): a product
 * loses their share of the time in which they are in flight. */
#include <math.h>
#include <stdlib.h>

#include "runtime/device/costs.h"
#include "runtime/device/internal.h"
#include "runtime/device/machine.h"

static const double SETTLED = 1e-3; /* relative change of an op's time, or of all products', that is ignored */

struct event {
    int64_t ns;
    struct el_program *program;
    int id;
    bool begins;
};

static bool slow_each_other(struct el_program *const *programs, const struct el_ordered *order, int n_ops)
{
    const struct el_costs *costs = n_ops ? programs[order->program]->queues[0]->device->spec.costs : NULL;
    return costs && costs->n_beside > 0;
}

static bool is_shared(const struct el_device *device)
{
    const struct el_device_spec *spec = &device->spec;
    return spec->machine && spec->machine->multiprocessors > 0 && !spec->costs;
}

static bool are_shared(struct el_program *const *programs, const struct el_ordered *order, int n_ops)
{
    return n_ops && is_shared(programs[order->program]->queues[0]->device);
}

/* Time that a stream's collectives take from an op of another stream. Called in op order. */
static double taken_ns(struct el_queue *queue, const struct el_span *span)
{
    const struct el_program *program = queue->program;
    const struct el_device_spec *spec = &queue->device->spec;
    double taken = 0;
    while (queue->beside < queue->n_tasks && program->spans[queue->tasks[queue->beside]].end_ns <= span->begin_ns)
        queue->beside++;
    for (int at = queue->beside; at < queue->n_tasks; at++) {
        const int id = queue->tasks[at];
        int64_t from = program->spans[id].begin_ns, to = program->spans[id].end_ns;
        if (from >= span->end_ns) break;
        if (from < span->begin_ns) from = span->begin_ns;
        if (to > span->end_ns) to = span->end_ns;
        taken += (double)(to - from) * el_machine_held_share(spec->machine, &program->infos[id], spec->position,
                                                             spec->data_stride > 0 ? spec->data_stride : 1);
    }
    return taken;
}

/* For a device's compute stream. Returns whether its products' total time changed. */
static bool adjust_products(const struct el_queue *own)
{
    const struct el_program *program = own->program;
    double all_ns = 0, changed_ns = 0;
    for (int q = 0; q < program->n_queues; q++) program->queues[q]->beside = 0;
    for (int at = 0; at < own->n_tasks; at++) {
        const int id = own->tasks[at];
        const struct el_op_info *info = &program->infos[id];
        struct el_task *task = &program->tasks[id];
        if (info->op_class != EL_CLASS_COMPUTE || info->flops <= info->bytes) continue;
        double ns = (double)task->alone_ns;
        for (int q = 0; q < program->n_queues; q++) {
            struct el_queue *queue = program->queues[q];
            if (queue != own && queue->device == own->device) ns += taken_ns(queue, &program->spans[id]);
        }
        changed_ns += fabs(ns - (double)task->cost_ns);
        all_ns += ns;
        task->cost_ns = (int64_t)ns;
    }
    return changed_ns > SETTLED * all_ns;
}

static bool adjust_all_products(struct el_program *const *programs, int n)
{
    bool changed = false;
    for (int p = 0; p < n; p++)
        for (int q = 0; q < programs[p]->n_queues; q++)
            if (programs[p]->queues[q]->stream == EL_STREAM_COMPUTE) changed |= adjust_products(programs[p]->queues[q]);
    return changed;
}

void el_beside_begin(struct el_program *const *programs, const struct el_ordered *order, int n_ops)
{
    if (!slow_each_other(programs, order, n_ops) && !are_shared(programs, order, n_ops)) return;
    for (int i = 0; i < n_ops; i++) {
        struct el_task *task = &programs[order[i].program]->tasks[order[i].id];
        task->cost_ns = task->alone_ns;
    }
}

/* Communication is measured with all ranks taking part, so it is not adjusted. */
static bool is_work(const struct el_program *program, int id)
{
    const struct el_span *span = &program->spans[id];
    return program->infos[id].op_class != EL_CLASS_COMM && span->end_ns > span->begin_ns &&
           program->queues[program->tasks[id].queue]->stream == EL_STREAM_COMPUTE;
}

static int by_time(const void *a, const void *b)
{
    const struct event *x = a, *y = b;
    if (x->ns != y->ns) return x->ns < y->ns ? -1 : 1;
    return x->begins - y->begins;
}

static int list_events(struct el_program *const *programs, const struct el_ordered *order, int n_ops,
                       struct event *events)
{
    int n = 0;
    for (int i = 0; i < n_ops; i++) {
        struct el_program *program = programs[order[i].program];
        if (!is_work(program, order[i].id)) continue;
        struct event event = {.program = program, .id = order[i].id};
        for (int end = 0; end < 2; end++) {
            event.begins = !end;
            event.ns = end ? program->spans[event.id].end_ns : program->spans[event.id].begin_ns;
            events[n++] = event;
        }
    }
    qsort(events, (size_t)n, sizeof *events, by_time);
    return n;
}

/* `others`: average number of other busy devices during the op. Returns whether its time changed. */
static bool set_cost(struct el_program *program, int id, double others)
{
    struct el_task *task = &program->tasks[id];
    const struct el_costs *costs = program->queues[task->queue]->device->spec.costs;
    double before = (double)task->cost_ns, share = others / costs->n_beside;
    if (task->alone_ns <= 0 || task->beside_ns <= 0) return false;
    if (share > 1) share = 1;
    double ns = 1 / (share / (double)task->beside_ns + (1 - share) / (double)task->alone_ns);
    task->cost_ns = (int64_t)ns;
    return ns > before * (1 + SETTLED) || ns < before * (1 - SETTLED);
}

/* Averages from the integral of busy devices at an op's begin and end. */
static bool adjust(const struct event *events, int n)
{
    double busy_ns = 0;
    int n_busy = 0;
    bool changed = false;
    for (int i = 0; i < n; i++) {
        struct el_task *task = &events[i].program->tasks[events[i].id];
        const struct el_span *span = &events[i].program->spans[events[i].id];
        if (i > 0) busy_ns += (double)n_busy * (double)(events[i].ns - events[i - 1].ns);
        n_busy += events[i].begins ? 1 : -1;
        if (events[i].begins)
            task->busy_before_ns = busy_ns;
        else
            changed |= set_cost(events[i].program, events[i].id,
                                (busy_ns - task->busy_before_ns) / (double)(span->end_ns - span->begin_ns) - 1);
    }
    return changed;
}

enum el_status el_beside_adjust(struct el_program *const *programs, int n, const struct el_ordered *order, int n_ops,
                                bool *changed_p)
{
    *changed_p = are_shared(programs, order, n_ops) && adjust_all_products(programs, n);
    if (!slow_each_other(programs, order, n_ops)) return EL_OK;
    struct event *events = calloc(2 * (size_t)n_ops, sizeof *events);
    if (!events) return el_fail(EL_ERR_HOST_MEMORY, "the spans of %d ops", n_ops);
    *changed_p = adjust(events, list_events(programs, order, n_ops, events));
    free(events);
    return EL_OK;
}
