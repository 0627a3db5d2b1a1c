/* The communicator `nccl` from its first operation to its end.
 *
 * One thread's members enqueue in one NCCL group, or the first call could wait for the second. Calls may block while
 * NCCL connects members; an abort then comes from another thread, which NCCL allows and which frees the communicator,
 * so a thread that knows of an abort must not touch it. An abort waits until no graph contains the operations: it then
 * runs in a thread of its own, and the program is destroyed first. */
#include "runtime/comm/nccl/comm_nccl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/comm/rounds.h"

enum { LOOK_EVERY_NS = 20000000, SHORT_CALL_NS = 100000000 };

static enum el_status status_of(int result)
{
    switch (result) {
    case EL_NCCL_BAD_ARGUMENT:
    case EL_NCCL_BAD_USE:
        return EL_ERR_INVALID;
    case EL_NCCL_SYSTEM: /* a broken connection, too */
    case EL_NCCL_REMOTE:
        return EL_ERR_PEER;
    default:
        return EL_ERR_INTERNAL;
    }
}

enum el_status el_nccl_check(const struct el_nccl_api *api, const struct el_device *device, int result,
                             const char *call)
{
    if (result == EL_NCCL_OK || result == EL_NCCL_IN_PROGRESS) return EL_OK;
    const char *last = api->last_error();
    return el_fail(status_of(result), "%s%s%.120s: %s%s%.200s; NCCL_DEBUG=INFO tells more",
                   device ? el_device_name(device) : "", device ? ": " : "", call, api->result_text(result),
                   *last ? ": " : "", last);
}

enum el_status el_nccl_group_create(const struct el_nccl_api *api, int n, int first, int size,
                                    struct el_nccl_group **group_p)
{
    struct el_nccl_group *group = calloc(1, sizeof *group + (size_t)n * sizeof *group->members);
    if (!group) return el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no memory for %d members", n);
    group->api = api;
    group->patience_ns = EL_NCCL_PATIENCE_NS;
    group->n = n;
    atomic_init(&group->open, n);
    group->size = size;
    group->whole = group;
    pthread_mutex_init(&group->lock, NULL);
    el_clock_cond_init(&group->changed);
    for (int i = 0; i < n; i++) group->members[i] = (struct el_nccl_member){.group = group, .rank = first + i};
    *group_p = group;
    return EL_OK;
}

static enum el_status end_comm(const struct el_nccl_member *member, void **comm_p)
{
    member->group->api->comm_destroy(*comm_p);
    *comm_p = NULL;
    return EL_OK;
}

static void take_out(struct el_nccl_group *part)
{
    struct el_nccl_group *whole = part->whole, **link = &whole->part;
    pthread_mutex_lock(&whole->lock);
    while (*link && *link != part) link = &(*link)->part;
    if (*link) *link = part->part;
    pthread_mutex_unlock(&whole->lock);
}

void el_nccl_group_destroy(struct el_nccl_group *group)
{
    el_nccl_watch_stop(group);
    if (group->whole != group) take_out(group);
    for (int i = 0; i < group->n; i++) {
        el_nccl_memory_close(&group->members[i]);
        el_nccl_each_comm(&group->members[i], end_comm);
        el_nccl_mail_close(&group->members[i]);
        el_device_free(group->members[i].word);
    }
    if (group->whole == group) el_presence_close(group->presence);
    pthread_cond_destroy(&group->changed);
    pthread_mutex_destroy(&group->lock);
    free(group);
}

/* Mailboxes empty first; nothing is left to wait for after an abort. */
static void wait_for_mail(const struct el_nccl_member *member)
{
    for (int r = 0; member->mail && r < member->group->size; r++)
        if (member->mail->to[r].comm) el_device_stream_synchronize(member->device, member->mail->to[r].stream);
}

