/* The record's `system`: what each process read of its machine over the measured steps, and what the processes of a
 * repeat come to together.
 *
 * a process's part = {
 *   "window_s", "own_cpu_s", "waited_pct", "cpus": [{"cpu", "busy_pct", "steal_pct"}], "device_cpus": [..],
 *   "freq_mhz_begin": {"min", "max"}, "freq_mhz_end": {..}, "throttled", "reason",
 *   "machine": {"hostname", "boot_id", "kernel", "machine", "cpu_model", "cores_online", "memory_bytes"}
 * }
 * The repeat's fields are in docs/record.md, the definitions in docs/metrics.md. All results are new references.
 */
#ifndef EL_BENCH_RECORD_SYSTEM_LOAD_H
#define EL_BENCH_RECORD_SYSTEM_LOAD_H

#include <jansson.h>

#include "profiles/system.h"

/* `allowed`: the CPUs this process may run on; `devices`: those its devices compute on. */
json_t *el_record_system(const struct el_system_figures *figures, const int *allowed, int n_allowed, const int *devices,
                         int n_devices);
/* The repeat's: {"window_s", "waited_pct", "others_pct", "others_on_devices_pct", "steal_pct", "frequency_change_pct",
 * "throttled", "machine_differences": [text..], "reason", "processes": parts}. Steals `parts`. */
json_t *el_record_system_of_job(json_t *parts);
/* [{"cpu", "capacity", "max_mhz"}] of a device's cores. */
json_t *el_record_cores(const char *root, const int *cpus, int n_cpus);

#endif
