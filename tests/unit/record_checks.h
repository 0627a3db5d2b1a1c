/* What the tests of records ask of a document, by path. */
#pragma once

#include <math.h>

#include "bench/base/jvalue.h"

static inline void near(const json_t *record, const char *path, double wanted)
{
    double got = el_json_number(record, path);
    if (!(fabs(got - wanted) <= 1e-9 * fmax(1, fabs(wanted))))
        fail_msg("%s: got %.12g, wanted %.12g", path, got, wanted);
}

static inline bool is_null(const json_t *record, const char *path)
{
    return json_is_null(el_json_at(record, path));
}

/* A figure by its path; NAN: null. */
struct figure {
    const char *path;
    double wanted;
};

static inline void near_all(const json_t *record, const struct figure *figures)
{
    for (const struct figure *f = figures; f->path; f++) {
        if (!isnan(f->wanted)) near(record, f->path, f->wanted);
        if (isnan(f->wanted) && !is_null(record, f->path)) fail_msg("%s is not null", f->path);
    }
}

#define FIGURES(record, ...) near_all(record, (const struct figure[]){__VA_ARGS__, {NULL, 0}})
