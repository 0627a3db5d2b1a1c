/* What the system says of a stretch of time: two readings of its counters, and the figures between them.
 *
 *     el_system_read("", cpus, n, &begin);         "" is this machine; tests give the root of a recorded one
 *     ... steps ...
 *     el_system_read("", cpus, n, &end);
 *     el_system_compare(&begin, &end, &figures);
 *
 * Read once at each end, with no thread that samples in between. The kernel counts the CPUs' time in ticks of 10 ms,
 * for everybody: what others did is in it too. In nanoseconds it counts how long each thread of this process ran, and
 * how long it was ready to run and waited for a core. Cost: about 0.1 ms a reading with two cores and ten threads.
 * Units: in the names; shares in per cent of a CPU or of the window. Errors: none; what cannot be read is NAN (or -1),
 * with the reason in `reason`. Ownership: all is in the structs (a reading has some 50 KB). Threads: any.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EL_SYSTEM_CPUS_MAX = 1024, EL_SYSTEM_THREADS_MAX = 512 };

/* Shorter windows have fewer than 50 ticks a CPU: by themselves they say too little. */
#define EL_SYSTEM_WINDOW_MIN_S 0.5

/* Since the machine's start, in ticks. `present`: the system has a line for this CPU. */
struct el_system_ticks {
    bool present;
    uint64_t busy, idle, steal; /* user+nice+system+irq+softirq; idle+iowait; taken by the hypervisor */
};

/* A thread of this process, since its start. */
struct el_system_thread {
    long id;
    int cpu; /* that it ran on last */
    uint64_t ran_ns, waited_ns;
};

struct el_system_reading {
    int64_t clock_ns;
    struct el_system_thread threads[EL_SYSTEM_THREADS_MAX];
    int n_threads;    /* -1: not readable, or too many */
    double own_cpu_s; /* of this process, all its threads */
    struct el_system_ticks cpus[EL_SYSTEM_CPUS_MAX];
    double frequency_min_hz, frequency_max_hz; /* of the CPUs asked for; NAN: not readable */
    int64_t throttle_count;                    /* of the CPUs asked for; -1: not readable */
};

/* `cpus`: those whose frequency and throttling count, the devices' own. */
void el_system_read(const char *root, const int *cpus, int n_cpus, struct el_system_reading *reading_p);

struct el_system_figures {
    double window_s, own_cpu_s;
    double busy_pct[EL_SYSTEM_CPUS_MAX], steal_pct[EL_SYSTEM_CPUS_MAX]; /* of the window; NAN: not known */
    /* The longest that one thread was ready to run while its core was neither its own nor another's of this process, in
     * per cent of the window: what other programs took of it. A lower bound, in windows of any length; NAN: not known.
     */
    double waited_pct;
    double
        ran_pct[EL_SYSTEM_CPUS_MAX]; /* CPU time of this process's threads, by the CPU that each ran on last; or NAN */
    struct {
        double min_hz, max_hz;
    } frequency_begin, frequency_end;
    int64_t throttled; /* how often more; -1: not readable */
    char reason[96];   /* why busy and steal are NAN on all CPUs, or by themselves say too little; "": neither */
};
void el_system_compare(const struct el_system_reading *begin, const struct el_system_reading *end,
                       struct el_system_figures *figures_p);
/* waited_pct alone, from `begin` until now. */
double el_system_waited_pct(const struct el_system_reading *begin);
/* No figures at all, for this reason. */
void el_system_unknown(const char *reason, struct el_system_figures *figures_p);

/* The mean busy share of some CPUs, in per cent; NAN unless it is known of all, and where the window says too little.
 */
double el_system_busy_pct(const struct el_system_figures *figures, const int *cpus, int n_cpus);
/* The same of the time that this process's own threads ran there. */
double el_system_ran_pct(const struct el_system_figures *figures, const int *cpus, int n_cpus);

/* How much a CPU can do, as the kernel sees it. */
struct el_system_core {
    int64_t capacity; /* 1024: the machine's biggest; -1: not readable */
    double max_hz;    /* NAN: not readable */
};
void el_system_core(const char *root, int cpu, struct el_system_core *core_p);
