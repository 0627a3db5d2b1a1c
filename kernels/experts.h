/* Where the rows of experts are (kernels.h).
 *
 *     struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);       sizes e m g, r rows
 *     for (struct el_expert_group group = {0}; el_experts_next(&all, &group);) ...   by part, then by expert */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/base/host_device.h"

/* Half of a random number's step: no draw is 0, so that a weight of 1 comes before one of 1e-9 in each. */
#define EL_EXPERTS_HALF_DRAW 0x1p-25

struct el_experts {
    const int32_t *counts; /* [m, g, e] */
    int64_t e, m, g, room; /* room: rows of a part */
};

struct el_expert_group {
    int64_t at;                     /* groups so far */
    int64_t part, expert, first, n; /* rows [first, first + n) */
};

static inline struct el_experts el_experts(const void *counts, const int64_t *sizes, int64_t rows)
{
    const struct el_experts all = {(const int32_t *)counts, sizes[0], sizes[1], sizes[2], rows / sizes[1]};
    return all;
}

EL_HOST_DEVICE static inline int64_t el_experts_rows(const struct el_experts *all, int64_t part, int64_t expert)
{
    int64_t n = 0;
    for (int64_t g = 0; g < all->g; g++) n += all->counts[(part * all->g + g) * all->e + expert];
    return n;
}

static inline bool el_experts_next(const struct el_experts *all, struct el_expert_group *group)
{
    const int64_t part = group->at / all->e, expert = group->at % all->e;
    if (part == all->m) return false;
    group->first = expert == 0 ? part * all->room : group->first + group->n;
    group->part = part, group->expert = expert;
    group->n = el_experts_rows(all, part, expert);
    group->at++;
    return true;
}

/* Of a part's used rows: [*first_p, ...); returns their number. */
static inline int64_t el_experts_part(const struct el_experts *all, int64_t part, int64_t *first_p)
{
    int64_t n = 0;
    for (int64_t e = 0; e < all->e; e++) n += el_experts_rows(all, part, e);
    *first_p = part * all->room;
    return n;
}
