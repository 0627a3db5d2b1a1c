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
