/* Combines arrays element by element in a fixed order: same bits for any length, alignment and vector width. Integers
 * wrap; NaN stays NaN, also in min and max. Sums and averages of f16 and bf16 are taken in f32 and rounded once
 * (runtime/base/half.h); their other reductions round per pair. Threads: any. Cannot fail. */
#pragma once

#include "runtime/comm/comm.h"

/* outs[n_outs][count], ins[n_ins][count], n_ins > 0: outs[*][i] = ((ins[0][i] . ins[1][i]) . ins[2][i]) . ... An
 * output may be one of the inputs but must not overlap it otherwise. `members`: divides an average; 0: more inputs
 * follow later. */
void el_combine(enum el_comm_reduction reduction, enum el_dtype dtype, int members, void *const *outs, int n_outs,
                const void *const *ins, int n_ins, size_t count);
