/* Reads safetensors. Every number of the header is checked before use; the data are not. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/files.h"
#include "runtime/base/hash.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/samples.h"
#include "runtime/data/stored.h"

/* HEADER_MAX: the reference implementation's. */
enum { LENGTH_BYTES = 8, HEADER_MAX = 100000000, READ_AT_ONCE = 4096, NAME_SHOWN = 60 };

struct el_safetensors {
    int descriptor;
    char *path;
    uint64_t data_at, data_bytes;
    json_t *header;
    int n;
    struct el_stored_array *arrays; /* [n] in the order of their data */
};

static enum el_status damaged(const struct el_safetensors *file, const char *text)
{
    return el_fail(EL_ERR_INVALID, "%s: not a whole safetensors file: %s", el_path_tail(file->path), text);
}

static enum el_status bad_array(const struct el_safetensors *file, const char *name, const char *text)
{
    return el_fail(EL_ERR_INVALID, "%s: '%.*s': %s", el_path_tail(file->path), NAME_SHOWN, name, text);
}

static enum el_status read_type(const struct el_safetensors *file, const json_t *entry, struct el_stored_array *array)
{
    const char *type = json_string_value(json_object_get(entry, "dtype"));
    if (!type) return bad_array(file, array->name, "has no dtype");
    for (int t = 0; t < EL_STORED_TYPES; t++) {
        if (strcmp(el_stored_types[t].name, type) != 0) continue;
        array->type = (enum el_stored_type)t;
        return EL_OK;
    }
    return el_fail(EL_ERR_INVALID, "%s: '%.*s' is of type %.16s: F64, F32, F16, BF16 and I64 are read",
                   el_path_tail(file->path), NAME_SHOWN, array->name, type);
}

/* Refuses a count that the file cannot hold, before it can overflow. */
static enum el_status read_shape(const struct el_safetensors *file, const json_t *entry, struct el_stored_array *array)
{
    const json_t *shape = json_object_get(entry, "shape");
    if (!json_is_array(shape)) return bad_array(file, array->name, "has no shape");
    if (json_array_size(shape) > EL_STORED_DIMS_MAX) return bad_array(file, array->name, "has too many dimensions");
    array->n_dims = (int)json_array_size(shape);
    array->count = 1;
    bool empty = false;
    for (int i = 0; i < array->n_dims; i++) {
        const json_t *size = json_array_get(shape, (size_t)i);
        int64_t d = json_integer_value(size);
        if (!json_is_integer(size) || d < 0) return bad_array(file, array->name, "its shape is not of whole numbers");
        array->dims[i] = d;
        empty = empty || d == 0;
        if (d > 0 && !empty && (uint64_t)array->count > file->data_bytes / (uint64_t)d)
            return bad_array(file, array->name, "its shape is larger than the file");
        if (!empty) array->count *= d;
    }
    if (empty) array->count = 0;
    return EL_OK;
}

static enum el_status read_offsets(const struct el_safetensors *file, const json_t *entry,
                                   struct el_stored_array *array)
{
    const json_t *offsets = json_object_get(entry, "data_offsets"), *first = json_array_get(offsets, 0),
                 *last = json_array_get(offsets, 1);
    if (json_array_size(offsets) != 2 || !json_is_integer(first) || !json_is_integer(last))
        return bad_array(file, array->name, "has no data_offsets [begin, end]");
    json_int_t begin = json_integer_value(first), end = json_integer_value(last);
    if (begin < 0 || end < begin || (uint64_t)end > file->data_bytes)
        return bad_array(file, array->name, "its data_offsets lie outside the file: it is cut off, or damaged");
    if ((uint64_t)(end - begin) != (uint64_t)array->count * el_stored_types[array->type].bytes)
        return bad_array(file, array->name, "its data_offsets do not fit its shape and dtype");
    array->begin = (uint64_t)begin;
    return EL_OK;
}

static int by_place(const void *left, const void *right)
{
    const struct el_stored_array *a = left, *b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->count > 0) - (b->count > 0); /* an empty array before the one that begins there */
}

/* The data are used completely, each byte once. */
static enum el_status check_places(const struct el_safetensors *file)
{
    uint64_t at = 0;
    for (int i = 0; i < file->n; i++) {
        const struct el_stored_array *array = &file->arrays[i];
        if (array->begin < at) return bad_array(file, array->name, "its data overlap those of another");
        if (array->begin > at) return bad_array(file, array->name, "there is a gap before its data");
        at += (uint64_t)array->count * el_stored_types[array->type].bytes;
    }
    if (at == file->data_bytes) return EL_OK;
    return damaged(file, "there is more behind the last array");
}

