/* Which devices a run takes when none were named, and whether those that were named are there. */
#ifndef EL_BENCH_DEFAULT_DEVICES_H
#define EL_BENCH_DEFAULT_DEVICES_H

#include "bench/options/config.h"
#include "runtime/comm/bootstrap.h"

/* All GPUs that this process sees, in CUDA's order; where there are none, two CPU devices. Returns how many;
 * `devices` has EL_MEMBERS_MAX entries. */
int el_devices_default(struct el_device_name *devices);
/* The same for a job's ranks, one device each: GPUs where any rank sees one, of each rank the one with its number on
 * its host. Fills devices[0 .. size). Collective. Errors: the bootstrap's. */
enum el_status el_devices_of_ranks(struct el_bootstrap *bootstrap, struct el_device_name *devices);
/* Before anything is begun: the backend can be used here and has all these devices. n_devices 0 is legal.
 * Errors: EL_ERR_ABSENT with what is missing. */
enum el_status el_devices_check(const struct el_device_name *devices, int n_devices);

#endif
