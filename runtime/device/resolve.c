/* Simulated programs in virtual time: an op begins when its stream and its waits are done, and takes what its backend
 * says. A collective's calls begin as members arrive and end together. Deterministic: no clock is read. */
#include <pthread.h>
#include <stdlib.h>

#include "runtime/device/costs.h"
#include "runtime/device/internal.h"
#include "runtime/device/joint.h"

enum { PASSES_MAX = 10, AHEAD = 16 /* prefetch distance in ops */ };

struct el_joint {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int n, n_come;
    uint64_t n_steps;
    bool aborted;
    struct el_error outcome;
    int64_t *clocks_ns;           /* [n]: each member's next begin */
    struct el_program **programs; /* [n]: of the step, and of `order` */
    struct el_ordered *order;     /* NULL: outdated */
    int n_ops;
};

static double pace(const struct el_device *device)
{
    const struct el_costs *costs = device->spec.costs;
    int position = device->spec.position;
    bool known = costs && position < EL_COST_DEVICES_MAX && costs->pace_ratio[position] > 0;
    return known ? costs->pace_ratio[position] : 1;
}

/* Includes injections. */
static enum el_status find_cost(struct el_program *program, int id, bool beside, int64_t *ns_p)
{
    struct el_task *task = &program->tasks[id];
    const struct el_op_info *info = &program->infos[id];
    const struct el_device *device = program->queues[task->queue]->device;
    int64_t cost;
    if (task->message.of && !task->message.sends) return EL_OK; /* its time is the sender's */
    EL_TRY(device->ops->cost_ns(device->state, info, beside, &cost));
    if (info->op_class != EL_CLASS_COMM) cost = (int64_t)((double)cost * pace(device));
    if (task->stretch > 0) cost = (int64_t)((double)cost * task->stretch);
    if (info->op_class == EL_CLASS_COMM)
        cost += (int64_t)(device->spec.inject.wire_ms_per_mib * 1e6 * info->bytes / (1 << 20));
    *ns_p = cost + task->pause_ns;
    return EL_OK;
}

static int64_t ready_ns(const struct el_program *program, int id)
{
    const struct el_task *task = &program->tasks[id];
    int64_t ready = program->queues[task->queue]->free_ns;
    for (int w = 0; w < task->n_waits; w++) {
        int64_t end = program->spans[program->waits[task->first_wait + w]].end_ns;
        if (end > ready) ready = end;
    }
    return ready;
}

static int64_t come_ns(struct el_program *const *programs, const struct el_ordered *op)
{
    return op->sender.program < 0 ? 0 : programs[op->sender.program]->spans[op->sender.id].end_ns;
}

/* If communication uses the compute core, the compute stream loses that time. */
static void take_core(const struct el_program *program, int id)
{
    const struct el_task *task = &program->tasks[id];
    const struct el_queue *own = program->queues[task->queue];
    const struct el_costs *costs = own->device->spec.costs;
    if (!costs || !costs->shares_core || program->infos[id].op_class != EL_CLASS_COMM) return;
    for (int q = 0; q < program->n_queues; q++) {
        struct el_queue *queue = program->queues[q];
        if (queue != own && queue->device == own->device && queue->stream == EL_STREAM_COMPUTE)
            queue->free_ns += task->cost_ns;
    }
}

static void resolve_together(struct el_program *const *programs, const struct el_ordered *ops, int n)
{
    int64_t latest = 0, longest = 0;
    for (int i = 0; i < n; i++) {
        const struct el_program *program = programs[ops[i].program];
        int64_t ready = ready_ns(program, ops[i].id), cost = program->tasks[ops[i].id].cost_ns;
        int64_t come = come_ns(programs, &ops[i]);
        program->spans[ops[i].id].begin_ns = ready;
        if (come > ready) ready = come;
        if (ready > latest) latest = ready;
        if (cost > longest) longest = cost;
    }
    for (int i = 0; i < n; i++) {
        const struct el_program *program = programs[ops[i].program];
        program->spans[ops[i].id].end_ns = latest + longest;
        program->queues[program->tasks[ops[i].id].queue]->free_ns = latest + longest;
        take_core(program, ops[i].id);
    }
}

static int together(struct el_program *const *programs, const struct el_ordered *ops, int n_left)
{
    const struct el_task *first = &programs[ops->program]->tasks[ops->id];
    int n = 1;
    if (first->kind != EL_TASK_CALL || !first->group.of) return 1;
    for (; n < n_left; n++) {
        const struct el_task *task = &programs[ops[n].program]->tasks[ops[n].id];
        if (task->kind != EL_TASK_CALL || !el_call_group_same(task->group, first->group)) break;
    }
    return n;
}