static enum el_status read_arrays(struct el_safetensors *file)
{
    const char *name;
    json_t *entry;
    file->arrays = calloc(json_object_size(file->header) + 1, sizeof *file->arrays);
    if (!file->arrays) return el_fail_errno("%s", el_path_tail(file->path));
    json_object_foreach(file->header, name, entry)
    {
        struct el_stored_array *array = &file->arrays[file->n];
        if (strcmp(name, "__metadata__") == 0) continue;
        array->name = name;
        EL_TRY(read_type(file, entry, array));
        EL_TRY(read_shape(file, entry, array));
        EL_TRY(read_offsets(file, entry, array));
        file->n++;
    }
    qsort(file->arrays, (size_t)file->n, sizeof *file->arrays, by_place);
    return check_places(file);
}

static bool read_at(const struct el_safetensors *file, uint64_t at, void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t got = pread(file->descriptor, (char *)bytes + done, n - done, (off_t)(at + done));
        if (got == 0) errno = EIO; /* the file was truncated */
        if (got <= 0 && !(got < 0 && errno == EINTR)) return false;
        if (got > 0) done += (size_t)got;
    }
    return true;
}

static enum el_status parse(struct el_safetensors *file, const char *text, size_t length)
{
    json_error_t error;
    char reason[200];
    if (length == 0 || text[0] != '{') return damaged(file, "its header does not begin with '{'");
    file->header = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (file->header) return read_arrays(file);
    snprintf(reason, sizeof reason, "its header is no JSON: %.150s", error.text);
    return damaged(file, reason);
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static enum el_status check_kind(const struct el_safetensors *file, const char *begin)
{
    const char *kind = ends_with(file->path, ".index.json")    ? "a list of shards"
                       : memcmp(begin, "PK\x03\x04", 4) == 0   ? "what torch.save writes"
                       : memcmp(begin, "\x80\x02\x8a", 3) == 0 ? "what torch.save writes"
                       : memcmp(begin, "\x89HDF", 4) == 0      ? "an HDF5 file"
                                                               : NULL;
    if (!kind) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "%s is %s: give one safetensors file, in Python: safetensors.torch.save_file(model.state_dict(), "
                   "\"model.safetensors\")",
                   el_path_tail(file->path), kind);
}

static enum el_status read_header(struct el_safetensors *file, uint64_t size)
{
    unsigned char begin[LENGTH_BYTES] = {0};
    uint64_t length = 0;
    size_t some = size < LENGTH_BYTES ? (size_t)size : LENGTH_BYTES;
    if (!read_at(file, 0, begin, some)) return el_fail_errno("%s", el_path_tail(file->path));
    EL_TRY(check_kind(file, (const char *)begin));
    for (int i = LENGTH_BYTES - 1; i >= 0; i--) length = length << 8 | begin[i];
    if (size < LENGTH_BYTES) return damaged(file, "it has fewer than 8 bytes");
    if (length > size - LENGTH_BYTES) return damaged(file, "its header would be longer than the file");
    if (length > HEADER_MAX) return damaged(file, "its header is longer than 100 MB");
    char *text = malloc((size_t)length + 1);
    if (!text) return el_fail_errno("%s", el_path_tail(file->path));
    file->data_at = LENGTH_BYTES + length;
    file->data_bytes = size - file->data_at;
    enum el_status status = read_at(file, LENGTH_BYTES, text, (size_t)length)
                                ? parse(file, text, (size_t)length)
                                : el_fail_errno("%s", el_path_tail(file->path));
    free(text);
    return status;
}

static enum el_status open_file(struct el_safetensors *file)
{
    struct stat info;
    EL_TRY(el_file_open("", file->path, INT64_MAX, &file->descriptor));
    if (fstat(file->descriptor, &info) != 0) return el_fail_errno("%s", el_path_tail(file->path));
    return read_header(file, (uint64_t)info.st_size);
}

