/* This host: cores for devices (affinity mask, SMT siblings once, cut to the cgroup's quota), free memory, and the
 * environment.
 *
 *     el_cores_find("", &cores);              "": this machine; tests give a recorded root
 *     cpu = cores.cpus[index % cores.n];      cpu:INDEX computes there */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "bench/options/config.h"
#include "profiles/nvml.h"

struct el_cores {
    int n; /* at least 1 */
    int cpus[EL_DEVICE_CORES_MAX];
    int firsts[EL_DEVICE_CORES_MAX]; /* lowest logical CPU of each one's core, equal for siblings */
    int n_allowed;                   /* logical CPUs in the affinity mask */
    double quota;                    /* CPUs granted by the cgroup; 0: no quota */
};

enum { EL_ALLOWED_MAX = 4096 };

/* The affinity mask's CPUs, ascending: cpus[EL_ALLOWED_MAX]. Returns how many; 0: unreadable. */
int el_cores_allowed(int *cpus);
/* Never fails: unreadable limits do not limit. */
void el_cores_find(const char *root, struct el_cores *cores_p);
/* CPUs granted by the process's cgroup and those above (v1 and v2); 0: no quota. */
double el_cores_quota(const char *root);
/* "2 cores (0-1)" and their limit. */
void el_cores_describe(const struct el_cores *cores, char *text, size_t bytes);
/* Whether each device's communication has its own core beside the computing ones; then writes [n_devices]. */
bool el_cores_spare(const struct el_cores *cores, const struct el_device_name *devices, int n_devices, int *cpus);

/* Unless `quiet`, warns on standard error if other programs use this process's CPUs, before a measurement of
 * `planned_s`. Samples for 0.2 s; not for measurements below a second. */
void el_cores_say_busy(double planned_s, bool quiet);

/* Free memory: MemAvailable, cgroup and `ulimit -v`. NAN: nothing readable. */
double el_host_free_bytes(const char *root);

/* Host and build: cpu, cores, memory, kernel, libraries, git commit, time, hostname; null: unreadable. New
 * reference. */
json_t *el_environment(void);
/* The machine's fields of it, and its boot. New reference. */
json_t *el_machine(void);

/* Topology (docs/record.md, "links", "gpu_links"): {numa, interfaces, infiniband} from /sys below `root`, and {gpus,
 * reason} from a driver's table (el_nvml_load). Unreported fields are null with a reason. New references. */
json_t *el_links_host(const char *root);
json_t *el_links_gpus(const char *root, const struct el_nvml_api *api);
json_t *el_links_gpus_here(void);

/* Counters of each network interface and InfiniBand port ("mlx5_0/ports/1") in this process's network since the
 * machine's start: {name: {rx_packets, tx_packets, rx_errors, ...}}. Cost: 50 us, and as much per port. el_links_grown:
 * growth between two readings, [{"name", "rx_packets", ...}] of active ones. New references. */
json_t *el_links_counters(const char *root);
json_t *el_links_grown(const json_t *begin, const json_t *end);
