/* The record: what one launch measured (a repeat's file), and what a trial's repeats come to (results.json). The fields
 * of both are in docs/record.md.
 *
 * A launch's rank 0 writes one JSON document, the *repeat*; the parent that launched it makes trials of repeats. If the
 * launch crashes, the parent writes the repeat itself: it has status and reason, and all else may be missing. All times
 * in JSON are milliseconds, memory in bytes. With --no-record figures from spans are null.
 */
#pragma once

#include <jansson.h>

#include "bench/stats/stats.h"
#include "bench/trial/trial.h"
#include "profiles/memory_timeline.h"
#include "profiles/nvml.h"
#include "profiles/recorder.h"
#include "profiles/system.h"

enum { EL_SCHEMA = 2 };

/* What a worker knows of one member when training has ended. */
struct el_member_account {
    const char *device; /* "cpu:0" */
    const char *host;
    int rank;
    long pid;
    const struct el_layout *layout;            /* of the job; NULL: not known */
    struct el_spot spot;                       /* where it stands in it */
    const struct el_graph *part;               /* what it trains; NULL: not known */
    const struct el_device_identity *identity; /* NULL: none to tell */
    const struct el_library_memory *libraries; /* [n_libraries] of the device's memory, by library */
    int n_libraries;
    const struct el_ledger *ledger;
    const struct el_load_account *loading; /* NULL: not known */
    bool recorded; /* false: --no-record, and all figures from spans, summary to ops, are null */
    struct el_device_summary summary;
    struct el_memory_timeline timeline;
    int in_flight;             /* sets of activations that it holds; 0: it has no schedule */
    struct el_lane lane;       /* of the step that is drawn */
    struct el_op_figures *ops; /* [n_ops] */
    size_t n_ops;
    const struct el_recorder *by_step; /* to be asked for each step, where batches differ in length; NULL: not */
    int position;                      /* in the job, for the recorder */
    bool controlled;                   /* there were blocks with communication on, and off */
    struct el_device_summary on, off;
    int64_t reserved_bytes;            /* mapped for what the ledger counts; -1: simulated */
    int64_t driver_bytes, grown_bytes; /* at the end of the measured steps, and since their begin; negative: unknown */
    const char *driver_reason;         /* why unknown */
    const char *module_loading;        /* "EAGER": when CUDA loads code; NULL: by its own choice, or no GPU */
    bool time_sliced;                  /* the communication stream shares the compute stream's core */
    bool simulated;
    const int *cores; /* that it computes on */
    int n_cores;
    int64_t memory_limit_bytes;             /* 0: none */
    const struct el_system_figures *system; /* over the measured steps; NULL: not known */
    const struct el_nvml_figures *gpu;      /* likewise of a GPU; NULL: it is none */
};
/* One entry of a repeat's members. New reference, NULL when out of host memory; so are all that follow. */
json_t *el_record_member(const struct el_member_account *account);
/* {tag: bytes} of all tags. */
json_t *el_record_tags(const size_t bytes[EL_TAG_COUNT]);
/* The timeline of a member's memory; null for NULL. */
json_t *el_record_timeline(const struct el_memory_timeline *timeline);
/* One entry of a repeat's processes, as the system says at the end of the measured steps: what this process holds of
 * each of the job's devices (0 where it has none), and what it holds that is no device's: code, libraries, buffers of
 * MPI. Negative: unknown, null. */
json_t *el_record_process(long pid, int rank, const int64_t *per_device_bytes, int n_devices, int64_t process_bytes);
/* What the driver said of a GPU; null for NULL. */
json_t *el_record_gpu(const struct el_nvml_figures *figures);
/* Of members that share a card (one UUID) takes back what the driver said of it as if it were each one's own: its bytes
 * and their growth are the whole card's; of ranks of several processes also the libraries', as each may have seen the
 * other's being opened. null then, with the reason. `processes`: as el_record_process makes them. */
void el_record_shared_cards(json_t *members, json_t *processes);
/* {"version", "reason" (why that is null), "variables": {NCCL_...: text}}: opens the library. */
json_t *el_record_nccl(void);
/* {CUDA_..., CUBLAS_..., CUDNN_..., NVIDIA_...: text} */
json_t *el_record_gpu_variables(void);
/* Milliseconds from nanoseconds since `zero_ns`, an array: a field of each of `n` items of a type. */
#define EL_RECORD_MS(type, items, field, n, zero_ns)                                                                   \
    el_record_ms(items, sizeof(type), offsetof(type, field), n, zero_ns)
