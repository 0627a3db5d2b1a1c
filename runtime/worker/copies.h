/* Running statistics of the copies of a model, between steps.
 *
 * Threads: the worker's.
 */
#pragma once

#include "runtime/state/shard.h"
#include "runtime/worker/worker.h"

/* The parts of the model that a device holds: what a pass through one of them needs of the shard, and who has the parts
 * beside it. The shard has the parameters of all of them together.
 *
 *     el_held_open(worker, member, &held);
 *     for (int i = 0; i < held.n; i++) ... held.parts[i].graph, .params, .before, .behind       by depth
 *     el_held_close(&held);
 *
 * Where a mode does not cut the model, it is one part. Neighbours on one device hand over values as they are: the part
 * beside held.parts[i] is held.parts[i - 1] or held.parts[i + 1] then.
 *
 * Ownership: graphs and views are the job's and the shard's, which must outlive it. Threads: the worker's. Errors:
 * EL_ERR_HOST_MEMORY.
 */

/* Instead of a worker: nobody, or this device itself. */
enum { EL_HELD_NOBODY = -1, EL_HELD_HERE = -2 };

struct el_held_part {
    const struct el_graph *graph;
    int number;              /* among the job's parts */
    int before, behind;      /* the worker that has the part before it, the one behind it; or as above */
    int *place;              /* [n_params]: of its parameters among the shard's */
    struct el_view *params;  /* [n_params] */
    struct el_view *buffers; /* [n_buffers] */
};

struct el_held {
    int n;
    struct el_held_part *parts;
};

enum el_status el_held_open(const struct el_worker *worker, int member, struct el_held *held);
void el_held_close(struct el_held *held);

/* Collects what owners hold on the first worker: for each part of the model the representative device gives its
 * values. The gate compares gradients so, and weights are saved so.
 *
 * Timing: blocking, between steps. Collective: where the model is cut all workers call it, for the same parameters in
 * the same order; else only the first one has anything to do. Errors: EL_ERR_PEER where another worker failed.
 */

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

/* Whole parameters where a device stores ranges of them: hooks of a pass that gather a unit (runtime/state/units.h)
 * before its first node, and free it after its last one; in backward again. The next units are on their way while one
 * is computed with.
 *
 *     el_gathered_open(shard, comm, 1, true, &gathered);
 *     spec.params = el_gathered_params(gathered);      of a pass; its hooks are el_gathered_before and _after
 *     el_gathered_close(gathered);
 *
 * A unit that is the last in forward and the first in backward stays in between; where nobody goes back, until the
 * program's end.
 *
 * Memory: a unit's elements, in the pass's program (tag replica; what it is filled up with: padding). Bytes: an
 * all-gather a unit, each time. Ownership: shard and comm must outlive it. Threads: the worker's. Errors:
 * EL_ERR_HOST_MEMORY; others are the program's.
 */

struct el_gathered;

/* `comm`: among those that have the other ranges; NULL: there are none. `ahead`: units that are on their way beside the
 * one that is in use. `frees` false: what was gathered in forward stays until the last of `n_passes`, a step's, has
 * gone back through it. */
enum el_status el_gathered_open(const struct el_shard *shard, struct el_comm *comm, int ahead, bool frees, int n_passes,
                                struct el_gathered **gathered_p);
void el_gathered_close(struct el_gathered *gathered); /* NULL is legal */
/* [n_params]: views of what is there. */
const struct el_view *el_gathered_params(const struct el_gathered *gathered);
/* Of a pass; `gathered` is the context. */
void el_gathered_before(void *gathered, struct el_program *program, const struct el_node *node, enum el_phase phase);
void el_gathered_after(void *gathered, struct el_program *program, const struct el_node *node, enum el_phase phase);

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
