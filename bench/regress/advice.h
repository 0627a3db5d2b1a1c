/* What to do next, after the gate's answer: one line, and never one that cannot help. */
#ifndef EL_BENCH_REGRESS_ADVICE_H
#define EL_BENCH_REGRESS_ADVICE_H

#include <stdio.h>

#include "bench/options/config.h"
#include "bench/regress/regress.h"

/* "Next: ...". `run`: the folder of the run that was judged, "" with --ab. `added`: it was kept in the store. */
void el_regress_print_next(const struct el_options *options, const struct el_regress_set *set, const char *run,
                           bool added, FILE *out);

#endif
