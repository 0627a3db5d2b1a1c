/* Checkpoints' folders, the hash of a file, and the check of an index (checkpoint.h). */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/hash.h"
#include "runtime/state/checkpoint.h"

/* An index's fields, with types and ranges. Hashes do not protect against a foreign author. */

enum { FILES_MAX = 1 << 16, NAME_BYTES = 64 };

enum kind { WHOLE, REAL, REAL_OR_NULL, BOOLEAN, NAME, LIST, OBJECT, SCORE };

struct field {
    const char *key;
    enum kind kind;
    int64_t least, most; /* of an integer; else `most`: optional */
};
enum { MAY_BE_MISSING = 1 };

static const struct field of_index[] = {{"mode", NAME, 0, 0},
                                        {"model", NAME, 0, 0},
                                        {"optimizer", NAME, 0, 0},
                                        {"global_batch", WHOLE, 1, INT32_MAX},
                                        {"accumulate", WHOLE, 1, INT32_MAX},
                                        {"seed", WHOLE, INT64_MIN, INT64_MAX},
                                        {"job", NAME, 0, MAY_BE_MISSING},
                                        {"step", WHOLE, 1, INT32_MAX},
                                        {"workers", WHOLE, 1, FILES_MAX},
                                        {"files", LIST, 0, 0},
                                        {"epochs", LIST, 0, 0},
                                        {"best_epoch", WHOLE, -1, INT32_MAX},
                                        {"best_accuracy", REAL, 0, MAY_BE_MISSING},
                                        {"epoch_loss", REAL_OR_NULL, 0, MAY_BE_MISSING},
                                        {"data", OBJECT, 0, MAY_BE_MISSING}},
                          of_file[] = {{"name", NAME, 0, 0}, {"hash", NAME, 0, 0}, {"bytes", WHOLE, 0, INT64_MAX}},
                          of_data[] = {{"epoch", WHOLE, 0, INT32_MAX - 1},
                                       {"samples", WHOLE, 0, INT64_MAX / 2},
                                       {"hash", NAME, 0, MAY_BE_MISSING}},
                          of_epoch[] = {{"seconds", REAL, 0, 0},
                                        {"train_loss", REAL_OR_NULL, 0, 0},
                                        {"samples", WHOLE, 0, INT64_MAX},
                                        {"accuracy", REAL_OR_NULL, 0, 0},
                                        {"own_buffers", BOOLEAN, 0, 0},
                                        {"all", SCORE, 0, 0},
                                        {"ranks", LIST, 0, 0}};

/* [correct, counted, loss or null, bytes] */
static bool is_score(const json_t *value)
{
    bool good = json_array_size(value) == 4;
    for (size_t i = 0; i < 4 && good; i++)
        good = json_is_number(json_array_get(value, i)) || (i == 2 && json_is_null(json_array_get(value, i)));
    return good;
}

static bool fits(const struct field *field, const json_t *value)
{
    const size_t length = json_string_length(value);
    const json_int_t whole = json_integer_value(value);
    switch (field->kind) {
    case WHOLE:
        return json_is_integer(value) && whole >= field->least && whole <= field->most;
    case REAL:
        return json_is_number(value);
    case REAL_OR_NULL:
        return json_is_number(value) || json_is_null(value);
    case BOOLEAN:
        return json_is_boolean(value);
    case NAME:
        return json_is_string(value) && length > 0 && length < NAME_BYTES;
    case LIST:
        return json_is_array(value);
    case OBJECT:
        return json_is_object(value);
    default:
        return is_score(value);
    }
}

#define CHECK(object, fields) check(object, fields, sizeof(fields) / sizeof *(fields))

static const char *check(const json_t *object, const struct field *fields, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(object, fields[i].key);
        const bool missing = !value && fields[i].kind != WHOLE && fields[i].most == MAY_BE_MISSING;
        if (!missing && !fits(&fields[i], value)) return fields[i].key;
    }
    return NULL;
}

/* One per worker in order, which excludes duplicates and other paths. */
static const char *check_files(const json_t *files)
{
    size_t i;
    json_t *file;
    json_array_foreach(files, i, file)
    {
        char name[64];
        const char *wrong = CHECK(file, of_file);
        snprintf(name, sizeof name, "rank-%zu.safetensors", i);
        if (wrong || strcmp(json_string_value(json_object_get(file, "name")), name) != 0) return "files";
    }
    return NULL;
}

static const char *check_epochs(const json_t *epochs)
{
    size_t e, r;
    json_t *epoch, *rank;
    json_array_foreach(epochs, e, epoch)
    {
        if (CHECK(epoch, of_epoch)) return "epochs";
        json_array_foreach(json_object_get(epoch, "ranks"), r, rank) if (!is_score(rank)) return "epochs";
    }
    return NULL;
}

