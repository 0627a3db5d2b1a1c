/* The order in which one host thread issues the ops of a program to streams that work by themselves.
 *
 * As issued, except for groups: a collective's calls, one a member, must be made together (to NCCL in one group), so
 * the first ones are held back until the last one comes, and with them whatever is behind them in their streams or
 * waits for one of them. What was held back follows, in its own order. */
#include <stdlib.h>

#include "runtime/device/internal.h"

struct ordering {
    const struct el_program *program;
    int *order;
    int n;         /* ordered */
    bool *placed;  /* [task] */
    bool *blocked; /* [queue]: an op of it is held back in this sweep */
};

static struct el_call_group group_of(const struct el_program *program, int id)
{
    static const struct el_call_group none;
    return program->tasks[id].kind == EL_TASK_CALL ? program->tasks[id].group : none;
}

/* Whether all that the op waits for has been placed. */
static bool is_ready(const struct ordering *o, int id)
{
    const struct el_task *task = &o->program->tasks[id];
    for (int w = 0; w < task->n_waits; w++)
        if (!o->placed[o->program->waits[task->first_wait + w]]) return false;
    return true;
}

static void place(struct ordering *o, int id)
{
    o->order[o->n++] = id;
    o->placed[id] = true;
}

/* Whether op `id` is the first of its queue that has not been placed. */
static bool leads_queue(const struct ordering *o, int id)
{
    const struct el_queue *queue = o->program->queues[o->program->tasks[id].queue];
    for (int i = 0; i < queue->n_tasks && queue->tasks[i] <= id; i++)
        if (!o->placed[queue->tasks[i]]) return queue->tasks[i] == id;
    return false;
}

/* Places a whole group if every one of its calls could be next in its queue. */
static bool place_group(struct ordering *o, struct el_call_group group)
{
    for (int id = 0; id < o->program->n_tasks; id++)
        if (el_call_group_same(group_of(o->program, id), group) && (!leads_queue(o, id) || !is_ready(o, id)))
            return false;
    for (int id = 0; id < o->program->n_tasks; id++)
        if (el_call_group_same(group_of(o->program, id), group)) place(o, id);
    return true;
}

/* Goes through what is left in the order of issue, up to a group that was complete: what waited for it is older than
 * what follows. Returns how many were placed. */
static int sweep(struct ordering *o)
{
    int before = o->n;
    for (int q = 0; q < o->program->n_queues; q++) o->blocked[q] = false;
    for (int id = 0; id < o->program->n_tasks; id++) {
        bool *blocked = &o->blocked[o->program->tasks[id].queue];
        if (o->placed[id] || *blocked) continue;
        struct el_call_group group = group_of(o->program, id);
        if (group.of && place_group(o, group)) break;
        if (!group.of && is_ready(o, id))
            place(o, id);
        else
            *blocked = true;
    }
    return o->n - before;
}

enum el_status el_program_order(const struct el_program *program, int *order)
{
    bool blocked[EL_MEMBERS_QUEUES_MAX];
    struct ordering o = {.program = program, .order = order, .blocked = blocked};
    o.placed = calloc((size_t)program->n_tasks + 1, sizeof *o.placed);
    if (!o.placed) return el_fail_errno("the order of a program's ops");
    while (o.n < program->n_tasks && sweep(&o) > 0) {
    }
    free(o.placed);
    if (o.n == program->n_tasks) return EL_OK;
    return el_fail(EL_ERR_INTERNAL,
                   "a program's collectives wait for one another: their members issued them in different orders");
}
