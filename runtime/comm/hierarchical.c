/* Groups of groups: all ranks and the leaders over sockets, those of a node through shared memory. Every verb's sums
 * are taken in the order of the groups: within a node as shm takes them, then over the nodes as tcp does, so that all
 * members get the same bits. */
#include "runtime/comm/hierarchical.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/comm/combine.h"
#include "runtime/comm/group_bootstrap.h"
#include "runtime/comm/rounds.h"
#include "runtime/comm/share.h"

/* A group that is part of it; state NULL: of one, or this rank is not in it. */
struct part {
    const struct el_comm_ops *ops;
    void *state;
    int rank, size;
};

struct hierarchy {
    int rank, size;
    char name[EL_HOST_IDENTITY_BYTES]; /* of this rank's node */
    int64_t timeout_ns;
    struct part whole, node, leaders;
    int *node_of;   /* [size] number of each rank's node, by their first ranks */
    int *within_of; /* [size] each rank's rank in its node */
};

static enum el_status run_part(const struct part *part, const struct el_comm_task *task)
{
    struct el_comm_task mine = *task;
    const struct el_comm_shape shape = el_comm_task_shape(task, part->rank, part->size);
    mine.algorithm = part->ops->choose(&shape);
    return part->ops->run(part->state, &mine);
}

/* ---- verbs ---- */

static bool leads(const struct hierarchy *h)
{
    return h->node.rank == 0;
}

static enum el_status all_reduce(const struct hierarchy *h, const struct el_comm_task *task)
{
    struct el_comm_task sum = *task, within, back;
    if (task->reduction == EL_COMM_AVERAGE) sum.reduction = EL_COMM_SUM;
    within = back = sum;
    within.verb = EL_COMM_REDUCE;
    if (!leads(h)) within.result = NULL;
    back.verb = EL_COMM_BROADCAST;
    back.data = task->result;
    if (h->node.state) EL_TRY(run_part(&h->node, &within));
    if (leads(h) && h->leaders.state) {
        if (h->node.state) sum.data = task->result;
        EL_TRY(h->leaders.ops->run(h->leaders.state, &sum));
    }
    if (leads(h) && task->reduction == EL_COMM_AVERAGE) {
        const void *ins[] = {task->result};
        el_combine(EL_COMM_AVERAGE, task->dtype, h->size, &(void *){task->result}, 1, ins, 1, task->count);
    }
    return h->node.state ? run_part(&h->node, &back) : EL_OK;
}

/* The root's node has it first, then the leaders, then the other nodes. */
static enum el_status broadcast(const struct hierarchy *h, const struct el_comm_task *task)
{
    int at = h->node_of[task->root];
    bool here = h->node_of[h->rank] == at;
    struct el_comm_task within = *task, across = *task;
    within.root = here ? h->within_of[task->root] : 0;
    if (h->rank != task->root) within.data = task->result;
    if (here && h->node.state) EL_TRY(run_part(&h->node, &within));
    across.root = at;
    across.data = h->rank == task->root ? task->data : task->result;
    if (leads(h) && h->leaders.state) EL_TRY(h->leaders.ops->run(h->leaders.state, &across));
    return !here && h->node.state ? run_part(&h->node, &within) : EL_OK;
}

static enum el_status run(void *state, const struct el_comm_task *task)
{
    const struct hierarchy *h = state;
    if (task->verb == EL_COMM_ALL_REDUCE) return all_reduce(h, task);
    if (task->verb == EL_COMM_BROADCAST) return broadcast(h, task);
    return h->whole.ops->run(h->whole.state, task);
}

/* Messages go over sockets, whoever they are between. */
static enum el_status open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes)
{
    const struct hierarchy *h = state;
    return h->whole.ops->open_mailboxes(h->whole.state, mine, partners, boxes, bytes);
}

static enum el_comm_algorithm choose(const struct el_comm_shape *shape)
{
    return el_comm_tcp_backend.ops->choose(shape);
}

/* ---- bytes ---- */

static void add(struct el_comm_traffic *sum, const struct part *part, const struct el_comm_shape *shape,
                enum el_comm_verb verb, int root)
{
    struct el_comm_shape mine = *shape;
    mine.verb = verb;
    mine.rank = part->rank;
    mine.size = part->size;
    mine.root = root;
    if (!part->state) return;
    if (part->ops != el_comm_tcp_backend.ops) mine.algorithm = part->ops->choose(&mine);
    struct el_comm_traffic one =
        part->ops->traffic ? part->ops->traffic(part->state, &mine) : el_comm_rounds_traffic(&mine);
    sum->sent_bytes += one.sent_bytes;
    sum->received_bytes += one.received_bytes;
}

