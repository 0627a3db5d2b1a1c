/* The thread, and the lock by which either the job's thread goes on or the deadline ends the process, never both. */
#include "bench/job/deadline.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "runtime/base/clock.h"

struct el_deadline {
    pthread_t thread;
    pthread_mutex_t mutex; /* kept for good by the thread once the time has passed */
    pthread_cond_t news;
    int64_t at_ns;
    el_deadline_expired expired;
    void *context;
    bool stopped;
};

static void *wait_for_expiry(void *context)
{
    struct el_deadline *deadline = context;
    pthread_mutex_lock(&deadline->mutex);
    while (!deadline->stopped && el_clock_ns() < deadline->at_ns) {
        const struct timespec until = {.tv_sec = deadline->at_ns / 1000000000, .tv_nsec = deadline->at_ns % 1000000000};
        pthread_cond_timedwait(&deadline->news, &deadline->mutex, &until);
    }
    if (!deadline->stopped) deadline->expired(deadline->context);
    pthread_mutex_unlock(&deadline->mutex);
    return NULL;
}

static int64_t after(double seconds)
{
    return el_clock_ns() + (int64_t)(seconds * 1e9);
}

enum el_status el_deadline_start(double seconds, el_deadline_expired expired, void *context,
                                 struct el_deadline **deadline_p)
{
    struct el_deadline *deadline = malloc(sizeof *deadline);
    pthread_condattr_t clock;
    if (!deadline) return el_fail_errno("deadline");
    *deadline = (struct el_deadline){.at_ns = after(seconds), .expired = expired, .context = context};
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&deadline->news, &clock);
    pthread_condattr_destroy(&clock);
    pthread_mutex_init(&deadline->mutex, NULL);
    if (pthread_create(&deadline->thread, NULL, wait_for_expiry, deadline) != 0) {
        free(deadline);
        return el_fail(EL_ERR_HOST_MEMORY, "no thread for --timeout");
    }
    *deadline_p = deadline;
    return EL_OK;
}

void el_deadline_set(struct el_deadline *deadline, double seconds, el_deadline_expired expired, void *context)
{
    pthread_mutex_lock(&deadline->mutex);
    deadline->at_ns = after(seconds);
    deadline->expired = expired;
    deadline->context = context;
    pthread_cond_signal(&deadline->news);
    pthread_mutex_unlock(&deadline->mutex);
}

void el_deadline_stop(struct el_deadline *deadline)
{
    if (!deadline) return;
    pthread_mutex_lock(&deadline->mutex);
    deadline->stopped = true;
    pthread_cond_signal(&deadline->news);
    pthread_mutex_unlock(&deadline->mutex);
    pthread_join(deadline->thread, NULL);
    pthread_cond_destroy(&deadline->news);
    pthread_mutex_destroy(&deadline->mutex);
    free(deadline);
}
