/* A snapshot: a host copy of a worker's arrays across steps, for the best epoch's weights and for checkpoints.
 *
 *     el_snapshot_open(worker, 1U << EL_STATE_PARAM | 1U << EL_STATE_BUFFER, &snapshot);
 *     el_snapshot_take(snapshot);                    from the devices ...
 *     el_snapshot_give(snapshot);                    ... and back to them
 *     el_snapshot_values(snapshot, i, values);       array i's copy
 *     el_snapshot_close(snapshot);
 *
 * Units: bytes, elements. Blocking; take and give between steps. Ownership: the worker must outlive it. Threads: take
 * and give are the worker's; another thread may read values between them. Errors: EL_ERR_HOST_MEMORY, and the
 * devices'. */
#pragma once

#include "runtime/worker/worker.h"

struct el_snapshot_array {
    int member;
    struct el_state_item item;
    size_t at; /* in the bytes: item.count elements of item.row.dtype in the device's order */
};

struct el_snapshot {
    struct el_worker *worker;
    int n;
    struct el_snapshot_array *arrays; /* of all owning members, by rows */
    size_t size;
    char *bytes;
};

/* rows: bits 1 << enum el_state. `wanted`: chooses arrays; NULL: all. */
typedef bool el_snapshot_filter(const struct el_worker *worker, int member, const struct el_state_item *item);
enum el_status el_snapshot_open(struct el_worker *worker, unsigned rows, el_snapshot_filter *wanted,
                                struct el_snapshot **snapshot_p);
size_t el_snapshot_bytes(struct el_worker *worker, unsigned rows, el_snapshot_filter *wanted);
void el_snapshot_close(struct el_snapshot *snapshot); /* NULL is legal */
enum el_status el_snapshot_take(struct el_snapshot *snapshot);
/* From another snapshot of the worker with at least its arrays. */
void el_snapshot_copy(const struct el_snapshot *from, struct el_snapshot *to);
enum el_status el_snapshot_give(const struct el_snapshot *snapshot);
/* values: [count of the array] in the order of its shape; zeros for elements on other devices. */
enum el_status el_snapshot_values(const struct el_snapshot *snapshot, int i, double *values);
