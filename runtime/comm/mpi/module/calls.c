/* Turns, and the way a thread waits. The state is global because MPI's is: one world a process. */
#include "runtime/comm/mpi/module/calls.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/mpi/module/lookout.h"

/* How long a wait polls before it naps between polls: as long as a nap costs that somebody needs to be woken from.
 * Where every rank has a core (own), 256 KiB take 83 us so, 230 with the times for cores that ranks share; where four
 * ranks share two (shared), a step of 62 small all-reduces takes 33 ms, 57 with the longer times. Never sched_yield: it
 * gives a whole time slice to the compute thread, for each poll (so the launcher turns mpi_yield_when_idle off, too).
 * An MPI_Test that found nothing works for less than WORKED_NS. In the first spin_ns nothing is asked but MPI: a small
 * message is there before a look at the thread's clock would be over. */
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

/* ---- waiting ---- */

void el_mpi_nap(void)
{
    static _Thread_local bool fine; /* naps of microseconds, not of the usual 50 more */
    const struct timespec nap = {.tv_nsec = NAP_NS};
    if (!fine) fine = prctl(PR_SET_TIMERSLACK, SLACK_NS) == 0;
    el_mpi_leave();
    nanosleep(&nap, NULL);
    el_mpi_enter();
}

/* This thread's own time: the library may give the core away inside MPI_Test, which is not work. Cost: 0.4 us. */
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

/* ---- begin and end ---- */

/* By what the ranks of this host may use together. */
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
    if (calls.used) return el_fail(EL_ERR_INVALID, "bootstrap mpi: can be opened once a process");
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
