/* One worker's file of a checkpoint, from copies of what its devices hold; state/checkpoint.h has the format. */
#include <stdlib.h>
#include <string.h>

#include "runtime/state/checkpoint.h"
#include "runtime/state/weights.h"
#include "runtime/train/session.h"
#include "runtime/worker/gather.h"

/* What is written of an array: its own, what says where it belongs, and (packed ranges) where its elements are. */
struct entry {
    const struct el_snapshot *snapshot;
    int array;
    char key[EL_CHECKPOINT_NAME_BYTES], piece[EL_CHECKPOINT_NAME_BYTES + 8], places[EL_CHECKPOINT_NAME_BYTES + 8];
    bool is_range, is_packed;
};

struct file {
    int n, n_arrays;
    struct entry *entries;
    struct el_stored_array *arrays;
    struct el_safetensors_writer *writer;
};

bool el_checkpoint_file_has(const struct el_worker *worker, int member, const struct el_state_item *item)
{
    const int position = worker->first + member;
    if (item->array->is_copy || item->row.derived) return false;
    if (item->what == EL_STATE_BUFFER || worker->config->sync_params) return true; /* each rank has its own */
    return el_layout_source(worker->layout, position) == position && el_gather_counts(worker, member, item);
}

static void add_array(struct file *file, struct el_stored_array array)
{
    file->arrays[file->n_arrays++] = array;
}

static void add_entry(struct file *file, const struct el_snapshot *snapshot, int i, const char *prefix)
{
    const struct el_snapshot_array *array = &snapshot->arrays[i];
    const struct el_state_item *item = &array->item;
    const struct el_shard *shard = &snapshot->worker->members[array->member].shard;
    const enum el_stored_type type = item->row.dtype == EL_F64 ? EL_STORED_F64 : EL_STORED_F32;
    struct entry *entry = &file->entries[file->n];
    char kind[EL_GRAPH_NAME_BYTES];
    const char *found = prefix ? prefix : el_checkpoint_kind(&item->row, item->what, kind);
    if (!found) return;
    *entry = (struct entry){.snapshot = snapshot, .array = i};
    entry->is_range = item->count < el_shape_count(&item->array->shape);
    entry->is_packed =
        entry->is_range && el_param_layout(item->array, shard->device, el_config_stored(shard->config)) != NULL;
    snprintf(entry->key, sizeof entry->key, "%s.%s", found, item->array->name);
    for (int e = 0; e < file->n; e++) /* of another member: its buffers are the worker's first one's */
        if (!strcmp(file->entries[e].key, entry->key) && !entry->is_range && !item->array->slice.of) return;
    snprintf(entry->piece, sizeof entry->piece, "piece.%s", entry->key);
    snprintf(entry->places, sizeof entry->places, "places.%s", entry->key);
    struct el_stored_array stored = el_weights_stored(item->array, item->row.dtype);
    if (entry->is_range) stored.n_dims = 1, stored.dims[0] = stored.count = item->count;
    stored.type = type;
    if (entry->is_range || item->array->slice.of)
        add_array(file, (struct el_stored_array){
                            .name = entry->piece, .type = EL_STORED_I64, .n_dims = 1, .dims = {EL_CHECKPOINT_PIECE}});
    if (entry->is_packed)
        add_array(file, (struct el_stored_array){
                            .name = entry->places, .type = EL_STORED_I64, .n_dims = 1, .dims = {item->count}});
    stored.name = entry->key;
    add_array(file, stored);
    file->n++;
}

static enum el_status list_file(const struct el_snapshot *state, const struct el_snapshot *best, struct file *file)
{
    const size_t n = (size_t)state->n + (size_t)(best ? best->n : 0) + 1;
    file->entries = calloc(n, sizeof *file->entries);
    file->arrays = calloc(3 * n, sizeof *file->arrays);
    if (!file->entries || !file->arrays) return el_fail_errno("a checkpoint of %zu arrays", n);
    for (int i = 0; i < state->n; i++) add_entry(file, state, i, NULL);
    for (int i = 0; best && i < best->n; i++) add_entry(file, best, i, "best");
    return EL_OK;
}

/* Where the elements of a range are that the device has in another order: 1, 2 ... in its memory, as found in the
 * shape. places: [count]. */
static enum el_status find_places(const struct el_shard *shard, const struct el_state_item *item, double *places)
{
    const int64_t all = el_shape_count(&item->array->shape);
    double *values = malloc((size_t)(all + item->count) * sizeof *values), *numbers = values + all;
    float *floats = (float *)numbers; /* which count to 2^24, more than any kernel's weights */
    if (!values) return el_fail_errno("places of '%s'", item->array->name);
    for (int64_t i = 0; i < item->count && item->row.dtype == EL_F64; i++) numbers[i] = (double)(i + 1);
    for (int64_t i = 0; i < item->count && item->row.dtype == EL_F32; i++) floats[i] = (float)(i + 1);
    enum el_status status = item->count < 1 << 24 && item->row.dtype != EL_BF16
                                ? el_shard_values_of(shard, item, numbers, values)
                                : el_fail(EL_ERR_INTERNAL, "'%s' is too large to be numbered", item->array->name);
    for (int64_t i = 0; status == EL_OK && i < all; i++)
        if (values[i] > 0) places[(int64_t)values[i] - 1] = (double)i;
    free(values);
    return status;
}

