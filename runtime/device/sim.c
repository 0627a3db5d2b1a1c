/* The `sim` backend: no work is done; an op costs what constants say, in virtual time. It exists so that a step must
 * really be a program, and so that golden results need no clock. The constants describe no machine: predictions need
 * measured costs, later. */
#include <stdlib.h>

#include "runtime/device/internal.h"

/* One op = latency + FLOPs / rate + bytes / rate. */
static const double KERNEL_NS = 5000, COPY_NS = 8000, COLLECTIVE_NS = 20000, HOST_NS = 10000;
static const double FLOPS_PER_NS = 1000, MEMORY_BYTES_PER_NS = 500, LINK_BYTES_PER_NS = 20;

static enum el_status usable(int *n_devices_p)
{
    *n_devices_p = 0;
    return EL_OK;
}

static enum el_status open_device(const struct el_device_spec *spec, void **state_p)
{
    (void)spec;
    *state_p = NULL;
    return EL_OK;
}

static void close_device(void *state)
{
    (void)state;
}

static int64_t cost_ns(const struct el_task *task, const struct el_op_info *info)
{
    switch (info->op_class) {
    case EL_CLASS_COMPUTE:
        return (int64_t)(KERNEL_NS + info->flops / FLOPS_PER_NS + info->bytes / MEMORY_BYTES_PER_NS);
    case EL_CLASS_COPY:
        return (int64_t)(COPY_NS + (double)task->copy_bytes / LINK_BYTES_PER_NS);
    case EL_CLASS_COMM:
        return (int64_t)(COLLECTIVE_NS + (double)(info->sent_bytes + info->received_bytes) / 2 / LINK_BYTES_PER_NS);
    case EL_CLASS_HOST:
        return (int64_t)HOST_NS;
    }
    return 0;
}

/* The earliest start of a task: after its stream's previous op and all it waits for. */
static int64_t ready_ns(const struct el_program *program, const struct el_span *spans, const struct el_queue *queue,
                        int i)
{
    const struct el_task *task = &program->tasks[queue->tasks[i]];
    int64_t ready = i ? spans[queue->tasks[i - 1]].end_ns : 0;
    for (int w = 0; w < task->n_waits; w++) {
        int64_t end = spans[program->waits[task->first_wait + w]].end_ns;
        if (end > ready) ready = end;
    }
    return ready;
}

/* The latest start within the task's group, so that a collective's members begin together. */
static int64_t group_start_ns(const struct el_program *program, const struct el_span *spans, struct el_call_group group)
{
    int64_t latest = 0;
    for (int i = 0; i < program->n_tasks; i++) {
        const struct el_task *task = &program->tasks[i];
        if (task->kind == EL_TASK_CALL && el_call_group_same(task->group, group) && spans[i].begin_ns > latest)
            latest = spans[i].begin_ns;
    }
    return latest;
}

/* Longest paths by relaxation: starts only grow, and a program is finite and without cycles, so it ends. */
static void resolve(const struct el_program *program, struct el_span *spans)
{
    for (int i = 0; i < program->n_tasks; i++) spans[i] = (struct el_span){0};
    for (bool changed = true; changed;) {
        changed = false;
        for (int q = 0; q < program->n_queues; q++) {
            const struct el_queue *queue = program->queues[q];
            for (int i = 0; i < queue->n_tasks; i++) {
                int id = queue->tasks[i];
                const struct el_task *task = &program->tasks[id];
                struct el_span span = {.begin_ns = ready_ns(program, spans, queue, i)};
                if (spans[id].begin_ns > span.begin_ns) span.begin_ns = spans[id].begin_ns;
                if (task->kind == EL_TASK_CALL && task->group.of) {
                    int64_t together = group_start_ns(program, spans, task->group);
                    if (together > span.begin_ns) span.begin_ns = together;
                }
                span.end_ns = span.begin_ns + cost_ns(task, &program->infos[id]);
                changed = changed || span.begin_ns != spans[id].begin_ns || span.end_ns != spans[id].end_ns;
                spans[id] = span;
            }
        }
    }
}

const struct el_device_ops el_device_sim = {.name = "sim",
                                            .summary = "simulated with constant costs, in virtual time: for tests",
                                            .simulated = true,
                                            .usable = usable,
                                            .open = open_device,
                                            .close = close_device,
                                            .resolve = resolve};
