/* The integers that ops of experts read: choices, places of rows, counts. Some experts and parts have no rows, some
 * choices no place, and some rows are not used. */
#pragma once

#include "tests/unit/test_kernels_common.h"

/* k different experts per token; the first ones are chosen most often. */
static inline void fill_choices(const int64_t *d, int32_t *chosen)
{
    for (int64_t i = 0; i < d[0] * d[1]; i++) {
        const double u = operand_value(IN_POSITIVE, 9, i);
        for (int64_t j = 0; j < d[3]; j++)
            chosen[i * d[3] + j] = (int32_t)(((int64_t)(u * u * (double)d[2]) + j) % d[2]);
    }
}

/* n k different rows of r, from the last one down. */
static inline void fill_places(const int64_t *d, int32_t *place)
{
    for (int64_t i = 0; i < d[0] * d[2]; i++) place[i] = i % 5 == 3 || i >= d[3] ? -1 : (int32_t)(d[3] - 1 - i);
}

/* sizes: e m g; of `rows` in all. A group takes half of what is left of three quarters of its part. */
static inline void fill_counts(int64_t rows, const int64_t *sizes, int32_t *counts)
{
    const int64_t m = sizes[1], slots = sizes[0] * sizes[2];
    for (int64_t part = 0; part < m; part++) {
        int64_t left = rows / m - rows / m / 4;
        for (int64_t i = 0; i < slots; i++) {
            const int64_t n = (i + part) % 3 == 1 ? 0 : (left + 1) / 2;
            counts[part * slots + i] = (int32_t)n;
            left -= n;
        }
    }
}

static inline void fill_expert_ids(enum el_op_kind op, const int64_t *d, const struct operand *o, int32_t *ids)
{
    if (o->kind != KEPT_ID) return;
    if (op == EL_OP_ROUTE_BACKWARD || op == EL_OP_ROUTE_PLACE) fill_choices(d, ids);
    if (op == EL_OP_ROWS_TAKE || op == EL_OP_ROWS_GIVE) fill_places(d, ids);
    if (op >= EL_OP_GROUPED_FORWARD && op <= EL_OP_GROUPED_BACKWARD_WEIGHTS) fill_counts(d[0], d + 3, ids);
    if (op == EL_OP_SWIGLU_FORWARD || op == EL_OP_SWIGLU_BACKWARD) fill_counts(d[0], d + 2, ids);
}
