/* One thread, which looks whether the other processes are there. */
#include "runtime/comm/mpi/module/lookout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "runtime/base/clock.h"

/* Together under 5 s, with what the launcher then takes. */
enum { LOOK_EVERY_MS = 200, MPIRUN_MS = 1500, LAST_CHANCE_MS = 2000 };

static struct {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool ends; /* under the lock */
    struct el_presence *presence;
    char reason[128];
    _Atomic bool lost;
} watch;

/* Whether the watch ends before so much time has passed. */
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
    return el_mpi_watch_lost();
}

bool el_mpi_watch_lost(void)
{
    return atomic_load(&watch.lost);
}

enum el_status el_mpi_watch_check(void)
{
    if (!el_mpi_watch_lost()) return EL_OK;
    return el_fail(EL_ERR_PEER, "mpi: %s", watch.reason);
}
