/* What ops cost on simulated devices, from records of this machine. */
#ifndef EL_BENCH_COSTS_H
#define EL_BENCH_COSTS_H

#include "runtime/device/costs.h"
#include "runtime/parallel/train.h"

/* Of the records of `evenload comm`: bench/comm/wire.h has their form. */
enum { EL_WIRE_SCHEMA = 1 };

/* Reads folders, parted by commas. DIR/comm.json: medians in place and cold (where a size has none: warm), of each
 * operation and algorithm, as times of a message (el_comm_messages: what one call took over its rounds), and of copies.
 * DIR/results.json: mean times of the ops of its finished trials of plain training, by their bytes; other trials in it
 * are passed over. `train`: what is to be predicted; NULL: anything. `costs_p` is to be freed. Errors: EL_ERR_INVALID
 * in one line: no such record, none of several ranks, or of another model, type, optimizer or size; EL_ERR_HOST_MEMORY.
 */
enum el_status el_costs_read(const char *dirs, const struct el_train_config *train, struct el_costs **costs_p);

/* costs_ops.c: those of one run; EL_ERR_ABSENT, without a message, where the folder has none. */
enum el_status el_costs_add_run(const char *dir, const struct el_train_config *train, struct el_costs *costs);

#endif
