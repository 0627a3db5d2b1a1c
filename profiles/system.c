/* The system's counters from /proc/stat and /sys by plain files. Which CPUs matter, and what the figures mean for a
 * trial, is for others to say. */
#include "profiles/system.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "runtime/base/clock.h"
#include "runtime/base/files.h"

enum { PATH_BYTES = 2048, LINE_BYTES = 512 };

/* A number in a file of one line below root; -1 if there is none. */
static int64_t read_number(const char *root, int cpu, const char *name)
{
    char path[PATH_BYTES], line[64];
    int64_t value;
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/%s", root, cpu, name);
    el_file_line(path, "", line, sizeof line);
    return sscanf(line, "%" SCNd64, &value) == 1 && value >= 0 ? value : -1;
}

/* "cpu3 user nice system idle iowait irq softirq steal ...": guests' time is in user's already. */
static void take_line(const char *line, struct el_system_reading *reading)
{
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal = 0;
    int cpu;
    int n = sscanf(line,
                   "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                   &cpu, &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal);
    if (n < 8 || cpu < 0 || cpu >= EL_SYSTEM_CPUS_MAX) return;
    reading->cpus[cpu] = (struct el_system_ticks){
        .present = true, .busy = user + nice + system + irq + softirq, .idle = idle + iowait, .steal = steal};
}

/* The lines of the CPUs stand first; the one of interrupts after them is long. */
static void read_ticks(const char *root, struct el_system_reading *reading)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file) && !strncmp(line, "cpu", 3)) take_line(line, reading);
    if (file) fclose(file);
}

static double own_cpu_s(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) return NAN;
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void read_frequency(const char *root, int cpu, struct el_system_reading *reading)
{
    int64_t khz = read_number(root, cpu, "cpufreq/scaling_cur_freq");
    if (khz <= 0) return;
    reading->frequency_min_hz = fmin(reading->frequency_min_hz, 1e3 * (double)khz); /* fmin passes over a NAN */
    reading->frequency_max_hz = fmax(reading->frequency_max_hz, 1e3 * (double)khz);
}

static void read_throttling(const char *root, int cpu, struct el_system_reading *reading)
{
    static const char *const names[] = {"thermal_throttle/core_throttle_count",
                                        "thermal_throttle/package_throttle_count"};
    for (int i = 0; i < 2; i++) {
        int64_t count = read_number(root, cpu, names[i]);
        if (count < 0) continue;
        reading->throttle_count = (reading->throttle_count < 0 ? 0 : reading->throttle_count) + count;
    }
}

void el_system_read(const char *root, const int *cpus, int n_cpus, struct el_system_reading *reading_p)
{
    memset(reading_p, 0, sizeof *reading_p);
    reading_p->frequency_min_hz = reading_p->frequency_max_hz = NAN;
    reading_p->throttle_count = -1;
    for (int i = 0; i < n_cpus; i++) {
        read_frequency(root, cpus[i], reading_p);
        read_throttling(root, cpus[i], reading_p);
    }
    read_ticks(root, reading_p);
    el_system_read_threads(root, reading_p);
    reading_p->own_cpu_s = own_cpu_s();
    reading_p->clock_ns = el_clock_ns();
}

/* A counter may go back a little (iowait does): that is nothing. */
static double grown(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) : 0;
}

/* Returns whether the CPU's shares are known. */
static bool compare_cpu(const struct el_system_ticks *begin, const struct el_system_ticks *end, double *busy_pct,
                        double *steal_pct)
{
    if (!begin->present || !end->present) return false;
    double busy = grown(begin->busy, end->busy), steal = grown(begin->steal, end->steal);
    double all = busy + steal + grown(begin->idle, end->idle);
    if (all <= 0) return false;
    *busy_pct = 100 * busy / all;
    *steal_pct = 100 * steal / all;
    return true;
}

