/* Reads checkpoints (checkpoint.h). Sizes and hashes of the files and of the index are checked before use. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/data/safetensors.h"
#include "runtime/graph/graph.h"
#include "runtime/state/checkpoint.h"
#include "runtime/state/weights.h"

struct el_piece {
    const struct el_safetensors *file;
    const struct el_stored_array *array; /* NULL: not in this file */
    const struct el_stored_array *places;
    struct el_param as; /* shape and slice that contain it */
    int64_t first;      /* of a range; -1: all of `as` */
};

#define EXACT 0x1p53 /* doubles are exact integers up to here */

static const char other_size[] = "is not as large as the model's: give the same sizes";

static enum el_status bad(const struct el_piece *piece, const char *text)
{
    return el_fail(EL_ERR_INVALID, "%s: '%.60s' %s", el_path_tail(el_safetensors_path(piece->file)), piece->array->name,
                   text);
}

static enum el_status bad_place(const struct el_piece *piece)
{
    return bad(piece, "says wrongly where it belongs: give --resume another checkpoint");
}

/* "piece.KEY" or "places.KEY": `count` integers. *found_p NULL: none. */
static enum el_status find_numbers(const struct el_piece *piece, const char *what, int64_t count,
                                   const struct el_stored_array **found_p)
{
    char name[EL_CHECKPOINT_NAME_BYTES + 8];
    snprintf(name, sizeof name, "%s.%s", what, piece->array->name);
    *found_p = el_safetensors_find(piece->file, name);
    return !*found_p || ((*found_p)->type == EL_STORED_I64 && (*found_p)->count == count) ? EL_OK : bad_place(piece);
}

static bool has_shape(const struct el_piece *piece)
{
    const struct el_stored_array wanted = el_weights_stored(&piece->as, EL_F64);
    bool same = piece->array->n_dims == wanted.n_dims;
    for (int i = 0; same && i < wanted.n_dims; i++) same = piece->array->dims[i] == wanted.dims[i];
    return same;
}

static enum el_status piece_find(const struct el_safetensors *file, const char *key, const struct el_param *whole,
                                 struct el_piece *piece)
{
    double cut[EL_CHECKPOINT_PIECE] = {0, 0, 0, 0, -1};
    const struct el_stored_array *stored;
    *piece = (struct el_piece){.file = file, .array = el_safetensors_find(file, key), .as = *whole};
    if (!piece->array) return EL_OK;
    EL_TRY(find_numbers(piece, "piece", EL_CHECKPOINT_PIECE, &stored));
    EL_TRY(find_numbers(piece, "places", piece->array->count, &piece->places));
    if (stored) EL_TRY(el_safetensors_read(file, stored, cut));
    for (int i = 0; i < EL_CHECKPOINT_PIECE; i++)
        if (fabs(cut[i]) > EXACT) return bad_place(piece);
    const int64_t dim = (int64_t)cut[0], at = (int64_t)cut[1], of = (int64_t)cut[2], n = (int64_t)cut[3];
    struct el_shape *shape = &piece->as.shape;
    piece->first = (int64_t)cut[4];
    if (of != 0) {
        if (dim < 0 || dim >= shape->n || at < 0 || n < 1 || n > of - at) return bad_place(piece);
        if (of != shape->d[dim]) return bad(piece, other_size);
        shape->d[dim] = n;
        piece->as.slice = (struct el_slice){.dim = (int)dim, .first = at, .of = of};
    }
    const int64_t count = el_shape_count(shape), range = piece->array->count;
    const bool fits = piece->first == -1
                          ? !piece->places && has_shape(piece)
                          : piece->first >= 0 && range <= count && (piece->places || piece->first <= count - range);
    return fits ? EL_OK : bad(piece, other_size);
}

/* Puts its values into values[count of the whole]. */
static bool piece_is_whole(const struct el_piece *piece)
{
    return piece->first < 0 && !piece->as.slice.of;
}

