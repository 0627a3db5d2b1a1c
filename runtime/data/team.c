/* A loader's workers (team.h). */
#include "runtime/data/team.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"

enum { ALIGN = 64 };
enum turn { FREE, READY, STOPPED };                /* the worker's, the trainer's, nobody's */
static const int64_t AGAIN_NS = 200 * 1000 * 1000; /* interval at which a waiting thread checks the other */

struct slot {
    _Atomic uint32_t turn;
    struct el_error error; /* instead of a batch */
    struct el_load_times times;
    int64_t begin_ns, end_ns;
};

struct member {
    struct el_team *team;
    int index;
    bool started;
    pthread_t thread;
    _Atomic bool gone; /* thread exited */
};

struct el_team {
    struct el_loading loading;
    struct el_batcher *const *batchers;
    size_t input_bytes, slot_bytes;
    char *memory;
    int n_slots;
    cpu_set_t cores; /* the opener's: a worker must not share the core to which the taker may be bound */
    bool running;
    uint64_t first, next; /* batches: the workers' first, the next to take */
    struct member members[EL_WORKERS_MAX];
};

static struct slot *slot_of(const struct el_team *team, uint64_t step)
{
    return (struct slot *)(void *)(team->memory + (size_t)(step % (uint64_t)team->n_slots) * team->slot_bytes);
}

static size_t rounded(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static char *inputs_of(struct slot *slot)
{
    return (char *)slot + rounded(sizeof *slot);
}

static int32_t *labels_of(const struct el_team *team, struct slot *slot)
{
    return (int32_t *)(void *)(inputs_of(slot) + rounded(team->input_bytes));
}

/* Waits until the slot is the worker's; false: exit. */
static bool await_free(struct slot *slot)
{
    for (;;) {
        uint32_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn != READY) return turn == FREE;
        el_futex_wait(&slot->turn, turn, false, AGAIN_NS);
    }
}

static bool hand_over(struct slot *slot)
{
    uint32_t turn = FREE;
    bool taken = atomic_compare_exchange_strong(&slot->turn, &turn, READY);
    el_futex_wake(&slot->turn, false);
    return taken;
}

static void work(const struct el_team *team, int index)
{
    const uint64_t n = (uint64_t)team->loading.workers;
    uint64_t step = team->first + ((uint64_t)index + n - team->first % n) % n;
    for (enum el_status status = EL_OK; status == EL_OK; step += n) {
        struct slot *slot = slot_of(team, step);
        if (!await_free(slot)) return;
        if (team->loading.dies_at > 0 && step == (uint64_t)team->loading.dies_at) return;
        slot->times = (struct el_load_times){0};
        slot->begin_ns = el_clock_ns();
        status = el_batcher_fill(team->batchers[index], step, inputs_of(slot), labels_of(team, slot), &slot->times);
        slot->end_ns = el_clock_ns();
        el_error_take(status, &slot->error);
        if (!hand_over(slot)) return;
    }
}

static void *run_thread(void *argument)
{
    struct member *member = argument;
    sched_setaffinity(0, sizeof member->team->cores, &member->team->cores);
    work(member->team, member->index);
    atomic_store(&member->gone, true);
    for (int s = 0; s < member->team->n_slots; s++) el_futex_wake(&slot_of(member->team, (uint64_t)s)->turn, false);
    return NULL;
}

static enum el_status start_thread(struct member *member)
{
    if (pthread_create(&member->thread, NULL, run_thread, member) == 0) return EL_OK;
    return el_fail(EL_ERR_HOST_MEMORY, "loader worker %d: its thread could not be made", member->index);
}

static void stop(struct el_team *team)
{
    for (int s = 0; s < team->n_slots; s++) {
        struct slot *slot = slot_of(team, (uint64_t)s);
        atomic_store(&slot->turn, STOPPED);
        el_futex_wake(&slot->turn, false);
    }
    for (int w = 0; w < team->loading.workers; w++) {
        struct member *member = &team->members[w];
        if (member->started) pthread_join(member->thread, NULL);
        member->started = false;
    }
    team->running = false;
}

