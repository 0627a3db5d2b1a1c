/* Below a root that tests give. Unreadable limits do not limit. */
#include "bench/machine/host.h"

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/base/text.h"
#include "profiles/system.h"
#include "runtime/base/files.h"

/* `key` "": the first line. */
static bool read_after(const char *root, const char *path, const char *key, char *line, size_t bytes)
{
    char whole[EL_PATH_BYTES * 2];
    snprintf(whole, sizeof whole, "%s%s", root, path);
    return el_file_line(whole, key, line, bytes);
}

static bool read_line(const char *root, const char *path, char *line, size_t bytes)
{
    return read_after(root, path, "", line, bytes);
}

static void lower(double *quota, double found)
{
    if (found > 0 && (*quota == 0 || found < *quota)) *quota = found;
}

/* The least cpu.max from the process's group up to the root. */
static double quota_v2(const char *root, char *group)
{
    double quota = 0;
    for (;;) {
        char path[EL_PATH_BYTES + 64], line[128];
        double used, period;
        snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
        if (read_line(root, path, line, sizeof line) && sscanf(line, "%lf %lf", &used, &period) == 2)
            lower(&quota, used / period);
        char *slash = strrchr(group, '/');
        if (!slash) return quota;
        *slash = 0;
    }
}

/* As the container sees it (its group mounted as the root), or by its whole path. */
static double quota_v1(const char *root, const char *group)
{
    const char *const mounts[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
    double quota = 0;
    for (int i = 0; i < 4; i++) {
        char path[EL_PATH_BYTES + 64], used[64], period[64];
        const char *below = i < 2 ? "" : group;
        snprintf(path, sizeof path, "%s%s/cpu.cfs_quota_us", mounts[i % 2], below);
        if (!read_line(root, path, used, sizeof used)) continue;
        snprintf(path, sizeof path, "%s%s/cpu.cfs_period_us", mounts[i % 2], below);
        if (!read_line(root, path, period, sizeof period) || strtod(period, NULL) <= 0) continue;
        lower(&quota, strtod(used, NULL) / strtod(period, NULL));
    }
    return quota;
}

/* "cpuset" is another controller, maybe of another group. */
static bool has_cpu(const char *controllers)
{
    for (const char *at = controllers; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == 3 && !strncmp(at, "cpu", 3)) return true;
    return false;
}

double el_cores_quota(const char *root)
{
    char path[EL_PATH_BYTES], line[EL_PATH_BYTES], group_v1[EL_PATH_BYTES] = "", group_v2[EL_PATH_BYTES] = "";
    double quota = 0;
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file)) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(++controllers, ':') : NULL;
        if (!group) continue;
        *group++ = 0;
        group[strcspn(group, "\n")] = 0;
        if (!strcmp(group, "/")) group = (char *)"";
        if (!*controllers)
            snprintf(group_v2, sizeof group_v2, "%s", group);
        else if (has_cpu(controllers))
            snprintf(group_v1, sizeof group_v1, "%s", group);
    }
    if (file) fclose(file);
    lower(&quota, quota_v2(root, group_v2));
    lower(&quota, quota_v1(root, group_v1));
    return quota;
}

int el_cores_allowed(int *cpus)
{
    cpu_set_t *mask = CPU_ALLOC(EL_ALLOWED_MAX);
    size_t bytes = CPU_ALLOC_SIZE(EL_ALLOWED_MAX);
    int n = 0;
    if (mask && sched_getaffinity(0, bytes, mask) == 0)
        for (int cpu = 0; cpu < EL_ALLOWED_MAX; cpu++)
            if (CPU_ISSET_S((size_t)cpu, bytes, mask)) cpus[n++] = cpu;
    CPU_FREE(mask);
    return n;
}

static void take_cores(const char *root, const int *allowed, struct el_cores *cores)
{
    char path[128], line[256];
    for (int c = 0; c < cores->n_allowed; c++) {
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", allowed[c]);
        int first = read_line(root, path, line, sizeof line) ? (int)strtol(line, NULL, 10) : allowed[c];
        bool known = cores->n == EL_DEVICE_CORES_MAX;
        for (int i = 0; i < cores->n && !known; i++) known = cores->firsts[i] == first;
        if (known) continue;
        cores->firsts[cores->n] = first;
        cores->cpus[cores->n++] = allowed[c];
    }
}