void el_system_unknown(const char *reason, struct el_system_figures *figures_p)
{
    memset(figures_p, 0, sizeof *figures_p);
    figures_p->window_s = figures_p->own_cpu_s = figures_p->waited_pct = NAN;
    figures_p->frequency_begin.min_hz = figures_p->frequency_begin.max_hz = NAN;
    figures_p->frequency_end = figures_p->frequency_begin;
    figures_p->throttled = -1;
    for (int c = 0; c < EL_SYSTEM_CPUS_MAX; c++)
        figures_p->busy_pct[c] = figures_p->steal_pct[c] = figures_p->ran_pct[c] = NAN;
    snprintf(figures_p->reason, sizeof figures_p->reason, "%s", reason);
}

void el_system_compare(const struct el_system_reading *begin, const struct el_system_reading *end,
                       struct el_system_figures *figures_p)
{
    struct el_system_figures *f = figures_p;
    bool any = false;
    el_system_unknown("", f);
    f->window_s = 1e-9 * (double)(end->clock_ns - begin->clock_ns);
    f->own_cpu_s = end->own_cpu_s - begin->own_cpu_s;
    f->frequency_begin.min_hz = begin->frequency_min_hz;
    f->frequency_begin.max_hz = begin->frequency_max_hz;
    f->frequency_end.min_hz = end->frequency_min_hz;
    f->frequency_end.max_hz = end->frequency_max_hz;
    if (begin->throttle_count >= 0 && end->throttle_count >= begin->throttle_count)
        f->throttled = end->throttle_count - begin->throttle_count;
    el_system_compare_threads(begin, end, f);
    if (f->window_s < EL_SYSTEM_WINDOW_MIN_S)
        snprintf(f->reason, sizeof f->reason, "window of %.2g s: under %.1f s the system's 10 ms ticks say too little",
                 f->window_s, EL_SYSTEM_WINDOW_MIN_S);
    for (int c = 0; c < EL_SYSTEM_CPUS_MAX; c++)
        any |= compare_cpu(&begin->cpus[c], &end->cpus[c], &f->busy_pct[c], &f->steal_pct[c]);
    if (!any && f->window_s >= EL_SYSTEM_WINDOW_MIN_S) /* a shorter window may hold no tick */
        snprintf(f->reason, sizeof f->reason, "/proc/stat does not count the time of CPUs here");
}

static double mean_of(const double *share_pct, const int *cpus, int n_cpus)
{
    double sum = n_cpus > 0 ? 0 : NAN;
    for (int i = 0; i < n_cpus; i++) sum += cpus[i] >= 0 && cpus[i] < EL_SYSTEM_CPUS_MAX ? share_pct[cpus[i]] : NAN;
    return sum / n_cpus;
}

double el_system_busy_pct(const struct el_system_figures *figures, const int *cpus, int n_cpus)
{
    return figures->window_s < EL_SYSTEM_WINDOW_MIN_S ? NAN : mean_of(figures->busy_pct, cpus, n_cpus);
}

double el_system_ran_pct(const struct el_system_figures *figures, const int *cpus, int n_cpus)
{
    return mean_of(figures->ran_pct, cpus, n_cpus);
}

void el_system_core(const char *root, int cpu, struct el_system_core *core_p)
{
    int64_t khz = read_number(root, cpu, "cpufreq/cpuinfo_max_freq");
    core_p->capacity = read_number(root, cpu, "cpu_capacity");
    core_p->max_hz = khz > 0 ? 1e3 * (double)khz : NAN;
}

double el_system_waited_pct(const struct el_system_reading *begin)
{
    struct el_system_reading *now = malloc(sizeof *now);
    struct el_system_figures *figures = malloc(sizeof *figures);
    if (now) el_system_read("", NULL, 0, now);
    if (now && figures) el_system_compare(begin, now, figures);
    double pct = now && figures ? figures->waited_pct : NAN;
    free(figures);
    free(now);
    return pct;
}