static void close_member(void *state)
{
    struct el_nccl_group *group = ((struct el_nccl_member *)state)->group, *whole = group->whole;
    pthread_mutex_lock(&whole->lock);
    if (whole->aborts_beside) pthread_join(whole->aborter, NULL);
    whole->aborts_beside = false;
    pthread_mutex_unlock(&whole->lock);
    wait_for_mail(state);
    if (atomic_fetch_sub(&group->open, 1) == 1) el_nccl_group_destroy(group);
}

static enum el_status abort_comm(const struct el_nccl_member *member, void **comm_p)
{
    member->group->api->comm_abort(*comm_p);
    __atomic_store_n(comm_p, NULL, __ATOMIC_RELAXED); /* a call that waits in NCCL has read it */
    return EL_OK;
}

/* By then, calls that do not wait have returned; the abort ends those that do. */
static void wait_for_calls(struct el_nccl_group *whole)
{
    int64_t end_ns = el_clock_ns() + SHORT_CALL_NS;
    while (whole->n_calling > 0 && el_clock_cond_wait(&whole->changed, &whole->lock, end_ns)) continue;
}

static void *abort_all(void *context)
{
    struct el_nccl_group *whole = context;
    whole->api->group_start();
    for (struct el_nccl_group *part = whole; part; part = part->part)
        for (int i = 0; i < part->n; i++) el_nccl_each_comm(&part->members[i], abort_comm);
    whole->api->group_end();
    return NULL;
}

/* With all parts, in a group: each abort waits for kernels that wait for one another. */
static void abort_group(void *state)
{
    struct el_nccl_group *whole = ((struct el_nccl_member *)state)->group->whole;
    if (whole->presence) el_presence_raise(whole->presence);
    pthread_mutex_lock(&whole->lock);
    bool first = !whole->aborted;
    whole->aborted = true;
    if (first) {
        wait_for_calls(whole);
        whole->aborts_beside = whole->in_graph && !pthread_create(&whole->aborter, NULL, abort_all, whole);
        if (!whole->aborts_beside) abort_all(whole);
    }
    pthread_mutex_unlock(&whole->lock);
}

/* Verbs that NCCL lacks, as messages in a group. */
static enum el_status enqueue_messages(const struct el_nccl_member *member, const struct el_comm_task *t)
{
    const struct el_nccl_api *api = member->group->api;
    const struct el_comm_verb_row *row = el_comm_verb_row(t->verb);
    size_t part = t->count * el_dtype_bytes(t->dtype);
    for (int peer = 0; peer < member->group->size; peer++) {
        const char *data = (const char *)t->data + (row->all_data ? (size_t)peer * part : 0);
        char *result = (char *)t->result + (row->all_result ? (size_t)peer * part : 0);
        if (peer == member->rank && data == result) continue;
        if (el_comm_goes(t, member->rank, peer))
            EL_NCCL_TRY(api, member->device, send, data, t->count, t->dtype, peer, member->comm, t->stream);
        if (el_comm_goes(t, peer, member->rank))
            EL_NCCL_TRY(api, member->device, receive, result, t->count, t->dtype, peer, member->comm, t->stream);
    }
    return EL_OK;
}

static enum el_status enqueue_part(const struct el_nccl_member *member, const struct el_comm_task *t)
{
    const struct el_nccl_api *api = member->group->api;
    void *comm = __atomic_load_n(&member->comm, __ATOMIC_RELAXED);
    switch (t->verb) {
    case EL_COMM_ALL_REDUCE:
        EL_NCCL_TRY(api, member->device, all_reduce, t->data, t->result, t->count, t->dtype, t->reduction, comm,
                    t->stream);
        return EL_OK;
    case EL_COMM_BROADCAST:
        EL_NCCL_TRY(api, member->device, broadcast, t->data, t->result, t->count, t->dtype, t->root, comm, t->stream);
        return EL_OK;
    case EL_COMM_REDUCE:
        EL_NCCL_TRY(api, member->device, reduce, t->data, t->result, t->count, t->dtype, t->reduction, t->root, comm,
                    t->stream);
        return EL_OK;
    case EL_COMM_REDUCE_SCATTER:
        EL_NCCL_TRY(api, member->device, reduce_scatter, t->data, t->result, t->count, t->dtype, t->reduction, comm,
                    t->stream);
        return EL_OK;
    case EL_COMM_ALL_GATHER:
        EL_NCCL_TRY(api, member->device, all_gather, t->data, t->result, t->count, t->dtype, comm, t->stream);
        return EL_OK;
    case EL_COMM_BARRIER:
        EL_NCCL_TRY(api, member->device, all_reduce, (void *)member->word->address, (void *)member->word->address, 1,
                    EL_F32, EL_COMM_MAX, comm, t->stream);
        return EL_OK;
    default:
        return enqueue_messages(member, t);
    }
}

