/* Collects what owners hold on the first worker: for each part of the model the representative device gives its
 * values. The gate compares gradients so, and weights are saved so.
 *
 * Timing: blocking, between steps. Collective: where the model is cut all workers call it, for the same parameters in
 * the same order; else only the first one has anything to do. Errors: EL_ERR_PEER where another worker failed.
 */
#pragma once

#include "runtime/worker/worker.h"

static inline bool el_worker_is_first(const struct el_worker *worker)
{
    return el_layout_spot(worker->layout, worker->first).worker == 0;
}

/* The elements of parameter (or buffer) `origin` of the model, as doubles in the order of its shape; of a gradient that
 * there is not zeros. A parameter that no part of a cut model has keeps its initial values. `values`: of the first
 * worker [count]; of the others NULL. */
enum el_status el_gather(struct el_worker *worker, enum el_state what, int origin, double *values);
/* Of what several devices of a copy have, the first one gives it: whether member `m` does. */
bool el_gather_counts(const struct el_worker *worker, int m, const struct el_state_item *item);
