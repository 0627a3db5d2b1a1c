/* The thread, its queue, and the way it waits. The state is global because MPI's is: one world a process. */
#include "runtime/comm/mpi/progress.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/flag.h"

/* Measured with two ranks on two cores, each also computing: sleeping earlier lengthens all-reduces, polling longer
 * lengthens the steps they overlap with. An MPI_Test that found nothing takes less than WORKED_NS. */
enum { POLL_NS = 30000, NAP_NS = 20000, WORKED_NS = 1500, LAST_CHANCE_NS = 100000000 };

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t work, ended;
    struct el_mpi_job *first, *last;
    bool stopping, used;
    pthread_t thread;
    _Atomic int abort_status; /* 0: no; else status + 1 */
} progress = {.mutex = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

enum el_status el_mpi_check(int code, const char *call)
{
    if (code == MPI_SUCCESS) return EL_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0, name = (int)strcspn(call, "(");
    MPI_Error_string(code, text, &length);
    return el_fail(EL_ERR_PEER, "%.*s: %.300s", name, call, text);
}

static void abort_if_asked(void)
{
    int status = atomic_load(&progress.abort_status);
    if (status) MPI_Abort(MPI_COMM_WORLD, status - 1);
}

void el_mpi_submit(struct el_mpi_job *job)
{
    job->next = NULL;
    job->done = false;
    pthread_mutex_lock(&progress.mutex);
    if (progress.last)
        progress.last->next = job;
    else
        progress.first = job;
    progress.last = job;
    pthread_cond_signal(&progress.work);
    pthread_mutex_unlock(&progress.mutex);
}

enum el_status el_mpi_do(enum el_status (*run)(void *context), void *context)
{
    struct el_mpi_job job = {.run = run, .context = context};
    el_mpi_submit(&job);
    pthread_mutex_lock(&progress.mutex);
    while (!job.done) pthread_cond_wait(&progress.ended, &progress.mutex);
    pthread_mutex_unlock(&progress.mutex);
    return job.outcome.status == EL_OK ? EL_OK : el_error_give(&job.outcome);
}

void el_mpi_abort(int exit_status)
{
    pthread_mutex_lock(&progress.mutex);
    atomic_store(&progress.abort_status, exit_status + 1);
    pthread_cond_signal(&progress.work);
    pthread_mutex_unlock(&progress.mutex);
    sleep(5); /* the whole job is ended meanwhile, this process with it */
    _exit(exit_status ? exit_status : 1);
}

/* The next job, or NULL when the thread is to end. */
static struct el_mpi_job *next_job(void)
{
    pthread_mutex_lock(&progress.mutex);
    while (!progress.first && !progress.stopping && !atomic_load(&progress.abort_status))
        pthread_cond_wait(&progress.work, &progress.mutex);
    struct el_mpi_job *job = progress.first;
    if (job) progress.first = job->next;
    if (!progress.first) progress.last = NULL;
    pthread_mutex_unlock(&progress.mutex);
    abort_if_asked();
    return job;
}

/* ---- waiting ---- */

/* An alarm is there, or has just come from another rank. */
static bool is_alarmed(struct el_mpi_alarm *alarm)
{
    int arrived = 0;
    if (!alarm) return false;
    if (alarm->message != MPI_REQUEST_NULL) MPI_Test(&alarm->message, &arrived, MPI_STATUS_IGNORE);
    if (arrived) atomic_store(&alarm->raised, 1);
    return atomic_load(&alarm->raised);
}

/* Receives that nothing has matched are taken back; those under way, and sends, get the time to end: their memory may
 * go when we return. A send that nobody took does not look at its memory any more: nobody will ask for it. */
static enum el_status give_up(MPI_Request *requests, int n)
{
    int64_t deadline_ns = el_clock_ns() + LAST_CHANCE_NS;
    for (int i = 0; i < n; i++)
        if (requests[i] != MPI_REQUEST_NULL) MPI_Cancel(&requests[i]);
    for (int done = 0; !done && el_clock_ns() < deadline_ns; sched_yield())
        MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE);
    for (int i = 0; i < n; i++)
        if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
    return el_fail(EL_ERR_PEER, "mpi communicator: a rank failed");
}