/* Places of its elements in `as`, for free(); NULL: no memory, or consecutive. */
static enum el_status read_places(const struct el_piece *piece, double **places_p)
{
    const int64_t n = piece->array->count, count = el_shape_count(&piece->as.shape);
    double *places = NULL;
    *places_p = NULL;
    if (!piece->places) return EL_OK;
    places = malloc((size_t)(n + 1) * sizeof *places);
    if (!places) return el_fail_errno("'%s'", piece->array->name);
    enum el_status status = el_safetensors_read(piece->file, piece->places, places);
    for (int64_t i = 0; i < n && status == EL_OK; i++)
        if (!(places[i] >= 0 && places[i] < (double)count)) status = bad_place(piece);
    if (status == EL_OK)
        *places_p = places;
    else
        free(places);
    return status;
}

static enum el_status piece_put(const struct el_piece *piece, double *values)
{
    const struct el_shape *shape = &piece->as.shape;
    const int64_t count = el_shape_count(shape), n = piece->array->count;
    double *places, *read;
    EL_TRY(read_places(piece, &places));
    read = malloc((size_t)(n + count + 1) * sizeof *read);
    enum el_status status =
        read ? el_safetensors_read(piece->file, piece->array, read) : el_fail_errno("'%s'", piece->array->name);
    if (status == EL_OK && piece->first < 0) {
        el_weights_reorder(&piece->as, read, read + n, false);
        el_slice_put(shape, &piece->as.slice, read + n, values);
    }
    for (int64_t i = 0; status == EL_OK && piece->first >= 0 && i < n; i++)
        values[el_slice_at(shape, &piece->as.slice, places ? (int64_t)places[i] : piece->first + i)] = read[i];
    free(read);
    free(places);
    return status;
}

/* Marks its elements in taken[count of the whole]; refuses an element that is already marked. */
static enum el_status piece_take(const struct el_piece *piece, char *taken)
{
    const struct el_shape *shape = &piece->as.shape;
    const struct el_slice *slice = &piece->as.slice;
    const int64_t run = el_slice_run(shape, slice), n = piece->array->count,
                  first = piece->first < 0 ? 0 : piece->first;
    double *places;
    EL_TRY(read_places(piece, &places));
    enum el_status status = EL_OK;
    for (int64_t i = 0, some; i < n && status == EL_OK; i += some) {
        const int64_t from = places ? (int64_t)places[i] : first + i, left = run - from % run;
        char *at = taken + el_slice_at(shape, slice, from);
        some = places ? 1 : left < n - i ? left : n - i;
        if (memchr(at, 1, (size_t)some))
            status = bad(piece, "has elements that another piece has too: give --resume another checkpoint");
        memset(at, 1, (size_t)some);
    }
    free(places);
    return status;
}

enum { INDEX_BYTES_MAX = 1 << 28, SCHEMA = 2 };

struct el_checkpoint {
    char path[EL_PATH_BYTES];
    json_t *index;
    int64_t step;
    int n_files;
    struct el_safetensors **files;
};

static uint64_t hash_index(const json_t *index)
{
    char *text = json_dumps(index, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    uint64_t hash = text ? el_hash(EL_HASH_BEGIN, text, strlen(text)) : 0;
    free(text);
    return hash;
}

json_t *el_checkpoint_hex(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

static bool is_hash(const json_t *text, uint64_t hash)
{
    json_t *own = el_checkpoint_hex(hash);
    const bool same = json_equal(text, own);
    json_decref(own);
    return same;
}

json_t *el_checkpoint_describe(const struct el_train_config *config)
{
    static const char *const optimizers[] = {"sgd", "momentum", "adam", "adamw"};
    return json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:I}", "schema", SCHEMA, "mode", config->mode, "model",
                     config->model.name, "optimizer", optimizers[config->optimizer], "global_batch",
                     (json_int_t)config->global_batch, "accumulate", (json_int_t)config->n_accumulate, "seed",
                     (json_int_t)config->seed);
}

