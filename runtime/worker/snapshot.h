/* A snapshot: a copy, in the host's memory, of arrays that a worker's devices hold from step to step. The best epoch's
 * weights are kept so, and a checkpoint is written from one while training goes on.
 *
 *     el_snapshot_open(worker, 1U << EL_STATE_PARAM | 1U << EL_STATE_BUFFER, &snapshot);
 *     el_snapshot_take(snapshot);                    from the devices ...
 *     el_snapshot_give(snapshot);                    ... and back to them
 *     el_snapshot_values(snapshot, i, values);       what was taken of array i
 *     el_snapshot_close(snapshot);
 *
 * Units: bytes, elements. Timing: blocking; take and give between steps. Ownership: the worker must outlive it.
 * Threads: take and give are the worker's; values may be read by another thread between them.
 * Errors: EL_ERR_HOST_MEMORY, and those of the devices.
 */
#pragma once

#include "runtime/worker/worker.h"

struct el_snapshot_array {
    int member;
    struct el_state_item item;
    size_t at; /* in the bytes: item.count elements of item.row.dtype, in the order of the device's memory */
};

struct el_snapshot {
    struct el_worker *worker;
    int n;
    struct el_snapshot_array *arrays; /* of all members that own something, by their rows */
    size_t size;
    char *bytes;
};

/* rows: bits 1 << enum el_state. `wanted`: which of their arrays; NULL: all. */
typedef bool el_snapshot_filter(const struct el_worker *worker, int member, const struct el_state_item *item);
enum el_status el_snapshot_open(struct el_worker *worker, unsigned rows, el_snapshot_filter *wanted,
                                struct el_snapshot **snapshot_p);
/* What such a copy takes. */
size_t el_snapshot_bytes(struct el_worker *worker, unsigned rows, el_snapshot_filter *wanted);
void el_snapshot_close(struct el_snapshot *snapshot); /* NULL is legal */
enum el_status el_snapshot_take(struct el_snapshot *snapshot);
/* From another one of the same worker, which has all of its arrays. */
void el_snapshot_copy(const struct el_snapshot *from, struct el_snapshot *to);
enum el_status el_snapshot_give(const struct el_snapshot *snapshot);
/* values: [count of the array] in the order of its shape; zeros where another device stores them. */
enum el_status el_snapshot_values(const struct el_snapshot *snapshot, int i, double *values);
