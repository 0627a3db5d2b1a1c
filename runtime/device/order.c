/* A sequential order of all ops of one or several programs.
 *
 * It is the issue order, except that a collective's calls are adjacent (NCCL needs them in one group): early calls are
 * held back until the last one, and so is what follows them in their streams or waits for them.
 *
 * Every stream's next op is ready, hangs on an unplaced op, or has an incomplete group. Ready ops are in a heap by
 * issue order. Linear in ops, waits and calls, but for the heap. */
#include <stdlib.h>

#include "runtime/device/internal.h"

struct group {
    struct el_call_group name;
    int n_calls, first_call; /* into ordering.calls */
    int n_come;              /* calls at the head of their streams */
};

/* A stream's next op. */
struct head {
    int at;
    int wait; /* the first unchecked wait */
    int next; /* next queue hanging on the same op; -1 */
};

struct ordering {
    struct el_program *const *programs;
    int n_programs, n_ops;
    bool all;                    /* groups must be complete */
    int *first_op, *first_queue; /* [n_programs + 1]: offsets into all ops and queues */
    int *program_of;             /* [n_queues] */
    int *group_of;               /* [n_ops]; -1: none */
    struct el_op_at *sender;     /* [n_ops]: of the message it receives; program -1: none */
    int *hangs;                  /* [n_ops]: the first queue hanging on it; -1 */
    bool *placed;                /* [n_ops] */
    struct head *heads;          /* [n_queues] */
    int n_groups;
    struct group *groups;
    struct el_ordered *calls; /* by group, in issue order */
    int n_ready;
    struct el_ordered *ready; /* heap [n_queues]; a group's last call stands for it */
    int n_ordered;
    struct el_ordered *order;
};

static struct el_call_group name_of(const struct el_program *program, int id)
{
    static const struct el_call_group none;
    return program->tasks[id].kind == EL_TASK_CALL ? program->tasks[id].group : none;
}

static int number_of(const struct ordering *o, struct el_ordered op)
{
    return o->first_op[op.program] + op.id;
}

