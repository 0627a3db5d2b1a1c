#include "profiles/core_rate.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "runtime/base/clock.h"

enum { WARM_UP = 10, CHUNKS = 25, MIDDLE = 12, MULTIPLICATIONS = 5000 }; /* 12 us per chunk */

struct core {
    pthread_t thread;
    int cpu;
    atomic_int *wanted; /* threads still to come before all begin */
    bool bound;
    double ns; /* per chunk */
};

/* Eight chains, more than a multiplication's latency in cycles, keep the multiplier busy. Thread time excludes threads
 * that share the core (MPI polls). */
static int64_t chunk_ns(void)
{
    uint64_t a = 3, b = 5, c = 7, d = 9, e = 11, f = 13, g = 15, h = 17;
    const int64_t began_ns = el_clock_thread_ns();
    for (int i = 0; i < MULTIPLICATIONS; i++) {
        a *= a, b *= b, c *= c, d *= d, e *= e, f *= f, g *= g, h *= h;
        __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f), "+r"(g), "+r"(h));
    }
    return el_clock_thread_ns() - began_ns;
}

static int by_length(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void *compute(void *argument)
{
    struct core *core = argument;
    int64_t ns[CHUNKS];
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core->cpu, &set);
    core->bound = pthread_setaffinity_np(pthread_self(), sizeof set, &set) == 0;
    atomic_fetch_sub(core->wanted, 1);
    while (atomic_load(core->wanted) > 0) sched_yield();
    for (int i = 0; i < WARM_UP; i++) chunk_ns();
    for (int i = 0; i < CHUNKS; i++) ns[i] = chunk_ns();
    qsort(ns, CHUNKS, sizeof *ns, by_length);
    core->ns = (double)ns[MIDDLE];
    return NULL;
}

static bool run(struct core *cores, int n)
{
    atomic_int wanted = n;
    int started = 0;
    bool bound = true;
    for (; started < n; started++) {
        cores[started].wanted = &wanted;
        if (pthread_create(&cores[started].thread, NULL, compute, &cores[started]) != 0) break;
    }
    if (started < n) atomic_store(&wanted, 0);
    for (int i = 0; i < started; i++) {
        pthread_join(cores[i].thread, NULL);
        bound &= cores[i].bound;
    }
    return bound && started == n;
}

double el_core_rate_pct(const int *cpus, int n)
{
    double least = NAN, *alone = calloc((size_t)n + 1, sizeof *alone);
    struct core *cores = calloc((size_t)n + 1, sizeof *cores);
    bool ran = n > 1 && alone && cores;
    for (int i = 0; i < n && ran; i++) {
        cores[i].cpu = cpus[i];
        ran = run(&cores[i], 1);
        alone[i] = cores[i].ns;
    }
    ran = ran && run(cores, n);
    for (int i = 0; i < n && ran; i++) least = fmin(least, 100 * alone[i] / cores[i].ns);
    free(alone);
    free(cores);
    return least;
}
