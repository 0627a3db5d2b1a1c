/* Sums of several arrays in a fixed order: the arithmetic of every communicator, apart from how the arrays got here.
 * Only additions in that order: the same bits whatever the length, the alignment and the machine's vector width.
 * Timing: bound by memory; block by block, so that each array goes through the caches once. Threads: any; it allocates
 * nothing. Errors: none. */
#ifndef EL_COMM_SUM_H
#define EL_COMM_SUM_H

#include "kernels/kernels.h"

/* outs[n_outs][count], ins[n_ins][count], n_ins > 0: outs[*][i] = ((ins[0][i] + ins[1][i]) + ins[2][i]) + ... An output
 * may be one of the inputs, not overlap it otherwise. */
void el_sum(enum el_dtype dtype, void *const *outs, int n_outs, const void *const *ins, int n_ins, size_t count);

#endif