static struct el_comm_traffic traffic(const void *state, const struct el_comm_shape *shape)
{
    const struct hierarchy *h = state;
    struct el_comm_traffic sum = {0, 0};
    if (shape->verb == EL_COMM_ALL_REDUCE) {
        add(&sum, &h->node, shape, EL_COMM_REDUCE, 0);
        add(&sum, &h->leaders, shape, EL_COMM_ALL_REDUCE, 0);
        add(&sum, &h->node, shape, EL_COMM_BROADCAST, 0);
    } else if (shape->verb == EL_COMM_BROADCAST) {
        bool here = h->node_of[h->rank] == h->node_of[shape->root];
        add(&sum, &h->node, shape, EL_COMM_BROADCAST, here ? h->within_of[shape->root] : 0);
        add(&sum, &h->leaders, shape, EL_COMM_BROADCAST, h->node_of[shape->root]);
    } else {
        return el_comm_rounds_traffic(shape);
    }
    return sum;
}

/* ---- life ---- */

static void close_part(struct part *part)
{
    if (part->state) part->ops->close(part->state);
    part->state = NULL;
}

static void close_all(void *state)
{
    struct hierarchy *h = state;
    if (!h) return;
    close_part(&h->node);
    close_part(&h->leaders);
    close_part(&h->whole);
    free(h->node_of);
    free(h->within_of);
    free(h);
}

static void abort_all(void *state)
{
    const struct hierarchy *h = state;
    const struct part *const parts[] = {&h->whole, &h->leaders, &h->node};
    for (int i = 0; i < 3; i++)
        if (parts[i]->state) parts[i]->ops->abort(parts[i]->state);
}

static void set_timeout(void *state, int64_t timeout_ns)
{
    struct hierarchy *h = state;
    const struct part *const parts[] = {&h->whole, &h->leaders, &h->node};
    h->timeout_ns = timeout_ns;
    for (int i = 0; i < 3; i++)
        if (parts[i]->state && parts[i]->ops->set_timeout) parts[i]->ops->set_timeout(parts[i]->state, timeout_ns);
}

static enum el_status create(int rank, int size, const char *name, struct hierarchy **h_p)
{
    struct hierarchy *h = calloc(1, sizeof *h);
    if (h) {
        *h = (struct hierarchy){.rank = rank,
                                .size = size,
                                .whole = {el_comm_tcp_backend.ops, NULL, rank, size},
                                .leaders = {.ops = el_comm_tcp_backend.ops},
                                .node = {.ops = el_comm_shm_backend.ops}};
        memcpy(h->name, name, strnlen(name, sizeof h->name - 1));
        h->node_of = calloc((size_t)size, sizeof *h->node_of);
        h->within_of = calloc((size_t)size, sizeof *h->within_of);
    }
    if (h && h->node_of && h->within_of) {
        *h_p = h;
        return EL_OK;
    }
    close_all(h);
    return el_fail(EL_ERR_HOST_MEMORY, "hierarchical communicator: no memory");
}

/* Nodes are numbered by their first ranks. */
static void number_nodes(struct hierarchy *h, const char *names)
{
    int n_nodes = 0;
    for (int i = 0; i < h->size; i++) {
        const char *name = names + (size_t)i * EL_HOST_IDENTITY_BYTES;
        int first = 0;
        while (strcmp(names + (size_t)first * EL_HOST_IDENTITY_BYTES, name) != 0) first++;
        h->node_of[i] = first == i ? n_nodes++ : h->node_of[first];
        for (int k = first; k < i; k++) h->within_of[i] += h->node_of[k] == h->node_of[i];
    }
}

static enum el_status split(struct hierarchy *h, int color, struct part *part)
{
    struct el_comm_split split = {.color = color, .key = h->rank, .backend = &el_comm_tcp_backend};
    EL_TRY(h->whole.ops->split(h->whole.state, EL_OK, &split));
    *part = (struct part){part->ops, split.state, split.rank, split.size};
    return EL_OK;
}

/* Sockets within the node are how its ranks find each other's memory, and are closed then. */
static enum el_status open_node(struct hierarchy *h, const struct part *sockets)
{
    struct el_bootstrap *bootstrap;
    h->node.rank = sockets->rank;
    h->node.size = sockets->size;
    if (!sockets->state) return EL_OK;
    EL_TRY(el_bootstrap_open_group(sockets->ops, sockets->state, sockets->rank, sockets->size, &bootstrap));
    enum el_status status = el_comm_shm_backend.open_ranks(bootstrap, &h->node.state);
    el_bootstrap_close(bootstrap);
    if (status != EL_OK) sockets->ops->abort(sockets->state); /* nobody of the node is left waiting */
    return status;
}

