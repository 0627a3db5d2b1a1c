/* Samples in files (stored.h). Reading and decoding are timed separately. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/data/safetensors.h"
#include "runtime/data/stored.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie in the file: little-endian");

#define PLAIN(suffix, type)                                                                                            \
    static void to_##suffix(const char *bytes, size_t n, double *values)                                               \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type value;                                                                                                \
            memcpy(&value, bytes + i * sizeof value, sizeof value);                                                    \
            values[i] = (double)value;                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void from_##suffix(const double *values, size_t n, char *bytes)                                             \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type value = (type)values[i];                                                                              \
            memcpy(bytes + i * sizeof value, &value, sizeof value);                                                    \
        }                                                                                                              \
    }

PLAIN(f64, double)
PLAIN(f32, float)
PLAIN(i64, int64_t)

/* The upper half of an f32. */
static void to_bf16(const char *bytes, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        float value;
        memcpy(&half, bytes + i * sizeof half, sizeof half);
        uint32_t whole = (uint32_t)half << 16;
        memcpy(&value, &whole, sizeof value);
        values[i] = value;
    }
}

/* IEEE's binary16: a sign, 5 bits of exponent, 10 of fraction. */
static double half_value(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return half >> 15 ? -value : value;
}

static void to_f16(const char *bytes, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, bytes + i * sizeof half, sizeof half);
        values[i] = half_value(half);
    }
}

const struct el_stored_kind el_stored_types[EL_STORED_TYPES] = {
    [EL_STORED_F64] = {"F64", 8, to_f64, from_f64}, [EL_STORED_F32] = {"F32", 4, to_f32, from_f32},
    [EL_STORED_F16] = {"F16", 2, to_f16, NULL},     [EL_STORED_BF16] = {"BF16", 2, to_bf16, NULL},
    [EL_STORED_I64] = {"I64", 8, to_i64, from_i64},
};

enum { PAGE = 4096, LINE_BYTES = 4096 };

static enum el_status no_memory(void)
{
    return el_fail(EL_ERR_HOST_MEMORY, "no memory for the places of samples");
}

static struct el_stored *make(int kind, int64_t n_paths, int64_t n_starts)
{
    struct el_stored *stored = calloc(1, sizeof *stored);
    if (!stored) return NULL;
    stored->kind = kind;
    stored->files = malloc((size_t)(n_paths + 1) * sizeof *stored->files);
    stored->starts = malloc((size_t)(n_starts + 1) * sizeof *stored->starts);
    stored->paths = calloc((size_t)n_paths + 1, sizeof *stored->paths);
    if (stored->files && stored->starts && stored->paths) return stored;
    el_stored_free(stored);
    return NULL;
}

void el_stored_free(struct el_stored *stored)
{
    if (!stored) return;
    for (int64_t i = 0; i < stored->n_paths; i++) {
        if (stored->files) close(stored->files[i]);
        free(stored->paths[i]);
    }
    free(stored->paths);
    free(stored->files);
    free(stored->starts);
    free(stored);
}

static enum el_status add_file(struct el_stored *stored, const char *path)
{
    int file;
    EL_TRY(el_file_open("data file ", path, INT64_MAX, &file));
    char *name = strdup(path);
    if (!name) {
        close(file);
        return no_memory();
    }
    stored->files[stored->n_paths] = file;
    stored->paths[stored->n_paths++] = name;
    return EL_OK;
}

static void move_out(struct el_stored *stored, struct el_samples *samples)
{
    if (stored->kind != EL_STORED_LINES) {
        free(samples->starts);
        samples->starts = NULL;
    }
    free(samples->tokens);
    free(samples->pixels);
    samples->tokens = NULL, samples->pixels = NULL;
    samples->stored = stored;
}

enum el_status el_stored_lines(const char *path, const struct el_text *text, struct el_samples *samples)
{
    struct el_stored *stored = make(EL_STORED_LINES, 1, samples->count);
    if (!stored) return no_memory();
    const char *at = text->bytes + (strncmp(text->bytes, "\xEF\xBB\xBF", 3) ? 0 : 3); /* a byte order mark */
    for (int64_t i = 0; i < samples->count; i++) {
        stored->starts[i] = at - text->bytes;
        const char *end = memchr(at, '\n', text->length - (size_t)(at - text->bytes));
        at = end ? end + 1 : text->bytes + text->length;
    }
    stored->starts[samples->count] = (int64_t)text->length;
    enum el_status status = add_file(stored, path);
    if (status == EL_OK)
        move_out(stored, samples);
    else
        el_stored_free(stored);
    return status;
}

enum el_status el_stored_records(const struct el_cifar_file *files, int n, struct el_samples *samples)
{
    struct el_stored *stored = make(EL_STORED_RECORDS, n, n);
    if (!stored) return no_memory();
    enum el_status status = EL_OK;
    stored->starts[0] = 0;
    for (int i = 0; i < n && status == EL_OK; i++) {
        stored->starts[i + 1] = stored->starts[i] + (int64_t)(files[i].text.length / EL_CIFAR_RECORD_BYTES);
        status = add_file(stored, files[i].path);
    }
    if (status == EL_OK)
        move_out(stored, samples);
    else
        el_stored_free(stored);
    return status;
}

enum el_status el_stored_images(char **paths, struct el_samples *samples)
{
    struct el_stored *stored = calloc(1, sizeof *stored);
    if (!stored) return no_memory();
    *stored = (struct el_stored){.kind = EL_STORED_IMAGES, .n_paths = samples->count, .paths = paths};
    move_out(stored, samples);
    return EL_OK;
}