enum el_status el_checkpoint_write_index(const char *folder, json_t *index)
{
    char path[EL_PATH_BYTES + 16], temporary[EL_PATH_BYTES + 64];
    json_t *whole = json_pack("{s:o, s:o}", "hash", el_checkpoint_hex(hash_index(index)), "checkpoint", index);
    snprintf(path, sizeof path, "%s/index.json", folder);
    FILE *file = whole ? el_file_begin(path, temporary, sizeof temporary) : NULL;
    enum el_status status = EL_OK;
    if (!file) {
        status = el_fail_errno("%s could not be written", el_path_tail(path));
    } else {
        json_dumpf(whole, file, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
        fputc('\n', file);
        status = el_file_end(file, temporary, path);
    }
    json_decref(whole);
    return status;
}

static enum el_status damaged(const struct el_checkpoint *checkpoint, const char *file, const char *text)
{
    return el_fail(EL_ERR_INVALID, "%s/%.60s: %s", el_path_tail(checkpoint->path), file, text);
}

static enum el_status read_index(struct el_checkpoint *checkpoint)
{
    char path[EL_PATH_BYTES + 16];
    FILE *file;
    snprintf(path, sizeof path, "%s/index.json", checkpoint->path);
    if (access(path, R_OK) != 0) return damaged(checkpoint, "index.json", strerror(errno));
    EL_TRY(el_file_stream("", path, INDEX_BYTES_MAX, &file));
    json_t *whole = json_loadf(file, JSON_REJECT_DUPLICATES, NULL);
    fclose(file);
    checkpoint->index = json_incref(json_object_get(whole, "checkpoint"));
    const bool good = is_hash(json_object_get(whole, "hash"), hash_index(checkpoint->index));
    json_decref(whole);
    if (!good) return damaged(checkpoint, "index.json", "damaged, or not evenload's");
    if (json_integer_value(json_object_get(checkpoint->index, "schema")) != SCHEMA)
        return damaged(checkpoint, "index.json", "of another version of evenload");
    const char *wrong = el_checkpoint_index_fault(checkpoint->index);
    if (wrong)
        return el_fail(EL_ERR_INVALID, "%s/index.json: '%s' is not as evenload writes it",
                       el_path_tail(checkpoint->path), wrong);
    checkpoint->step = json_integer_value(json_object_get(checkpoint->index, "step"));
    return EL_OK;
}

static enum el_status open_file(struct el_checkpoint *checkpoint, const json_t *entry, struct el_safetensors **file_p)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    char path[EL_PATH_BYTES + 128];
    uint64_t hash;
    int64_t bytes;
    snprintf(path, sizeof path, "%s/%s", checkpoint->path, name);
    if (access(path, R_OK) != 0) return damaged(checkpoint, name, strerror(errno));
    EL_TRY(el_checkpoint_hash(path, &hash, &bytes));
    if (bytes != json_integer_value(json_object_get(entry, "bytes")))
        return damaged(checkpoint, name, "is not as long as it was");
    if (!is_hash(json_object_get(entry, "hash"), hash)) return damaged(checkpoint, name, "is not what was written");
    return el_safetensors_open(path, file_p);
}

static enum el_status open_files(struct el_checkpoint *checkpoint)
{
    const json_t *list = json_object_get(checkpoint->index, "files");
    const size_t n = json_array_size(list);
    checkpoint->files = calloc(n, sizeof(struct el_safetensors *));
    if (!checkpoint->files) return el_fail_errno("%s", el_path_tail(checkpoint->path));
    checkpoint->n_files = (int)n;
    for (size_t f = 0; f < n; f++) EL_TRY(open_file(checkpoint, json_array_get(list, f), &checkpoint->files[f]));
    return EL_OK;
}

static enum el_status open_one(const char *folder, struct el_checkpoint **checkpoint_p)
{
    struct el_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint) return el_fail_errno("--resume %s", el_path_tail(folder));
    snprintf(checkpoint->path, sizeof checkpoint->path, "%s", folder);
    enum el_status status = read_index(checkpoint);
    if (status == EL_OK) status = open_files(checkpoint);
    if (status == EL_OK)
        *checkpoint_p = checkpoint;
    else
        el_checkpoint_close(checkpoint);
    return status;
}