const char *el_checkpoint_index_fault(const json_t *index)
{
    const char *wrong = CHECK(index, of_index);
    const json_t *data = json_object_get(index, "data"), *files = json_object_get(index, "files"),
                 *epochs = json_object_get(index, "epochs");
    const json_int_t workers = json_integer_value(json_object_get(index, "workers")),
                     best = json_integer_value(json_object_get(index, "best_epoch")),
                     epoch = json_integer_value(json_object_get(data, "epoch"));
    if (!wrong && data && CHECK(data, of_data)) wrong = "data";
    if (!wrong) wrong = check_files(files);
    if (!wrong) wrong = check_epochs(epochs);
    if (wrong) return wrong;
    const json_int_t n = (json_int_t)json_array_size(epochs);
    if ((json_int_t)json_array_size(files) != workers) return "files";
    if (n > epoch) return "epochs";
    return best >= n || (best >= 0 && !json_object_get(index, "best_accuracy")) ? "best_epoch" : NULL;
}

enum { HASHED_AT_ONCE = EL_HASH_BLOCK, TRIES = 64 };

void el_checkpoint_folder(const char *dir, int64_t step, bool complete, char path[EL_PATH_BYTES])
{
    snprintf(path, EL_PATH_BYTES, "%s/step-%" PRId64 "%s", dir, step, complete ? "" : ".part");
}

static bool is_ours(const char *name)
{
    static const char *const ours[] = {"index.json", "index.json.tmp.*", "rank-[0-9]*.safetensors", "rank-[0-9]*.done",
                                       "rank-[0-9]*.tmp.*"};
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (fnmatch(ours[i], name, 0) == 0) return true;
    return false;
}

bool el_checkpoint_is_in(const char *dir, const char *path)
{
    char above[EL_PATH_BYTES + 4];
    struct stat of_dir, of_path, of_above;
    snprintf(above, sizeof above, "%s/..", path);
    if (stat(dir, &of_dir) != 0 || stat(path, &of_path) != 0 || stat(above, &of_above) != 0) return !strcmp(dir, path);
    return of_dir.st_dev == of_path.st_dev &&
           (of_dir.st_ino == of_path.st_ino || (of_dir.st_dev == of_above.st_dev && of_dir.st_ino == of_above.st_ino));
}

void el_checkpoint_remove(const char *folder)
{
    for (int i = 0; i < TRIES; i++) /* others may still be writing */
        if (el_folder_remove(folder, is_ours) || (errno != ENOTEMPTY && errno != EEXIST)) return;
}

/* The number of "step-20"; -1: another name. `part`: of an incomplete one. */
static int64_t step_of(const char *name, bool part)
{
    char *end;
    if (strncmp(name, "step-", 5) != 0 || name[5] < '1' || name[5] > '9') return -1;
    const long long step = strtoll(name + 5, &end, 10);
    return strcmp(end, part ? ".part" : "") == 0 ? step : -1;
}

int64_t el_checkpoint_before(const char *dir, int64_t below)
{
    int64_t last = -1;
    DIR *folder = opendir(dir);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        const int64_t step = step_of(entry->d_name, false);
        char index[sizeof entry->d_name + 16];
        snprintf(index, sizeof index, "%s/index.json", entry->d_name);
        if (step > last && step < below && faccessat(dirfd(folder), index, F_OK, 0) == 0) last = step;
    }
    if (folder) closedir(folder);
    return last;
}

int64_t el_checkpoint_last(const char *dir)
{
    return el_checkpoint_before(dir, INT64_MAX);
}

void el_checkpoint_tidy(const char *dir, int64_t last, int keep)
{
    char path[EL_PATH_BYTES];
    int64_t step = INT64_MAX;
    for (int kept = 0; (step = el_checkpoint_before(dir, step)) >= 0;) {
        if (step <= last && kept++ < keep) continue;
        el_checkpoint_folder(dir, step, true, path);
        el_checkpoint_remove(path);
    }
}

void el_checkpoint_remove_parts(const char *dir)
{
    char path[EL_PATH_BYTES];
    DIR *folder = opendir(dir);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (step_of(entry->d_name, true) < 0) continue;
        el_checkpoint_folder(dir, step_of(entry->d_name, true), false, path);
        el_checkpoint_remove(path);
    }
    if (folder) closedir(folder);
}

enum el_status el_checkpoint_hash(const char *path, uint64_t *hash_p, int64_t *bytes_p)
{
    int file;
    ssize_t got = 0;
    EL_TRY(el_file_open("", path, INT64_MAX, &file));
    unsigned char *bytes = malloc(HASHED_AT_ONCE);
    *hash_p = EL_HASH_BEGIN;
    *bytes_p = 0;
    for (size_t n = 0; bytes; n = 0) { /* whole blocks, for any sizes of reads */
        while (n < HASHED_AT_ONCE && (got = read(file, bytes + n, HASHED_AT_ONCE - n)) > 0) n += (size_t)got;
        *hash_p = el_hash_blocks(*hash_p, bytes, n);
        *bytes_p += (int64_t)n;
        if (n < HASHED_AT_ONCE) break;
    }
    const bool bad = !bytes || got < 0;
    if (bad) got = errno;
    free(bytes);
    close(file);
    errno = (int)got;
    return bad ? el_fail_errno("%s", el_path_tail(path)) : EL_OK;
}
