/* Shared by the files of one launch: measure.c trains, account.c makes a process's account, repeat.c makes rank 0's
 * document of the accounts. */
#pragma once

#include <pthread.h>

#include "bench/job/worker.h"
#include "profiles/nvml.h"
#include "profiles/recorder.h"
#include "profiles/system.h"
#include "runtime/comm/clock_relation.h"

/* A member's memory as the system sees it; negative: unknown. */
struct el_job_reading {
    bool is_gpu;
    int64_t begin_bytes, end_bytes; /* of the measured steps */
    int64_t reserved_bytes;         /* -1: simulated, nothing is mapped */
    char reason[EL_ERROR_TEXT_BYTES];
};

/* window.c: system and driver readings over a process's measured steps. All zero before it is opened. */
struct el_job_window {
    const struct el_job_devices *devices;
    pthread_mutex_t lock;
    int cpus[EL_SYSTEM_CPUS_MAX], n_cpus; /* of this process's devices, without repeats */
    bool simulated, begun, ended;
    struct el_system_reading begin, end;
    json_t *begin_links, *end_links; /* el_links_counters */
    struct el_nvml *nvml;            /* NULL: no GPU, or unavailable */
    struct el_nvml_figures no_nvml;  /* the reason then */
    struct el_job_reading *memory;   /* [devices of this process] */
    _Atomic int64_t resident_bytes;  /* of this process, after its members' measured steps */
};

/* `devices` is borrowed until close. A driver without NVML is no error: the figures have the reason. Errors:
 * EL_ERR_HOST_MEMORY. */
enum el_status el_job_window_open(const struct el_job_devices *devices, struct el_job_window *window);
void el_job_window_close(struct el_job_window *window);
/* Called by each member from its own thread, memory first. */
void el_job_window_read_memory(struct el_job_window *window, int member);
void el_job_window_begin(struct el_job_window *window, int member);
void el_job_window_end(struct el_job_window *window, int member);
/* After all have ended. */
void el_job_window_compare(const struct el_job_window *window, struct el_system_figures *figures_p);
/* NULL: no GPU. Valid until close. */
const struct el_nvml_figures *el_job_window_gpu(const struct el_job_window *window, int member);
/* This process's part of `system` (el_record_system). New reference. */
json_t *el_job_window_account(const struct el_job_window *window, const struct el_system_figures *figures);

struct el_job_measurement {
    const struct el_job *job;
    struct el_job_devices open;
    struct el_job_window window;
    int n_workers, n_recorders;     /* n_recorders: one per worker of this process, or 0: nothing is recorded */
    struct el_recorder **recorders; /* [n_workers] */
    struct el_watch *launches;      /* [n_workers], for a trace of asynchronous devices */
    struct el_probe *probes;        /* [devices of this process] */
    struct el_watch watch;          /* for an attached profiler */
    bool watched;
    int events;                   /* rank 0's file of events; -1: none */
    struct el_job_beside *beside; /* NULL: none, or ended */
    json_t *beside_ratios;        /* set at the end */
    double core_rate_pct;         /* rank 0: the lower of before and after training; NAN: unknown */
    struct el_train_result result;
    bool trained;
    bool alone;                        /* a rank is stopped: no more communication */
    struct el_clock_anchor begin, end; /* around the measurement */
    bool too_many_collectives;         /* more than are evaluated */
    size_t shown_step;                 /* the drawn measured step, of a model in stages */
    json_t *collectives;               /* rank 0 */
    json_t *arrivals;                  /* rank 0: by position; null: in no collective */
    json_t *prediction;                /* simulated: quality of the times; NULL: unknown */
};

/* The member's recorder; NULL: nothing is recorded. */
static inline struct el_recorder *el_job_recorder(const struct el_job_measurement *m, int member)
{
    return m->n_recorders ? m->recorders[member / (m->open.n / m->n_workers)] : NULL;
}

/* The recorder's number of a training segment; negative: not kept. */
static inline int el_job_segment(enum el_segment segment)
{
    return segment == EL_SEGMENT_NONE ? -1 : (int)(segment - EL_SEGMENT_MEASURED);
}

/* collectives.c. Collective: rank 0 finds each last arrival on the common clock and tells all recorders. Sets
 * `collectives` on rank 0 (docs/record.md). */
enum el_status el_job_relate_collectives(struct el_job_measurement *m);

/* beside.c: --beside's devices train until closed; meet starts each step of all together. `beside_p`: NULL if there are
 * none. Meeting returns the error of the first that failed. */
enum el_status el_job_beside_open(const struct el_job *job, struct el_job_beside **beside_p);
enum el_status el_job_beside_meet(struct el_job_beside *beside);
/* Each device's step time over the measured device's; null without any. New reference. */
json_t *el_job_beside_close(struct el_job_beside *beside);

/* profile.c, --profile and --trace, in the first launch: writes this process's traces and gives {"schedule", "steps",
 * "trace", "devices": [{"device", "rank", "steps", "rows"}]}; null: neither option. New reference. Errors: EL_ERR_IO,
 * EL_ERR_HOST_MEMORY. */
enum el_status el_job_profile(const struct el_job_measurement *m, json_t **profile_p);

/* account.c: {"members", "process", "system", "profile"} of this rank. New reference. */
enum el_status el_job_account(const struct el_job_measurement *m, json_t **account_p);
/* `accounts` in rank order. New reference. */
json_t *el_job_repeat(const struct el_job_measurement *m, const json_t *accounts);
