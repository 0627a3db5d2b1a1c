/* Matches messages between programs by a hash table: the k-th receive from a member with a tag belongs to its k-th
 * send. */
#include <stdlib.h>

#include "runtime/device/internal.h"

struct table {
    struct el_program *const *programs;
    size_t mask;          /* size - 1 */
    struct el_op_at *ops; /* sends; program -1: free */
};

static size_t hash(const struct el_task *task)
{
    const struct el_call_message *message = &task->message;
    const int words[] = {message->from, message->to, message->tag, task->message_number};
    uint64_t mixed = (uint64_t)(uintptr_t)message->of;
    for (int i = 0; i < 4; i++) mixed = (mixed ^ (uint64_t)(unsigned)words[i]) * 0x9e3779b97f4a7c15u;
    return (size_t)(mixed ^ mixed >> 32);
}

static bool is_same(const struct el_task *a, const struct el_task *b)
{
    const struct el_call_message *x = &a->message, *y = &b->message;
    return x->of == y->of && x->from == y->from && x->to == y->to && x->tag == y->tag &&
           a->message_number == b->message_number;
}

/* The sender's slot, or a free one. */
static struct el_op_at *find(const struct table *table, const struct el_task *task)
{
    size_t at = hash(task) & table->mask;
    for (; table->ops[at].program >= 0; at = (at + 1) & table->mask) {
        const struct el_op_at *op = &table->ops[at];
        if (is_same(&table->programs[op->program]->tasks[op->id], task)) break;
    }
    return &table->ops[at];
}

static void enter_senders(const struct table *table, int n)
{
    for (int p = 0; p < n; p++)
        for (int id = 0; id < table->programs[p]->n_tasks; id++) {
            const struct el_task *task = &table->programs[p]->tasks[id];
            if (task->message.of && task->message.sends) *find(table, task) = (struct el_op_at){p, id};
        }
}

static enum el_status find_senders(const struct table *table, int n, const int *first_op, struct el_op_at *sender)
{
    for (int p = 0; p < n; p++)
        for (int id = 0; id < table->programs[p]->n_tasks; id++) {
            const struct el_task *task = &table->programs[p]->tasks[id];
            if (!task->message.of || task->message.sends) continue;
            sender[first_op[p] + id] = *find(table, task);
            if (sender[first_op[p] + id].program < 0)
                return el_fail(EL_ERR_INTERNAL, "%s: nobody sends what member %d receives",
                               table->programs[p]->infos[id].label, task->message.to);
        }
    return EL_OK;
}

enum el_status el_messages_match(struct el_program *const *programs, int n, const int *first_op,
                                 struct el_op_at *sender)
{
    size_t places = 2, n_ops = (size_t)first_op[n];
    for (size_t i = 0; i < n_ops; i++) sender[i] = (struct el_op_at){-1, -1};
    if (n < 2) return EL_OK;
    while (places < 2 * n_ops) places *= 2;
    struct table table = {.programs = programs, .mask = places - 1, .ops = malloc(places * sizeof *table.ops)};
    if (!table.ops) return el_fail(EL_ERR_HOST_MEMORY, "messages of %zu ops", n_ops);
    for (size_t i = 0; i < places; i++) table.ops[i] = (struct el_op_at){-1, -1};
    enter_senders(&table, n);
    enum el_status status = find_senders(&table, n, first_op, sender);
    free(table.ops);
    return status;
}
