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
#pragma once

#include "runtime/worker/worker.h"

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
