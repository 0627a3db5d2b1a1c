/* Ends a rank whose thread is stuck in a CUDA call: a launch may wait for the card (a full queue, a kernel that is
 * loaded), and the card for a peer. Nothing can end the call but the end of the process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/job/worker.h"
#include "bench/trial/trial.h"
#include "runtime/base/clock.h"

enum { LOOK_NS = 200000000, PATIENCE_S = 60 };

struct el_job_stuck {
    struct el_device *const *devices;
    int n;
    struct el_bootstrap *bootstrap;
    double patience_s;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    bool over;
};

static void end_if_stuck(const struct el_job_stuck *stuck, const struct el_device *device)
{
    const char *label;
    bool first;
    int64_t since_ns = el_device_issuing(device, &label, &first);
    double waited_s = 1e-9 * (double)(el_clock_ns() - since_ns), patience_s = stuck->patience_s;
    if (first && patience_s < PATIENCE_S) patience_s = PATIENCE_S;
    if (since_ns == 0 || waited_s <= patience_s) return;
    fprintf(stderr,
            "evenload: rank %d: %s: the call that queues '%.100s' did not return within %g s (--comm-timeout): the "
            "card is stuck, or waits for another rank that is\n",
            el_bootstrap_rank(stuck->bootstrap), el_device_name(device), label, patience_s);
    _exit(EL_WORKER_STUCK); /* the launcher ends the others */
}

static void *watch(void *context)
{
    struct el_job_stuck *stuck = context;
    pthread_mutex_lock(&stuck->lock);
    while (!stuck->over) {
        el_clock_cond_wait(&stuck->news, &stuck->lock, el_clock_ns() + LOOK_NS);
        for (int i = 0; i < stuck->n && !stuck->over; i++) end_if_stuck(stuck, stuck->devices[i]);
    }
    pthread_mutex_unlock(&stuck->lock);
    return NULL;
}

enum el_status el_job_watch_stuck(const struct el_job *job, struct el_job_devices *open)
{
    double given_s = job->trial->train.comm_timeout_s;
    if (open->n == 0 || !el_device_is_asynchronous(open->devices[0])) return EL_OK;
    struct el_job_stuck *stuck = calloc(1, sizeof *stuck);
    if (!stuck) return el_fail(EL_ERR_HOST_MEMORY, "no memory to look after CUDA's calls");
    *stuck = (struct el_job_stuck){.devices = open->devices,
                                   .n = open->n,
                                   .bootstrap = job->bootstrap,
                                   .patience_s = given_s > 0 ? given_s : PATIENCE_S};
    pthread_mutex_init(&stuck->lock, NULL);
    el_clock_cond_init(&stuck->news);
    if (pthread_create(&stuck->thread, NULL, watch, stuck) != 0) {
        free(stuck);
        return el_fail(EL_ERR_HOST_MEMORY, "no thread to look after CUDA's calls");
    }
    open->stuck = stuck;
    return EL_OK;
}

void el_job_watch_end(struct el_job_stuck *stuck)
{
    if (!stuck) return;
    pthread_mutex_lock(&stuck->lock);
    stuck->over = true;
    pthread_cond_broadcast(&stuck->news);
    pthread_mutex_unlock(&stuck->lock);
    pthread_join(stuck->thread, NULL);
    pthread_cond_destroy(&stuck->news);
    pthread_mutex_destroy(&stuck->lock);
    free(stuck);
}
