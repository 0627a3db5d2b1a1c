/* Turns, waiting, stopping together, and watching the other processes. Global, since MPI allows one world per
 * process. */
#include "runtime/comm/mpi/module/comm_mpi.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"

/* Together under 5 s, including what the launcher then takes. */
enum { LOOK_EVERY_MS = 200, MPIRUN_MS = 1500, LAST_CHANCE_MS = 2000 };

static struct {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool ends;
    struct el_presence *presence;
    char reason[128];
    _Atomic bool lost;
} watch;

static bool ends_within(int ms)
{
    int64_t until_ns = el_clock_ns() + (int64_t)ms * 1000000;
    pthread_mutex_lock(&watch.lock);
    while (!watch.ends && el_clock_cond_wait(&watch.news, &watch.lock, until_ns)) continue;
    bool ends = watch.ends;
    pthread_mutex_unlock(&watch.lock);
    return ends;
}

static void *look(void *unused)
{
    (void)unused;
    prctl(PR_SET_NAME, "el-mpi-watch");
    do {
        if (ends_within(LOOK_EVERY_MS)) return NULL;
    } while (el_presence_check(watch.presence) == EL_OK);
    snprintf(watch.reason, sizeof watch.reason, "%s", el_error_message());
    if (ends_within(MPIRUN_MS)) return NULL;
    atomic_store(&watch.lost, true);
    if (ends_within(LAST_CHANCE_MS)) return NULL;
    fprintf(stderr, "evenload: %s, so this rank ends too\n", watch.reason);
    _exit(1);
}

enum el_status el_mpi_watch_begin(struct el_presence *presence)
{
    watch.presence = presence;
    pthread_mutex_init(&watch.lock, NULL);
    el_clock_cond_init(&watch.news);
    watch.ends = false;
    watch.running = pthread_create(&watch.thread, NULL, look, NULL) == 0;
    return watch.running ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no thread to watch the other ranks");
}

bool el_mpi_watch_end(void)
{
    if (!watch.running) return false;
    pthread_mutex_lock(&watch.lock);
    watch.ends = true;
    pthread_cond_signal(&watch.news);
    pthread_mutex_unlock(&watch.lock);
    pthread_join(watch.thread, NULL);
    watch.running = false;
    return atomic_load(&watch.lost);
}

enum el_status el_mpi_watch_check(void)
{
    if (!atomic_load(&watch.lost)) return EL_OK;
    return el_fail(EL_ERR_PEER, "mpi: %s", watch.reason);
}

/* ---- stopping together: MPI's errors are ignored, since nothing more can be done ---- */

enum { TAG_STOPPED = 2, LAST_CHANCE_NS = 1000000000, LOST_CHANCE_NS = 100000000 };

static void listen_again(struct el_mpi_alarm *alarm)
{
    MPI_Irecv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, TAG_STOPPED, alarm->comm, &alarm->message);
}

void el_mpi_alarm_open(struct el_mpi_alarm *alarm, MPI_Comm comm, int rank, int size)
{
    alarm->comm = comm;
    alarm->rank = rank;
    alarm->size = size;
    listen_again(alarm);
}

void el_mpi_alarm_close(struct el_mpi_alarm *alarm)
{
    if (alarm->message == MPI_REQUEST_NULL) return;
    MPI_Cancel(&alarm->message);
    MPI_Wait(&alarm->message, MPI_STATUS_IGNORE);
}

bool el_mpi_alarm_check(struct el_mpi_alarm *alarm)
{
    if (!alarm) return false;
    for (int arrived = 1; arrived && alarm->message != MPI_REQUEST_NULL;) {
        MPI_Test(&alarm->message, &arrived, MPI_STATUS_IGNORE);
        if (!arrived) break;
        atomic_store(&alarm->raised, 1);
        if (++alarm->n_stopped < alarm->size - 1) listen_again(alarm);
    }
    return atomic_load(&alarm->raised);
}

void el_mpi_alarm_raise(struct el_mpi_alarm *alarm)
{
    atomic_store(&alarm->raised, 1);
}