static enum el_status start(struct el_team *team, uint64_t first)
{
    enum el_status status = EL_OK;
    team->first = team->next = first;
    team->running = true;
    for (int s = 0; s < team->n_slots; s++) atomic_store(&slot_of(team, (uint64_t)s)->turn, FREE);
    for (int w = 0; w < team->loading.workers && status == EL_OK; w++) {
        struct member *member = &team->members[w];
        *member = (struct member){.team = team, .index = w};
        status = start_thread(member);
        member->started = status == EL_OK;
    }
    if (status != EL_OK) stop(team);
    return status;
}

/* A worker that exited may still have made the batch. */
static enum el_status look_after(const struct member *member, const struct slot *slot, uint64_t step)
{
    if (!atomic_load(&member->gone) || atomic_load(&slot->turn) == READY) return EL_OK;
    return el_fail(EL_ERR_IO, "loader worker %d ended before batch %llu was ready", member->index,
                   (unsigned long long)step);
}

static enum el_status await_batch(struct el_team *team, struct slot *slot, uint64_t step)
{
    const struct member *member = &team->members[step % (uint64_t)team->loading.workers];
    while (atomic_load_explicit(&slot->turn, memory_order_acquire) != READY) {
        EL_TRY(look_after(member, slot, step));
        el_futex_wait(&slot->turn, FREE, false, AGAIN_NS);
    }
    return slot->error.status == EL_OK ? EL_OK : el_error_give(&slot->error);
}

enum el_status el_team_take(struct el_team *team, uint64_t step, void *inputs, int32_t *labels,
                            struct el_load_times *times, struct el_load_span *span)
{
    const int64_t asked_ns = el_clock_ns();
    if (team->running && step != team->next) stop(team);
    if (!team->running) EL_TRY(start(team, step));
    struct slot *slot = slot_of(team, step);
    EL_TRY(await_batch(team, slot, step));
    const int64_t ready_ns = el_clock_ns();
    memcpy(inputs, inputs_of(slot), team->input_bytes);
    memcpy(labels, labels_of(team, slot), (size_t)el_batcher_labels(team->batchers[0]) * sizeof *labels);
    *span = (struct el_load_span){.step = step,
                                  .worker = (int)(step % (uint64_t)team->loading.workers),
                                  .begin_ns = slot->begin_ns,
                                  .end_ns = slot->end_ns,
                                  .asked_ns = asked_ns,
                                  .got_ns = el_clock_ns()};
    el_load_times_add(&slot->times, times);
    times->wait_ns += ready_ns - asked_ns;
    times->take_ns += span->got_ns - ready_ns;
    atomic_store_explicit(&slot->turn, FREE, memory_order_release);
    el_futex_wake(&slot->turn, false);
    team->next = step + 1;
    return EL_OK;
}

enum el_status el_team_open(const struct el_loading *loading, struct el_batcher *const *batchers,
                            struct el_team **team_p)
{
    struct el_team *team = calloc(1, sizeof *team);
    if (!team) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a loader's workers");
    *team = (struct el_team){.loading = *loading, .batchers = batchers};
    team->n_slots = loading->workers * (loading->prefetch ? loading->prefetch : EL_PREFETCH_DEFAULT);
    team->input_bytes = el_batcher_input_bytes(batchers[0]);
    team->slot_bytes = rounded(sizeof(struct slot)) + rounded(team->input_bytes) +
                       rounded((size_t)el_batcher_labels(batchers[0]) * sizeof(int32_t));
    team->memory = aligned_alloc(ALIGN, el_team_bytes(team));
    sched_getaffinity(0, sizeof team->cores, &team->cores);
    if (!team->memory) {
        el_fail(EL_ERR_HOST_MEMORY, "no memory for %d batches ahead", team->n_slots);
        free(team);
        return EL_ERR_HOST_MEMORY;
    }
    memset(team->memory, 0, el_team_bytes(team));
    *team_p = team;
    return EL_OK;
}

void el_team_close(struct el_team *team)
{
    if (!team) return;
    if (team->running) stop(team);
    free(team->memory);
    free(team);
}

size_t el_team_bytes(const struct el_team *team)
{
    return team->slot_bytes * (size_t)team->n_slots;
}
