#include "runtime/state/checkpoint_pieces.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/state/checkpoint.h"
#include "runtime/state/weights.h"

#define EXACT 0x1p53 /* doubles are exact integers up to here */

static const char other_size[] = "is not as large as the model's: give the same sizes";

static enum el_status bad(const struct el_piece *piece, const char *text)
{
    return el_fail(EL_ERR_INVALID, "%s: '%.60s' %s", el_path_tail(el_safetensors_path(piece->file)), piece->array->name,
                   text);
}

static enum el_status bad_place(const struct el_piece *piece)
{
    return bad(piece, "says wrongly where it belongs: give --resume another checkpoint");
}

/* "piece.KEY" or "places.KEY": `count` integers. *found_p NULL: none. */
static enum el_status find_numbers(const struct el_piece *piece, const char *what, int64_t count,
                                   const struct el_stored_array **found_p)
{
    char name[EL_CHECKPOINT_NAME_BYTES + 8];
    snprintf(name, sizeof name, "%s.%s", what, piece->array->name);
    *found_p = el_safetensors_find(piece->file, name);
    return !*found_p || ((*found_p)->type == EL_STORED_I64 && (*found_p)->count == count) ? EL_OK : bad_place(piece);
}

static bool has_shape(const struct el_piece *piece)
{
    const struct el_stored_array wanted = el_weights_stored(&piece->as, EL_F64);
    bool same = piece->array->n_dims == wanted.n_dims;
    for (int i = 0; same && i < wanted.n_dims; i++) same = piece->array->dims[i] == wanted.dims[i];
    return same;
}

enum el_status el_piece_find(const struct el_safetensors *file, const char *key, const struct el_param *whole,
                             struct el_piece *piece)
{
    double cut[EL_CHECKPOINT_PIECE] = {0, 0, 0, 0, -1};
    const struct el_stored_array *stored;
    *piece = (struct el_piece){.file = file, .array = el_safetensors_find(file, key), .as = *whole};
    if (!piece->array) return EL_OK;
    EL_TRY(find_numbers(piece, "piece", EL_CHECKPOINT_PIECE, &stored));
    EL_TRY(find_numbers(piece, "places", piece->array->count, &piece->places));
    if (stored) EL_TRY(el_safetensors_read(file, stored, cut));
    for (int i = 0; i < EL_CHECKPOINT_PIECE; i++)
        if (fabs(cut[i]) > EXACT) return bad_place(piece);
    const int64_t dim = (int64_t)cut[0], at = (int64_t)cut[1], of = (int64_t)cut[2], n = (int64_t)cut[3];
    struct el_shape *shape = &piece->as.shape;
    piece->first = (int64_t)cut[4];
    if (of != 0) {
        if (dim < 0 || dim >= shape->n || at < 0 || n < 1 || n > of - at) return bad_place(piece);
        if (of != shape->d[dim]) return bad(piece, other_size);
        shape->d[dim] = n;
        piece->as.slice = (struct el_slice){.dim = (int)dim, .first = at, .of = of};
    }
    const int64_t count = el_shape_count(shape), range = piece->array->count;
    const bool fits = piece->first == -1
                          ? !piece->places && has_shape(piece)
                          : piece->first >= 0 && range <= count && (piece->places || piece->first <= count - range);
    return fits ? EL_OK : bad(piece, other_size);
}

bool el_piece_is_whole(const struct el_piece *piece)
{
    return piece->first < 0 && !piece->as.slice.of;
}

/* Places of its elements in `as`, for free(); NULL: no memory, or consecutive. */
static enum el_status read_places(const struct el_piece *piece, double **places_p)
{
    const int64_t n = piece->array->count, count = el_shape_count(&piece->as.shape);
    double *places = NULL;
    *places_p = NULL;
    if (!piece->places) return EL_OK;
    places = malloc((size_t)(n + 1) * sizeof *places);
    if (!places) return el_fail_errno("'%s'", piece->array->name);
    enum el_status status = el_safetensors_read(piece->file, piece->places, places);
    for (int64_t i = 0; i < n && status == EL_OK; i++)
        if (!(places[i] >= 0 && places[i] < (double)count)) status = bad_place(piece);
    if (status == EL_OK)
        *places_p = places;
    else
        free(places);
    return status;
}

enum el_status el_piece_put(const struct el_piece *piece, double *values)
{
    const struct el_shape *shape = &piece->as.shape;
    const int64_t count = el_shape_count(shape), n = piece->array->count;
    double *places, *read;
    EL_TRY(read_places(piece, &places));
    read = malloc((size_t)(n + count + 1) * sizeof *read);
    enum el_status status =
        read ? el_safetensors_read(piece->file, piece->array, read) : el_fail_errno("'%s'", piece->array->name);
    if (status == EL_OK && piece->first < 0) {
        el_weights_reorder(&piece->as, read, read + n, false);
        el_slice_put(shape, &piece->as.slice, read + n, values);
    }
    for (int64_t i = 0; status == EL_OK && piece->first >= 0 && i < n; i++)
        values[el_slice_at(shape, &piece->as.slice, places ? (int64_t)places[i] : piece->first + i)] = read[i];
    free(read);
    free(places);
    return status;
}

enum el_status el_piece_take(const struct el_piece *piece, char *taken)
{
    const struct el_shape *shape = &piece->as.shape;
    const struct el_slice *slice = &piece->as.slice;
    const int64_t run = el_slice_run(shape, slice), n = piece->array->count,
                  first = piece->first < 0 ? 0 : piece->first;
    double *places;
    EL_TRY(read_places(piece, &places));
    enum el_status status = EL_OK;
    for (int64_t i = 0, some; i < n && status == EL_OK; i += some) {
        const int64_t from = places ? (int64_t)places[i] : first + i, left = run - from % run;
        char *at = taken + el_slice_at(shape, slice, from);
        some = places ? 1 : left < n - i ? left : n - i;
        if (memchr(at, 1, (size_t)some))
            status = bad(piece, "has elements that another piece has too: give --resume another checkpoint");
        memset(at, 1, (size_t)some);
    }
    free(places);
    return status;
}
