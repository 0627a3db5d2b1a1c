/* This host: which cores devices compute on (the affinity mask, SMT siblings counted once, cut to the cgroup's quota),
 * how much memory is left, and what figures depend on and no command line says.
 *
 *     el_cores_find("", &cores);              "" is this machine; tests give the root of a recorded one
 *     cpu = cores.cpus[index % cores.n];      cpu:INDEX computes there
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "bench/options/config.h"
#include "profiles/nvml.h"

struct el_cores {
    int n; /* at least 1 */
    int cpus[EL_DEVICE_CORES_MAX];
    int firsts[EL_DEVICE_CORES_MAX]; /* the lowest logical CPU of each one's core: siblings have the same */
    int n_allowed;                   /* logical CPUs in the affinity mask */
    double quota;                    /* CPUs that the cgroup grants; 0: no quota */
};

enum { EL_ALLOWED_MAX = 4096 };

/* The logical CPUs in this process's affinity mask, in order: cpus[EL_ALLOWED_MAX]. Returns how many; 0: not readable.
 */
int el_cores_allowed(int *cpus);
/* Never fails: what cannot be read does not limit. */
void el_cores_find(const char *root, struct el_cores *cores_p);
/* Cores' worth of time that the process's own cgroup and those above it grant (v1 and v2); 0: no quota. `devices`, the
 * record and fingerprints all say this one. */
double el_cores_quota(const char *root);
/* "2 cores (0-1)" with what limits them. */
void el_cores_describe(const struct el_cores *cores, char *text, size_t bytes);
/* Whether there is a core for each device's communication beside those that compute; writes [n_devices] if so. */
bool el_cores_spare(const struct el_cores *cores, const struct el_device_name *devices, int n_devices, int *cpus);

/* One line on standard error, without `quiet`, where other programs have this process's CPUs before a measurement of
 * `planned_s`, while that can still be put off. Looks for 0.2 s; not before measurements shorter than a second. */
void el_cores_say_busy(double planned_s, bool quiet);

/* Memory that this process may still take: MemAvailable, and less where a cgroup or `ulimit -v` grants less. NAN where
 * nothing can be read. */
double el_host_free_bytes(const char *root);

/* The environment of this host and build: cpu, cores, memory, kernel, libraries, git commit, time, hostname. What
 * cannot be read is null. New reference. */
json_t *el_environment(void);
/* Its fields that belong to the machine, and the boot that it runs since. New reference. */
json_t *el_machine(void);

/* How this host's parts are joined (the fields: docs/record.md, "links", "gpu_links"): {numa, interfaces, infiniband}
 * from /sys below `root`, and {gpus, reason} by a driver's table (el_nvml_load). A
 * field that the system does not report is null, with a reason beside it. New references. */
json_t *el_links_host(const char *root);
json_t *el_links_gpus(const char *root, const struct el_nvml_api *api);
/* Of this machine. */
json_t *el_links_gpus_here(void);

/* What went over each network interface and InfiniBand port ("mlx5_0/ports/1") of this process's network since the
 * machine's start, and what was lost there: {name: {rx_packets, tx_packets, rx_errors, ...}}. Cost: some 50 us, and as
 * much for each port. And how much each counter grew between two of them: [{"name", "rx_packets", ...}] of those over
 * which something went. New references. */
json_t *el_links_counters(const char *root);
json_t *el_links_grown(const json_t *begin, const json_t *end);
