/* Writing safetensors: the header first, for all sizes are known, then array after array. The file gets its name when
 * it is whole. Whole blocks go past the system's page cache where the file system has a way to do so: a copy there
 * takes a core longer than all the rest, and nobody reads it soon. */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/base/files.h"
#include "runtime/base/hash.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/samples.h"
#include "runtime/data/stored_types.h"

enum { ALIGNMENT = 8, WRITTEN_AT_ONCE = 4096, PAGE = 4096, BLOCK = 1 << 22 };

struct el_safetensors_writer {
    FILE *file;
    char *path, temporary[EL_PATH_BYTES + 64];
    const struct el_stored_array *next;
    int64_t next_has; /* numbers of it */
    char *block;      /* of BLOCK bytes, so many of which are still to be written */
    size_t used;
    struct el_safetensors_sum sum;
    int failure; /* errno of the first write that failed */
};

/* What has a name already is written as it is. Of no file system that has it not. */
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

/* What was put there since the last whole block of the hash: while it is in a cache. */
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

/* NULL: no memory. `format`: of whose arrays they are; libraries of PyTorch's world ask for it. */
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

/* With blanks behind it, so that the data are aligned. */
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