static void begin_step(const struct el_program *program, int64_t clock_ns)
{
    for (int q = 0; q < program->n_queues; q++) {
        struct el_queue *queue = program->queues[q];
        double delay_ms = queue->stream == EL_STREAM_COMPUTE ? queue->device->spec.inject.delay_ms : 0;
        queue->free_ns = clock_ns + (int64_t)(delay_ms * 1e6);
    }
}

static int64_t end_ns(const struct el_program *program, int64_t begin_ns)
{
    int64_t end = begin_ns;
    for (int q = 0; q < program->n_queues; q++) {
        const struct el_queue *queue = program->queues[q];
        if (queue->n_tasks > 0 && queue->free_ns > end) end = queue->free_ns;
    }
    return end;
}

/* Hides memory latency. */
static void ask_for(struct el_program *const *programs, const struct el_ordered *op)
{
    __builtin_prefetch(&programs[op->program]->tasks[op->id]);
    __builtin_prefetch(&programs[op->program]->spans[op->id], 1);
}

/* Each program from its clock. Durations depend on who is busy, and that on durations: repeats until stable. */
static enum el_status resolve(struct el_program *const *programs, int n, const struct el_ordered *order, int n_ops,
                              int64_t *clocks_ns)
{
    bool again = true;
    el_beside_begin(programs, order, n_ops);
    for (int pass = 0; again && pass < PASSES_MAX; pass++) {
        for (int p = 0; p < n; p++) begin_step(programs[p], clocks_ns[p]);
        for (int at = 0, k; at < n_ops; at += k) {
            if (at + AHEAD < n_ops) ask_for(programs, order + at + AHEAD);
            k = together(programs, order + at, n_ops - at);
            resolve_together(programs, order + at, k);
        }
        EL_TRY(el_beside_adjust(programs, n, order, n_ops, &again));
    }
    for (int p = 0; p < n; p++) {
        programs[p]->whole = (struct el_span){clocks_ns[p], end_ns(programs[p], clocks_ns[p])};
        clocks_ns[p] = programs[p]->whole.end_ns;
    }
    return EL_OK;
}

static enum el_status make_order(struct el_program *const *programs, int n, bool all, struct el_ordered **order_p,
                                 int *n_ops_p)
{
    int n_ops = 0;
    for (int p = 0; p < n; p++) n_ops += programs[p]->n_tasks;
    struct el_ordered *order = calloc((size_t)n_ops + 1, sizeof *order);
    if (!order) return el_fail(EL_ERR_HOST_MEMORY, "the order of %d ops", n_ops);
    enum el_status status = el_programs_order(programs, n, all, order);
    if (status != EL_OK) {
        free(order);
        return status;
    }
    *order_p = order;
    *n_ops_p = n_ops;
    return EL_OK;
}

enum el_status el_resolve_prepare(struct el_program *program)
{
    for (int id = 0; id < program->n_tasks; id++) {
        struct el_task *task = &program->tasks[id];
        EL_TRY(find_cost(program, id, false, &task->alone_ns));
        task->cost_ns = task->beside_ns = task->alone_ns;
        if (program->queues[task->queue]->device->spec.costs) EL_TRY(find_cost(program, id, true, &task->beside_ns));
    }
    return EL_OK;
}

enum el_status el_joint_create(int n_members, struct el_joint **joint_p)
{
    struct el_joint *joint = calloc(1, sizeof *joint);
    if (!joint) return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d simulated members", n_members);
    joint->n = n_members;
    pthread_mutex_init(&joint->lock, NULL);
    pthread_cond_init(&joint->changed, NULL);
    joint->clocks_ns = calloc((size_t)n_members, sizeof *joint->clocks_ns);
    joint->programs = calloc((size_t)n_members, sizeof *joint->programs);
    if (!joint->clocks_ns || !joint->programs) {
        el_joint_destroy(joint);
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d simulated members", n_members);
    }
    *joint_p = joint;
    return EL_OK;
}

void el_joint_destroy(struct el_joint *joint)
{
    if (!joint) return;
    pthread_mutex_destroy(&joint->lock);
    pthread_cond_destroy(&joint->changed);
    free(joint->clocks_ns);
    free(joint->programs);
    free(joint->order);
    free(joint);
}

void el_program_join(struct el_program *program, struct el_joint *joint, int member)
{
    program->joint = joint;
    program->joint_member = member;
}