/* Whether its memory is what the file has. */
static bool is_as_stored(const struct entry *entry)
{
    const struct el_snapshot_array *array = &entry->snapshot->arrays[entry->array];
    const struct el_shard *shard = &entry->snapshot->worker->members[array->member].shard;
    const struct el_param *of = array->item.array;
    return array->item.row.dtype != EL_BF16 && !of->transposed && of->shape.n <= 2 &&
           !el_param_layout(of, shard->device, el_config_stored(shard->config));
}

/* All of an array that files have in another order, in its own type. Stored weights group by group, in a cache. */
static enum el_status write_turned(const struct file *file, const struct entry *entry)
{
    const struct el_snapshot_array *array = &entry->snapshot->arrays[entry->array];
    const struct el_state_item *item = &array->item;
    const struct el_shard *shard = &entry->snapshot->worker->members[array->member].shard;
    const struct el_weights_layout *layout =
        el_param_layout(item->array, shard->device, el_config_stored(shard->config));
    const int64_t *shape = item->array->shape.d, groups = layout ? shape[0] / layout->filters : 1,
                  group[] = {shape[0] / groups, shape[1], shape[2], shape[3]}, count = item->count / groups;
    const size_t bytes = (size_t)count * el_dtype_bytes(item->row.dtype);
    void *turned = malloc(bytes + 1);
    if (!turned) return el_fail_errno("'%s'", entry->key);
    for (int64_t g = 0; g < groups; g++) {
        const char *memory = entry->snapshot->bytes + array->at + (size_t)g * bytes;
        if (layout)
            layout->unpack_channels_first(group, memory, turned);
        else
            el_weights_to_file(item->array, item->row.dtype, memory, turned);
        el_safetensors_write_as(file->writer, turned, count);
    }
    free(turned);
    return EL_OK;
}

static enum el_status write_entry(const struct file *file, const struct entry *entry)
{
    const struct el_snapshot_array *array = &entry->snapshot->arrays[entry->array];
    const struct el_state_item *item = &array->item;
    const struct el_slice *slice = &item->array->slice;
    if (entry->is_range || slice->of) {
        const double piece[EL_CHECKPOINT_PIECE] = {slice->dim, (double)slice->first, (double)slice->of,
                                                   slice->of ? (double)item->array->shape.d[slice->dim] : 0,
                                                   entry->is_range ? (double)item->first : -1};
        el_safetensors_write(file->writer, piece);
    }
    if (is_as_stored(entry)) {
        el_safetensors_write_as(file->writer, entry->snapshot->bytes + array->at, item->count);
        return EL_OK;
    }
    if (!entry->is_range && item->row.dtype != EL_BF16) return write_turned(file, entry);
    const int64_t all = el_shape_count(&item->array->shape);
    double *values = malloc((size_t)(2 * all + item->count) * sizeof *values), *out = values + all, *places = out + all;
    if (!values) return el_fail_errno("'%s'", entry->key);
    enum el_status status = el_snapshot_values(entry->snapshot, entry->array, values);
    if (entry->is_packed && status == EL_OK) {
        status = find_places(&entry->snapshot->worker->members[array->member].shard, item, places);
        if (status == EL_OK) el_safetensors_write(file->writer, places);
        for (int64_t i = 0; i < item->count && status == EL_OK; i++) out[i] = values[(int64_t)places[i]];
    } else if (entry->is_range) {
        memcpy(out, values + item->first, (size_t)item->count * sizeof *out);
    } else {
        el_weights_reorder(item->array, values, out, true);
    }
    if (status == EL_OK) el_safetensors_write(file->writer, out);
    free(values);
    return status;
}

enum el_status el_checkpoint_file_write(const char *path, const struct el_snapshot *state,
                                        const struct el_snapshot *best, struct el_safetensors_sum *sum_p)
{
    struct file file = {.n = 0};
    enum el_status status = list_file(state, best, &file);
    if (status == EL_OK) status = el_safetensors_begin(path, file.arrays, file.n_arrays, &file.writer);
    for (int i = 0; i < file.n && status == EL_OK; i++) status = write_entry(&file, &file.entries[i]);
    if (status == EL_OK && file.writer)
        status = el_safetensors_end(file.writer, sum_p);
    else
        el_safetensors_drop(file.writer);
    free(file.entries);
    free(file.arrays);
    return status;
}