enum el_status el_safetensors_open(const char *path, struct el_safetensors **file_p)
{
    struct el_safetensors *file = calloc(1, sizeof *file);
    if (!file) return el_fail_errno("%s", el_path_tail(path));
    file->descriptor = -1;
    file->path = strdup(path);
    enum el_status status = file->path ? open_file(file) : el_fail_errno("%s", el_path_tail(path));
    if (status == EL_OK)
        *file_p = file;
    else
        el_safetensors_close(file);
    return status;
}

void el_safetensors_close(struct el_safetensors *file)
{
    if (!file) return;
    if (file->descriptor >= 0) close(file->descriptor);
    json_decref(file->header);
    free(file->arrays);
    free(file->path);
    free(file);
}

const char *el_safetensors_path(const struct el_safetensors *file)
{
    return file->path;
}

int el_safetensors_count(const struct el_safetensors *file)
{
    return file->n;
}

const struct el_stored_array *el_safetensors_array(const struct el_safetensors *file, int i)
{
    return &file->arrays[i];
}

const struct el_stored_array *el_safetensors_find(const struct el_safetensors *file, const char *name)
{
    for (int i = 0; i < file->n; i++)
        if (strcmp(file->arrays[i].name, name) == 0) return &file->arrays[i];
    return NULL;
}

enum el_status el_safetensors_read(const struct el_safetensors *file, const struct el_stored_array *array,
                                   double *values)
{
    const struct el_stored_kind *kind = &el_stored_types[array->type];
    char bytes[READ_AT_ONCE * sizeof(double)];
    for (int64_t at = 0; at < array->count; at += READ_AT_ONCE) {
        size_t n = (size_t)(array->count - at < READ_AT_ONCE ? array->count - at : READ_AT_ONCE);
        if (!read_at(file, file->data_at + array->begin + (uint64_t)at * kind->bytes, bytes, n * kind->bytes))
            return el_fail_errno("%s: '%.*s'", el_path_tail(file->path), NAME_SHOWN, array->name);
        kind->to_double(bytes, n, values + at);
    }
    return EL_OK;
}

/* Whole blocks bypass the page cache if the file system can: copying there takes a core longer than everything else. */

enum { ALIGNMENT = 8, WRITTEN_AT_ONCE = 4096, PAGE = 4096, BLOCK = 1 << 22 };

struct el_safetensors_writer {
    FILE *file;
    char *path, temporary[EL_PATH_BYTES + 64];
    const struct el_stored_array *next;
    int64_t next_has;
    char *block; /* BLOCK bytes, the first `used` not written yet */
    size_t used;
    struct el_safetensors_sum sum;
    int failure; /* errno of the first failed write */
};

/* Only for a file with a temporary name; has no effect on file systems without O_DIRECT. */
static void set_direct(const struct el_safetensors_writer *writer, bool direct)
{
    const int file = fileno(writer->file), flags = fcntl(file, F_GETFL);
    if (*writer->temporary && flags >= 0) fcntl(file, F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT);
}

static bool is_direct(const struct el_safetensors_writer *writer)
{
    return *writer->temporary && (fcntl(fileno(writer->file), F_GETFL) & O_DIRECT) != 0;
}

static void write_block(struct el_safetensors_writer *writer)
{
    for (size_t at = 0; at < writer->used && !writer->failure;) {
        if ((writer->used - at) % PAGE != 0) set_direct(writer, false);
        errno = 0;
        const ssize_t n = write(fileno(writer->file), writer->block + at, writer->used - at);
        if (n > 0)
            at += (size_t)n;
        else if (errno == EINVAL && is_direct(writer))
            set_direct(writer, false);
        else if (errno != EINTR)
            writer->failure = errno ? errno : EIO;
    }
    writer->used = 0;
}

/* Hashes bytes since the last whole hash block, while they are cached. */
static void hash_last(struct el_safetensors_writer *writer)
{
    const size_t n = (writer->used - 1) % EL_HASH_BLOCK + 1;
    writer->sum.hash = el_hash_blocks(writer->sum.hash, writer->block + writer->used - n, n);
    writer->sum.bytes += (int64_t)n;
}

static void put(struct el_safetensors_writer *writer, const void *bytes, size_t n)
{
    while (n > 0) {
        const size_t left = EL_HASH_BLOCK - writer->used % EL_HASH_BLOCK, taken = n < left ? n : left;
        memcpy(writer->block + writer->used, bytes, taken);
        writer->used += taken;
        bytes = (const char *)bytes + taken;
        n -= taken;
        if (taken == left) hash_last(writer);
        if (writer->used == BLOCK) write_block(writer);
    }
}

