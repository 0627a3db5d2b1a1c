/* Files in safetensors' format (huggingface.co/docs/safetensors): named arrays of numbers.
 *
 *     el_safetensors_open(path, &file);                       reads and checks the header
 *     array = el_safetensors_find(file, "fc.weight");         NULL: not found
 *     el_safetensors_read(file, array, values);
 *     el_safetensors_close(file);
 *
 *     el_safetensors_begin(path, arrays, n, &writer);         the header of n arrays
 *     el_safetensors_write(writer, values);                   one array after the other
 *     el_safetensors_end(writer);                             the complete file appears
 *     el_safetensors_drop(writer);                            instead: an existing file stays
 *
 * Reads F64, F32, F16, BF16 and I64 (PyTorch's counts); writes F64, F32 and I64. Values are doubles; an I64 beyond 2^53
 * is rounded. An array without dimensions is one number. Blocking. Threads: several may read an open file; a writer
 * belongs to one. Ownership: arrays and names are the file's. Errors: EL_ERR_INVALID in one line with the file and the
 * reason (missing, wrong format, truncated, duplicate names, offsets that overlap, leave gaps or are outside, a list of
 * shards); EL_ERR_IO. */
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
    int64_t count;
    uint64_t begin; /* in the data; set by the writer */
};

struct el_safetensors;
enum el_status el_safetensors_open(const char *path, struct el_safetensors **file_p);
void el_safetensors_close(struct el_safetensors *file); /* NULL is legal */
const char *el_safetensors_path(const struct el_safetensors *file);
int el_safetensors_count(const struct el_safetensors *file);
/* By index from 0, in the order of the data; by name. */
const struct el_stored_array *el_safetensors_array(const struct el_safetensors *file, int i);
const struct el_stored_array *el_safetensors_find(const struct el_safetensors *file, const char *name);
enum el_status el_safetensors_read(const struct el_safetensors *file, const struct el_stored_array *array,
                                   double *values);

struct el_safetensors_writer;
/* Reads name, type and dims of `arrays`, which must outlive the writer. */
enum el_status el_safetensors_begin(const char *path, const struct el_stored_array *arrays, int n,
                                    struct el_safetensors_writer **writer_p);
/* All values of the next array. Failures are reported at the end. */
void el_safetensors_write(struct el_safetensors_writer *writer, const double *values);
/* The next `count` numbers of the current array, already in its type. */
void el_safetensors_write_as(struct el_safetensors_writer *writer, const void *numbers, int64_t count);
/* The whole file's el_hash_blocks and length. */
struct el_safetensors_sum {
    uint64_t hash;
    int64_t bytes;
};
enum el_status el_safetensors_end(struct el_safetensors_writer *writer, struct el_safetensors_sum *sum_p);
void el_safetensors_drop(struct el_safetensors_writer *writer); /* NULL is legal */
