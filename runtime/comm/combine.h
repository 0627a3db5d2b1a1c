/* Several arrays combined into one, in a fixed order: the arithmetic of every communicator, apart from how the arrays
 * got here. Element by element, in that order only: the same bits whatever the length, the alignment and the machine's
 * vector width. Integers wrap; of floating-point numbers a NaN stays one, also in a minimum or a maximum. Of half and
 * bfloat16 a sum or an average is taken in f32, of other reductions each pair, and rounded to nearest even
 * (runtime/base/half.h).
 * Timing: bound by memory; block by block, so that each array goes through the caches once. Threads: any; it allocates
 * nothing. Errors: none. */
#pragma once

#include "runtime/comm/comm.h"

/* outs[n_outs][count], ins[n_ins][count], n_ins > 0: outs[*][i] = ((ins[0][i] . ins[1][i]) . ins[2][i]) . ... An output
 * may be one of the inputs, not overlap it otherwise. `members`: an average is divided by it, as everything is combined
 * now; 0: more is to come. el_comm_reduces() says which types go with which reduction. */
void el_combine(enum el_comm_reduction reduction, enum el_dtype dtype, int members, void *const *outs, int n_outs,
                const void *const *ins, int n_ins, size_t count);
