/* The record: one launch's measurements (a repeat's file), and a trial over its repeats (results.json); fields:
 * docs/record.md. If rank 0 crashes, the parent writes the repeat with status and reason. JSON times are milliseconds,
 * memory bytes. --no-record: figures from spans are null. */
#pragma once

#include <jansson.h>

#include "bench/record/metrics.h"
#include "bench/stats/stats.h"
#include "bench/trial/trial.h"
#include "profiles/memory_timeline.h"
#include "profiles/nvml.h"
#include "profiles/recorder.h"
#include "profiles/system.h"

enum { EL_SCHEMA = 2 };

/* A worker's knowledge of one member after training. */
struct el_member_account {
    const char *device; /* "cpu:0" */
    const char *host;
    int rank;
    long pid;
    const struct el_layout *layout;            /* the job's; NULL: unknown */
    struct el_spot spot;                       /* its place in the layout */
    const struct el_graph *part;               /* what it trains; NULL: unknown */
    const struct el_device_identity *identity; /* NULL: none */
    const struct el_library_memory *libraries; /* [n_libraries]: device memory by library */
    int n_libraries;
    const struct el_ledger *ledger;
    const struct el_load_account *loading; /* NULL: unknown */
    const struct el_routed *routed;        /* likewise */
    bool recorded;                         /* false: --no-record; summary to ops are null */
    struct el_device_summary summary;
    struct el_memory_timeline timeline;
    int in_flight;             /* sets of activations held; 0: no schedule */
    struct el_lane lane;       /* the drawn step */
    struct el_op_figures *ops; /* [n_ops] */
    size_t n_ops;
    const struct el_recorder *by_step; /* asked for each step if batches differ in length; else NULL */
    int position;                      /* in the job, for the recorder */
    bool controlled;                   /* had blocks with communication on and off */
    struct el_device_summary on, off;
    int64_t reserved_bytes;            /* mapped for the ledger's memory; -1: simulated */
    int64_t driver_bytes, grown_bytes; /* at the end of the measured steps, and growth during them; negative: unknown */
    const char *driver_reason;         /* why unknown */
    const char *module_loading;        /* "EAGER": when CUDA loads code; NULL: its default, or no GPU */
    bool time_sliced;                  /* communication and compute streams share a core */
    bool simulated;
    const int *cores; /* it computes on */
    int n_cores;
    int64_t memory_limit_bytes;             /* 0: none */
    const struct el_system_figures *system; /* over the measured steps; NULL: unknown */
    const struct el_nvml_figures *gpu;      /* the same of a GPU; NULL: no GPU */
};
/* An entry of a repeat's members. New reference, NULL when out of host memory; the same for all that follow. */
json_t *el_record_member(const struct el_member_account *account);
/* {tag: bytes} */
json_t *el_record_tags(const size_t bytes[EL_TAG_COUNT]);
/* null for NULL. */
json_t *el_record_timeline(const struct el_memory_timeline *timeline);
/* A process's memory at the end of the measured steps: on each of the job's devices (0: none), and outside them (code,
 * libraries, MPI's buffers). Negative: unknown, null. */
json_t *el_record_process(long pid, int rank, const int64_t *per_device_bytes, int n_devices, int64_t process_bytes);
/* null for NULL. */
json_t *el_record_gpu(const struct el_nvml_figures *figures);
/* Members that share a card (one UUID): driver bytes and growth, which are the whole card's, become null with a reason;
 * of several processes the libraries' too. `processes`: of el_record_process. */
void el_record_shared_cards(json_t *members, json_t *processes);
/* {"version", "reason" (for a null version), "variables": {NCCL_...: text}}. Opens the library. */
json_t *el_record_nccl(void);
/* {CUDA_..., CUBLAS_..., CUDNN_..., NVIDIA_...: text} */
json_t *el_record_gpu_variables(void);
/* Array of a field of `n` items, in ms since `zero_ns`. */
#define EL_RECORD_MS(type, items, field, n, zero_ns)                                                                   \
    el_record_ms(items, sizeof(type), offsetof(type, field), n, zero_ns)
json_t *el_record_ms(const void *items, size_t stride, size_t offset, size_t n, int64_t zero_ns);
/* A process's part of `system` over the measured steps (docs/record.md, docs/metrics.md). `allowed`: CPUs it may use;
 * `devices`: its devices' CPUs. */
