/* Samples in files: lines of a text, records of CIFAR-10's files, or an image per file; shared within runtime/data.
 * Readers share open files and read by position. */
#pragma once

#include <stddef.h>

#include "runtime/data/samples.h"

struct el_stored {
    enum { EL_STORED_LINES, EL_STORED_RECORDS, EL_STORED_IMAGES } kind;
    int64_t n_paths;
    char **paths;    /* images: one per sample */
    int *files;      /* lines, records: descriptors; NULL: images */
    int64_t *starts; /* lines: [samples + 1] bytes; records: [n_paths + 1] samples; NULL: images */
};

/* The state of a loader or of one of its workers. Zeroed: nothing injected. */
struct el_reader {
    const struct el_loading *loading;
    struct el_load_times *times; /* of the current batch */
    char *line;                  /* as long as the longest so far */
    size_t line_bytes;
    int32_t *tokens;
    uint8_t *pixels;
};
enum el_status el_reader_open(const struct el_dataset *dataset, const struct el_loading *loading,
                              struct el_reader *reader);
void el_reader_close(struct el_reader *reader);

/* Frees the samples' tokens or pixels, which are in `text` (read from `path`) or in these files. For images it takes
 * over `paths` (samples->count of them), except after a failure. */
enum el_status el_stored_lines(const char *path, const struct el_text *text, struct el_samples *samples);
enum el_status el_stored_records(const struct el_cifar_file *files, int n, struct el_samples *samples);
enum el_status el_stored_images(char **paths, struct el_samples *samples);
void el_stored_free(struct el_stored *stored); /* NULL is legal */

struct el_words {
    const struct el_vocabulary *vocabulary;
    int64_t vocab, seq; /* ids are below vocab, at most seq of them */
};
/* Reads and decodes sample `at` into the reader. Errors: EL_ERR_IO with the file and the sample. */
enum el_status el_stored_line(const struct el_stored *stored, int64_t at, const struct el_words *words,
                              struct el_reader *reader, int64_t *length_p);
enum el_status el_stored_image(const struct el_stored *stored, int64_t at, int64_t side, struct el_reader *reader);

enum el_status el_stored_read_image(const char *path, int64_t side, struct el_reader *reader);

/* As el_dataset_sample, in memory or in files; tokens or pixels may be the reader's, until its next read. */
enum el_status el_dataset_read(const struct el_dataset *dataset, enum el_data_split split, int64_t position,
                               struct el_reader *reader, struct el_sample *sample_p);

/* Number types of safetensors, by enum el_stored_type. Private to its reader and writer. */

struct el_stored_kind {
    const char *name;
    size_t bytes;
    /* n numbers; `bytes` may be unaligned. */
    void (*to_double)(const char *bytes, size_t n, double *values);
    void (*from_double)(const double *values, size_t n, char *bytes); /* NULL: read only */
};

enum { EL_STORED_TYPES = 5 };
extern const struct el_stored_kind el_stored_types[EL_STORED_TYPES];
