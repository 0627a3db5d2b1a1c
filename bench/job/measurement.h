/* What the files of one launch share: measure.c trains, account.c makes a process's account of it, and repeat.c rank
 * 0's document of the accounts. Nobody else includes it. */
#pragma once

#include <pthread.h>

#include "bench/job/worker.h"
#include "profiles/nvml.h"
#include "profiles/recorder.h"
#include "profiles/system.h"
#include "runtime/comm/clock_relation.h"

/* What the system says of a member's memory; negative: it does not. */
struct el_job_reading {
    bool is_gpu;
    int64_t begin_bytes, end_bytes; /* of the measured steps */
    int64_t reserved_bytes;         /* -1: simulated, nothing is mapped */
    char reason[EL_ERROR_TEXT_BYTES];
};

/* window.c: what the system and the driver say over a process's measured steps. All zero before it is opened. */
struct el_job_window {
    const struct el_job_devices *devices;
    pthread_mutex_t lock;
    int cpus[EL_SYSTEM_CPUS_MAX], n_cpus; /* of this process's devices, each once */
    bool simulated, begun, ended;
    struct el_system_reading begin, end;
    json_t *begin_links, *end_links; /* el_links_counters */
    struct el_nvml *nvml;            /* NULL: no GPU, or not to be had */
    struct el_nvml_figures no_nvml;  /* then: why */
    struct el_job_reading *memory;   /* [devices of this process] */
    _Atomic int64_t resident_bytes;  /* of this process, when its members' measured steps ended */
};

/* `devices` must stay. A driver without NVML is no error: the figures have its reason. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_job_window_open(const struct el_job_devices *devices, struct el_job_window *window);
void el_job_window_close(struct el_job_window *window);
/* A member each, from its own thread; its memory is read first. */
void el_job_window_read_memory(struct el_job_window *window, int member);
void el_job_window_begin(struct el_job_window *window, int member);
void el_job_window_end(struct el_job_window *window, int member);
/* When all have ended. */
void el_job_window_compare(const struct el_job_window *window, struct el_system_figures *figures_p);
/* NULL: the member's device is no GPU. Valid until close. */
const struct el_nvml_figures *el_job_window_gpu(const struct el_job_window *window, int member);
/* This process's part of the repeat's `system` (el_record_system). New reference. */
json_t *el_job_window_account(const struct el_job_window *window, const struct el_system_figures *figures);

struct el_job_measurement {
    const struct el_job *job;
    struct el_job_devices open;
    struct el_job_window window;
    int n_workers, n_recorders;     /* of this process: one per worker, or 0: nothing is recorded */
    struct el_recorder **recorders; /* [n_workers] */
    struct el_watch *launches;      /* [n_workers], of a trace of asynchronous devices */
    struct el_probe *probes;        /* [devices of this process] */
    struct el_watch watch;          /* for a profiler that is attached */
    bool watched;
    int events;                   /* of rank 0, to which what happens is added; -1: none */
    struct el_job_beside *beside; /* NULL: nobody, or they have ended */
    json_t *beside_ratios;        /* when they have */
    double core_rate_pct;         /* rank 0: the lower one of before and after training; NAN: unknown */
    struct el_train_result result;
    bool trained;
    bool alone;                        /* a rank is stopped: nothing more is said to the others */
    struct el_clock_anchor begin, end; /* round what was measured */
    bool too_many_collectives;         /* more than are evaluated */
    size_t shown_step;                 /* the measured step that is drawn, of a model in stages */
    json_t *collectives;               /* rank 0 */
    json_t *arrivals;                  /* rank 0: by position, null of who is in no collective */
    json_t *prediction;                /* simulated: what times are worth; NULL: unknown */
};

/* Each member's; NULL: nothing is recorded. */
static inline struct el_recorder *el_job_recorder(const struct el_job_measurement *m, int member)
{
    return m->n_recorders ? m->recorders[member / (m->open.n / m->n_workers)] : NULL;
}

/* The recorder's number of a segment of training; negative: not kept. */
static inline int el_job_segment(enum el_segment segment)
{
    return segment == EL_SEGMENT_NONE ? -1 : (int)(segment - EL_SEGMENT_MEASURED);
}

/* collectives.c. Collective: every rank gives its spans of collectives and messages on the common clock, rank 0 finds
 * when the last one arrived at each, and all recorders are told. `collectives` on rank 0: those of docs/record.md. */
enum el_status el_job_relate_collectives(struct el_job_measurement *m);

/* beside.c: the devices of `--beside` train until they are closed, in step with whoever calls meet before each of its
 * own steps. `beside_p`: NULL where none are wanted. Errors of meeting: that of the first of them that failed. */
enum el_status el_job_beside_open(const struct el_job *job, struct el_job_beside **beside_p);
enum el_status el_job_beside_meet(struct el_job_beside *beside);
/* Ends them. How long a step of each took, over the measured device's; null without any. New reference. */
json_t *el_job_beside_close(struct el_job_beside *beside);

/* profile.c: what --profile and --trace ask for of this process, in the first launch: writes its ranks'
 * traces, and
 * {"schedule", "steps", "trace", "devices": [{"device", "rank", "steps", "rows"}]}; null: nothing was asked
 * for. New reference. Errors: EL_ERR_IO, EL_ERR_HOST_MEMORY. */
enum el_status el_job_profile(const struct el_job_measurement *m, json_t **profile_p);

/* account.c: {"members", "process", "system", "profile"} of this rank. New reference. */
enum el_status el_job_account(const struct el_job_measurement *m, json_t **account_p);
/* The repeat's document from all ranks' accounts, in order of ranks. New reference. */
json_t *el_job_repeat(const struct el_job_measurement *m, const json_t *accounts);