void el_joint_abort(struct el_joint *joint)
{
    if (!joint) return;
    pthread_mutex_lock(&joint->lock);
    joint->aborted = true;
    pthread_cond_broadcast(&joint->changed);
    pthread_mutex_unlock(&joint->lock);
}

static void forget_order(struct el_joint *joint)
{
    free(joint->order);
    joint->order = NULL;
}

void el_joint_leave(struct el_program *program)
{
    struct el_joint *joint = program->joint;
    if (!joint) return;
    pthread_mutex_lock(&joint->lock);
    if (joint->programs[program->joint_member] == program) {
        joint->programs[program->joint_member] = NULL;
        forget_order(joint);
    }
    pthread_mutex_unlock(&joint->lock);
}

/* Each member's step begins at the end of its last one, relative to the first. */
static enum el_status resolve_next(struct el_program *const *programs, int n, const struct el_ordered *order, int n_ops,
                                   int64_t *clocks_ns)
{
    int64_t first = INT64_MAX;
    for (int m = 0; m < n; m++) first = clocks_ns[m] < first ? clocks_ns[m] : first;
    for (int m = 0; m < n; m++) clocks_ns[m] -= first;
    return resolve(programs, n, order, n_ops, clocks_ns);
}

static void resolve_all(struct el_joint *joint)
{
    enum el_status status = EL_OK;
    if (!joint->order) status = make_order(joint->programs, joint->n, true, &joint->order, &joint->n_ops);
    if (status == EL_OK) status = resolve_next(joint->programs, joint->n, joint->order, joint->n_ops, joint->clocks_ns);
    el_error_take(status, &joint->outcome);
    joint->n_come = 0;
    joint->n_steps++;
    pthread_cond_broadcast(&joint->changed);
}

/* Under the lock. The next step cannot be resolved before this member has read the outcome. */
static enum el_status meet(struct el_joint *joint, struct el_program *program)
{
    uint64_t step = joint->n_steps;
    if (joint->aborted) return el_fail(EL_ERR_PEER, "another simulated member failed");
    if (joint->programs[program->joint_member] != program) forget_order(joint);
    joint->programs[program->joint_member] = program;
    if (++joint->n_come == joint->n) resolve_all(joint);
    while (joint->n_steps == step && !joint->aborted) pthread_cond_wait(&joint->changed, &joint->lock);
    if (joint->n_steps == step) return el_fail(EL_ERR_PEER, "another simulated member failed");
    return joint->outcome.status == EL_OK ? EL_OK : el_error_give(&joint->outcome);
}

enum el_status el_resolve_run(struct el_program *program)
{
    struct el_joint *joint = program->joint;
    struct el_program *const alone = program;
    int64_t clock_ns = 0;
    int n_ops = program->n_tasks;
    if (!joint && !program->order) EL_TRY(make_order(&alone, 1, false, &program->order, &n_ops));
    if (!joint) return resolve(&alone, 1, program->order, n_ops, &clock_ns);
    pthread_mutex_lock(&joint->lock);
    enum el_status status = meet(joint, program);
    pthread_mutex_unlock(&joint->lock);
    return status;
}

enum el_status el_programs_resolve(struct el_program *const *programs, int n, int n_steps, int64_t *step_ns,
                                   const struct el_probe *probe)
{
    struct el_ordered *order = NULL;
    int n_ops;
    bool settled = false; /* all begin the next step as this one: it takes as long */
    int64_t *clocks_ns = calloc((size_t)n, sizeof *clocks_ns);
    enum el_status status = clocks_ns ? make_order(programs, n, false, &order, &n_ops) : el_fail_errno("%d clocks", n);
    for (int p = 0; p < n && status == EL_OK; p++) status = el_resolve_prepare(programs[p]);
    for (int i = 0; i < n_steps && status == EL_OK; i++) {
        if (settled) {
            step_ns[i] = step_ns[i - 1];
            continue;
        }
        status = resolve_next(programs, n, order, n_ops, clocks_ns);
        step_ns[i] = el_program_elapsed_ns(programs[0]);
        settled = true;
        for (int p = 0; p < n; p++) {
            const struct el_span whole = programs[p]->whole;
            settled &= whole.begin_ns - programs[0]->whole.begin_ns == whole.end_ns - programs[0]->whole.end_ns;
        }
    }
    for (int p = 0; p < n && status == EL_OK; p++) el_program_tell(programs[p], probe);
    free(order);
    free(clocks_ns);
    return status;
}
