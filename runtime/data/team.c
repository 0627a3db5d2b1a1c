/* Workers of a loader; see team.h. */
#include "runtime/data/team.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/futex.h"

enum { ALIGN = 64 };
enum turn { FREE, READY, STOPPED };               /* the worker's, the trainer's, nobody's */
static const int64_t LOOK_NS = 200 * 1000 * 1000; /* how often one who waits looks whether the other is there */

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
    _Atomic bool gone; /* of a thread: it has ended */
    pid_t pid;
};

struct el_team {
    struct el_loading loading;
    struct el_batcher *const *batchers;
    size_t input_bytes, slot_bytes, mapped_bytes;
    char *memory; /* slots, shared */
    int n_slots;
    pid_t parent;
    cpu_set_t cores; /* of who opened it: a worker is not to share the core to which who takes may be bound */
    bool running;
    uint64_t first, next; /* batches: where the workers began, which is to be taken */
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

static bool is_shared(const struct el_team *team)
{
    return team->loading.kind == EL_WORKER_PROCESS;
}

/* ---- the worker ---- */

/* Whether the slot is the worker's to fill; false: it is to end. */
static bool await_free(const struct el_team *team, struct slot *slot)
{
    for (;;) {
        uint32_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire);
        if (turn != READY) return turn == FREE;
        el_futex_wait(&slot->turn, turn, is_shared(team), LOOK_NS);
        if (is_shared(team) && getppid() != team->parent) return false;
    }
}

/* Unless it has been stopped meanwhile. */
static bool hand_over(const struct el_team *team, struct slot *slot)
{
    uint32_t turn = FREE;
    bool taken = atomic_compare_exchange_strong(&slot->turn, &turn, READY);
    el_futex_wake(&slot->turn, is_shared(team));
    return taken;
}

