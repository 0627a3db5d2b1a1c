/* System counters from /proc/stat and /sys. */
#include "profiles/system.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/base/clock.h"
#include "runtime/base/files.h"

enum { PATH_BYTES = 2048, LINE_BYTES = 512 };

static int64_t read_number(const char *root, int cpu, const char *name)
{
    char path[PATH_BYTES], line[64];
    int64_t value;
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/%s", root, cpu, name);
    el_file_line(path, "", line, sizeof line);
    return sscanf(line, "%" SCNd64, &value) == 1 && value >= 0 ? value : -1;
}

/* "cpu3 user nice system idle iowait irq softirq steal ...": user includes guests. CPU lines come before the long one
 * of interrupts. */
static void read_ticks(const char *root, struct el_system_reading *reading)
{
    char path[PATH_BYTES], line[LINE_BYTES];
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
    int cpu;
    snprintf(path, sizeof path, "%s/proc/stat", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file) && !strncmp(line, "cpu", 3)) {
        steal = 0;
        int n = sscanf(
            line, "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
            &cpu, &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal);
        if (n < 8 || cpu < 0 || cpu >= EL_SYSTEM_CPUS_MAX) continue;
        reading->cpus[cpu] = (struct el_system_ticks){
            .present = true, .busy = user + nice + system + irq + softirq, .idle = idle + iowait, .steal = steal};
    }
    if (file) fclose(file);
}

static void read_frequency(const char *root, int cpu, struct el_system_reading *reading)
{
    int64_t khz = read_number(root, cpu, "cpufreq/scaling_cur_freq");
    if (khz <= 0) return;
    reading->frequency_min_hz = fmin(reading->frequency_min_hz, 1e3 * (double)khz); /* fmin ignores NAN */
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

/* ---- waits of threads for a core taken by other programs ----  By the scheduler's nanoseconds
 * (/proc/self/task/N/schedstat). A waiting thread waits for another program or for another thread of its process; the
 * latter's run time on that core is subtracted. The kernel's pressure (/proc/pressure/cpu) does not distinguish the
 * two. */

/* A waking thread waits some microseconds even on an idle machine. */
static const double SHORTEST_NS = 50e6;

enum { STAT_BYTES = 1024, CPU_FIELD = 36 }; /* fields after the name, which may contain blanks */

static bool read_thread(const char *root, const char *id, struct el_system_thread *thread)
{
    char path[PATH_BYTES], text[STAT_BYTES];
    snprintf(path, sizeof path, "%s/proc/self/task/%s/schedstat", root, id);
    el_file_line(path, "", text, sizeof text);
    bool read = sscanf(text, "%" SCNu64 " %" SCNu64, &thread->ran_ns, &thread->waited_ns) == 2;
    snprintf(path, sizeof path, "%s/proc/self/task/%s/stat", root, id);
    el_file_line(path, "", text, sizeof text);
    char *at = strrchr(text, ')');
    for (int i = 0; at && i <= CPU_FIELD; i++) at = strchr(at + 1, ' ');
    thread->id = strtol(id, NULL, 10);
    thread->cpu = at ? (int)strtol(at, NULL, 10) : -1;
    return read && thread->cpu >= 0;
}

/* A kernel that does not count writes zeros. */
static void read_threads(const char *root, struct el_system_reading *reading)
{
    char path[PATH_BYTES];
    bool counts = false;
    snprintf(path, sizeof path, "%s/proc/self/task", root);
    DIR *folder = opendir(path);
    reading->n_threads = 0;
    for (struct dirent *entry; folder && reading->n_threads >= 0 && (entry = readdir(folder));) {
        if (entry->d_name[0] == '.') continue;
        if (reading->n_threads == EL_SYSTEM_THREADS_MAX) {
            reading->n_threads = -1;
        } else if (read_thread(root, entry->d_name, &reading->threads[reading->n_threads])) {
            counts |= reading->threads[reading->n_threads].ran_ns > 0;
            reading->n_threads++;
        }
    }
    if (folder) closedir(folder);
    if (!counts) reading->n_threads = -1;
}

/* A thread that began in between has no begin. */
static struct el_system_thread since(const struct el_system_reading *begin, struct el_system_thread thread)
{
    for (int i = 0; i < begin->n_threads; i++) {
        if (begin->threads[i].id != thread.id) continue;
        thread.ran_ns -= begin->threads[i].ran_ns < thread.ran_ns ? begin->threads[i].ran_ns : thread.ran_ns;
        thread.waited_ns -=
            begin->threads[i].waited_ns < thread.waited_ns ? begin->threads[i].waited_ns : thread.waited_ns;
        break;
    }
    return thread;
}

static void compare_threads(const struct el_system_reading *begin, const struct el_system_reading *end,
                            struct el_system_figures *figures)
{
    struct el_system_thread threads[EL_SYSTEM_THREADS_MAX];
    double most_ns = 0, window_ns = (double)(end->clock_ns - begin->clock_ns);
    if (begin->n_threads < 0 || end->n_threads < 0 || !(window_ns >= SHORTEST_NS)) return;
    for (int c = 0; c < EL_SYSTEM_CPUS_MAX; c++) figures->ran_pct[c] = 0;
    for (int i = 0; i < end->n_threads; i++) {
        threads[i] = since(begin, end->threads[i]);
        if (threads[i].cpu < EL_SYSTEM_CPUS_MAX)
            figures->ran_pct[threads[i].cpu] += 100 * (double)threads[i].ran_ns / window_ns;
    }
    for (int i = 0; i < end->n_threads; i++) {
        double waited_ns = (double)threads[i].waited_ns;
        for (int k = 0; k < end->n_threads; k++)
            if (k != i && threads[k].cpu == threads[i].cpu) waited_ns -= (double)threads[k].ran_ns;
        most_ns = fmax(most_ns, waited_ns);
    }
    figures->waited_pct = fmin(100, 100 * most_ns / window_ns);
}

/* ---- readings, and the figures between them ---- */

void el_system_read(const char *root, const int *cpus, int n_cpus, struct el_system_reading *reading_p)
{
    struct timespec own;
    memset(reading_p, 0, sizeof *reading_p);
    reading_p->frequency_min_hz = reading_p->frequency_max_hz = NAN;
    reading_p->throttle_count = -1;
    for (int i = 0; i < n_cpus; i++) {
        read_frequency(root, cpus[i], reading_p);
        read_throttling(root, cpus[i], reading_p);
    }
    read_ticks(root, reading_p);
    read_threads(root, reading_p);
    reading_p->own_cpu_s = NAN;
    if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0)
        reading_p->own_cpu_s = (double)own.tv_sec + 1e-9 * (double)own.tv_nsec;
    reading_p->clock_ns = el_clock_ns();
}

/* A counter may go back a little (iowait). */
static double grown(uint64_t from, uint64_t to)
{
    return to > from ? (double)(to - from) : 0;
}

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
    compare_threads(begin, end, f);
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
