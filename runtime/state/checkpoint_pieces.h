/* Arrays of checkpoint files as parts of the model's (checkpoint.h).
 * Ownership: plain values; the file must stay open. Threads: any. Errors: EL_ERR_INVALID, EL_ERR_IO. */
#pragma once

#include "runtime/data/safetensors.h"
#include "runtime/graph/graph.h"

struct el_piece {
    const struct el_safetensors *file;
    const struct el_stored_array *array; /* NULL: not in this file */
    const struct el_stored_array *places;
    struct el_param as; /* shape and slice that contain it */
    int64_t first;      /* of a range; -1: all of `as` */
};

enum el_status el_piece_find(const struct el_safetensors *file, const char *key, const struct el_param *whole,
                             struct el_piece *piece);
/* Puts its values into values[count of the whole]. */
enum el_status el_piece_put(const struct el_piece *piece, double *values);
bool el_piece_is_whole(const struct el_piece *piece);
/* Marks its elements in taken[count of the whole]; refuses an element that is already marked. */
enum el_status el_piece_take(const struct el_piece *piece, char *taken);
