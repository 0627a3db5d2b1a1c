/* Writes checkpoints while training goes on (checkpoint.h). A worker's step waits for its own thread; the first
 * worker's thread waits for each other worker's file `rank-N.done`, which says "ok HASH BYTES" or the reason of a
 * failure. If even that cannot be written, the next checkpoint or the end of training reports it to all. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/weights.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/session.h"
#include "runtime/worker/copies.h"

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
    for (int e = 0; e < file->n; e++) /* another member: its buffers are the first member's */
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

/* Original positions of a range's elements that the device reorders, found by reordering 1, 2, ... places: [count]. */
static enum el_status find_places(const struct el_shard *shard, const struct el_state_item *item, double *places)
{
    const int64_t all = el_shape_count(&item->array->shape);
    double *values = malloc((size_t)(all + item->count) * sizeof *values), *numbers = values + all;
    float *floats = (float *)numbers; /* exact up to 2^24, more than any kernel's weights */
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

static bool is_as_stored(const struct entry *entry)
{
    const struct el_snapshot_array *array = &entry->snapshot->arrays[entry->array];
    const struct el_shard *shard = &entry->snapshot->worker->members[array->member].shard;
    const struct el_param *of = array->item.array;
    return array->item.row.dtype != EL_BF16 && !of->transposed && (of->shape.n <= 2 || of->matrices) &&
           !el_param_layout(of, shard->device, el_config_stored(shard->config));
}

/* Writes an array that files have in another order, in its own type; stored weights in cache-sized groups. */
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

static enum el_status checkpoint_file_write(const char *path, const struct el_snapshot *state,
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

enum { BEHIND = 15, SAID_BYTES = 256, PATIENCE_S = 60, POLL_NS = 2000000 };

enum others { MAY_WRITE, HAVE_WRITTEN, ONE_COULD_NOT, ARE_GONE };

struct el_checkpointer {
    struct el_run *run;
    const struct el_checkpoint_spec *spec;
    struct el_snapshot *state, *best; /* best: of the best epoch, or NULL so far */
    uint64_t data_hash;
    pthread_t thread;
    bool running;
    atomic_int others;
    char folder[EL_PATH_BYTES];
    int64_t step, began_ns;
    json_t *index;
    bool failed;
    char reason[EL_CHECKPOINT_REASON_BYTES];
    struct el_checkpoint_result result;
};

static void path_of(const struct el_checkpointer *c, int worker, const char *end, char path[EL_PATH_BYTES + 64])
{
    snprintf(path, EL_PATH_BYTES + 64, "%s/rank-%d.%s", c->folder, worker, end);
}

static enum el_status write_done(const struct el_checkpointer *c, enum el_status status, uint64_t hash, int64_t bytes)
{
    char path[EL_PATH_BYTES + 64], temporary[EL_PATH_BYTES + 128];
    path_of(c, c->run->index, "done", path);
    FILE *file = el_file_begin(path, temporary, sizeof temporary);
    if (!file) return el_fail_errno("%s", el_path_tail(path));
    if (status == EL_OK)
        fprintf(file, "ok %016" PRIx64 " %" PRId64 "\n", hash, bytes);
    else
        fprintf(file, "failed %s\n", el_error_message());
    return el_file_end(file, temporary, path);
}

static enum el_status await(const struct el_checkpointer *c, int worker, json_t *files)
{
    char path[EL_PATH_BYTES + 64], said[SAID_BYTES], hash[17], name[64];
    long long bytes;
    path_of(c, worker, "done", path);
    for (int64_t begin = el_clock_ns();;) {
        const int others = atomic_load(&c->others); /* read before the look, so that a result written by then is seen */
        if (el_file_line(path, "", said, sizeof said)) break;
        if (others == ARE_GONE) return el_fail(EL_ERR_PEER, "training has failed");
        if (others == ONE_COULD_NOT)
            return el_fail(EL_ERR_PEER, "rank %d could not write its file; its log says why", worker);
        if (others == MAY_WRITE) begin = el_clock_ns();
        if (el_clock_ns() - begin > INT64_C(1000000000) * PATIENCE_S)
            return el_fail(EL_ERR_TIMEOUT, "the file of rank %d is not seen in %d s", worker, PATIENCE_S);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    unlink(path);
    if (sscanf(said, "ok %16s %lld", hash, &bytes) != 2)
        return el_fail(EL_ERR_PEER, "rank %d:%s", worker, said + strcspn(said, " "));
    snprintf(name, sizeof name, "rank-%d.safetensors", worker);
    json_array_append_new(files, json_pack("{s:s, s:s, s:I}", "name", name, "hash", hash, "bytes", (json_int_t)bytes));
    return EL_OK;
}

static void sync_folder(const char *path)
{
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) fsync(folder), close(folder);
}

static enum el_status complete(struct el_checkpointer *c)
{
    char final[EL_PATH_BYTES];
    json_t *files = json_array();
    enum el_status status = EL_OK;
    for (int w = 0; w < c->run->worker.layout->n_workers && status == EL_OK; w++) status = await(c, w, files);
    json_object_set_new(c->index, "files", files);
    if (status == EL_OK) status = el_checkpoint_write_index(c->folder, json_incref(c->index));
    el_checkpoint_folder(c->spec->dir, c->step, true, final);
    if (status == EL_OK) {
        sync_folder(c->folder);
        el_checkpoint_remove(final);
        if (rename(c->folder, final) != 0) status = el_fail_errno("%s", el_path_tail(final));
    }
    if (status != EL_OK) {
        el_checkpoint_remove(c->folder);
        return status;
    }
    sync_folder(c->spec->dir);
    el_checkpoint_tidy(c->spec->dir, c->step, c->spec->keep);
    return EL_OK;
}

static void *write_all(void *argument)
{
    struct el_checkpointer *c = argument;
    char path[EL_PATH_BYTES + 64];
    struct el_safetensors_sum sum = {0};
    const int64_t begin = el_clock_ns();
    setpriority(PRIO_PROCESS, (id_t)gettid(), BEHIND); /* training has priority */
    path_of(c, c->run->index, "safetensors", path);
    enum el_status status = checkpoint_file_write(path, c->state, c->best, &sum);
    if (status == EL_OK) c->result.bytes = sum.bytes;
    const enum el_status said = write_done(c, status, sum.hash, sum.bytes);
    if (status == EL_OK) status = said;
    c->result.write_ns += el_clock_ns() - begin;
    if (c->index && status == EL_OK) status = complete(c);
    if (c->index && status != EL_OK) el_checkpoint_remove(c->folder);
    c->failed = status != EL_OK;
    if (!c->failed || atomic_load(&c->others) == ARE_GONE) return NULL;
    snprintf(c->reason, sizeof c->reason, "no checkpoint of step %" PRId64 ": %s", c->step, el_error_message());
    fprintf(stderr, "evenload: %s; training goes on\n", c->reason);
    return NULL;
}

static void await_thread(struct el_checkpointer *c)
{
    if (!c->running) return;
    pthread_join(c->thread, NULL);
    c->running = false;
    c->result.n++;
    if (c->failed && c->result.n_failed++ == 0) memcpy(c->result.reason, c->reason, sizeof c->reason);
    json_decref(c->index);
    c->index = NULL;
}

static enum el_status settle(struct el_checkpointer *c)
{
    const bool first = el_worker_is_first(&c->run->worker);
    double n_failed = 0;
    if (!c->running) return EL_OK;
    if (!first) await_thread(c);
    if (!first) n_failed = c->failed;
    const enum el_status status = el_worker_sum(&c->run->worker, &n_failed, 1);
    atomic_store(&c->others, status != EL_OK ? ARE_GONE : n_failed > 0 ? ONE_COULD_NOT : HAVE_WRITTEN);
    await_thread(c);
    return status;
}

/* Epochs and their evaluations, for resuming. A loss may be NaN. */
static json_t *show_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *show_score(const struct el_score *score)
{
    return json_pack("[f, f, o, f]", score->correct, score->counted, show_real(score->loss), score->bytes);
}

static json_t *show_epochs(const struct el_run *run)
{
    json_t *epochs = json_array();
    for (int e = 0; e < run->result.n_epochs; e++) {
        const struct el_epoch_result *epoch = &run->result.epochs[e];
        json_t *ranks = json_array();
        for (int r = 0; r < epoch->held_out.n_ranks; r++)
            json_array_append_new(ranks, show_score(&epoch->held_out.ranks[r]));
        json_array_append_new(
            epochs, json_pack("{s:f, s:o, s:I, s:o, s:b, s:o, s:o}", "seconds", epoch->seconds, "train_loss",
                              show_real(epoch->train_loss), "samples", (json_int_t)epoch->held_out.samples, "accuracy",
                              show_real(epoch->held_out.accuracy), "own_buffers", (int)epoch->held_out.own_buffers,
                              "all", show_score(&epoch->held_out.all), "ranks", ranks));
    }
    return epochs;
}

static json_t *make_index(const struct el_checkpointer *c, double epoch_loss)
{
    const struct el_run *run = c->run;
    json_t *index = el_checkpoint_describe(run->session->config);
    if (c->spec->job) json_object_set_new(index, "job", json_string(c->spec->job));
    json_object_set_new(index, "step", json_integer(c->step));
    const int64_t batch = c->step - run->origin, of = run->data_steps ? run->data_steps : INT64_MAX;
    json_object_set_new(index, "data",
                        json_pack("{s:I, s:I, s:o}", "epoch", (json_int_t)(batch / of), "samples",
                                  (json_int_t)(batch % of * run->session->config->global_batch), "hash",
                                  el_checkpoint_hex(c->data_hash)));
    json_object_set_new(index, "workers", json_integer(run->worker.layout->n_workers));
    json_object_set_new(index, "epochs", show_epochs(run));
    json_object_set_new(index, "epoch_loss", show_real(epoch_loss));
    json_object_set_new(index, "best_epoch", json_integer(run->result.best_epoch));
    json_object_set_new(index, "best_accuracy", json_real(run->best_accuracy));
    return index;
}

static enum el_status copy_best(struct el_checkpointer *c)
{
    const struct el_snapshot *best = c->run->best;
    if (!best) return EL_OK;
    if (!c->best) EL_TRY(el_snapshot_open(&c->run->worker, EL_WEIGHT_ROWS, el_checkpoint_file_has, &c->best));
    el_snapshot_copy(best, c->best);
    return EL_OK;
}

/* Only the first worker makes it, since a later one could re-create an abandoned folder. A failure is reported when
 * files are written. */
static enum el_status make_folder(const struct el_checkpointer *c)
{
    double made = 0;
    if (el_worker_is_first(&c->run->worker)) made = mkdir(c->folder, 0777) == 0;
    return el_worker_take_first(&c->run->worker, &made, 1);
}

static enum el_status begin(struct el_checkpointer *c)
{
    double epoch_loss = 0;
    const int64_t began = c->began_ns = el_clock_ns();
    EL_TRY(settle(c));
    const int64_t waited = el_clock_ns();
    c->result.wait_ns += waited - began;
    c->step = c->run->n_done;
    el_checkpoint_folder(c->spec->dir, c->step, false, c->folder);
    EL_TRY(make_folder(c));
    EL_TRY(el_run_epoch_loss(c->run, &epoch_loss));
    EL_TRY(el_snapshot_take(c->state));
    EL_TRY(copy_best(c));
    if (el_worker_is_first(&c->run->worker)) c->index = make_index(c, epoch_loss);
    atomic_store(&c->others, MAY_WRITE);
    if (pthread_create(&c->thread, NULL, write_all, c) != 0)
        return el_fail(EL_ERR_HOST_MEMORY, "a thread to write a checkpoint could not be made");
    c->running = true;
    c->result.copy_ns += el_clock_ns() - waited;
    if (c->spec->async) return EL_OK;
    const int64_t copied = el_clock_ns();
    const enum el_status status = settle(c);
    c->result.wait_ns += el_clock_ns() - copied;
    return status;
}

enum el_status el_run_checkpoint(struct el_run *run)
{
    struct el_checkpointer *c = run->checkpointer;
    if (!c) return EL_OK;
    double due = c->spec->every > 0 ? run->n_done % c->spec->every == 0
                                    : (double)(el_clock_ns() - c->began_ns) >= 1e9 * c->spec->every_s;
    if (c->spec->every == 0) EL_TRY(el_worker_take_first(&run->worker, &due, 1));
    return due != 0 ? begin(c) : EL_OK;
}

enum el_status el_run_open_checkpoints(struct el_run *run)
{
    const struct el_checkpoint_spec *spec = &run->session->place->checkpoint;
    if (!spec->dir || run->session->wants_grads) return EL_OK;
    struct el_checkpointer *c = calloc(1, sizeof *c);
    if (!c) return el_fail_errno("checkpoints");
    *c = (struct el_checkpointer){.run = run, .spec = spec, .began_ns = el_clock_ns()};
    run->checkpointer = c;
    EL_TRY(el_snapshot_open(&run->worker, EL_KEPT_ROWS, el_checkpoint_file_has, &c->state));
    memset(c->state->bytes, 0, c->state->size); /* else the first copy waits for page faults */
    double ready = 0;
    if (el_worker_is_first(&run->worker)) {
        EL_TRY(el_dataset_hash(run->session->place->dataset, &c->data_hash));
        el_checkpoint_remove_parts(spec->dir);
    }
    return el_worker_take_first(&run->worker, &ready, 1); /* nobody writes before stale files are removed */
}

enum el_status el_run_close_checkpoints(struct el_run *run, enum el_status status)
{
    struct el_checkpointer *c = run->checkpointer;
    struct el_error error;
    if (!c) return status;
    if (status == EL_OK) status = settle(c);
    el_error_take(status, &error);
    atomic_store(&c->others, ARE_GONE);
    await_thread(c);
    if (c->state) c->result.copied = (int64_t)(c->state->size + (c->best ? c->best->size : 0));
    run->result.checkpoints = c->result;
    el_snapshot_close(c->state);
    el_snapshot_close(c->best);
    free(c);
    run->checkpointer = NULL;
    return el_error_give(&error);
}

/* ---- the weights alone ---- */

static enum el_status count_batches(const struct el_worker *worker, const char *name, int64_t steps, double *count_p)
{
    const struct el_train_config *config = worker->config;
    const struct el_stored_array *before = config->weights ? el_safetensors_find(config->weights, name) : NULL;
    double loaded = 0;
    if (before) EL_TRY(el_safetensors_read(config->weights, before, &loaded));
    *count_p =
        loaded + (double)(steps * config->n_accumulate * (worker->layout->n[EL_AXIS_STAGE] > 1 ? config->n_micro : 1));
    return EL_OK;
}

struct saving {
    struct el_worker *worker;
    struct el_stored_array *arrays;
    char (*counts)[EL_WEIGHTS_NAME_BYTES];
    int n, n_counts;
    struct el_safetensors_writer *writer; /* the first worker's, else NULL */
};

static enum el_status list_arrays(struct saving *saving)
{
    const struct el_graph *model = saving->worker->graph;
    const enum el_dtype dtype = saving->worker->config->dtype;
    saving->arrays = calloc((size_t)(model->n_params + 2 * model->n_buffers), sizeof *saving->arrays);
    saving->counts = calloc((size_t)model->n_buffers + 1, sizeof *saving->counts);
    if (!saving->arrays || !saving->counts) return el_fail_errno("names of weights");
    for (int b = 0; b < model->n_buffers; b++) {
        char *name = saving->counts[saving->n_counts];
        if (!el_weights_count_name(&model->buffers[b], name)) continue;
        saving->arrays[saving->n_counts++] = (struct el_stored_array){.name = name, .type = EL_STORED_I64};
    }
    saving->n = saving->n_counts;
    for (int p = 0; p < model->n_params; p++) saving->arrays[saving->n++] = el_weights_stored(&model->params[p], dtype);
    for (int b = 0; b < model->n_buffers; b++)
        saving->arrays[saving->n++] = el_weights_stored(&model->buffers[b], dtype);
    return EL_OK;
}

static enum el_status save_one(const struct saving *saving, enum el_state what, int origin)
{
    const struct el_graph *model = saving->worker->graph;
    const struct el_param *of = &(what == EL_STATE_BUFFER ? model->buffers : model->params)[origin];
    const size_t n = (size_t)el_shape_count(&of->shape);
    double *values = saving->writer ? malloc(2 * n * sizeof *values) : NULL;
    if (saving->writer && !values) return el_fail_errno("'%s'", of->name);
    enum el_status status = el_gather(saving->worker, what, origin, values);
    if (status == EL_OK && saving->writer) {
        el_weights_reorder(of, values, values + n, true);
        el_safetensors_write(saving->writer, values + n);
    }
    free(values);
    return status;
}

static enum el_status save_all(const struct saving *saving, int64_t steps)
{
    const struct el_graph *model = saving->worker->graph;
    for (int i = 0; i < saving->n_counts && saving->writer; i++) {
        double count = 0;
        EL_TRY(count_batches(saving->worker, saving->counts[i], steps, &count));
        el_safetensors_write(saving->writer, &count);
    }
    for (int p = 0; p < model->n_params; p++) EL_TRY(save_one(saving, EL_STATE_PARAM, p));
    for (int b = 0; b < model->n_buffers; b++) EL_TRY(save_one(saving, EL_STATE_BUFFER, b));
    return EL_OK;
}

enum el_status el_train_save(struct el_worker *worker, int64_t steps, const char *path)
{
    struct saving saving = {.worker = worker};
    enum el_status status = list_arrays(&saving);
    if (status == EL_OK && el_worker_is_first(worker))
        status = el_safetensors_begin(path, saving.arrays, saving.n, &saving.writer);
    if (status == EL_OK) status = save_all(&saving, steps);
    if (status == EL_OK && saving.writer)
        status = el_safetensors_end(saving.writer, NULL);
    else
        el_safetensors_drop(saving.writer);
    free(saving.arrays);
    free(saving.counts);
    return status;
}