static void nap(void)
{
    struct timespec t = {.tv_nsec = NAP_NS};
    nanosleep(&t, NULL);
}

enum el_status el_mpi_wait(MPI_Request *requests, int n, struct el_mpi_alarm *alarm)
{
    int done = 0;
    EL_MPI_TRY(MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE));
    for (int64_t moved_ns = el_clock_ns(); !done;) {
        int64_t begin_ns = el_clock_ns();
        if (begin_ns - moved_ns > POLL_NS) {
            if (is_alarmed(alarm)) return give_up(requests, n);
            abort_if_asked();
            nap();
        } else {
            sched_yield();
        }
        begin_ns = el_clock_ns();
        EL_MPI_TRY(MPI_Testall(n, requests, &done, MPI_STATUSES_IGNORE));
        int64_t end_ns = el_clock_ns();
        if (end_ns - begin_ns > WORKED_NS) moved_ns = end_ns;
    }
    return EL_OK;
}

/* ---- the thread ---- */

struct birth {
    int rank, size;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    struct el_error outcome;
    struct el_flag done;
};

static enum el_status begin(struct birth *birth)
{
    int provided, length;
    EL_MPI_TRY(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided));
    if (provided < MPI_THREAD_FUNNELED)
        return el_fail(EL_ERR_ABSENT, "MPI: this library was built without threads (MPI_THREAD_SINGLE); "
                                      "it must support MPI_THREAD_FUNNELED at least");
    EL_MPI_TRY(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    EL_MPI_TRY(MPI_Comm_rank(MPI_COMM_WORLD, &birth->rank));
    EL_MPI_TRY(MPI_Comm_size(MPI_COMM_WORLD, &birth->size));
    EL_MPI_TRY(MPI_Get_library_version(birth->library, &length));
    return EL_OK;
}

static void *live(void *context)
{
    struct birth *birth = context;
    prctl(PR_SET_NAME, "el-mpi");
    prctl(PR_SET_TIMERSLACK, 1000); /* naps of microseconds, not of the usual 50 more */
    enum el_status status = begin(birth);
    el_error_take(status, &birth->outcome);
    el_flag_raise(&birth->done, 1);
    for (struct el_mpi_job *job; status == EL_OK && (job = next_job());) {
        el_error_take(job->run(job->context), &job->outcome);
        pthread_mutex_lock(&progress.mutex);
        job->done = true;
        pthread_cond_broadcast(&progress.ended);
        pthread_mutex_unlock(&progress.mutex);
    }
    if (status == EL_OK) MPI_Finalize();
    return NULL;
}

enum el_status el_mpi_start(int *rank_p, int *size_p, char *library, size_t bytes)
{
    static struct birth birth; /* outlives this call as long as the thread looks at it */
    if (progress.used) return el_fail(EL_ERR_INVALID, "bootstrap mpi: can be opened once a process");
    progress.used = true;
    if (pthread_create(&progress.thread, NULL, live, &birth) != 0)
        return el_fail(EL_ERR_HOST_MEMORY, "bootstrap mpi: no thread");
    el_flag_wait(&birth.done, 1, -1);
    if (birth.outcome.status != EL_OK) {
        pthread_join(progress.thread, NULL);
        return el_error_give(&birth.outcome);
    }
    *rank_p = birth.rank;
    *size_p = birth.size;
    snprintf(library, bytes, "%.*s", (int)strcspn(birth.library, ",\n"), birth.library);
    return EL_OK;
}

void el_mpi_stop(void)
{
    pthread_mutex_lock(&progress.mutex);
    progress.stopping = true;
    pthread_cond_signal(&progress.work);
    pthread_mutex_unlock(&progress.mutex);
    pthread_join(progress.thread, NULL);
}
