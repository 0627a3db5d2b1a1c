/* How much memory this process may still take. Read from plain files under a root, so that tests can give their own;
 * what cannot be read does not limit. */
#include "bench/machine/host_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "runtime/base/files.h"

/* The number after `key` at the start of a line, or the first of the file where key is ""; NAN: none ("max" too). */
static double number_in(const char *root, const char *path, const char *key)
{
    char name[1024], text[64], *end;
    snprintf(name, sizeof name, "%s%s", root, path);
    el_file_line(name, key, text, sizeof text);
    double number = strtod(text, &end);
    return end > text ? number : NAN;
}

/* Limit minus use, cached files not counted as use: they make way. */
static double cgroup_bytes(const char *root, const char *limit, const char *use, const char *stat, const char *cached)
{
    double limit_bytes = number_in(root, limit, ""), use_bytes = number_in(root, use, "");
    double cached_bytes = number_in(root, stat, cached);
    return limit_bytes - use_bytes + (isnan(cached_bytes) ? 0 : cached_bytes);
}

/* What `ulimit -v` grants; NAN: no limit. */
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
    return fmin(fmin(free_bytes, address_bytes()), fmin(v2_bytes, v1_bytes)); /* fmin leaves out what is NAN */
}
