/* What DataParallel does and DistributedDataParallel avoids: six causes of step time and of the master's memory, each
 * removed by a switch (--dp-fix). Every set is a schedule of its own; all six give ddp's ops. A fix switches on those
 * that it needs, earlier ones in the list, so that removing causes one by one gives each its own difference. Memory of
 * each set: docs/semantics.md. */
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
#define EL_DP_FIX_NAMES "inputs|outputs|update|replicas|overlap|threads"
enum { EL_DP_FIXES = 6, EL_DP_FIX_TEXT_BYTES = 64 };

struct el_dp_fix_row {
    const char *name;
    unsigned fix, needs; /* needs: direct ones */
    const char *cause;   /* dp's behaviour without the fix, in a few words */
};

const struct el_dp_fix_row *el_dp_fix_rows(void);
/* Adds all needed fixes. */
unsigned el_dp_fix_close(unsigned fixes);
/* "inputs,outputs", "all", "none" for 0. */
void el_dp_fix_text(unsigned fixes, char *text, size_t bytes);
