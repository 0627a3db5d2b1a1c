/* Which devices a run takes when none were named, and whether those that were named are there. */
#ifndef EL_BENCH_DEFAULT_DEVICES_H
#define EL_BENCH_DEFAULT_DEVICES_H

#include "bench/options/config.h"
#include "runtime/comm/share.h"
#include "runtime/device/device.h"

/* All GPUs that this process sees, in CUDA's order; where there are none, two CPU devices. `devices` has
 * EL_MEMBERS_MAX entries. Errors: EL_ERR_ABSENT (there is a driver, and it fails). */
enum el_status el_devices_default(struct el_device_name *devices, int *n_p);
/* The same for a job's ranks, one device each: GPUs where any rank sees one, of each rank the one with its number on
 * its host, or the only one where every rank of the host sees one of its own. Fills devices[0 .. size). Collective.
 * Errors: EL_ERR_ABSENT (a rank's driver fails, or ranks see the same one card), the bootstrap's. */
enum el_status el_devices_of_ranks(struct el_bootstrap *bootstrap, struct el_device_name *devices);
/* What a rank sees, for the others, and the index of its card by it. `ranks`: of ranks 0 to `rank` at least. Errors:
 * EL_ERR_ABSENT (an earlier rank sees the same one card). */
struct el_devices_seen {
    int gpus;
    char only[EL_DEVICE_UUID_BYTES]; /* of the card, where it is the only one; "" or "-": not known */
    char host[EL_HOST_IDENTITY_BYTES];
};
enum el_status el_devices_card(const struct el_devices_seen *ranks, int rank, int *index_p);
/* Before anything is begun: the backend can be used here and has all these devices. n_devices 0 is legal.
 * Errors: EL_ERR_ABSENT with what is missing. */
enum el_status el_devices_check(const struct el_device_name *devices, int n_devices);

#endif