static void work(const struct el_team *team, int index)
{
    const uint64_t n = (uint64_t)team->loading.workers;
    uint64_t step = team->first + ((uint64_t)index + n - team->first % n) % n;
    for (enum el_status status = EL_OK; status == EL_OK; step += n) {
        struct slot *slot = slot_of(team, step);
        if (!await_free(team, slot)) return;
        if (team->loading.dies_at > 0 && step == (uint64_t)team->loading.dies_at) {
            if (is_shared(team)) raise(SIGKILL);
            return;
        }
        slot->times = (struct el_load_times){0};
        slot->begin_ns = el_clock_ns();
        status = el_batcher_fill(team->batchers[index], step, inputs_of(slot), labels_of(team, slot), &slot->times);
        slot->end_ns = el_clock_ns();
        el_error_take(status, &slot->error);
        if (!hand_over(team, slot)) return;
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

static enum el_status start_process(struct el_team *team, struct member *member)
{
    member->pid = fork();
    if (member->pid < 0) return el_fail_errno("loader worker %d", member->index);
    if (member->pid > 0) return EL_OK;
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    sched_setaffinity(0, sizeof team->cores, &team->cores);
    work(team, member->index);
    _exit(0);
}

static enum el_status start_thread(struct member *member)
{
    if (pthread_create(&member->thread, NULL, run_thread, member) == 0) return EL_OK;
    return el_fail(EL_ERR_HOST_MEMORY, "loader worker %d: its thread could not be made", member->index);
}

/* ---- who trains ---- */

static void stop(struct el_team *team)
{
    for (int s = 0; s < team->n_slots; s++) {
        struct slot *slot = slot_of(team, (uint64_t)s);
        atomic_store(&slot->turn, STOPPED);
        el_futex_wake(&slot->turn, is_shared(team));
    }
    for (int w = 0; w < team->loading.workers; w++) {
        struct member *member = &team->members[w];
        if (member->started && !is_shared(team)) pthread_join(member->thread, NULL);
        if (member->started && is_shared(team) && member->pid > 0) {
            kill(member->pid, SIGKILL);
            waitpid(member->pid, NULL, 0);
        }
        member->started = false;
    }
    team->running = false;
}

static enum el_status start(struct el_team *team, uint64_t first)
{
    enum el_status status = EL_OK;
    team->first = team->next = first;
    team->parent = getpid();
    team->running = true;
    for (int s = 0; s < team->n_slots; s++) atomic_store(&slot_of(team, (uint64_t)s)->turn, FREE);
    for (int w = 0; w < team->loading.workers && status == EL_OK; w++) {
        struct member *member = &team->members[w];
        *member = (struct member){.team = team, .index = w};
        status = is_shared(team) ? start_process(team, member) : start_thread(member);
        member->started = status == EL_OK;
    }
    if (status != EL_OK) stop(team);
    return status;
}

/* After a worker has ended: the batch it was to make may be there all the same. */
static enum el_status say_gone(const struct member *member, uint64_t step, int killed)
{
    char how[48] = "";
    if (killed) snprintf(how, sizeof how, " (process %d), killed by signal %d,", (int)member->pid, killed);
    return el_fail(EL_ERR_IO, "loader worker %d%s ended before batch %llu was ready%s", member->index, how,
                   (unsigned long long)step, killed == SIGKILL ? ": was the machine out of memory?" : "");
}

static enum el_status look_after(struct member *member, const struct slot *slot, uint64_t step)
{
    int how = 0, killed = 0;
    bool gone = !is_shared(member->team) && atomic_load(&member->gone);
    if (is_shared(member->team) && member->pid > 0 && waitpid(member->pid, &how, WNOHANG) == member->pid) {
        killed = WIFSIGNALED(how) ? WTERMSIG(how) : 0;
        gone = true;
    }
    if (!gone || atomic_load(&slot->turn) == READY) return EL_OK;
    enum el_status status = say_gone(member, step, killed);
    member->pid = -1;
    return status;
}

static enum el_status await_batch(struct el_team *team, struct slot *slot, uint64_t step)
{
    struct member *member = &team->members[step % (uint64_t)team->loading.workers];
    while (atomic_load_explicit(&slot->turn, memory_order_acquire) != READY) {
        EL_TRY(look_after(member, slot, step));
        el_futex_wait(&slot->turn, FREE, is_shared(team), LOOK_NS);
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
    memcpy(labels, labels_of(team, slot), (size_t)el_batcher_rows(team->batchers[0]) * sizeof *labels);
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
    el_futex_wake(&slot->turn, is_shared(team));
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
                       rounded((size_t)el_batcher_rows(batchers[0]) * sizeof(int32_t));
    team->mapped_bytes = team->slot_bytes * (size_t)team->n_slots;
    team->memory = mmap(NULL, team->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    sched_getaffinity(0, sizeof team->cores, &team->cores);
    if (team->memory == MAP_FAILED) {
        free(team);
        return el_fail_errno("%d batches ahead", loading->workers * loading->prefetch);
    }
    *team_p = team;
    return EL_OK;
}

void el_team_close(struct el_team *team)
{
    if (!team) return;
    if (team->running) stop(team);
    munmap(team->memory, team->mapped_bytes);
    free(team);
}

size_t el_team_bytes(const struct el_team *team)
{
    return team->mapped_bytes;
}

static int64_t smaps_bytes(const char *line, const char *name)
{
    long long kib;
    return strncmp(line, name, strlen(name)) == 0 && sscanf(line + strlen(name), "%lld", &kib) == 1 ? kib * 1024 : 0;
}

void el_team_memory(const struct el_team *team, int64_t *rss_bytes_p, int64_t *pss_bytes_p)
{
    *rss_bytes_p = *pss_bytes_p = is_shared(team) && team->running ? 0 : -1;
    for (int w = 0; w < team->loading.workers && *rss_bytes_p >= 0; w++) {
        char path[64], line[128];
        snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)team->members[w].pid);
        FILE *file = fopen(path, "r");
        while (file && fgets(line, sizeof line, file)) {
            *rss_bytes_p += smaps_bytes(line, "Rss:");
            *pss_bytes_p += smaps_bytes(line, "Pss:");
        }
        if (file)
            fclose(file);
        else
            *rss_bytes_p = *pss_bytes_p = -1;
    }
}