/* In a group if there is more than one call. A group must end even after a failure. */
static enum el_status enqueue_parts(const struct el_nccl_api *api, const struct el_comm_part *parts, int n)
{
    struct el_error failure = {.status = EL_OK};
    enum el_comm_verb verb = parts->task.verb;
    bool messages = verb == EL_COMM_SCATTER || verb == EL_COMM_GATHER || verb == EL_COMM_ALL_TO_ALL;
    if (n == 1 && !messages) return enqueue_part(parts->state, &parts->task);
    const struct el_device *only = n == 1 ? ((const struct el_nccl_member *)parts->state)->device : NULL;
    EL_NCCL_TRY(api, only, group_start);
    for (int i = 0; i < n && failure.status == EL_OK; i++) {
        enum el_status status = enqueue_part(parts[i].state, &parts[i].task);
        if (status != EL_OK) el_error_take(status, &failure);
    }
    int ended = api->group_end();
    return failure.status != EL_OK ? el_error_give(&failure) : el_nccl_check(api, only, ended, "nccl group_end");
}

/* Compares members of one thread; other processes' operations are unknown. */
static enum el_status check_same(const struct el_comm_part *parts, int n)
{
    for (int i = 1; i < n; i++)
        if (!el_comm_same_task(&parts[i].task, &parts->task))
            return el_comm_fail_different("nccl", ((const struct el_nccl_member *)parts->state)->rank, &parts->task,
                                          ((const struct el_nccl_member *)parts[i].state)->rank, &parts[i].task);
    return EL_OK;
}

/* NCCL reports a failed kernel only as a CUDA failure, so the driver's error comes first. */
static enum el_status ask_driver(const struct el_comm_part *parts, int n, enum el_status status)
{
    struct el_error own, cause = {.status = EL_OK};
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &own);
    for (int i = 0; i < n && cause.status == EL_OK; i++) {
        const struct el_nccl_member *member = parts[i].state;
        status = el_device_stream_check(member->device, member->stream);
        if (status != EL_OK) el_error_take(status, &cause);
    }
    if (cause.status == EL_OK) return el_error_give(&own);
    return el_fail(cause.status, "%.200s; %.300s", cause.text, own.text);
}

static enum el_status enqueue(const struct el_comm_part *parts, int n)
{
    struct el_nccl_group *group = ((struct el_nccl_member *)parts->state)->group;
    EL_TRY(check_same(parts, n));
    EL_TRY(el_nccl_enter(group));
    for (int i = 0; i < n; i++) ((struct el_nccl_member *)parts[i].state)->waiting_since_ns = 0;
    enum el_status status = el_comm_verb_row(parts->task.verb)->is_link
                                ? el_nccl_enqueue_link(parts->state, &parts->task)
                                : enqueue_parts(group->api, parts, n);
    el_nccl_leave(group);
    if (status != EL_OK && el_nccl_is_aborted(group)) return el_nccl_say_aborted(group);
    return el_nccl_explain(group, ask_driver(parts, n, status));
}