json_t *el_record_system(const struct el_system_figures *figures, const int *allowed, int n_allowed, const int *devices,
                         int n_devices);
/* The repeat's, from its processes' `parts` (stolen). */
json_t *el_record_system_of_job(json_t *parts);
/* [{"cpu", "capacity", "max_mhz"}] */
json_t *el_record_cores(const char *root, const int *cpus, int n_cpus);
/* Written by the parent when rank 0 cannot. status: "oom|failed|timeout|absent". */
json_t *el_record_failed_repeat(const struct el_trial *trial, int repeat, int order, const char *status,
                                const char *reason);

/* A trial from its repeat documents, at least one. Statistics: docs/metrics.md. */
json_t *el_record_trial(const struct el_trial *trial, const char *command, json_t *repeats);

/* Reads a run's document. Errors: EL_ERR_IO (no file), EL_ERR_INVALID (not JSON, other schema, impossible numbers of
 * devices; with line and reason). */
enum el_status el_record_read(const char *path, json_t **run_p);

/* {schema, environment, trials[]}. Steals both. */
json_t *el_record_run(json_t *environment, json_t *trials);
/* Adds what only a repeat's process knows: driver and GPU libraries, NCCL and its settings; null until a repeat had a
 * GPU. `repeat` may be NULL. */
void el_record_learn(json_t *environment, const json_t *repeat);

/* A CSV cell: numbers as in the record, nothing for null, text quoted if needed. */
void el_csv_value(const json_t *value, FILE *file);
/* trials.csv, devices.csv, and steps.csv except for a watch's record. */
enum el_status el_write_csv(const json_t *run, const char *dir);

/* ---- statistics over a trial's repeats. `ok`: the finished ones; empty: figures are null. New references ---- */

/* `tokens`: per sample; 0: none. */
json_t *el_trial_throughput(const json_t *ok, double global_batch, double tokens);
/* {"flop_per_s_per_device", "formula_flops_per_step", "gemm_flop_per_s", "gemm_pct", "gemm_source"} (docs/metrics.md,
 * FLOP/s). */
json_t *el_trial_arithmetic(const struct el_trial *trial, const json_t *record, const json_t *ok);
/* Of a launch's steps, ms; NAN: there are none, or one is no number above 0. */
enum el_step_figure { EL_STEP_MEDIAN, EL_STEP_MEAN, EL_STEP_P95, EL_STEP_P10 };
double el_repeat_step_ms(const json_t *repeat, enum el_step_figure figure);
/* {"median", "mean", "p95"}: within each launch, then the geometric mean over launches with steps. */
json_t *el_trial_step_ms(const json_t *repeats);
/* NAN: no steps. */
double el_repeat_samples_per_s(const json_t *repeat, double global_batch);

/* Times: medians over repeats. Memory, host and pid: the first finished repeat's. Memory timeline: that of the repeat
 * with the median throughput. */
json_t *el_trial_per_device(const json_t *ok, double global_batch);
/* Position of the member with the most work per step, without waits in collectives; -1: unknown. */
int el_trial_slowest(const json_t *per_device);
json_t *el_trial_comm(const json_t *per_device, int slowest, const json_t *breakdown);
/* From the slowest member's control blocks, means over repeats (docs/metrics.md): step = compute_alone + contention +
 * exposed + other + idle; exposed_step = contention + exposed + idle_change. null without blocks. */
json_t *el_trial_breakdown(const json_t *ok, int slowest);
/* Per cent of the stages' time; median over launches. */
double el_trial_bubble_pct(const json_t *ok);
/* GB/s of a step's all-reduces; median over launches; NAN: none. */
double el_trial_busbw(const json_t *ok);
/* Null without control blocks of the recorder (docs/metrics.md). */
json_t *el_trial_recorder(const json_t *ok);
/* Each imbalance measure of the members' figure at `path`, or of so many per cent of the figure at `percent_of` (NULL:
 * none), then the median over launches. */
json_t *el_launches_imbalance(const json_t *ok, const char *path, const char *percent_of);
/* Memory, busy time and bytes moved; null for one device. */
json_t *el_trial_imbalance(const json_t *ok);