static int64_t count_of(const struct el_stored_array *array)
{
    int64_t count = 1;
    for (int i = 0; i < array->n_dims; i++) count *= array->dims[i];
    return count;
}

/* NULL: no memory. PyTorch's libraries require `format`. */
static char *make_header(const struct el_stored_array *arrays, int n)
{
    json_t *header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    int64_t at = 0;
    for (int i = 0; i < n; i++) {
        const struct el_stored_kind *kind = &el_stored_types[arrays[i].type];
        int64_t end = at + count_of(&arrays[i]) * (int64_t)kind->bytes;
        json_t *shape = json_array();
        for (int k = 0; k < arrays[i].n_dims; k++) json_array_append_new(shape, json_integer(arrays[i].dims[k]));
        json_object_set_new(header, arrays[i].name,
                            json_pack("{s:s, s:o, s:[I, I]}", "dtype", kind->name, "shape", shape, "data_offsets",
                                      (json_int_t)at, (json_int_t)end));
        at = end;
    }
    char *text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

static void write_header(struct el_safetensors_writer *writer, const char *header)
{
    uint64_t length = strlen(header), padded = (length + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    put(writer, &padded, sizeof padded);
    put(writer, header, length);
    put(writer, "       ", padded - length);
}

enum el_status el_safetensors_begin(const char *path, const struct el_stored_array *arrays, int n,
                                    struct el_safetensors_writer **writer_p)
{
    struct el_safetensors_writer *writer = calloc(1, sizeof *writer);
    char *header = make_header(arrays, n);
    if (writer) writer->path = strdup(path);
    if (writer) writer->block = aligned_alloc(PAGE, BLOCK);
    if (!writer || !header || !writer->path || !writer->block) {
        free(header);
        el_safetensors_drop(writer);
        return el_fail(EL_ERR_HOST_MEMORY, "%s: no memory for its header", el_path_tail(path));
    }
    writer->next = arrays;
    writer->sum.hash = EL_HASH_BEGIN;
    writer->file = el_file_begin(path, writer->temporary, sizeof writer->temporary);
    enum el_status status = writer->file ? EL_OK : el_fail_errno("%s could not be written", el_path_tail(writer->path));
    if (status == EL_OK) set_direct(writer, true);
    if (status == EL_OK) write_header(writer, header);
    free(header);
    if (status == EL_OK)
        *writer_p = writer;
    else
        el_safetensors_drop(writer);
    return status;
}

void el_safetensors_write(struct el_safetensors_writer *writer, const double *values)
{
    const struct el_stored_array *array = writer->next++;
    const struct el_stored_kind *kind = &el_stored_types[array->type];
    const int64_t count = count_of(array);
    char bytes[WRITTEN_AT_ONCE * sizeof(double)];
    for (int64_t at = 0; at < count; at += WRITTEN_AT_ONCE) {
        size_t n = (size_t)(count - at < WRITTEN_AT_ONCE ? count - at : WRITTEN_AT_ONCE);
        kind->from_double(values + at, n, bytes);
        put(writer, bytes, n * kind->bytes);
    }
}

void el_safetensors_write_as(struct el_safetensors_writer *writer, const void *numbers, int64_t count)
{
    put(writer, numbers, (size_t)count * el_stored_types[writer->next->type].bytes);
    writer->next_has += count;
    if (writer->next_has < count_of(writer->next)) return;
    writer->next++;
    writer->next_has = 0;
}

static void free_writer(struct el_safetensors_writer *writer)
{
    free(writer->path);
    free(writer->block);
    free(writer);
}

enum el_status el_safetensors_end(struct el_safetensors_writer *writer, struct el_safetensors_sum *sum_p)
{
    enum el_status status = EL_OK;
    if (writer->used % EL_HASH_BLOCK) hash_last(writer);
    write_block(writer);
    if (sum_p) *sum_p = writer->sum;
    if (writer->failure) {
        el_file_drop(writer->file, writer->temporary);
        errno = writer->failure;
        status = el_fail_errno("%s could not be written", el_path_tail(writer->path));
    } else {
        status = el_file_end(writer->file, writer->temporary, writer->path);
    }
    free_writer(writer);
    return status;
}

void el_safetensors_drop(struct el_safetensors_writer *writer)
{
    if (!writer) return;
    el_file_drop(writer->file, writer->temporary);
    free_writer(writer);
}