static enum el_status open_last(const char *dir, struct el_checkpoint **checkpoint_p)
{
    const int64_t last = el_checkpoint_last(dir);
    char folder[EL_PATH_BYTES];
    struct el_error error;
    if (last < 0)
        return el_fail(EL_ERR_INVALID, "--resume %s: there is no checkpoint: no step-N with an index.json",
                       el_path_tail(dir));
    for (int64_t step = last; step >= 0; step = el_checkpoint_before(dir, step)) {
        el_checkpoint_folder(dir, step, true, folder);
        const enum el_status status = open_one(folder, checkpoint_p);
        if (step == last) el_error_take(status, &error);
        if (status == EL_ERR_INVALID || status == EL_ERR_IO) continue;
        if (status != EL_OK) return status;
        if (step < last) fprintf(stderr, "evenload: %s: going on from %s instead\n", error.text, el_path_tail(folder));
        return EL_OK;
    }
    return el_fail(error.status, "--resume: no checkpoint is whole: %s", error.text);
}

enum el_status el_checkpoint_open(const char *path, struct el_checkpoint **checkpoint_p)
{
    char index[EL_PATH_BYTES + 16];
    struct stat info;
    if (strlen(path) >= EL_CHECKPOINT_BYTES)
        return el_fail(EL_ERR_INVALID, "--resume ...%s: the path is too long: give one of fewer than %d bytes",
                       el_path_tail(path), EL_CHECKPOINT_BYTES);
    if (stat(path, &info) != 0)
        return el_fail_errno("--resume %s: give a folder of --checkpoint, or a step-N that is in it",
                             el_path_tail(path));
    snprintf(index, sizeof index, "%s/index.json", path);
    if (stat(index, &info) != 0) return open_last(path, checkpoint_p);
    struct el_error error;
    const enum el_status status = open_one(path, checkpoint_p);
    if (status == EL_OK) return EL_OK;
    el_error_take(status, &error);
    return el_fail(status, "%s: give --resume another checkpoint", error.text);
}

void el_checkpoint_close(struct el_checkpoint *checkpoint)
{
    if (!checkpoint) return;
    for (int f = 0; f < checkpoint->n_files; f++) el_safetensors_close(checkpoint->files[f]);
    free(checkpoint->files);
    json_decref(checkpoint->index);
    free(checkpoint);
}

const char *el_checkpoint_path(const struct el_checkpoint *checkpoint)
{
    return checkpoint->path;
}

uint64_t el_checkpoint_index_hash(const struct el_checkpoint *checkpoint)
{
    return hash_index(checkpoint->index);
}

bool el_checkpoint_leaves_steps(const struct el_checkpoint *checkpoint, const struct el_train_config *config)
{
    int64_t epoch, samples;
    if (config->epochs) return !el_checkpoint_position(checkpoint, &epoch, &samples) || epoch < config->epochs;
    return config->min_time_s > 0 || checkpoint->step < config->warmup + config->steps;
}

int64_t el_checkpoint_step(const struct el_checkpoint *checkpoint)
{
    return checkpoint->step;
}

bool el_checkpoint_position(const struct el_checkpoint *checkpoint, int64_t *epoch_p, int64_t *samples_p)
{
    const json_t *data = json_object_get(checkpoint->index, "data");
    *epoch_p = json_integer_value(json_object_get(data, "epoch"));
    *samples_p = json_integer_value(json_object_get(data, "samples"));
    return data != NULL;
}

const json_t *el_checkpoint_index(const struct el_checkpoint *checkpoint)
{
    return checkpoint->index;
}

const char *el_checkpoint_kind(const struct el_state_row *row, enum el_state what, char text[EL_GRAPH_NAME_BYTES])
{
    if (what == EL_STATE_GRAD) return NULL;
    const bool slot = what >= EL_STATE_SLOT && what < EL_STATE_SLOT + EL_SLOTS_MAX;
    snprintf(text, EL_GRAPH_NAME_BYTES, slot ? "optimizer.%s" : "model", row->name);
    return text;
}

static void key_of(const char *kind, const struct el_param *array, char key[EL_CHECKPOINT_NAME_BYTES])
{
    snprintf(key, EL_CHECKPOINT_NAME_BYTES, "%s.%s", kind, array->name);
}