/* Empty messages leave at once; nobody waits for the requests. */
void el_mpi_alarm_tell(struct el_mpi_alarm *alarm)
{
    if (alarm->told) return;
    alarm->told = true;
    for (int i = 0; i < alarm->size; i++) {
        MPI_Request request;
        if (i == alarm->rank) continue;
        if (MPI_Isend(NULL, 0, MPI_BYTE, i, TAG_STOPPED, alarm->comm, &request) == MPI_SUCCESS)
            MPI_Request_free(&request);
    }
}

/* Cancels unmatched receives; matched ones end, as their senders go on. Then continues the sends until they end or
 * every other rank has said that it will receive no more. */
void el_mpi_alarm_give_up(struct el_mpi_alarm *alarm, MPI_Request receives[2], MPI_Request sends[2])
{
    int64_t deadline_ns = el_clock_ns() + (atomic_load(&watch.lost) ? LOST_CHANCE_NS : LAST_CHANCE_NS);
    int received = 0, sent = 0;
    for (int i = 0; i < 2; i++)
        if (receives[i] != MPI_REQUEST_NULL) MPI_Cancel(&receives[i]);
    while (!(received && (sent || alarm->n_stopped >= alarm->size - 1)) && el_clock_ns() < deadline_ns) {
        MPI_Testall(2, receives, &received, MPI_STATUSES_IGNORE);
        MPI_Testall(2, sends, &sent, MPI_STATUSES_IGNORE);
        if (received) el_mpi_alarm_tell(alarm);
        el_mpi_alarm_check(alarm);
        el_mpi_nap();
    }
    el_mpi_alarm_tell(alarm);
    for (int i = 0; i < 2; i++) {
        if (receives[i] != MPI_REQUEST_NULL) MPI_Request_free(&receives[i]);
        if (sends[i] != MPI_REQUEST_NULL) MPI_Request_free(&sends[i]);
    }
}

/* Polling before napping, about as long as waking from a nap takes. Measured: with a core per rank (own), 256 KiB take
 * 83 us, 230 with the times of `shared`; with four ranks on two cores (shared), a step of 62 small all-reduces takes
 * 33 ms, 57 with those of `own`. Never sched_yield: each poll would give the compute thread a whole time slice (so the
 * launcher also turns off mpi_yield_when_idle). An MPI_Test that finds nothing takes less than WORKED_NS. The first
 * spin_ns only test: a small message is faster than reading the thread's clock. */
enum { NAP_NS = 20000, SLACK_NS = 1000, WORKED_NS = 3000, ABORT_WITHIN_S = 5, ABORT_PAUSE_NS = 1000000 };
struct patience {
    int64_t spin_ns, poll_ns;
};
static const struct patience own = {.spin_ns = 50000, .poll_ns = 100000}, shared = {.spin_ns = 5000, .poll_ns = 20000};

static struct {
    pthread_mutex_t turn;
    bool used;
    struct patience patience;
} calls = {.turn = PTHREAD_MUTEX_INITIALIZER};

enum el_status el_mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS) return EL_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, name = (int)strcspn(call, "(");
    MPI_Error_string(code, text, &length);
    return el_fail(EL_ERR_PEER, "%.*s: %.300s", name, call, text);
}

void el_mpi_enter(void)
{
    pthread_mutex_lock(&calls.turn);
}

void el_mpi_leave(void)
{
    pthread_mutex_unlock(&calls.turn);
}

void el_mpi_abort(int exit_status)
{
    int64_t until_ns = el_clock_ns() + ABORT_WITHIN_S * 1000000000LL;
    bool mine;
    while (!(mine = pthread_mutex_trylock(&calls.turn) == 0) && el_clock_ns() < until_ns)
        el_clock_sleep_until(el_clock_ns() + ABORT_PAUSE_NS);
    if (mine) MPI_Abort(MPI_COMM_WORLD, exit_status);
    _exit(exit_status ? exit_status : 1);
}

