/* What the files of one launch share: measure.c trains, account.c makes a process's account of it, and
 * repeat.c rank 0's document. Nobody else includes it. */
#ifndef EL_BENCH_JOB_MEASUREMENT_H
#define EL_BENCH_JOB_MEASUREMENT_H

#include "bench/job/collectives.h"
#include "bench/job/gpu.h"
#include "bench/job/system.h"
#include "bench/job/worker.h"

/* What the system says of a member's memory; negative: it does not. */
struct el_job_reading {
    int64_t begin_bytes, end_bytes; /* of the measured steps */
    int64_t reserved_bytes;
    char reason[EL_ERROR_TEXT_BYTES];
};

struct el_job_measurement {
    const struct el_job *job;
    struct el_job_devices open;
    struct el_job_system *window;
    struct el_job_gpu *gpus;
    struct el_layout layout;
    struct el_recorder *recorders[EL_MEMBERS_MAX]; /* one a worker of this process */
    int n_recorders;
    struct el_recorder *of_member[EL_MEMBERS_MAX]; /* each member's of them; NULL: nothing is recorded */
    struct el_probe probes[EL_MEMBERS_MAX];
    struct el_watch watch; /* for a profiler that is attached */
    bool watched;
    struct el_train_result result;
    bool trained;
    struct el_job_reading readings[EL_MEMBERS_MAX];
    _Atomic int64_t resident_bytes; /* of this process, when its members' measured steps ended */
    struct el_job_recorders relation;
    json_t *collectives; /* rank 0 */
};

static inline struct el_recorder *el_job_recorder(const struct el_job_measurement *m, int member)
{
    return m->of_member[member];
}

/* The recorder's number of a segment of training; negative: not kept. */
static inline int el_job_segment(enum el_segment segment)
{
    return segment == EL_SEGMENT_NONE ? -1 : (int)(segment - EL_SEGMENT_MEASURED);
}

/* {"members": [...], "process": {...}, "system": {...}, "recorder_cost": {...}} of this rank. New reference. */
enum el_status el_job_account(const struct el_job_measurement *m, json_t **account_p);
/* The repeat's document from all ranks' accounts, in order of ranks. New reference. */
json_t *el_job_repeat(const struct el_job_measurement *m, const json_t *accounts);

#endif
