#include "runtime/worker/snapshot.h"

#include <stdlib.h>
#include <string.h>

/* Without `arrays` it only counts. */
static void list(struct el_snapshot *snapshot, unsigned rows, el_snapshot_filter *wanted,
                 struct el_snapshot_array *arrays)
{
    snapshot->n = 0;
    snapshot->size = 0;
    for (int m = 0; m < snapshot->worker->n_members; m++) {
        const struct el_shard *shard = &snapshot->worker->members[m].shard;
        for (struct el_state_item item = {0}; el_shard_next(shard, &item);) {
            if (!(rows & 1U << item.what) || item.count == 0 || !item.view->buffer) continue;
            if (wanted && !wanted(snapshot->worker, m, &item)) continue;
            if (arrays)
                arrays[snapshot->n] = (struct el_snapshot_array){.member = m, .item = item, .at = snapshot->size};
            snapshot->n++;
            snapshot->size += (size_t)item.count * el_dtype_bytes(item.row.dtype);
        }
    }
}

size_t el_snapshot_bytes(struct el_worker *worker, unsigned rows, el_snapshot_filter *wanted)
{
    struct el_snapshot snapshot = {.worker = worker};
    list(&snapshot, rows, wanted, NULL);
    return snapshot.size;
}

enum el_status el_snapshot_open(struct el_worker *worker, unsigned rows, el_snapshot_filter *wanted,
                                struct el_snapshot **snapshot_p)
{
    struct el_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot) return el_fail_errno("a copy of the weights");
    snapshot->worker = worker;
    list(snapshot, rows, wanted, NULL);
    snapshot->arrays = calloc((size_t)snapshot->n + 1, sizeof *snapshot->arrays);
    snapshot->bytes = malloc(snapshot->size + 1);
    if (snapshot->arrays && snapshot->bytes) {
        list(snapshot, rows, wanted, snapshot->arrays);
        *snapshot_p = snapshot;
        return EL_OK;
    }
    enum el_status status = el_fail_errno("a copy of %zu bytes of the weights", snapshot->size);
    el_snapshot_close(snapshot);
    return status;
}

void el_snapshot_close(struct el_snapshot *snapshot)
{
    if (!snapshot) return;
    free(snapshot->arrays);
    free(snapshot->bytes);
    free(snapshot);
}

static size_t bytes_of(const struct el_snapshot_array *array)
{
    return (size_t)array->item.count * el_dtype_bytes(array->item.row.dtype);
}

enum el_status el_snapshot_take(struct el_snapshot *snapshot)
{
    for (int i = 0; i < snapshot->n; i++) {
        const struct el_snapshot_array *array = &snapshot->arrays[i];
        EL_TRY(el_device_read(*array->item.view, snapshot->bytes + array->at, bytes_of(array)));
    }
    return EL_OK;
}

void el_snapshot_copy(const struct el_snapshot *from, struct el_snapshot *to)
{
    for (int i = 0, k = 0; k < to->n; i++) {
        const struct el_snapshot_array *a = &from->arrays[i], *b = &to->arrays[k];
        if (a->member != b->member || a->item.at != b->item.at) continue;
        memcpy(to->bytes + b->at, from->bytes + a->at, bytes_of(b));
        k++;
    }
}

enum el_status el_snapshot_give(const struct el_snapshot *snapshot)
{
    for (int i = 0; i < snapshot->n; i++) {
        const struct el_snapshot_array *array = &snapshot->arrays[i];
        EL_TRY(el_device_write(*array->item.view, snapshot->bytes + array->at, bytes_of(array)));
    }
    return EL_OK;
}

enum el_status el_snapshot_values(const struct el_snapshot *snapshot, int i, double *values)
{
    const struct el_snapshot_array *array = &snapshot->arrays[i];
    return el_shard_values_of(&snapshot->worker->members[array->member].shard, &array->item,
                              snapshot->bytes + array->at, values);
}
