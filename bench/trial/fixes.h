/* The words of --dp-fix. */
#ifndef EL_BENCH_TRIAL_FIXES_H
#define EL_BENCH_TRIAL_FIXES_H

#include "runtime/base/status.h"

/* "inputs,overlap", "all", or "" for none, as bits of enum el_dp_fix with all that they need. Errors: EL_ERR_INVALID
 * naming the word. */
enum el_status el_fixes_read(const char *text, unsigned *fixes_p);

#endif
