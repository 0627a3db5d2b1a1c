/* Arrays of a checkpoint's files as parts of the model's: checkpoint.h has how a piece says where it belongs.
 *
 * Ownership: plain values; the file must stay open. Threads: any. Errors: EL_ERR_INVALID, EL_ERR_IO.
 */
#pragma once

#include "runtime/data/safetensors.h"
#include "runtime/graph/graph.h"

struct el_piece {
    const struct el_safetensors *file;
    const struct el_stored_array *array; /* NULL: this file has none of that name */
    const struct el_stored_array *places;
    struct el_param as; /* the shape that it is a range of, and its slice */
    int64_t first;      /* of a range; -1: all of `as` */
};

/* The array `key` of a file as a part of `whole`. */
enum el_status el_piece_find(const struct el_safetensors *file, const char *key, const struct el_param *whole,
                             struct el_piece *piece);
/* Puts its values to where they belong in values[count of the whole]. */
enum el_status el_piece_put(const struct el_piece *piece, double *values);
/* Whether it is the whole array. */
bool el_piece_is_whole(const struct el_piece *piece);
/* Marks its elements in taken[count of the whole]. Refused: one that is marked already. */
enum el_status el_piece_take(const struct el_piece *piece, char *taken);
