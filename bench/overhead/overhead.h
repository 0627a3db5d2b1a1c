/* `evenload overhead`: what recording costs each mode, as a judgement on a run whose trials have control blocks of the
 * recorder (docs/metrics.md, What recording costs). From the run's document alone. */
#ifndef EL_BENCH_OVERHEAD_H
#define EL_BENCH_OVERHEAD_H

#include <jansson.h>
#include <stdio.h>

#include "runtime/base/status.h"

/* Of a step. */
#define EL_OVERHEAD_LIMIT_PCT 1.0

/* Verdicts: where the interval lies. */
#define EL_OVERHEAD_UNDER        "under"
#define EL_OVERHEAD_OVER         "over"
#define EL_OVERHEAD_INCONCLUSIVE "inconclusive" /* on both sides, or there is none */
/* `recorder` is a trial's. `*why_p`: for INCONCLUSIVE; else "". Valid as long as the trial. */
const char *el_overhead_judge(const json_t *recorder, const char **why_p);

/* {"limit_pct", "holds", "dir", "trials": [{"mode", "global_batch", "device_names", "status", "reason", "step_ms",
 * "recorder", "verdict", "why", "warnings"}]}; verdict is "under", "over" or "inconclusive", and that on null devices;
 * `holds` is false where one is over, null where none is, but
 * one is inconclusive. New reference. */
json_t *el_overhead_document(const json_t *run, const char *dir);
/* That document, as a table, and what it comes to in a sentence. */
void el_overhead_print(const json_t *document, FILE *out);

#endif