enum el_status el_reader_open(const struct el_dataset *dataset, const struct el_loading *loading,
                              struct el_reader *reader)
{
    const struct el_dataset_info *info = el_dataset_info(dataset);
    const int64_t side = info->image;
    *reader = (struct el_reader){.loading = loading, .line_bytes = side ? EL_CIFAR_RECORD_BYTES : LINE_BYTES};
    reader->line = malloc(reader->line_bytes);
    reader->tokens = side ? NULL : malloc((size_t)info->seq * sizeof *reader->tokens);
    reader->pixels = side ? malloc((size_t)el_image_bytes(side)) : NULL;
    return reader->line && (reader->tokens || reader->pixels) ? EL_OK
                                                              : el_fail(EL_ERR_HOST_MEMORY, "no memory to read");
}

void el_reader_close(struct el_reader *reader)
{
    free(reader->line);
    free(reader->tokens);
    free(reader->pixels);
    *reader = (struct el_reader){0};
}

/* The kernel drops whole pages only. */
static void make_cold(const struct el_reader *reader, int file, int64_t from, int64_t bytes)
{
    int64_t first = from / PAGE * PAGE, end = bytes ? (from + bytes + PAGE - 1) / PAGE * PAGE : first;
    if (reader->loading->cold) posix_fadvise(file, first, end - first, POSIX_FADV_DONTNEED);
}

static void count(struct el_reader *reader, int64_t begin_ns, int64_t bytes)
{
    if (reader->loading->disk_ms > 0) el_clock_sleep_until(el_clock_ns() + (int64_t)(reader->loading->disk_ms * 1e6));
    reader->times->reads++;
    reader->times->read_bytes += bytes;
    reader->times->read_ns += el_clock_ns() - begin_ns;
}

static enum el_status read_at(const struct el_stored *stored, int64_t file, int64_t from, int64_t bytes,
                              struct el_reader *reader)
{
    const int64_t begin_ns = el_clock_ns();
    make_cold(reader, stored->files[file], from, bytes);
    for (int64_t done = 0; done < bytes;) {
        ssize_t got = pread(stored->files[file], reader->line + done, (size_t)(bytes - done), from + done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0)
            return el_fail_errno("data file %s, at byte %lld", el_path_tail(stored->paths[file]), (long long)from);
        if (got == 0)
            return el_fail(EL_ERR_IO, "data file %s has become shorter: nothing at byte %lld",
                           el_path_tail(stored->paths[file]), (long long)(from + done));
        done += got;
    }
    count(reader, begin_ns, bytes);
    return EL_OK;
}

enum el_status el_stored_line(const struct el_stored *stored, int64_t at, const struct el_words *words,
                              struct el_reader *reader, int64_t *length_p)
{
    const int64_t from = stored->starts[at], bytes = stored->starts[at + 1] - from;
    if ((size_t)bytes > reader->line_bytes) {
        char *more = realloc(reader->line, (size_t)bytes);
        if (!more) return el_fail(EL_ERR_HOST_MEMORY, "no memory for a line of %lld bytes", (long long)bytes);
        reader->line = more;
        reader->line_bytes = (size_t)bytes;
    }
    EL_TRY(read_at(stored, 0, from, bytes, reader));
    const int64_t begin_ns = el_clock_ns();
    *length_p = el_text_ids(reader->line, (size_t)bytes, words->vocabulary, words->vocab, words->seq, reader->tokens);
    reader->times->decode_ns += el_clock_ns() - begin_ns;
    return EL_OK;
}

static enum el_status read_record(const struct el_stored *stored, int64_t at, int64_t side, struct el_reader *reader)
{
    int64_t file = 0;
    while (at >= stored->starts[file + 1]) file++;
    EL_TRY(read_at(stored, file, (at - stored->starts[file]) * EL_CIFAR_RECORD_BYTES, EL_CIFAR_RECORD_BYTES, reader));
    const int64_t begin_ns = el_clock_ns();
    EL_TRY(el_cifar_pixels((const uint8_t *)reader->line, side, reader->pixels));
    reader->times->decode_ns += el_clock_ns() - begin_ns;
    return EL_OK;
}

static void make_file_cold(const struct el_reader *reader, const char *path)
{
    int file = reader->loading->cold ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (file < 0) return; /* reading will report why */
    make_cold(reader, file, 0, 0);
    close(file);
}

enum el_status el_stored_read_image(const char *path, int64_t side, struct el_reader *reader)
{
    struct el_text file;
    struct el_bitmap bitmap = {0};
    const int64_t begin_ns = el_clock_ns();
    make_file_cold(reader, path);
    EL_TRY(el_bytes_load(path, &file));
    count(reader, begin_ns, (int64_t)file.length);
    const int64_t read_ns = el_clock_ns();
    enum el_status status = el_bitmap_decode(el_path_tail(path), (const uint8_t *)file.bytes, file.length, &bitmap);
    if (status == EL_OK) status = el_image_fit(bitmap.rgb, bitmap.width, bitmap.height, side, reader->pixels);
    free(bitmap.rgb);
    free(file.bytes);
    reader->times->decode_ns += el_clock_ns() - read_ns;
    return status;
}

enum el_status el_stored_image(const struct el_stored *stored, int64_t at, int64_t side, struct el_reader *reader)
{
    if (stored->kind == EL_STORED_RECORDS) return read_record(stored, at, side, reader);
    return el_stored_read_image(stored->paths[at], side, reader);
}
