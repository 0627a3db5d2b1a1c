/* A file in safetensors' format (huggingface.co/docs/safetensors): arrays of numbers by name, as weights are exchanged.
 *
 *     el_safetensors_open(path, &file);                       reads the header, and checks all of it
 *     array = el_safetensors_find(file, "fc.weight");         NULL: it has none
 *     el_safetensors_read(file, array, values);
 *     el_safetensors_close(file);
 *
 *     el_safetensors_begin(path, arrays, n, &writer);         the header, of n arrays
 *     el_safetensors_write(writer, values);                   an array after the other
 *     el_safetensors_end(writer);                             the file is there, whole
 *     el_safetensors_drop(writer);                            instead: what was there stays
 *
 * The format: 8 bytes, how long the header is; the header, JSON: {"NAME": {"dtype": "F32", "shape": [2, 3],
 * "data_offsets": [BEGIN, END]}, ...}, and perhaps "__metadata__", texts by name; the data, each array row by row, one
 * after the other without a gap. All numbers little-endian.
 * Read are F64, F32, F16, BF16 and I64 (PyTorch's counts); written F64, F32 and I64.
 *
 * Shapes: an array without dimensions is one number. Values are doubles, whatever the file has; an I64 beyond 2^53 is
 * rounded.
 * Timing: blocking. Threads: a file that is open may be read by several; a writer belongs to one.
 * Ownership: arrays and their names are the file's.
 * Errors: EL_ERR_INVALID in one line, with the file and what is wrong with it: no such file at all, not of the format,
 * cut off, two arrays of one name, offsets that overlap, leave a gap or lie outside, a list of shards; EL_ERR_IO where
 * it cannot be read or written.
 */
#pragma once

#include <stdint.h>

#include "runtime/base/status.h"

enum { EL_STORED_DIMS_MAX = 8 };

enum el_stored_type { EL_STORED_F64, EL_STORED_F32, EL_STORED_F16, EL_STORED_BF16, EL_STORED_I64 };

struct el_stored_array {
    const char *name;
    enum el_stored_type type;
    int n_dims;
    int64_t dims[EL_STORED_DIMS_MAX];
    int64_t count;  /* of its numbers */
    uint64_t begin; /* in the data; a writer's are filled in by it */
};

struct el_safetensors;
enum el_status el_safetensors_open(const char *path, struct el_safetensors **file_p);
void el_safetensors_close(struct el_safetensors *file); /* NULL is legal */
const char *el_safetensors_path(const struct el_safetensors *file);
int el_safetensors_count(const struct el_safetensors *file);
/* By place, from 0, in the order of their data; by name. */
const struct el_stored_array *el_safetensors_array(const struct el_safetensors *file, int i);
const struct el_stored_array *el_safetensors_find(const struct el_safetensors *file, const char *name);
/* values: [count]. */
enum el_status el_safetensors_read(const struct el_safetensors *file, const struct el_stored_array *array,
                                   double *values);

struct el_safetensors_writer;
/* Name, type and dims of `arrays` are read, and must stay. */
enum el_status el_safetensors_begin(const char *path, const struct el_stored_array *arrays, int n,
                                    struct el_safetensors_writer **writer_p);
/* The next array's values, all of them. What cannot be written is said at the end. */
void el_safetensors_write(struct el_safetensors_writer *writer, const double *values);
/* The same of its next `count` numbers, which are of its type already. */
void el_safetensors_write_as(struct el_safetensors_writer *writer, const void *numbers, int64_t count);
/* Of all of the file: el_hash_blocks, and its length. */
struct el_safetensors_sum {
    uint64_t hash;
    int64_t bytes;
};
/* sum_p may be NULL. */
enum el_status el_safetensors_end(struct el_safetensors_writer *writer, struct el_safetensors_sum *sum_p);
void el_safetensors_drop(struct el_safetensors_writer *writer); /* NULL is legal */