static size_t hash(struct el_call_group name)
{
    uint64_t mixed = ((uint64_t)(uintptr_t)name.of ^ name.number * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
    return (size_t)(mixed ^ mixed >> 32);
}

/* Finds or adds a group. `table` has mask + 1 > n_groups places. */
static int find_group(struct ordering *o, struct el_call_group name, int *table, size_t mask)
{
    size_t at = hash(name) & mask;
    while (table[at] && !el_call_group_same(o->groups[table[at] - 1].name, name)) at = (at + 1) & mask;
    if (!table[at]) {
        o->groups[o->n_groups] = (struct group){.name = name};
        table[at] = ++o->n_groups;
    }
    return table[at] - 1;
}

static void list_calls(struct ordering *o)
{
    for (int g = 1; g < o->n_groups; g++)
        o->groups[g].first_call = o->groups[g - 1].first_call + o->groups[g - 1].n_calls;
    for (int g = 0; g < o->n_groups; g++) o->groups[g].n_calls = 0;
    for (int p = 0; p < o->n_programs; p++) {
        for (int id = 0; id < o->programs[p]->n_tasks; id++) {
            int g = o->group_of[o->first_op[p] + id];
            if (g >= 0)
                o->calls[o->groups[g].first_call + o->groups[g].n_calls++] =
                    (struct el_ordered){.program = p, .id = id};
        }
    }
}

static enum el_status check_group(const struct ordering *o, const struct group *group)
{
    const struct el_ordered *calls = &o->calls[group->first_call];
    const struct el_op_info *first = &o->programs[calls->program]->infos[calls->id];
    if (group->n_calls != group->name.n_members)
        return el_fail(EL_ERR_INTERNAL, "%s: issued by %d of %d members", first->label, group->n_calls,
                       group->name.n_members);
    for (int i = 1; i < group->n_calls; i++) {
        const struct el_op_info *info = &o->programs[calls[i].program]->infos[calls[i].id];
        if (info->bytes != first->bytes)
            return el_fail(EL_ERR_INTERNAL, "%s and %s: members issued different operations", first->label,
                           info->label);
    }
    return EL_OK;
}

static enum el_status find_groups(struct ordering *o)
{
    size_t n_calls = 0, places = 2;
    for (int p = 0; p < o->n_programs; p++)
        for (int id = 0; id < o->programs[p]->n_tasks; id++) n_calls += name_of(o->programs[p], id).of != NULL;
    while (places < 2 * n_calls) places *= 2;
    int *table = calloc(places, sizeof *table);
    o->groups = calloc(n_calls + 1, sizeof *o->groups);
    o->calls = calloc(n_calls + 1, sizeof *o->calls);
    for (int p = 0; table && o->groups && p < o->n_programs; p++) {
        for (int id = 0; id < o->programs[p]->n_tasks; id++) {
            struct el_call_group name = name_of(o->programs[p], id);
            int g = name.of ? find_group(o, name, table, places - 1) : -1;
            o->group_of[o->first_op[p] + id] = g;
            if (g >= 0) o->groups[g].n_calls++;
        }
    }
    free(table);
    if (!table || !o->groups || !o->calls) return el_fail(EL_ERR_HOST_MEMORY, "the order of %d ops", o->n_ops);
    list_calls(o);
    for (int g = 0; g < o->n_groups && o->all; g++) EL_TRY(check_group(o, &o->groups[g]));
    return EL_OK;
}

static bool is_earlier(struct el_ordered a, struct el_ordered b)
{
    return a.id != b.id ? a.id < b.id : a.program < b.program;
}

static void push(struct ordering *o, struct el_ordered op)
{
    int at = o->n_ready++;
    for (; at > 0 && is_earlier(op, o->ready[(at - 1) / 2]); at = (at - 1) / 2) o->ready[at] = o->ready[(at - 1) / 2];
    o->ready[at] = op;
}

static struct el_ordered pop(struct ordering *o)
{
    struct el_ordered top = o->ready[0], last = o->ready[--o->n_ready];
    int at = 0;
    for (int child; (child = 2 * at + 1) < o->n_ready; at = child) {
        if (child + 1 < o->n_ready && is_earlier(o->ready[child + 1], o->ready[child])) child++;
        if (!is_earlier(o->ready[child], last)) break;
        o->ready[at] = o->ready[child];
    }
    o->ready[at] = last;
    return top;
}

static void hang(struct ordering *o, int queue, int op)
{
    o->heads[queue].next = o->hangs[op];
    o->hangs[op] = queue;
}

/* Checks a stream's next op: ready, hanging, or its group is incomplete. */
static void look(struct ordering *o, int p, const struct el_queue *queue)
{
    const struct el_program *program = o->programs[p];
    int number = o->first_queue[p] + queue->index;
    struct head *head = &o->heads[number];
    if (head->at == queue->n_tasks) return;
    struct el_ordered op = {.program = p, .id = queue->tasks[head->at]};
    const struct el_task *task = &program->tasks[op.id];
    if (head->at + 1 < queue->n_tasks) { /* hides memory latency */
        const int next = queue->tasks[head->at + 1];
        __builtin_prefetch(&program->tasks[next]);
        __builtin_prefetch(&o->sender[o->first_op[p] + next]);
        __builtin_prefetch(&o->group_of[o->first_op[p] + next]);
    }
    for (; head->wait < task->n_waits; head->wait++) {
        int other =
            number_of(o, (struct el_ordered){.program = p, .id = program->waits[task->first_wait + head->wait]});
        if (o->placed[other]) continue;
        hang(o, number, other);
        return;
    }
    const struct el_op_at sender = o->sender[number_of(o, op)];
    if (sender.program >= 0 && !o->placed[o->first_op[sender.program] + sender.id]) {
        hang(o, number, o->first_op[sender.program] + sender.id);
        return;
    }
    int g = o->group_of[number_of(o, op)];
    if (g < 0) {
        push(o, op);
        return;
    }
    struct group *group = &o->groups[g];
    if (++group->n_come == group->n_calls) push(o, o->calls[group->first_call + group->n_calls - 1]);
}

/* The stream's next op, and all that hung on this one. */
static void go_on(struct ordering *o, struct el_ordered op)
{
    struct el_queue *const *queues = o->programs[op.program]->queues;
    int index = o->programs[op.program]->tasks[op.id].queue, first = o->first_queue[op.program];
    o->heads[first + index].at++;
    o->heads[first + index].wait = 0;
    look(o, op.program, queues[index]);
    for (int q = o->hangs[number_of(o, op)], next; q >= 0; q = next) {
        next = o->heads[q].next;
        look(o, o->program_of[q], o->programs[o->program_of[q]]->queues[q - o->first_queue[o->program_of[q]]]);
    }
}

static void place(struct ordering *o, const struct el_ordered *ops, int n)
{
    for (int i = 0; i < n; i++) {
        o->order[o->n_ordered] = ops[i];
        o->order[o->n_ordered++].sender = o->sender[number_of(o, ops[i])];
        o->placed[number_of(o, ops[i])] = true;
    }
    for (int i = 0; i < n; i++) go_on(o, ops[i]);
}

static void place_all(struct ordering *o)
{
    for (int p = 0; p < o->n_programs; p++)
        for (int q = 0; q < o->programs[p]->n_queues; q++) look(o, p, o->programs[p]->queues[q]);
    while (o->n_ready > 0) {
        struct el_ordered op = pop(o);
        int g = o->group_of[number_of(o, op)];
        if (g < 0)
            place(o, &op, 1);
        else
            place(o, &o->calls[o->groups[g].first_call], o->groups[g].n_calls);
    }
}

static enum el_status open_ordering(struct ordering *o)
{
    size_t n_programs = (size_t)o->n_programs + 1;
    o->first_op = calloc(n_programs, sizeof *o->first_op);
    o->first_queue = calloc(n_programs, sizeof *o->first_queue);
    if (!o->first_op || !o->first_queue) return el_fail(EL_ERR_HOST_MEMORY, "the order of %d programs", o->n_programs);
    for (int p = 0; p < o->n_programs; p++) {
        o->first_op[p + 1] = o->first_op[p] + o->programs[p]->n_tasks;
        o->first_queue[p + 1] = o->first_queue[p] + o->programs[p]->n_queues;
    }
    o->n_ops = o->first_op[o->n_programs];
    size_t n_ops = (size_t)o->n_ops + 1, n_queues = (size_t)o->first_queue[o->n_programs] + 1;
    o->group_of = malloc(n_ops * sizeof *o->group_of);
    o->hangs = malloc(n_ops * sizeof *o->hangs);
    o->sender = malloc(n_ops * sizeof *o->sender);
    o->program_of = calloc(n_queues, sizeof *o->program_of);
    o->placed = calloc(n_ops, sizeof *o->placed);
    o->heads = calloc(n_queues, sizeof *o->heads);
    o->ready = calloc(n_queues, sizeof *o->ready);
    if (!o->group_of || !o->hangs || !o->sender || !o->program_of || !o->placed || !o->heads || !o->ready)
        return el_fail(EL_ERR_HOST_MEMORY, "the order of %d ops", o->n_ops);
    for (int i = 0; i < o->n_ops; i++) o->hangs[i] = -1;
    for (int p = 0; p < o->n_programs; p++)
        for (int q = o->first_queue[p]; q < o->first_queue[p + 1]; q++) o->program_of[q] = p;
    EL_TRY(find_groups(o));
    return el_messages_match(o->programs, o->n_programs, o->first_op, o->sender);
}

static void close_ordering(struct ordering *o)
{
    free(o->first_op);
    free(o->first_queue);
    free(o->group_of);
    free(o->hangs);
    free(o->sender);
    free(o->program_of);
    free(o->placed);
    free(o->heads);
    free(o->ready);
    free(o->groups);
    free(o->calls);
}

enum el_status el_programs_order(struct el_program *const *programs, int n, bool all, struct el_ordered *order)
{
    struct ordering o = {.programs = programs, .n_programs = n, .all = all, .order = order};
    enum el_status status = open_ordering(&o);
    if (status == EL_OK) place_all(&o);
    close_ordering(&o);
    if (status != EL_OK || o.n_ordered == o.n_ops) return status;
    return el_fail(EL_ERR_INTERNAL, "collectives wait for one another: their members issued them in different orders");
}

enum el_status el_program_order(struct el_program *program, int *order)
{
    struct el_ordered *ordered = calloc((size_t)program->n_tasks + 1, sizeof *ordered);
    if (!ordered) return el_fail(EL_ERR_HOST_MEMORY, "the order of %d ops", program->n_tasks);
    enum el_status status = el_programs_order(&program, 1, false, ordered);
    for (int i = 0; i < program->n_tasks && status == EL_OK; i++) order[i] = ordered[i].id;
    free(ordered);
    return status;
}