enum el_status el_checkpoint_read(const struct el_checkpoint *checkpoint, const char *kind,
                                  const struct el_param *array, int rank, double *values, bool *found_p)
{
    char key[EL_CHECKPOINT_NAME_BYTES];
    struct el_piece piece;
    const int64_t count = el_shape_count(&array->shape);
    int64_t n = 0;
    key_of(kind, array, key);
    for (int f = rank >= 0 ? rank : 0; f < checkpoint->n_files && n < count; f++) {
        EL_TRY(piece_find(checkpoint->files[f], key, array, &piece));
        if (!piece.array) continue;
        EL_TRY(piece_put(&piece, values));
        n += piece.array->count;
    }
    *found_p = n > 0;
    if (n == 0 && rank > 0) return el_checkpoint_read(checkpoint, kind, array, -1, values, found_p);
    return n == 0 || n >= count ? EL_OK : damaged(checkpoint, key, "a piece of it is missing");
}

static enum el_status check_same(const struct el_checkpoint *checkpoint, const struct el_train_config *config)
{
    static const struct {
        const char *key, *option;
    } same[] = {{"model", "model"}, {"optimizer", "optimizer"}, {"seed", "seed"}};
    json_t *own = el_checkpoint_describe(config);
    enum el_status status = EL_OK;
    for (size_t i = 0; i < sizeof same / sizeof same[0] && status == EL_OK; i++) {
        const json_t *was = json_object_get(checkpoint->index, same[i].key), *is = json_object_get(own, same[i].key);
        if (json_equal(was, is)) continue;
        if (json_is_string(was) && json_is_string(is))
            status =
                el_fail(EL_ERR_INVALID, "--resume %s: it was trained with --%s %.40s, and now it is %s",
                        el_path_tail(checkpoint->path), same[i].option, json_string_value(was), json_string_value(is));
        else
            status = el_fail(EL_ERR_INVALID,
                             "--resume %s: it was trained with a seed of %" JSON_INTEGER_FORMAT
                             ", and now it is %" JSON_INTEGER_FORMAT ": give the same --seed",
                             el_path_tail(checkpoint->path), json_integer_value(was), json_integer_value(is));
    }
    json_decref(own);
    return status;
}

static const struct el_param *find_array(const struct el_graph *model, const char *name)
{
    for (int p = 0; p < model->n_params; p++)
        if (!strcmp(model->params[p].name, name)) return &model->params[p];
    for (int b = 0; b < model->n_buffers; b++)
        if (!strcmp(model->buffers[b].name, name)) return &model->buffers[b];
    return NULL;
}

static bool is_count(const struct el_graph *model, const char *name)
{
    char count[EL_WEIGHTS_NAME_BYTES];
    for (int b = 0; b < model->n_buffers; b++)
        if (el_weights_count_name(&model->buffers[b], count) && !strcmp(count, name)) return true;
    return false;
}

/* The array's name after its kind; NULL: the key has a piece's place. */
static const char *name_in(const char *key)
{
    static const char *const kinds[] = {"model.", "best.", "optimizer."};
    for (int k = 0; k < 3; k++) {
        const size_t n = strlen(kinds[k]);
        if (strncmp(key, kinds[k], n) != 0) continue;
        const char *dot = k == 2 ? strchr(key + n, '.') : key + n - 1;
        return dot ? dot + 1 : key;
    }
    return NULL;
}

static enum el_status check_names(const struct el_checkpoint *checkpoint, const struct el_safetensors *file,
                                  const struct el_graph *model)
{
    for (int i = 0; i < el_safetensors_count(file); i++) {
        const char *name = name_in(el_safetensors_array(file, i)->name);
        if (name && !is_count(model, name) && !find_array(model, name))
            return el_fail(EL_ERR_INVALID, "--resume %s: it has '%.60s', and the model has not: give the same sizes",
                           el_path_tail(checkpoint->path), name);
    }
    return EL_OK;
}

