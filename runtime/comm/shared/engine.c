/* Posts, meetings, members gone or late, and the choice of the path. */
#include "runtime/comm/shared/engine.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"

enum { PATIENCE_NS = 100000000, SETTLE_NS = 10000000 };

enum el_status el_shared_open(struct el_shared *shared, const char *kind, int rank, int size,
                              struct el_shared_face *faces)
{
    *shared = (struct el_shared){.kind = kind, .rank = rank, .size = size, .faces = faces};
    return EL_OK;
}

enum el_status el_shared_ready(struct el_shared *shared)
{
    if (shared->data) return EL_OK;
    shared->data = calloc(3 * (size_t)shared->size, sizeof *shared->data);
    if (!shared->data) return el_fail(EL_ERR_HOST_MEMORY, "%s communicator: no memory", shared->kind);
    shared->results = shared->data + shared->size;
    shared->scratches = shared->results + shared->size;
    return EL_OK;
}

void el_shared_close(struct el_shared *shared)
{
    el_shared_close_mail(shared);
    free(shared->data);
}

void el_shared_set_timeout(void *state, int64_t timeout_ns)
{
    ((struct el_shared *)state)->timeout_ns = timeout_ns;
}

void el_shared_abort(void *state)
{
    struct el_shared *shared = state;
    if (shared->care) atomic_store(&shared->care->aborted, 1);
    for (int i = 0; i < shared->size; i++) el_flag_abort(&shared->faces[i].steps);
    el_shared_abort_mail(shared);
}

/* After an abort a member may return, and free its memory, only when no other member touches it. Whoever touches
 * counts itself before it checks for an abort; whoever leaves checks the count after the abort. */
enum el_status el_shared_leave(struct el_shared *shared)
{
    struct el_shared_care *care = shared->care;
    uint32_t seen;
    while (care && (seen = atomic_load(&care->touching)) != 0) el_futex_wait(&care->touching, seen, false, SETTLE_NS);
    return el_fail(EL_ERR_PEER, "%s communicator: another member failed", shared->kind);
}

void el_shared_untouch(struct el_shared *shared)
{
    struct el_shared_care *care = shared->care;
    if (!care) return;
    atomic_fetch_sub(&care->touching, 1);
    if (atomic_load(&care->aborted)) el_futex_wake(&care->touching, false);
}

bool el_shared_touch(struct el_shared *shared)
{
    struct el_shared_care *care = shared->care;
    if (!care) return true;
    atomic_fetch_add(&care->touching, 1);
    if (!atomic_load(&care->aborted)) return true;
    el_shared_untouch(shared);
    return false;
}

/* Gone or late? */
static enum el_status look_for(struct el_shared *shared, int of)
{
    enum el_status status = shared->ways->check_alive ? shared->ways->check_alive(shared->owner, of) : EL_OK;
    struct el_error reason;
    if (status == EL_OK && shared->deadline_ns && el_clock_ns() > shared->deadline_ns)
        status = el_fail(EL_ERR_PEER, "%s communicator: rank %d %s within %g s", shared->kind, of, shared->late,
                         (double)shared->timeout_ns * 1e-9);
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &reason);
    el_shared_abort(shared);
    el_shared_leave(shared);
    return el_error_give(&reason);
}

enum el_status el_shared_wait_flag(struct el_shared *shared, int of, struct el_flag *flag, uint32_t count)
{
    int64_t patience_ns = shared->deadline_ns && shared->timeout_ns < PATIENCE_NS ? shared->timeout_ns : PATIENCE_NS;
    for (;;) {
        enum el_flag_result result = el_flag_wait(flag, count, patience_ns);
        if (result == EL_FLAG_REACHED) return EL_OK;
        if (result == EL_FLAG_ABORTED) return el_shared_leave(shared);
        EL_TRY(look_for(shared, of));
    }
}

enum el_status el_shared_wait(struct el_shared *shared, int of, uint32_t steps)
{
    return el_shared_wait_flag(shared, of, &shared->faces[of].steps, steps);
}

enum el_status el_shared_wait_all(struct el_shared *shared, uint32_t steps)
{
    for (int i = 0; i < shared->size; i++)
        if (i != shared->rank) EL_TRY(el_shared_wait(shared, i, steps));
    return EL_OK;
}

void el_shared_step(struct el_shared *shared)
{
    el_flag_raise(&shared->faces[shared->rank].steps, ++shared->steps);
}

enum el_status el_shared_meet(struct el_shared *shared)
{
    el_shared_step(shared);
    return el_shared_wait_all(shared, shared->steps);
}

static bool find_place(const struct el_shared *shared, const void *address, size_t bytes,
                       struct el_shared_place *place_p)
{
    *place_p = (struct el_shared_place){.region = 0};
    return bytes == 0 || shared->ways->place(shared->owner, address, bytes, place_p);
}

