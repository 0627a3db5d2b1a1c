/* What collectives cost on simulated devices, from a record of `evenload comm`. */
#ifndef EL_BENCH_COSTS_H
#define EL_BENCH_COSTS_H

#include "runtime/base/status.h"
#include "runtime/device/costs.h"

/* Of the records of `evenload comm`: bench/comm/wire.h has their form. */
enum { EL_WIRE_SCHEMA = 1 };

/* Reads DIR/comm.json: medians in place, of each operation and algorithm, as times of a message (el_comm_messages: what
 * one call took over its rounds). `costs_p` is to be freed. Errors: EL_ERR_INVALID in one line: no such record, or none
 * of several ranks; EL_ERR_HOST_MEMORY. */
enum el_status el_costs_read(const char *dir, struct el_costs **costs_p);

#endif
