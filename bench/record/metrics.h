/* Metric rows: name, unit, direction and path of each figure of a record. docs/metrics.md has methods and formulas, a
 * row for each (a test compares them). The CSV's header and a session's exact figures come from these rows, and so do
 * the names by which the program reads them: el_json_number(trial, el_at_step_mean_ms) does not compile misspelt. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

enum el_better { EL_BETTER_HIGHER, EL_BETTER_LOWER, EL_BETTER_NEITHER };
enum el_metric_of { EL_METRIC_OF_TRIAL, EL_METRIC_OF_DEVICE };

struct el_metric {
    const char *name; /* CSV column, with unit */
    const char *unit;
    enum el_better better;
    enum el_metric_of of;
    const char *path; /* in the trial's or the device's part of the record */
    bool exact;       /* the same in each launch of one program */
};

/* TRIAL and DEVICE: name, unit, better, path, more fields. FAMILY: rows of metrics.c. Names stay: they are columns in
 * users' spreadsheets. */
/* clang-format off */
#define EL_METRICS(TRIAL, DEVICE, FAMILY) \
    TRIAL(samples_per_s, "samples/s", HIGHER, "throughput.samples_per_s") \
    TRIAL(samples_per_s_ci95_low, "samples/s", HIGHER, "throughput.ci95.0") \
    TRIAL(samples_per_s_ci95_high, "samples/s", HIGHER, "throughput.ci95.1") \
    TRIAL(samples_per_s_wall, "samples/s", HIGHER, "throughput.wall_samples_per_s") \
    TRIAL(tokens_per_s, "tokens/s", HIGHER, "throughput.tokens_per_s") \
    TRIAL(tokens_per_s_ci95_low, "tokens/s", HIGHER, "throughput.tokens_ci95.0") \
    TRIAL(tokens_per_s_ci95_high, "tokens/s", HIGHER, "throughput.tokens_ci95.1") \
    TRIAL(step_median_ms, "ms", LOWER, "step_ms.median") \
    TRIAL(step_mean_ms, "ms", LOWER, "step_ms.mean") \
    TRIAL(step_p95_ms, "ms", LOWER, "step_ms.p95") \
    FAMILY(EL_PHASE_LIST, PHASE_OF_TRIAL) \
    TRIAL(idle_ms, "ms", LOWER, "idle_ms") \
    TRIAL(bubble_pct, "%", LOWER, "bubble_pct") \
    TRIAL(comm_bytes, "B", LOWER, "comm.bytes", .exact = true) \
    TRIAL(comm_total_ms, "ms", LOWER, "comm.total_ms") \
    TRIAL(comm_overlapped_ms, "ms", NEITHER, "comm.overlapped_ms") \
    TRIAL(comm_exposed_ms, "ms", LOWER, "comm.exposed_ms") \
    TRIAL(comm_overlap_pct, "%", HIGHER, "comm.overlap_pct") \
    TRIAL(comm_wait_ms, "ms", LOWER, "comm.wait_ms") \
    TRIAL(comm_transfer_ms, "ms", LOWER, "comm.transfer_ms") \
    TRIAL(comm_busbw_gb_per_s, "GB/s", HIGHER, "comm.busbw_gb_per_s") \
    TRIAL(comm_exposed_step_ms, "ms", LOWER, "comm.exposed_step_ms") \
    TRIAL(comm_contention_ms, "ms", LOWER, "comm.contention_ms") \
    TRIAL(compute_alone_ms, "ms", LOWER, "breakdown.compute_alone_ms") \
    FAMILY(IMBALANCE_OF, "memory") \
    FAMILY(IMBALANCE_OF, "busy") \
    FAMILY(IMBALANCE_OF, "bytes") \
    TRIAL(accuracy, "1", HIGHER, "accuracy") \
    TRIAL(test_loss, "nat", LOWER, "evaluation.loss") \
    TRIAL(perplexity, "1", LOWER, "evaluation.perplexity") \
    TRIAL(bits_per_byte, "bit", LOWER, "evaluation.bits_per_byte") \
    TRIAL(flop_per_s_per_device, "FLOP/s", HIGHER, "arithmetic.flop_per_s_per_device") \
    TRIAL(gemm_pct, "%", HIGHER, "arithmetic.gemm_pct") \
    TRIAL(formula_flops_per_step, "FLOP", NEITHER, "arithmetic.formula_flops_per_step") \
    TRIAL(flops_per_step, "FLOP", NEITHER, "flops_per_step", .exact = true) \
    TRIAL(param_bytes, "B", NEITHER, "param_bytes", .exact = true) \
    TRIAL(trained_bytes, "B", NEITHER, "trained_bytes") \
    DEVICE(device_peak_bytes, "B", LOWER, "memory.peak_bytes", .exact = true) \
    FAMILY(EL_TAG_LIST, TAG_AT_PEAK) \
    FAMILY(EL_TAG_LIST, TAG_PEAK) \
    DEVICE(device_reserved_bytes, "B", LOWER, "memory.reserved_bytes") \
    DEVICE(device_driver_bytes, "B", LOWER, "memory.driver_bytes") \
    DEVICE(device_unattributed_bytes, "B", LOWER, "memory.unattributed_bytes") \
    DEVICE(device_grown_bytes, "B", LOWER, "memory.grown_bytes") \
    DEVICE(device_busy_pct, "%", HIGHER, "utilization.busy_pct") \
    DEVICE(device_cpu_pct, "%", HIGHER, "utilization.cpu_pct") \
    DEVICE(device_system_pct, "%", HIGHER, "utilization.system_pct") \
    DEVICE(device_step_ms, "ms", LOWER, "step_ms") \
    FAMILY(EL_PHASE_LIST, PHASE_OF_DEVICE) \
    DEVICE(device_idle_ms, "ms", LOWER, "idle_ms") \
    DEVICE(device_bubble_ms, "ms", LOWER, "bubble_ms") \
    DEVICE(device_window_ms, "ms", LOWER, "window_ms") \
    DEVICE(device_activation_sets, "1", LOWER, "activation_sets") \
    DEVICE(device_comm_total_ms, "ms", LOWER, "comm.total_ms") \
    DEVICE(device_comm_exposed_ms, "ms", LOWER, "comm.exposed_ms") \
    DEVICE(device_comm_wait_ms, "ms", LOWER, "comm.wait_ms") \
    DEVICE(device_comm_transfer_ms, "ms", LOWER, "comm.transfer_ms") \
    DEVICE(device_comm_cpu_ms, "ms", LOWER, "comm.cpu_ms") \
    DEVICE(device_sent_bytes, "B", LOWER, "sent_bytes", .exact = true) \
    DEVICE(device_received_bytes, "B", LOWER, "received_bytes", .exact = true) \
    DEVICE(device_queue_ms, "ms", LOWER, "queue_ms") \
    DEVICE(device_gpu_clock_mean_mhz, "MHz", NEITHER, "gpu.clock_mhz.mean") \
    DEVICE(device_gpu_power_w, "W", LOWER, "gpu.power_w") \
    DEVICE(device_gpu_energy_mj, "mJ", LOWER, "gpu.energy_mj") \
    FAMILY(EL_NVML_THROTTLE_LIST, THROTTLED) \
    DEVICE(device_gpu_used_bytes, "B", LOWER, "gpu.used_bytes")
/* clang-format on */

#define EL_FIRST_OF(first, ...)             first
#define EL_METRIC_AT(id, unit, better, ...) static const char el_at_##id[] = EL_FIRST_OF(__VA_ARGS__, 0);
#define EL_METRIC_NONE(list, of)
EL_METRICS(EL_METRIC_AT, EL_METRIC_AT, EL_METRIC_NONE)

/* Ends with a NULL name. Trial metrics first. */
const struct el_metric *el_metric_list(void);
/* NAN: not measured. `device`: an entry of per_device[], or NULL. */
double el_metric_value(const struct el_metric *metric, const json_t *trial, const json_t *device);
const char *el_better_text(enum el_better better); /* "higher", "lower", "-" */
