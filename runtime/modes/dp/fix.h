/* What DataParallel does that DistributedDataParallel need not: six causes of its step's length and of the master's
 * memory, each with a switch that takes it away (--dp-fix). Each set of them is a schedule of its own; with all six a
 * step's ops are those of ddp with a thread per rank.
 *
 * A fix may need others: they are switched on with it. The list is in an order in which each needs only earlier ones,
 * so that taken away one after another every cause has a difference of its own.
 *
 * Memory, in copies of the parameters P with S of optimizer state, at the end of backward where gradients are freed:
 *     the master          (3 + S) P in every set
 *     another device      2 P; with `overlap` 3 P, as gradients and buckets live together; with `update` (4 + S) P, a
 *                         replica beside what the master has; with `replicas` (3 + S) P, what the master has
 * With kept gradients an owner has P more, or, with `overlap`, the new gradients of one layer. Outputs are on the
 * master alone without `outputs` (dp_loss.c), inputs of the whole batch without `inputs`. With all fixes all is ddp's.
 *
 * Ownership: constant. Threads: any.
 */
#pragma once

#include <stddef.h>

enum el_dp_fix {
    EL_DP_FIX_INPUTS = 1,
    EL_DP_FIX_OUTPUTS = 2,
    EL_DP_FIX_UPDATE = 4,
    EL_DP_FIX_REPLICAS = 8,
    EL_DP_FIX_OVERLAP = 16,
    EL_DP_FIX_THREADS = 32,
    EL_DP_FIX_ALL = 63
};
/* In the order of their bits. */
#define EL_DP_FIX_NAMES "inputs|outputs|update|replicas|overlap|threads"
enum { EL_DP_FIXES = 6, EL_DP_FIX_TEXT_BYTES = 64 };

struct el_dp_fix_row {
    const char *name;
    unsigned fix, needs; /* the latter directly */
    const char *cause;   /* what dp does without it, in a few words */
};

/* [EL_DP_FIXES] */
const struct el_dp_fix_row *el_dp_fix_rows(void);
/* With all that these need. */
unsigned el_dp_fix_close(unsigned fixes);
/* "inputs,outputs", "all", "none" for 0. */
void el_dp_fix_text(unsigned fixes, char *text, size_t bytes);