void el_mpi_nap(void)
{
    static _Thread_local bool fine; /* reduces the default timer slack of 50 us */
    const struct timespec nap = {.tv_nsec = NAP_NS};
    if (!fine) fine = prctl(PR_SET_TIMERSLACK, SLACK_NS) == 0;
    el_mpi_leave();
    nanosleep(&nap, NULL);
    el_mpi_enter();
}

/* CPU time, since MPI_Test may yield the core. Cost: 0.4 us. */
static int64_t worked_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static enum el_status test(MPI_Request *a, MPI_Request *b, bool *done_p)
{
    int a_done = 1, b_done = 1;
    if (a && *a != MPI_REQUEST_NULL) EL_MPI_TRY(MPI_Test(a, &a_done, MPI_STATUS_IGNORE));
    if (b && *b != MPI_REQUEST_NULL) EL_MPI_TRY(MPI_Test(b, &b_done, MPI_STATUS_IGNORE));
    *done_p = a_done && b_done;
    return EL_OK;
}

static enum el_status check_alarm(struct el_mpi_alarm *alarm)
{
    if (!alarm) return EL_OK;
    if (el_mpi_alarm_check(alarm)) return el_fail(EL_ERR_PEER, "mpi communicator: a rank failed");
    if (alarm->timeout_ns == 0 || el_clock_ns() - alarm->began_ns < alarm->timeout_ns) return EL_OK;
    return el_fail(EL_ERR_PEER, "mpi communicator: waited %.3g s for rank %d", 1e-9 * (double)alarm->timeout_ns,
                   alarm->waits_for);
}

enum el_status el_mpi_pause(struct el_mpi_alarm *alarm)
{
    EL_TRY(check_alarm(alarm));
    el_mpi_nap();
    return EL_OK;
}

enum el_status el_mpi_wait(MPI_Request *a, MPI_Request *b, struct el_mpi_alarm *alarm)
{
    bool done;
    EL_TRY(test(a, b, &done));
    int64_t moved_ns = el_clock_ns();
    while (!done && el_clock_ns() - moved_ns < calls.patience.spin_ns) EL_TRY(test(a, b, &done));
    while (!done) {
        EL_TRY(el_mpi_watch_check());
        if (el_clock_ns() - moved_ns > calls.patience.poll_ns) EL_TRY(el_mpi_pause(alarm));
        int64_t begin_ns = worked_ns();
        EL_TRY(test(a, b, &done));
        if (worked_ns() - begin_ns > WORKED_NS) moved_ns = el_clock_ns();
    }
    return EL_OK;
}

static enum el_status look_at_cores(struct patience *patience_p)
{
    MPI_Comm host;
    int n_ranks;
    cpu_set_t mine, all;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_ZERO(&mine);
    EL_MPI_TRY(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
    EL_MPI_TRY(MPI_Comm_size(host, &n_ranks));
    EL_MPI_TRY(MPI_Allreduce(&mine, &all, (int)sizeof mine, MPI_BYTE, MPI_BOR, host));
    EL_MPI_TRY(MPI_Comm_free(&host));
    *patience_p = CPU_COUNT(&all) >= n_ranks ? own : shared;
    return EL_OK;
}

enum el_status el_mpi_start(int *rank_p, int *size_p, char *library, size_t bytes)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int provided, length;
    if (calls.used) return el_fail(EL_ERR_INVALID, "bootstrap mpi: can be opened once per process");
    calls.used = true;
    EL_MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided));
    if (provided < MPI_THREAD_SERIALIZED)
        return el_fail(EL_ERR_ABSENT, "MPI: this library was built for one thread; it must support "
                                      "MPI_THREAD_SERIALIZED at least");
    EL_MPI_TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    EL_MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, rank_p));
    EL_MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, size_p));
    EL_MPI_TRY(MPI_Get_library_version(text, &length));
    snprintf(library, bytes, "%.*s", (int)strcspn(text, ",\n"), text);
    return look_at_cores(&calls.patience);
}

void el_mpi_stop(void)
{
    MPI_Finalize();
}
