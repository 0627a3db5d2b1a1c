/* The record's `system`: what each process read of its machine over the measured steps, and what the processes of a
 * repeat come to together.
 * The fields are in docs/record.md, the definitions in docs/metrics.md. All results are new references.
 */
#ifndef EL_BENCH_RECORD_SYSTEM_LOAD_H
#define EL_BENCH_RECORD_SYSTEM_LOAD_H

#include <jansson.h>

#include "profiles/system.h"

/* A process's part. `allowed`: the CPUs this process may run on; `devices`: those its devices compute on. */
json_t *el_record_system(const struct el_system_figures *figures, const int *allowed, int n_allowed, const int *devices,
                         int n_devices);
/* The repeat's, of its processes' parts. Steals `parts`. */
json_t *el_record_system_of_job(json_t *parts);
/* [{"cpu", "capacity", "max_mhz"}] of a device's cores. */
json_t *el_record_cores(const char *root, const int *cpus, int n_cpus);

#endif
