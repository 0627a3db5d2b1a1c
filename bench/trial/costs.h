/* What ops cost on simulated devices, from records of this machine. */
#pragma once

#include <jansson.h>

#include "runtime/device/costs.h"
#include "runtime/train/train.h"

/* Of the records of `evenload comm`: bench/comm/wire.h has their form. */
enum { EL_WIRE_SCHEMA = 1 };

/* Records as they are, and as their launches might have been. */
struct el_cost_set {
    struct el_costs *costs; /* [1 + n_draws]: first what the records come to, then draws: of each record of training one
                               of its launches, of each record of the wire the median of calls drawn again */
    int n_draws;
    int n_launches;  /* of the record of training that has fewest; 0: there is none */
    json_t *records; /* [{"dir", "kind": "comm|run", "verdict" (null: nothing against it), "reason", "ranks",
                        "others_pct" (of a rank's core, that others had), "beside", "launches"}] */
};

/* Reads folders, parted by commas. DIR/comm.json: medians in place and cold (where a size has none: warm), of each
 * operation and algorithm, as times of a message (el_comm_messages: what one call took over its rounds), and of copies.
 * DIR/results.json: mean times of the ops of its finished trials of plain training, by their bytes; other trials in it
 * are ignored. DIR/repeats: those of each launch, for draws, which are the same each time. `train`: what is to be
 * predicted; NULL: anything. Errors: EL_ERR_INVALID in one line: no such record, none of several ranks, or of another
 * model, type, optimizer or size; EL_ERR_HOST_MEMORY. */
enum el_status el_cost_set_read(const char *dirs, const struct el_train_config *train, int n_draws,
                                struct el_cost_set *set_p);
void el_cost_set_free(struct el_cost_set *set);

/* What the records come to alone; `costs_p` is to be freed. */
enum el_status el_costs_read(const char *dirs, const struct el_train_config *train, struct el_costs **costs_p);
