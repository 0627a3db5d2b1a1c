/* Ranks tell rank 0, as JSON text, how it went and what each has. Between the job's files only. */
#ifndef EL_BENCH_JOB_GATHER_H
#define EL_BENCH_JOB_GATHER_H

#include "bench/job/worker.h"

/* Collective, also for ranks that failed: every rank gives its status and its part (stolen; may be NULL). Rank 0 gets
 * the parts in order of ranks in a new array, and in `error_p` the failure that explains the others (EL_OK: none);
 * other ranks get NULL and their own. */
enum el_status el_job_gather(const struct el_job *job, enum el_status mine, json_t *part, json_t **parts_p,
                             struct el_error *error_p);

#endif
