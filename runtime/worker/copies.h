/* Parts of the model on a device, gathering, and running statistics of a model's copies.
 * Threads: the worker's. */
#pragma once

#include "runtime/state/shard.h"
#include "runtime/worker/worker.h"

/* A device's parts of the model: what a pass needs of the shard, and who has the adjacent parts.
 *
 *     el_held_open(worker, member, &held);
 *     for (int i = 0; i < held.n; i++) ... held.parts[i].graph, .params, .before, .behind       by depth
 *     el_held_close(&held);
 *
 * An uncut model is one part. Adjacent parts on one device (held.parts[i - 1], held.parts[i + 1]) share values
 * directly. Ownership: graphs and views are the job's and the shard's, which must outlive it. Errors:
 * EL_ERR_HOST_MEMORY. */

/* Instead of a worker: none, or this device. */
enum { EL_HELD_NOBODY = -1, EL_HELD_HERE = -2 };

struct el_held_part {
    const struct el_graph *graph;
    int number;
    int before, behind; /* workers with the parts before and after it, or as above */
    int *place;         /* [n_params]: its parameters' numbers in the shard */
    struct el_view *params;
    struct el_view *buffers;
};

struct el_held {
    int n;
    struct el_held_part *parts;
};

enum el_status el_held_open(const struct el_worker *worker, int member, struct el_held *held);
void el_held_close(struct el_held *held);

/* Collects owners' values on the first worker, from each part's representative device. Blocking, between steps.
 * Collective: with a cut model all workers call it, for the same parameters in the same order; else only the first has
 * anything to do. Errors: EL_ERR_PEER if another worker failed. */

static inline bool el_worker_is_first(const struct el_worker *worker)
{
    return el_layout_spot(worker->layout, worker->first).worker == 0;
}

/* Parameter (or buffer) `origin` of the model as doubles in the order of its shape; zeros for a missing gradient;
 * initial values for a parameter in no part. `values`: [count] on the first worker, NULL elsewhere. */
enum el_status el_gather(struct el_worker *worker, enum el_state what, int origin, double *values);
/* Whether member `m` gives its copy: of several devices with the same array the first one does. */
bool el_gather_counts(const struct el_worker *worker, int m, const struct el_state_item *item);

/* Gathers sharded parameters: a pass's hooks gather a unit (runtime/state/units.h) before its first node and free it
 * after its last, in forward and again in backward; the next units are gathered meanwhile.
 *
 *     el_gathered_open(shard, comm, 1, true, &gathered);
 *     spec.params = el_gathered_params(gathered);      of a pass; its hooks are el_gathered_before and _after
 *     el_gathered_close(gathered);
 *
 * A unit that is last in forward and first in backward stays. Memory: a unit's elements, in the pass's program (tag
 * replica; filling: padding). Ownership: shard and comm must outlive it. Errors: EL_ERR_HOST_MEMORY; others are the
 * program's. */

struct el_gathered;

/* `comm`: the devices with the other ranges; NULL: none. `ahead`: units gathered besides the current one. `frees`
 * false: units stay from forward until the last of a step's `n_passes` has gone back through them. */
enum el_status el_gathered_open(const struct el_shard *shard, struct el_comm *comm, int ahead, bool frees, int n_passes,
                                struct el_gathered **gathered_p);
void el_gathered_close(struct el_gathered *gathered); /* NULL is legal */
const struct el_view *el_gathered_params(const struct el_gathered *gathered);
void el_gathered_before(void *gathered, struct el_program *program, const struct el_node *node, enum el_phase phase);
void el_gathered_after(void *gathered, struct el_program *program, const struct el_node *node, enum el_phase phase);

/* Copies the buffers of the model's first copy into memory with views in held->parts[].buffers, for a forward, in a
 * step of its own. Blocking. Collective: the copies of the member's part. The caller frees *buffer_p; NULL: the
 * member's own are the first copy's. */
enum el_status el_copies_take_first(struct el_worker *worker, int member, struct el_held *held,
                                    struct el_buffer **buffer_p);

/* A mode's buffers of the model's copy `rank` of n_devices, all on the only device. Between steps. */
typedef const struct el_view *el_copies_views(const struct el_worker *worker, int rank);

/* All copies' buffers of the whole model, in order: values[*n_p] on rank 0's first worker (elsewhere NULL), for the
 * caller to free; 0 if there are none, or kernels do not compute. `computed` NULL: each owner has its own. Blocking.
 * Collective: all workers, between steps. Errors: EL_ERR_HOST_MEMORY, EL_ERR_PEER. */
enum el_status el_copies_read(struct el_worker *worker, el_copies_views *computed, double **values_p, int64_t *n_p);
