/* System counters over a window: two readings, and their difference.
 *
 *     el_system_read("", cpus, n, &begin);         "": this machine; tests give a recorded root
 *     ... steps ...
 *     el_system_read("", cpus, n, &end);
 *     el_system_compare(&begin, &end, &figures);
 *
 * The kernel counts CPU time in ticks of 10 ms, of all programs, and in nanoseconds how long each thread of this
 * process ran, and waited for a core. Cost: about 0.1 ms per reading with two cores and ten threads. Units: in the
 * names; shares in per cent of a CPU or of the window. Errors: none; unreadable values are NAN (or -1), with `reason`.
 * Ownership: in the structs (a reading has some 50 KB). Threads: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EL_SYSTEM_CPUS_MAX = 1024, EL_SYSTEM_THREADS_MAX = 512 };

/* Shorter windows have fewer than 50 ticks per CPU: too few alone. */
#define EL_SYSTEM_WINDOW_MIN_S 0.5

/* Since boot, in ticks. `present`: the system lists this CPU. */
struct el_system_ticks {
    bool present;
    uint64_t busy, idle, steal; /* user+nice+system+irq+softirq; idle+iowait; taken by the hypervisor */
};

/* A thread of this process, since its start. */
struct el_system_thread {
    long id;
    int cpu; /* last one */
    uint64_t ran_ns, waited_ns;
};

struct el_system_reading {
    int64_t clock_ns;
    struct el_system_thread threads[EL_SYSTEM_THREADS_MAX];
    int n_threads;    /* -1: not readable, or too many */
    double own_cpu_s; /* of this process, all threads */
    struct el_system_ticks cpus[EL_SYSTEM_CPUS_MAX];
    double frequency_min_hz, frequency_max_hz; /* of the given CPUs; NAN: not readable */
    int64_t throttle_count;                    /* of the given CPUs; -1: not readable */
};

/* `cpus`: the devices', for frequency and throttling. */
void el_system_read(const char *root, const int *cpus, int n_cpus, struct el_system_reading *reading_p);

struct el_system_figures {
    double window_s, own_cpu_s;
    double busy_pct[EL_SYSTEM_CPUS_MAX], steal_pct[EL_SYSTEM_CPUS_MAX]; /* of the window; NAN: unknown */
    /* The longest that one thread was ready while its core ran neither it nor another thread of this process, in per
     * cent of the window: taken by other programs. A lower bound, for any window; NAN: unknown. */
    double waited_pct;
    double ran_pct[EL_SYSTEM_CPUS_MAX]; /* this process's CPU time, by each thread's last CPU; or NAN */
    struct {
        double min_hz, max_hz;
    } frequency_begin, frequency_end;
    int64_t throttled; /* growth; -1: not readable */
    char reason[96];   /* why busy and steal are NAN on all CPUs, or too uncertain alone; or "" */
};
void el_system_compare(const struct el_system_reading *begin, const struct el_system_reading *end,
                       struct el_system_figures *figures_p);
/* waited_pct from `begin` until now. */
double el_system_waited_pct(const struct el_system_reading *begin);
/* All unknown, with this reason. */
void el_system_unknown(const char *reason, struct el_system_figures *figures_p);

/* Mean busy share of these CPUs, per cent; NAN if one is unknown, or the window too short. */
double el_system_busy_pct(const struct el_system_figures *figures, const int *cpus, int n_cpus);
/* The same for this process's own threads. */
double el_system_ran_pct(const struct el_system_figures *figures, const int *cpus, int n_cpus);

/* A CPU's capability by the kernel. */
struct el_system_core {
    int64_t capacity; /* 1024: the machine's biggest; -1: not readable */
    double max_hz;    /* NAN: not readable */
};
void el_system_core(const char *root, int cpu, struct el_system_core *core_p);
