/* Slices of arrays; see slice.h. */
#include "runtime/graph/slice.h"

#include <string.h>

/* Elements behind dimension `dim`. */
static int64_t inner(const struct el_shape *shape, int dim)
{
    int64_t n = 1;
    for (int i = dim + 1; i < shape->n; i++) n *= shape->d[i];
    return n;
}

int64_t el_slice_run(const struct el_shape *shape, const struct el_slice *slice)
{
    return slice->of ? shape->d[slice->dim] * inner(shape, slice->dim) : el_shape_count(shape);
}

int64_t el_slice_at(const struct el_shape *shape, const struct el_slice *slice, int64_t i)
{
    if (!slice->of) return i;
    int64_t run = el_slice_run(shape, slice), each = inner(shape, slice->dim);
    return (i / run * slice->of + slice->first) * each + i % run;
}

struct el_shape el_slice_origin(const struct el_shape *shape, const struct el_slice *slice)
{
    struct el_shape origin = *shape;
    if (slice->of) origin.d[slice->dim] = slice->of;
    return origin;
}

void el_slice_take(const struct el_shape *shape, const struct el_slice *slice, const double *origin, double *values)
{
    int64_t n = el_shape_count(shape), run = el_slice_run(shape, slice);
    for (int64_t i = 0; i < n; i += run)
        memcpy(values + i, origin + el_slice_at(shape, slice, i), (size_t)run * sizeof *values);
}

void el_slice_put(const struct el_shape *shape, const struct el_slice *slice, const double *values, double *origin)
{
    int64_t n = el_shape_count(shape), run = el_slice_run(shape, slice);
    for (int64_t i = 0; i < n; i += run)
        memcpy(origin + el_slice_at(shape, slice, i), values + i, (size_t)run * sizeof *values);
}