/* Files must cover an array once, by pieces, or have it whole. */
static enum el_status check_array(const struct el_checkpoint *checkpoint, const char *kind,
                                  const struct el_param *array)
{
    char key[EL_CHECKPOINT_NAME_BYTES];
    const int64_t count = el_shape_count(&array->shape);
    char *taken = calloc((size_t)count + 1, 1);
    bool whole = false;
    enum el_status status = taken ? EL_OK : el_fail_errno("'%s'", array->name);
    key_of(kind, array, key);
    for (int f = 0; f < checkpoint->n_files && status == EL_OK; f++) {
        struct el_piece piece;
        status = piece_find(checkpoint->files[f], key, array, &piece);
        if (status == EL_OK && piece.array && !(whole && piece_is_whole(&piece)))
            status = piece_take(&piece, taken), whole = piece_is_whole(&piece);
    }
    if (status == EL_OK && memchr(taken, 0, (size_t)count))
        status = damaged(checkpoint, key, "a piece of it is missing: give --resume another checkpoint");
    free(taken);
    return status;
}

static enum el_status check_arrays(const struct el_checkpoint *checkpoint, const struct el_train_config *config,
                                   const struct el_graph *model)
{
    const bool best = json_integer_value(json_object_get(checkpoint->index, "best_epoch")) >= 0;
    for (int kind = 0; kind < (best ? 2 : 1); kind++) {
        static const char *const kinds[] = {"model", "best"};
        for (int p = 0; p < model->n_params; p++) EL_TRY(check_array(checkpoint, kinds[kind], &model->params[p]));
        for (int b = 0; b < model->n_buffers; b++) EL_TRY(check_array(checkpoint, kinds[kind], &model->buffers[b]));
    }
    for (int slot = 0; slot < EL_SLOTS_MAX; slot++) {
        struct el_state_row row;
        char kind[EL_GRAPH_NAME_BYTES];
        if (!el_state_row(config, EL_STATE_SLOT + slot, &row)) continue;
        el_checkpoint_kind(&row, EL_STATE_SLOT + slot, kind);
        for (int p = 0; p < model->n_params; p++)
            if (el_graph_trains_param(model, p)) EL_TRY(check_array(checkpoint, kind, &model->params[p]));
    }
    return EL_OK;
}

enum el_status el_checkpoint_check(const struct el_checkpoint *checkpoint, const struct el_train_config *config,
                                   const struct el_graph *model)
{
    EL_TRY(check_same(checkpoint, config));
    if (!el_checkpoint_leaves_steps(checkpoint, config))
        return el_fail(EL_ERR_INVALID,
                       config->epochs ? "--resume %s: its %" PRId64
                                        " steps are all epochs that --epochs asks for (%" PRId64 "): give more --epochs"
                                      : "--resume %s: its %" PRId64
                                        " steps are all that --warmup and --steps ask for (%" PRId64
                                        "): give more --steps",
                       el_path_tail(checkpoint->path), checkpoint->step,
                       config->epochs ? config->epochs : config->warmup + config->steps);
    for (int f = 0; f < checkpoint->n_files; f++) EL_TRY(check_names(checkpoint, checkpoint->files[f], model));
    return check_arrays(checkpoint, config, model);
}

enum el_status el_checkpoint_check_data(const struct el_checkpoint *checkpoint, const struct el_dataset *dataset)
{
    const json_t *data = json_object_get(checkpoint->index, "data"), *was = json_object_get(data, "hash");
    uint64_t hash;
    if (json_integer_value(json_object_get(data, "samples")) > el_dataset_size(dataset, EL_SPLIT_TRAIN))
        return el_fail(EL_ERR_INVALID,
                       "--resume %s: it has taken more samples of an epoch than %s has: give the same data",
                       el_path_tail(checkpoint->path), el_dataset_info(dataset)->source);
    if (!was) return EL_OK;
    EL_TRY(el_dataset_hash(dataset, &hash));
    if (is_hash(was, hash)) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "--resume %s: it was trained on other samples than those of %s: give the same --data",
                   el_path_tail(checkpoint->path), el_dataset_info(dataset)->source);
}
