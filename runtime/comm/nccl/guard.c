/* Watches the other ranks during NCCL calls. Opening, splitting and the first use block until all come, and NCCL
 * notices neither a dead nor a stopped rank: a thread checks, and aborts. It also aborts when another rank reports a
 * failure, since this one may be in a CUDA call that waits for the whole card. Only between processes. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/comm/nccl/comm_nccl.h"

enum { LOOK_EVERY_MS = 100 };

bool el_nccl_is_aborted(struct el_nccl_group *group)
{
    struct el_nccl_group *whole = group->whole;
    pthread_mutex_lock(&whole->lock);
    bool aborted = whole->aborted;
    pthread_mutex_unlock(&whole->lock);
    return aborted;
}

enum el_status el_nccl_say_aborted(struct el_nccl_group *group)
{
    struct el_nccl_group *whole = group->whole;
    pthread_mutex_lock(&whole->lock);
    struct el_error why = whole->why;
    pthread_mutex_unlock(&whole->lock);
    return why.status != EL_OK ? el_error_give(&why) : el_fail(EL_ERR_PEER, "nccl communicator: another member failed");
}

bool el_nccl_begin(struct el_nccl_group *group)
{
    struct el_nccl_group *whole = group->whole;
    pthread_mutex_lock(&whole->lock);
    bool aborted = whole->aborted;
    if (!aborted && whole->n_calling++ == 0) whole->calling_since_ns = el_clock_ns();
    pthread_mutex_unlock(&whole->lock);
    return !aborted;
}

enum el_status el_nccl_enter(struct el_nccl_group *group)
{
    return el_nccl_begin(group) ? EL_OK : el_nccl_say_aborted(group);
}

void *el_nccl_comm(struct el_nccl_member *member)
{
    struct el_nccl_group *whole = member->group->whole;
    pthread_mutex_lock(&whole->lock);
    void *comm = member->comm;
    pthread_mutex_unlock(&whole->lock);
    return comm;
}

void el_nccl_leave(struct el_nccl_group *group)
{
    struct el_nccl_group *whole = group->whole;
    pthread_mutex_lock(&whole->lock);
    whole->n_calling--;
    pthread_cond_broadcast(&whole->changed);
    pthread_mutex_unlock(&whole->lock);
}

enum el_status el_nccl_leave_with(const struct el_nccl_member *member, int result, const char *call)
{
    struct el_nccl_group *group = member->group;
    el_nccl_leave(group);
    if (result != EL_NCCL_OK && el_nccl_is_aborted(group)) return el_nccl_say_aborted(group);
    return el_nccl_check(group->api, member->device, result, call);
}

enum el_status el_nccl_check_others(struct el_nccl_group *group, int64_t since_ns, int64_t patience_ns,
                                    const char *what)
{
    char text[96] = "a member is missing, or a link is stuck; NCCL_DEBUG=INFO tells more";
    if (group->presence) EL_TRY(el_presence_check(group->presence));
    if (el_clock_ns() - since_ns <= patience_ns) return EL_OK;
    if (group->presence) el_presence_find_stopped(group->presence, text, sizeof text);
    return el_fail(EL_ERR_PEER, "nccl communicator: %s after %.3g s: %s", what, 1e-9 * (double)patience_ns, text);
}

static enum el_status keep_why(struct el_nccl_group *whole, enum el_status status)
{
    struct el_error why;
    el_error_take(status, &why);
    why.status = EL_ERR_PEER;
    pthread_mutex_lock(&whole->lock);
    if (!whole->aborted && whole->why.status == EL_OK) whole->why = why;
    pthread_mutex_unlock(&whole->lock);
    return status;
}

enum el_status el_nccl_explain(struct el_nccl_group *group, enum el_status status)
{
    struct el_error own;
    if (status != EL_ERR_PEER) return status;
    if (!group->presence) return keep_why(group->whole, status);
    el_error_take(status, &own);
    EL_TRY(el_presence_check(group->presence));
    return el_fail(EL_ERR_INTERNAL, "%s", own.text);
}

static int64_t next_look_ns(void)
{
    return el_clock_ns() + LOOK_EVERY_MS * 1000000L;
}

/* Opening and a first use may connect all ranks: they have NCCL's own patience if --comm-timeout is less. */
static int64_t long_patience_ns(const struct el_nccl_group *group)
{
    return group->patience_ns > EL_NCCL_PATIENCE_NS ? group->patience_ns : EL_NCCL_PATIENCE_NS;
}

