/* The sum of el_combine, for who has nothing else. */
#ifndef EL_COMM_SUM_H
#define EL_COMM_SUM_H

#include "runtime/comm/combine.h"

static inline void el_sum(enum el_dtype dtype, void *const *outs, int n_outs, const void *const *ins, int n_ins,
                          size_t count)
{
    el_combine(EL_COMM_SUM, dtype, 0, outs, n_outs, ins, n_ins, count);
}

#endif
