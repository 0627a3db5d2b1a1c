/* Collectives over all members of a job: every rank gives its spans on the common clock, rank 0 finds when the last one
 * arrived at each, and all recorders are told. Between the job's files only. */
#ifndef EL_BENCH_JOB_COLLECTIVES_H
#define EL_BENCH_JOB_COLLECTIVES_H

#include "bench/job/worker.h"
#include "profiles/recorder.h"
#include "runtime/comm/clock_relation.h"

struct el_job_recorders {
    struct el_recorder *recorders[EL_MEMBERS_MAX]; /* of each member of this process; NULL: nothing was recorded */
    int n, first;                                  /* members of this process, and the first one's position */
    struct el_clock_anchor begin, end;             /* round what was measured */
    bool too_many;                                 /* made here: more operations than are looked at */
};

/* Collective. `*figures_p` on rank 0: [{"phase", "bytes", "skew_ms", "skew_median_ms", "transfer_ms", "late_ms": [a
 * position]}], one an operation of the step, empty where there is none; NULL elsewhere. */
enum el_status el_job_relate_collectives(const struct el_job *job, struct el_job_recorders *recorders,
                                         json_t **figures_p);

#endif
