/* Reading checkpoints; see checkpoint.h. Every byte is checked before a number is used: sizes and
 * hashes of the files, and the index's own. */
#include "runtime/state/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/state/weights.h"

enum { INDEX_BYTES_MAX = 1 << 28, FILES_MAX = 1 << 16, SCHEMA = 2 };

struct el_checkpoint {
    char path[EL_PATH_BYTES];
    json_t *index;
    int64_t step;
    int n_files;
    struct el_safetensors **files;
};

/* ---- hashes ---- */

static uint64_t hash_index(const json_t *index)
{
    char *text = json_dumps(index, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(17));
    uint64_t hash = text ? el_hash(EL_HASH_BEGIN, text, strlen(text)) : 0;
    free(text);
    return hash;
}

static json_t *hex(uint64_t hash)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return json_string(text);
}

static bool is_hash(const json_t *text, uint64_t hash)
{
    json_t *own = hex(hash);
    const bool same = json_equal(text, own);
    json_decref(own);
    return same;
}

/* ---- the index ---- */

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
    json_t *whole = json_pack("{s:o, s:o}", "hash", hex(hash_index(index)), "checkpoint", index);
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
    return el_fail(EL_ERR_INVALID, "%s/%.60s: %s: give --resume an earlier checkpoint", el_path_tail(checkpoint->path),
                   file, text);
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
    checkpoint->step = json_integer_value(json_object_get(checkpoint->index, "step"));
    return EL_OK;
}

static enum el_status open_file(struct el_checkpoint *checkpoint, const json_t *entry, struct el_safetensors **file_p)
{
    const char *name = json_string_value(json_object_get(entry, "name"));
    char path[EL_PATH_BYTES + 128];
    uint64_t hash;
    int64_t bytes;
    if (!name || strchr(name, '/')) return damaged(checkpoint, "index.json", "names no files");
    snprintf(path, sizeof path, "%s/%.100s", checkpoint->path, name);
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
    if (n == 0 || n > FILES_MAX) return damaged(checkpoint, "index.json", "names no files");
    checkpoint->files = calloc(n, sizeof(struct el_safetensors *));
    if (!checkpoint->files) return el_fail_errno("%s", el_path_tail(checkpoint->path));
    checkpoint->n_files = (int)n;
    for (size_t f = 0; f < n; f++) EL_TRY(open_file(checkpoint, json_array_get(list, f), &checkpoint->files[f]));
    return EL_OK;
}

/* The folder itself, or the last one in it. */
static enum el_status find(const char *path, char found[EL_PATH_BYTES])
{
    char index[EL_PATH_BYTES + 16];
    struct stat info;
    if (strlen(path) >= EL_CHECKPOINT_DIR_BYTES)
        return el_fail(EL_ERR_INVALID, "--resume ...%s: the path is too long: give one of fewer than %d bytes",
                       el_path_tail(path), EL_CHECKPOINT_DIR_BYTES);
    snprintf(found, EL_PATH_BYTES, "%s", path);
    snprintf(index, sizeof index, "%s/index.json", found);
    if (stat(index, &info) == 0) return EL_OK;
    if (stat(path, &info) != 0)
        return el_fail_errno("--resume %s: give a folder of --checkpoint, or a step-N that is in it",
                             el_path_tail(path));
    const int64_t last = el_checkpoint_last(path);
    if (last < 0)
        return el_fail(EL_ERR_INVALID, "--resume %.200s: there is no checkpoint: no step-N with an index.json", path);
    el_checkpoint_folder(path, last, true, found);
    return EL_OK;
}

enum el_status el_checkpoint_open(const char *path, struct el_checkpoint **checkpoint_p)
{
    struct el_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint) return el_fail_errno("--resume %.200s", path);
    enum el_status status = find(path, checkpoint->path);
    if (status == EL_OK) status = read_index(checkpoint);
    if (status == EL_OK) status = open_files(checkpoint);
    if (status == EL_OK)
        *checkpoint_p = checkpoint;
    else
        el_checkpoint_close(checkpoint);
    return status;
}

void el_checkpoint_close(struct el_checkpoint *checkpoint)
{
    if (!checkpoint) return;
    for (int f = 0; f < checkpoint->n_files; f++) el_safetensors_close(checkpoint->files[f]);
    free(checkpoint->files);
    json_decref(checkpoint->index);
    free(checkpoint);
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
    return data && *epoch_p >= 0 && *samples_p >= 0 && *epoch_p < INT32_MAX && *samples_p < INT64_MAX / 2;
}

const json_t *el_checkpoint_index(const struct el_checkpoint *checkpoint)
{
    return checkpoint->index;
}

/* ---- arrays ---- */

const char *el_checkpoint_kind(const struct el_state_row *row, enum el_state what, char text[EL_GRAPH_NAME_BYTES])
{
    if (what == EL_STATE_GRAD) return NULL;
    const bool slot = what >= EL_STATE_SLOT && what < EL_STATE_SLOT + EL_SLOTS_MAX;
    snprintf(text, EL_GRAPH_NAME_BYTES, slot ? "optimizer.%s" : "model", row->name);
    return text;
}

/* One worker's array of the model's `whole`, and where its elements are. */
struct piece {
    const struct el_safetensors *file;
    const struct el_stored_array *array;
    struct el_param as; /* the shape that it is a range of, and its slice */
    int64_t first;      /* of a range; -1: all of `as` */
    const struct el_stored_array *places;
};

static enum el_status bad_piece(const struct piece *piece)
{
    return el_fail(EL_ERR_INVALID, "%s: '%.60s' does not fit the model", el_safetensors_path(piece->file),
                   piece->array->name);
}