static bool has_to_end(struct el_nccl_group *group, int64_t since_ns)
{
    enum el_status status = el_nccl_check_others(group, since_ns, long_patience_ns(group), "a call has not returned");
    if (status == EL_OK) return false;
    pthread_mutex_lock(&group->lock);
    el_error_take(status, &group->why);
    pthread_mutex_unlock(&group->lock);
    return true;
}

static void *watch(void *context)
{
    struct el_nccl_group *group = context;
    pthread_mutex_lock(&group->lock);
    while (!group->closing && !group->aborted) {
        el_clock_cond_wait(&group->changed, &group->lock, next_look_ns());
        int64_t since_ns = group->calling_since_ns;
        bool long_in_call = group->n_calling > 0 && el_clock_ns() - since_ns > LOOK_EVERY_MS * 1000000;
        bool ends = long_in_call || el_presence_is_raised(group->presence);
        if (!ends || group->closing || group->aborted) continue;
        pthread_mutex_unlock(&group->lock);
        if (has_to_end(group, since_ns)) el_nccl_ops.abort(&group->members[0]);
        pthread_mutex_lock(&group->lock);
    }
    pthread_mutex_unlock(&group->lock);
    return NULL;
}

enum el_status el_nccl_watch_start(struct el_nccl_group *group)
{
    int failed = pthread_create(&group->watcher, NULL, watch, group);
    if (failed) return el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no thread: %s", strerror(failed));
    group->watched = true;
    return EL_OK;
}

void el_nccl_watch_stop(struct el_nccl_group *group)
{
    if (!group->watched) return;
    pthread_mutex_lock(&group->lock);
    group->closing = true;
    pthread_cond_broadcast(&group->changed);
    pthread_mutex_unlock(&group->lock);
    pthread_join(group->watcher, NULL);
    group->watched = false;
}

/* Nothing can abort an opening, so it runs in a thread, which is abandoned if others do not come; the last user frees
 * this. */
struct opening {
    const struct el_nccl_api *api;
    struct el_nccl_id id;
    int n, rank, device, result;
    void *comm;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done, left;
};

static void release(struct opening *opening)
{
    pthread_cond_destroy(&opening->changed);
    pthread_mutex_destroy(&opening->lock);
    free(opening);
}

static void *open_comm(void *context)
{
    struct opening *opening = context;
    opening->result = opening->api->comm_open(&opening->comm, opening->n, &opening->id, opening->rank, opening->device);
    pthread_mutex_lock(&opening->lock);
    opening->done = true;
    bool left = opening->left;
    pthread_cond_broadcast(&opening->changed);
    pthread_mutex_unlock(&opening->lock);
    if (!left) return NULL;
    if (opening->result == EL_NCCL_OK) opening->api->comm_abort(opening->comm);
    release(opening);
    return NULL;
}

/* If it leaves, the thread owns `opening`. */
static enum el_status wait_for(struct opening *opening, struct el_nccl_group *group, bool *left_p)
{
    int64_t since_ns = el_clock_ns();
    enum el_status status = EL_OK;
    pthread_mutex_lock(&opening->lock);
    while (!opening->done && status == EL_OK) {
        if (!el_clock_cond_wait(&opening->changed, &opening->lock, next_look_ns()) && !opening->done)
            status = el_nccl_check_others(group, since_ns, long_patience_ns(group), "not opened");
    }
    *left_p = opening->left = !opening->done;
    pthread_mutex_unlock(&opening->lock);
    return status;
}

enum el_status el_nccl_open_watched(struct el_nccl_group *group, const struct el_nccl_id *id, bool *left_p)
{
    struct el_nccl_member *member = &group->members[0];
    struct opening *opening = calloc(1, sizeof *opening);
    pthread_t thread;
    if (!opening) return el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no memory");
    *opening = (struct opening){.api = group->api,
                                .id = *id,
                                .n = group->size,
                                .rank = member->rank,
                                .device = el_device_index(member->device)};
    pthread_mutex_init(&opening->lock, NULL);
    el_clock_cond_init(&opening->changed);
    int failed = pthread_create(&thread, NULL, open_comm, opening);
    if (failed) {
        release(opening);
        return el_fail(EL_ERR_HOST_MEMORY, "nccl communicator: no thread: %s", strerror(failed));
    }
    bool left;
    enum el_status status = wait_for(opening, group, &left);
    if (left) {
        pthread_detach(thread);
        *left_p = !el_presence_is_raised(group->presence);
        return status;
    }
    pthread_join(thread, NULL);
    status = el_nccl_explain(group, el_nccl_check(group->api, member->device, opening->result, "nccl comm_open"));
    if (status == EL_OK) member->comm = opening->comm;
    release(opening);
    return status;
}