json_t *el_record_ms(const void *items, size_t stride, size_t offset, size_t n, int64_t zero_ns);
/* The record's `system`: what each process read of its machine over the measured steps, and what the processes of a
 * repeat come to together. The fields are in docs/record.md, the definitions in docs/metrics.md. A process's part:
 * `allowed`: the CPUs this process may run on; `devices`: those its devices compute on. */
json_t *el_record_system(const struct el_system_figures *figures, const int *allowed, int n_allowed, const int *devices,
                         int n_devices);
/* The repeat's, of its processes' parts. Steals `parts`. */
json_t *el_record_system_of_job(json_t *parts);
/* [{"cpu", "capacity", "max_mhz"}] of a device's cores. */
json_t *el_record_cores(const char *root, const int *cpus, int n_cpus);
/* A repeat that came to nothing: what the parent writes when rank 0 cannot. status: "oom|failed|timeout|absent". */
json_t *el_record_failed_repeat(const struct el_trial *trial, int repeat, int order, const char *status,
                                const char *reason);

/* One trial's JSON from its repeats (array of repeat documents, at least one). Statistics: docs/metrics.md. */
json_t *el_record_trial(const struct el_trial *trial, const char *command, json_t *repeats);

/* Reads a run's document and checks that this program can read it: of EL_SCHEMA, with devices in numbers that
 * there may be. Errors: EL_ERR_IO (no
 * such file), EL_ERR_INVALID (not JSON, no record, with line and reason). */
enum el_status el_record_read(const char *path, json_t **run_p);

/* The run's document: {schema, environment, trials[]}. Steals `environment` and `trials`. */
json_t *el_record_run(json_t *environment, json_t *trials);
/* Adds to a run's environment what only a repeat's own process could learn: driver and libraries of its GPUs, NCCL and
 * its settings; null where no repeat so far had a GPU. `repeat` may be NULL. */
void el_record_learn(json_t *environment, const json_t *repeat);

/* A cell of a CSV file: numbers as in the record, nothing for null; text in quotes where it needs them. */
void el_csv_value(const json_t *value, FILE *file);
/* trials.csv, devices.csv, and of all but a watch's record steps.csv, in that folder. */
enum el_status el_write_csv(const json_t *run, const char *dir);

/* ---- the parts of a trial's record that are statistics over its repeats. `ok` is an array of those repeats that were
 * finished; it may be empty: then figures are null. All results are new references ---- */

/* `tokens`: of a sample; 0: it has none that count. */
json_t *el_trial_throughput(const json_t *ok, double global_batch, double tokens);
/* {"flop_per_s_per_device", "formula_flops_per_step", "gemm_flop_per_s", "gemm_pct", "gemm_source"}, by what the record
 * has so far (docs/metrics.md, FLOP/s). */
json_t *el_trial_arithmetic(const struct el_trial *trial, const json_t *record, const json_t *ok);
/* {"median", "mean", "p95"}: each within a launch, then the geometric mean over those launches that have steps. */
json_t *el_trial_step_ms(const json_t *repeats);
/* One repeat's samples per second; NAN where it has no steps. */
double el_repeat_samples_per_s(const json_t *repeat, double global_batch);

/* Times are medians over repeats; memory, host and pid are the first finished repeat's, the memory's timeline that of
 * the repeat with the median throughput. */
json_t *el_trial_per_device(const json_t *ok, double global_batch);
/* The position of the member that worked longest in a step, waiting in collectives left aside; -1: not known. */
int el_trial_slowest(const json_t *per_device);
json_t *el_trial_comm(const json_t *per_device, int slowest, const json_t *breakdown);
/* Where the step goes, from the control blocks of the slowest member, means over the repeats (docs/metrics.md):
 * step = compute_alone + contention + exposed + other + idle; exposed_step = contention + exposed + idle_change.
 * null where there were none. */
json_t *el_trial_breakdown(const json_t *ok, int slowest);
/* The share of the stages' time that is bubble, in per cent: a launch's, then the median over launches. */
double el_trial_bubble_pct(const json_t *ok);
/* Bus bandwidth of a step's all-reduces, GB/s: a launch's, then the median over launches; NAN: there are none. */
double el_trial_busbw(const json_t *ok);
/* What recording costs, where repeats have control blocks of the recorder; else null (docs/metrics.md). */
json_t *el_trial_recorder(const json_t *ok);
/* Each measure of one value of each launch's "members", then the median over launches. */
json_t *el_launches_imbalance(const json_t *ok, double (*value)(const json_t *member));
/* Of memory, busy time and bytes moved; null for one device. */
json_t *el_trial_imbalance(const json_t *ok);