static enum el_status check_comm(const struct el_nccl_member *member, void **comm_p)
{
    const struct el_nccl_api *api = member->group->api;
    int error = EL_NCCL_OK;
    EL_NCCL_TRY(api, member->device, async_error, *comm_p, &error);
    if (error == EL_NCCL_OK || error == EL_NCCL_IN_PROGRESS) return EL_OK;
    el_nccl_check(api, member->device, error, "nccl communicator: an operation failed");
    return EL_ERR_PEER;
}

static enum el_status check_async(struct el_nccl_member *member)
{
    struct el_nccl_group *whole = member->group->whole;
    if (el_nccl_is_aborted(whole)) return el_nccl_say_aborted(whole);
    pthread_mutex_lock(&whole->lock);
    bool aborted = whole->aborted;
    enum el_status status = aborted ? EL_OK : el_nccl_each_comm(member, check_comm);
    pthread_mutex_unlock(&whole->lock);
    if (aborted) return el_nccl_say_aborted(whole);
    return el_nccl_explain(whole, ask_driver(&(struct el_comm_part){.state = member}, 1, status));
}

static enum el_status poll(void *state)
{
    struct el_nccl_member *member = state;
    struct el_nccl_group *group = member->group;
    int64_t now_ns = el_clock_ns();
    EL_TRY(check_async(member));
    if (member->waiting_since_ns == 0) member->waiting_since_ns = now_ns;
    bool late = now_ns - member->waiting_since_ns > group->patience_ns;
    if (!late && now_ns - member->looked_ns < LOOK_EVERY_NS) return EL_OK;
    member->looked_ns = now_ns;
    return el_nccl_check_others(group, member->waiting_since_ns, group->patience_ns, "not finished");
}

/* 0: the default. Parts made later inherit it. */
static void set_timeout(void *state, int64_t timeout_ns)
{
    ((struct el_nccl_member *)state)->group->patience_ns = timeout_ns ? timeout_ns : EL_NCCL_PATIENCE_NS;
}

static void graph(void *state, bool again)
{
    struct el_nccl_member *member = state;
    struct el_nccl_group *whole = member->group->whole;
    member->waiting_since_ns = 0;
    if (again) return;
    pthread_mutex_lock(&whole->lock);
    whole->in_graph = true;
    pthread_mutex_unlock(&whole->lock);
}

/* Of a ring for collectives without a root. NCCL may choose otherwise (tree, NVLink SHARP); the sum over all members
 * is then the same or less. */
static struct el_comm_traffic traffic(const void *state, const struct el_comm_shape *shape)
{
    (void)state;
    struct el_comm_shape ring = *shape;
    ring.algorithm = EL_COMM_RING;
    return el_comm_rounds_traffic(&ring);
}

static bool reduces(enum el_comm_reduction reduction, enum el_dtype dtype)
{
    (void)dtype;
    return reduction < EL_COMM_AND;
}

enum el_status el_nccl_reserve_word(struct el_nccl_member *member)
{
    if (member->word) return EL_OK;
    return el_device_alloc(member->device, EL_TAG_WORKSPACE, 2 * sizeof(float), "a barrier's word", &member->word);
}

/* A barrier must move something. */
static enum el_status reserve(void *state, const struct el_comm_task *task)
{
    return task->verb == EL_COMM_BARRIER ? el_nccl_reserve_word(state) : EL_OK;
}

const struct el_comm_ops el_nccl_ops = {
    .verbs = EL_COMM_COLLECTIVES | 1 << EL_COMM_SEND | 1 << EL_COMM_RECV,
    .reduces = reduces,
    .asynchronous = true,
    .enqueue = enqueue,
    .graph = graph,
    .reserve = reserve,
    .alloc = el_nccl_alloc,
    .open_mailboxes = el_nccl_open_mailboxes,
    .split = el_nccl_split,
    .poll = poll,
    .set_timeout = set_timeout,
    .traffic = traffic,
    .abort = abort_group,
    .close = close_member,
};