/* Too little scratch rules out working in place. */
static bool find_scratch(const struct el_shared *shared, const struct el_comm_task *task,
                         struct el_shared_place *place_p)
{
    struct el_comm_shape shape = el_comm_task_shape(task, shared->rank, shared->size);
    size_t bytes = task->algorithm == EL_COMM_DIRECT ? 0 : el_comm_scratch(&shape) * shape.element_bytes;
    if (bytes > shared->scratch_bytes) return false;
    return find_place(shared, shared->scratch, bytes, place_p);
}

static struct el_shared_post *post_of(const struct el_shared *shared, int rank)
{
    return &shared->faces[rank].posts[shared->n_posts % 2];
}

void el_shared_begin(struct el_shared *shared)
{
    shared->late = "did not arrive";
    shared->deadline_ns = shared->timeout_ns ? el_clock_ns() + shared->timeout_ns : 0;
}

static struct el_shared_post *begin(struct el_shared *shared)
{
    el_shared_begin(shared);
    shared->n_posts++;
    return post_of(shared, shared->rank);
}

static bool show(struct el_shared *shared, const struct el_comm_task *task)
{
    struct el_shared_post *post = begin(shared);
    size_t part = task->count * el_dtype_bytes(task->dtype);
    size_t given = part * el_comm_parts_given(task->verb, shared->rank, task->root, shared->size);
    size_t got = part * el_comm_parts_got(task->verb, shared->rank, task->root, shared->size);
    post->task = *task;
    post->reachable = find_place(shared, task->data, given, &post->data);
    if (!find_place(shared, task->result, got, &post->result)) post->reachable = false;
    if (!find_scratch(shared, task, &post->scratch)) post->reachable = false;
    return post->reachable;
}

static enum el_status check_same(const struct el_shared *shared, const struct el_comm_task *mine)
{
    for (int i = 0; i < shared->size; i++) {
        const struct el_comm_task *other = &post_of(shared, i)->task;
        if (!el_comm_same_task(other, mine)) return el_comm_fail_different(shared->kind, shared->rank, mine, i, other);
    }
    return EL_OK;
}

static int count_reachable(const struct el_shared *shared)
{
    int n = 0;
    for (int i = 0; i < shared->size; i++) n += post_of(shared, i)->reachable;
    return n;
}

static enum el_status find_address(const struct el_shared *shared, int rank, const struct el_shared_place *place,
                                   char **address_p)
{
    *address_p = place->region ? shared->ways->address(shared->owner, place) : NULL;
    if (*address_p || !place->region) return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "%s communicator: rank %d works in memory that rank %d has freed", shared->kind,
                   rank, shared->rank);
}

static enum el_status find_addresses(struct el_shared *shared)
{
    for (int i = 0; i < shared->size; i++) {
        const struct el_shared_post *post = post_of(shared, i);
        EL_TRY(find_address(shared, i, &post->data, &shared->data[i]));
        EL_TRY(find_address(shared, i, &post->result, &shared->results[i]));
        EL_TRY(find_address(shared, i, &post->scratch, &shared->scratches[i]));
    }
    return EL_OK;
}

enum el_status el_shared_run(void *state, const struct el_comm_task *task)
{
    struct el_shared *shared = state;
    if (el_comm_verb_row(task->verb)->is_link) return el_shared_run_link(shared, task);
    if (!show(shared, task)) el_shared_stage_first(shared, task);
    EL_TRY(el_shared_meet(shared));
    EL_TRY(check_same(shared, task));
    if (task->verb == EL_COMM_BARRIER) return EL_OK;
    int n_reachable = count_reachable(shared);
    if (n_reachable < shared->size) return el_shared_staged(shared, task, n_reachable > 0);
    EL_TRY(find_addresses(shared));
    return task->algorithm == EL_COMM_DIRECT ? el_shared_direct(shared, task) : el_shared_rounds(shared, task);
}

enum el_status el_shared_agree(struct el_shared *shared, enum el_status mine, uint64_t number, uint64_t *numbers)
{
    struct el_shared_post *post = begin(shared);
    el_error_take(mine, &post->outcome);
    post->number = number;
    enum el_status status = el_shared_meet(shared);
    if (mine != EL_OK) return el_error_give(&post->outcome);
    EL_TRY(status);
    for (int i = 0; i < shared->size; i++) {
        const struct el_shared_post *other = post_of(shared, i);
        if (numbers) numbers[i] = other->number;
        if (status == EL_OK && other->outcome.status != EL_OK)
            status = el_fail(EL_ERR_PEER, "rank %d: %.400s", i, other->outcome.text);
    }
    return status;
}

/* Direct was fastest at every measured size (1 KiB to 64 MiB, 2 ranks on 2 cores): each hop costs a wait. */
enum el_comm_algorithm el_shared_choose(const struct el_comm_shape *shape)
{
    (void)shape;
    return EL_COMM_DIRECT;
}
