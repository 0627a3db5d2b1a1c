/* The host's monotonic clock, in nanoseconds; the same for all processes of a host. Cost: about 20 ns. */
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline int64_t el_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The calling thread's CPU time. Cost: about 400 ns. */
static inline int64_t el_clock_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Signals do not shorten it. */
static inline void el_clock_sleep_until(int64_t until_ns)
{
    struct timespec t = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) continue;
}

/* For waits by el_clock_ns(), which a change of the date does not affect. */
static inline void el_clock_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &clock);
    pthread_condattr_destroy(&clock);
}

/* false: the time has passed. May return early. */
static inline bool el_clock_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns)
{
    const struct timespec t = {.tv_sec = until_ns / 1000000000, .tv_nsec = until_ns % 1000000000};
    return pthread_cond_timedwait(cond, mutex, &t) == 0;
}