static enum el_status find_piece(const struct el_safetensors *file, const char *key, const struct el_param *whole,
                                 struct piece *piece)
{
    char name[EL_CHECKPOINT_NAME_BYTES + 8];
    double cut[EL_CHECKPOINT_PIECE] = {0, 0, 0, 0, -1};
    *piece = (struct piece){.file = file, .array = el_safetensors_find(file, key), .as = *whole};
    if (!piece->array) return EL_OK;
    snprintf(name, sizeof name, "piece.%s", key);
    const struct el_stored_array *stored = el_safetensors_find(file, name);
    if (stored && stored->count != EL_CHECKPOINT_PIECE) return bad_piece(piece);
    if (stored) EL_TRY(el_safetensors_read(file, stored, cut));
    snprintf(name, sizeof name, "places.%s", key);
    piece->places = el_safetensors_find(file, name);
    piece->first = (int64_t)cut[4];
    struct el_shape *shape = &piece->as.shape;
    if (cut[2] > 0) {
        if (cut[0] < 0 || cut[0] >= shape->n || cut[2] != (double)shape->d[(int)cut[0]] || cut[1] < 0 || cut[3] < 1 ||
            cut[1] + cut[3] > cut[2])
            return bad_piece(piece);
        shape->d[(int)cut[0]] = (int64_t)cut[3];
        piece->as.slice = (struct el_slice){.dim = (int)cut[0], .first = (int64_t)cut[1], .of = (int64_t)cut[2]};
    }
    const int64_t count = el_shape_count(shape);
    const bool fits = piece->first < 0 ? piece->array->count == count
                      : piece->places  ? piece->places->count == piece->array->count
                                       : piece->first + piece->array->count <= count;
    return fits && piece->array->count <= count ? EL_OK : bad_piece(piece);
}

/* Into the model's array. */
static enum el_status place_piece(const struct piece *piece, double *values)
{
    const int64_t count = el_shape_count(&piece->as.shape), n = piece->array->count;
    double *read = malloc((size_t)(2 * n + count) * sizeof *read), *places = read + n, *all = places + n;
    if (!read) return el_fail_errno("'%s'", piece->array->name);
    enum el_status status = el_safetensors_read(piece->file, piece->array, read);
    if (status == EL_OK && piece->places) status = el_safetensors_read(piece->file, piece->places, places);
    if (status == EL_OK && piece->first < 0) {
        el_weights_reorder(&piece->as, read, all, false);
        el_slice_put(&piece->as.shape, &piece->as.slice, all, values);
    }
    for (int64_t i = 0; status == EL_OK && piece->first >= 0 && i < n; i++) {
        const int64_t at = piece->places ? (int64_t)places[i] : piece->first + i;
        if (at < 0 || at >= count)
            status = bad_piece(piece);
        else
            values[el_slice_at(&piece->as.shape, &piece->as.slice, at)] = read[i];
    }
    free(read);
    return status;
}

static void key_of(const char *kind, const struct el_param *array, char key[EL_CHECKPOINT_NAME_BYTES])
{
    snprintf(key, EL_CHECKPOINT_NAME_BYTES, "%s.%s", kind, array->name);
}

enum el_status el_checkpoint_read(const struct el_checkpoint *checkpoint, const char *kind,
                                  const struct el_param *array, int rank, double *values, bool *found_p)
{
    char key[EL_CHECKPOINT_NAME_BYTES];
    struct piece piece;
    const int64_t count = el_shape_count(&array->shape);
    int64_t n = 0;
    key_of(kind, array, key);
    for (int f = rank >= 0 ? rank : 0; f < checkpoint->n_files && n < count; f++) {
        EL_TRY(find_piece(checkpoint->files[f], key, array, &piece));
        if (!piece.array) continue;
        EL_TRY(place_piece(&piece, values));
        n += piece.array->count;
    }
    *found_p = n > 0;
    if (n == 0 && rank > 0) return el_checkpoint_read(checkpoint, kind, array, -1, values, found_p);
    return n == 0 || n >= count ? EL_OK : damaged(checkpoint, key, "a piece of it is missing");
}

/* ---- is it of this training? ---- */

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

/* The array's name behind its kind; NULL: it says where others are. */
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

static enum el_status check_file(const struct el_checkpoint *checkpoint, const struct el_safetensors *file,
                                 const struct el_graph *model)
{
    for (int i = 0; i < el_safetensors_count(file); i++) {
        const char *key = el_safetensors_array(file, i)->name, *name = name_in(key);
        const struct el_param *array = name ? find_array(model, name) : NULL;
        struct piece piece;
        if (!name || is_count(model, name)) continue;
        if (!array)
            return el_fail(EL_ERR_INVALID, "--resume %s: it has '%.60s', and the model has not: give the same sizes",
                           el_path_tail(checkpoint->path), name);
        if (find_piece(file, key, array, &piece) == EL_OK) continue;
        return el_fail(EL_ERR_INVALID, "--resume %s: '%.60s' is not as large as the model's: give the same sizes",
                       el_path_tail(checkpoint->path), name);
    }
    return EL_OK;
}

enum el_status el_checkpoint_check(const struct el_checkpoint *checkpoint, const struct el_train_config *config,
                                   const struct el_graph *model)
{
    const int64_t steps = config->warmup + config->steps;
    EL_TRY(check_same(checkpoint, config));
    if (!config->epochs && checkpoint->step >= steps)
        return el_fail(EL_ERR_INVALID,
                       "--resume %s: its %" PRId64 " steps are all that --warmup and --steps ask for (%" PRId64
                       "): give more --steps",
                       el_path_tail(checkpoint->path), checkpoint->step, steps);
    for (int f = 0; f < checkpoint->n_files; f++) EL_TRY(check_file(checkpoint, checkpoint->files[f], model));
    return EL_OK;
}
