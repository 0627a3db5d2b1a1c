/* Running statistics of the copies of a model, between steps.
 *
 * Threads: the worker's.
 */
#pragma once

#include "runtime/worker/held.h"

/* For a forward that shall use those of the model's first copy, while the member's own stay: makes a piece of memory
 * with them, and views of it in held->parts[].buffers. A step of its own. Blocking. Collective: among the copies of the
 * member's part. *buffer_p is the caller's to free: NULL where the member's own are the first copy's. */
enum el_status el_copies_take_first(struct el_worker *worker, int member, struct el_held *held,
                                    struct el_buffer **buffer_p);

/* A mode's buffers of the model's copy `rank` of n_devices, where all of them are on the only device. Between steps. */
typedef const struct el_view *el_copies_views(const struct el_worker *worker, int rank);

/* What each copy of the model has, of the whole model, one copy after another: values[*n_p] on rank 0's first worker
 * (elsewhere NULL), to be freed; 0 where the model has none, or kernels do not compute. `computed` NULL: each owner has
 * its own. Blocking. Collective: all workers, between steps. Errors: EL_ERR_HOST_MEMORY, EL_ERR_PEER. */
enum el_status el_copies_read(struct el_worker *worker, el_copies_views *computed, double **values_p, int64_t *n_p);