void el_cores_find(const char *root, struct el_cores *cores_p)
{
    struct el_cores cores = {0};
    int allowed[EL_ALLOWED_MAX];
    cores.n_allowed = el_cores_allowed(allowed);
    take_cores(root, allowed, &cores);
    if (cores.n == 0) cores.n = cores.n_allowed = 1;
    cores.quota = el_cores_quota(root);
    int granted = cores.quota > 0 && cores.quota < cores.n ? (int)(cores.quota + 0.001) : cores.n;
    if (granted < 1) granted = 1;
    if (granted < cores.n) cores.n = granted;
    *cores_p = cores;
}

void el_cores_describe(const struct el_cores *cores, char *text, size_t bytes)
{
    snprintf(text, bytes, "%d core%s (", cores->n, cores->n == 1 ? "" : "s");
    for (int i = 0; i < cores->n && strlen(text) + 32 < bytes; i++)
        el_text_append(text, bytes, "%s%d", i ? "," : "", cores->cpus[i]);
    el_text_append(text, bytes, ") of %d logical CPUs allowed", cores->n_allowed);
    if (cores->quota > 0) el_text_append(text, bytes, ", cgroup quota %.2g", cores->quota);
}

bool el_cores_spare(const struct el_cores *cores, const struct el_device_name *devices, int n_devices, int *cpus)
{
    int found = 0;
    for (int c = 0; c < cores->n && found < n_devices; c++) {
        bool used = false;
        for (int i = 0; i < n_devices; i++) used = used || el_nth_device(devices, i).index % cores->n == c;
        if (!used) cpus[found++] = cores->cpus[c];
    }
    return found == n_devices;
}

void el_cores_say_busy(double planned_s, bool quiet)
{
    enum { LOOK_NS = 200 * 1000000, LEAST_PCT = 10 };
    static const struct timespec look = {.tv_nsec = LOOK_NS};
    struct el_system_reading *readings = quiet || planned_s < 1 ? NULL : calloc(2, sizeof *readings);
    struct el_system_figures figures;
    int cpus[EL_ALLOWED_MAX], n = el_cores_allowed(cpus), known = 0;
    double sum_pct = 0;
    if (!readings) return;
    el_system_read("", NULL, 0, &readings[0]);
    nanosleep(&look, NULL);
    el_system_read("", NULL, 0, &readings[1]);
    el_system_compare(&readings[0], &readings[1], &figures);
    free(readings);
    for (int i = 0; i < n; i++) {
        if (cpus[i] >= EL_SYSTEM_CPUS_MAX || isnan(figures.busy_pct[cpus[i]])) continue;
        sum_pct += figures.busy_pct[cpus[i]];
        known++;
    }
    if (known && sum_pct / known > LEAST_PCT)
        fprintf(stderr,
                "evenload: other processes use %.0f %% of the cores now: stop them first, or the times are suspect\n",
                sum_pct / known);
}

static double number_in(const char *root, const char *path, const char *key)
{
    char text[64], *end;
    read_after(root, path, key, text, sizeof text);
    double number = strtod(text, &end);
    return end > text ? number : NAN;
}

/* Limit minus use without cached files, which are reclaimable. */
static double cgroup_bytes(const char *root, const char *limit, const char *use, const char *stat, const char *cached)
{
    double limit_bytes = number_in(root, limit, ""), use_bytes = number_in(root, use, "");
    double cached_bytes = number_in(root, stat, cached);
    return limit_bytes - use_bytes + (isnan(cached_bytes) ? 0 : cached_bytes);
}

static double address_bytes(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY ? (double)limit.rlim_cur : NAN;
}

double el_host_free_bytes(const char *root)
{
    double free_bytes = number_in(root, "/proc/meminfo", "MemAvailable:") * 1024;
    double v2_bytes = cgroup_bytes(root, "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                                   "/sys/fs/cgroup/memory.stat", "inactive_file ");
    double v1_bytes =
        cgroup_bytes(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes",
                     "/sys/fs/cgroup/memory/memory.stat", "total_inactive_file ");
    return fmin(fmin(free_bytes, address_bytes()), fmin(v2_bytes, v1_bytes)); /* fmin ignores NAN */
}
