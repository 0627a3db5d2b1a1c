/* What recording cost a launch, by counting: each rank's own, and the rank on which it was most. */
#ifndef EL_BENCH_JOB_COST_H
#define EL_BENCH_JOB_COST_H

#include <jansson.h>

#include "profiles/recorder.h"

/* {"events": {"clock_reads", "cpu_clock_reads", "kept_bytes"}, "cost_ns": {"clock_read", "cpu_clock_read",
 * "kept_byte"}, "counted_us"} a step, of the recorder of this process that has most to do; null where there is none, or
 * where it kept no step. Takes some 5 ms. New reference. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_job_cost(struct el_recorder *const *recorders, int n_recorders, json_t **cost_p);
/* Of the ranks' accounts that whose `recorder_cost` is highest. New reference, null where none is known. */
json_t *el_job_cost_of_ranks(const json_t *accounts);

#endif
