/* A slice: which part of an array of the model an array here is, where one is cut across. What begins, is drawn, saved
 * and compared goes by the element's number in the whole array, its origin, so that every way of cutting has the same
 * numbers.
 *
 *     struct el_slice half = {.dim = 0, .first = 4, .of = 8};      rows 4 to 7 of 8: the shape has 4 rows
 *     for (int64_t i = 0; i < count; i += el_slice_run(&shape, &half))
 *         el_slice_at(&shape, &half, i)            where element i stands in the origin; the run's others follow it
 *
 * Units: elements. Threads: any.
 */
#pragma once

#include <stdint.h>

enum { EL_SHAPE_MAX = 4 };

struct el_shape {
    int n;
    int64_t d[EL_SHAPE_MAX];
};

static inline int64_t el_shape_count(const struct el_shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->n; i++) count *= shape->d[i];
    return count;
}

/* Along dimension `dim` the origin has `of`, and this begins at `first`. of 0: it is all of its origin. */
struct el_slice {
    int dim;
    int64_t first, of;
};

/* How many elements stand beside each other here and in the origin. */
int64_t el_slice_run(const struct el_shape *shape, const struct el_slice *slice);
int64_t el_slice_at(const struct el_shape *shape, const struct el_slice *slice, int64_t i);
struct el_shape el_slice_origin(const struct el_shape *shape, const struct el_slice *slice);
/* Values of the origin to those of the slice; and back, where the others stay as they are. */
void el_slice_take(const struct el_shape *shape, const struct el_slice *slice, const double *origin, double *values);
void el_slice_put(const struct el_shape *shape, const struct el_slice *slice, const double *values, double *origin);
