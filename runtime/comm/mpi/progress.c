/* The thread, its queue, and the way it waits. The state is global because MPI's is: one world a process. */
#include "runtime/comm/mpi/progress.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/flag.h"

/* Measured with two ranks on two cores, a compute thread on each, 10.7 MB: 6.4 ms (and the compute thread keeps half of
 * its core, a fair share); with POLL_NS 5 us 11 ms, with 100 us between 8 and 24. Never sched_yield: it gives a whole
 * time slice to the compute thread each time, 500 ms (so the launcher turns mpi_yield_when_idle off, too). An MPI_Test
 * that found nothing works for less than WORKED_NS. */
enum { POLL_NS = 20000, NAP_NS = 20000, WORKED_NS = 3000 };

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

static void nap(void)
{
    struct timespec t = {.tv_nsec = NAP_NS};
    nanosleep(&t, NULL);
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

enum el_status el_mpi_wait(MPI_Request *a, MPI_Request *b, struct el_mpi_alarm *alarm)
{
    bool done;
    EL_TRY(test(a, b, &done));
    for (int64_t moved_ns = el_clock_ns(); !done;) {
        if (el_clock_ns() - moved_ns > POLL_NS) {
            if (el_mpi_alarm_check(alarm)) return el_fail(EL_ERR_PEER, "mpi communicator: a rank failed");
            abort_if_asked();
            nap();
        }
        int64_t begin_ns = worked_ns();
        EL_TRY(test(a, b, &done));
        if (worked_ns() - begin_ns > WORKED_NS) moved_ns = el_clock_ns();
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