/* Each step is taken by all or by none: they agree in it. */
static enum el_status open_parts(struct hierarchy *h, struct el_bootstrap *bootstrap, char *names)
{
    struct part sockets = {.ops = el_comm_tcp_backend.ops};
    if (!h->whole.state) EL_TRY(el_comm_tcp_backend.open_ranks(bootstrap, &h->whole.state));
    EL_TRY(el_share_texts(bootstrap, h->name, EL_HOST_IDENTITY_BYTES, names));
    number_nodes(h, names);
    EL_TRY(split(h, h->within_of[h->rank] == 0 ? 0 : -1, &h->leaders));
    EL_TRY(split(h, h->node_of[h->rank], &sockets));
    enum el_status status = el_bootstrap_agree(bootstrap, open_node(h, &sockets));
    close_part(&sockets);
    return status;
}

/* `whole`: all ranks' sockets, which it takes over; NULL: none are open yet. */
static enum el_status open_over(struct el_bootstrap *bootstrap, const char *node, void *whole, void **state_p)
{
    struct hierarchy *h = NULL;
    int size = el_bootstrap_size(bootstrap);
    char *names = calloc((size_t)size, EL_HOST_IDENTITY_BYTES);
    enum el_status status = names ? create(el_bootstrap_rank(bootstrap), size, node, &h)
                                  : el_fail(EL_ERR_HOST_MEMORY, "hierarchical communicator: no memory");
    if (h)
        h->whole.state = whole;
    else if (whole)
        el_comm_tcp_backend.ops->close(whole);
    status = el_bootstrap_agree(bootstrap, status);
    if (status == EL_OK) status = open_parts(h, bootstrap, names);
    free(names);
    if (status == EL_OK)
        *state_p = h;
    else
        close_all(h);
    return status;
}

enum el_status el_hierarchical_open(struct el_bootstrap *bootstrap, const char *node, void **state_p)
{
    return open_over(bootstrap, node, NULL, state_p);
}

static enum el_status open_ranks(struct el_bootstrap *bootstrap, void **state_p)
{
    char node[EL_HOST_IDENTITY_BYTES];
    el_share_host(node);
    return el_hierarchical_open(bootstrap, node, state_p);
}

/* ---- sub-groups ---- */

/* The sockets of a part of the ranks are how these find who shares a node in it. */
static enum el_status regroup(const struct hierarchy *parent, const struct el_comm_split *sockets, void **state_p)
{
    struct el_bootstrap *bootstrap;
    enum el_status status =
        el_bootstrap_open_group(el_comm_tcp_backend.ops, sockets->state, sockets->rank, sockets->size, &bootstrap);
    if (status != EL_OK) {
        el_comm_tcp_backend.ops->abort(sockets->state); /* nobody is left waiting */
        el_comm_tcp_backend.ops->close(sockets->state);
        return status;
    }
    status = open_over(bootstrap, parent->name, sockets->state, state_p);
    el_bootstrap_close(bootstrap);
    if (status == EL_OK) set_timeout(*state_p, parent->timeout_ns);
    return status;
}

static enum el_status split_group(void *state, enum el_status mine, struct el_comm_split *split)
{
    const struct hierarchy *parent = state;
    const struct part *whole = &parent->whole;
    struct el_comm_split sockets = *split;
    struct el_bootstrap *all = NULL;
    if (mine == EL_OK) mine = el_bootstrap_open_group(whole->ops, whole->state, whole->rank, whole->size, &all);
    enum el_status status = whole->ops->split(whole->state, mine, &sockets);
    if (status == EL_OK) {
        split->rank = sockets.rank;
        split->size = sockets.size;
        if (sockets.state) status = regroup(parent, &sockets, &split->state);
        status = el_bootstrap_agree(all, status);
    }
    el_bootstrap_close(all);
    if (status == EL_OK) return EL_OK;
    close_all(split->state);
    split->state = NULL;
    return status;
}

static const struct el_comm_ops hierarchical_ops = {
    .verbs = (1 << EL_COMM_VERB_COUNT) - 1,
    .run = run,
    .choose = choose,
    .traffic = traffic,
    .open_mailboxes = open_mailboxes,
    .split = split_group,
    .set_timeout = set_timeout,
    .abort = abort_all,
    .close = close_all,
};

const struct el_comm_backend el_comm_hierarchical_backend = {
    .name = "hierarchical", .ops = &hierarchical_ops, .open_ranks = open_ranks};
