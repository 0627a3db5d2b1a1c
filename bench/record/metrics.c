/* Names stay: they are columns in users' spreadsheets. */
#include "bench/record/metrics.h"

#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "profiles/nvml.h"
#include "runtime/base/probe.h"

#define TRIAL_ROW(name, unit, better, path)  {name, unit, EL_BETTER_##better, EL_METRIC_OF_TRIAL, path},
#define DEVICE_ROW(name, unit, better, path) {name, unit, EL_BETTER_##better, EL_METRIC_OF_DEVICE, path},

/* clang-format off */
#define PHASE_OF_TRIAL(id, text) TRIAL_ROW("phase_" text "_ms", "ms", LOWER, "phases_ms." text)
#define PHASE_OF_DEVICE(id, text) DEVICE_ROW("device_" text "_ms", "ms", LOWER, "busy_ms." text)
#define TAG_AT_PEAK(id, text) DEVICE_ROW("at_peak_" text "_bytes", "B", LOWER, "memory.at_peak_by_tag." text)
#define TAG_PEAK(id, text) DEVICE_ROW("peak_" text "_bytes", "B", LOWER, "memory.peak_by_tag." text)
#define THROTTLED(bit, text, name) DEVICE_ROW("device_gpu_throttled_" name "_pct", "%", LOWER, "gpu.throttled_pct." text)
#define IMBALANCE_OF(of) \
    TRIAL_ROW("imbalance_" of "_max_over_mean_minus_1", "1", LOWER, "imbalance." of ".max_over_mean_minus_1") \
    TRIAL_ROW("imbalance_" of "_pct", "%", LOWER, "imbalance." of ".imbalance_pct") \
    TRIAL_ROW("imbalance_" of "_lb", "1", HIGHER, "imbalance." of ".lb") \
    TRIAL_ROW("imbalance_" of "_cv", "1", LOWER, "imbalance." of ".cv") \
    TRIAL_ROW("imbalance_" of "_first_over_rest", "1", NEITHER, "imbalance." of ".first_over_rest")

static const struct el_metric metrics[] = {
    TRIAL_ROW("samples_per_s", "samples/s", HIGHER, "throughput.samples_per_s")
    TRIAL_ROW("samples_per_s_ci95_low", "samples/s", HIGHER, "throughput.ci95.0")
    TRIAL_ROW("samples_per_s_ci95_high", "samples/s", HIGHER, "throughput.ci95.1")
    TRIAL_ROW("samples_per_s_wall", "samples/s", HIGHER, "throughput.wall_samples_per_s")
    TRIAL_ROW("tokens_per_s", "tokens/s", HIGHER, "throughput.tokens_per_s")
    TRIAL_ROW("tokens_per_s_ci95_low", "tokens/s", HIGHER, "throughput.tokens_ci95.0")
    TRIAL_ROW("tokens_per_s_ci95_high", "tokens/s", HIGHER, "throughput.tokens_ci95.1")
    TRIAL_ROW("step_median_ms", "ms", LOWER, "step_ms.median")
    TRIAL_ROW("step_mean_ms", "ms", LOWER, "step_ms.mean")
    TRIAL_ROW("step_p95_ms", "ms", LOWER, "step_ms.p95")
    EL_PHASE_LIST(PHASE_OF_TRIAL)
    TRIAL_ROW("idle_ms", "ms", LOWER, "idle_ms")
    TRIAL_ROW("bubble_pct", "%", LOWER, "bubble_pct")
    TRIAL_ROW("comm_bytes", "B", LOWER, "comm.bytes")
    TRIAL_ROW("comm_total_ms", "ms", LOWER, "comm.total_ms")
    TRIAL_ROW("comm_overlapped_ms", "ms", NEITHER, "comm.overlapped_ms")
    TRIAL_ROW("comm_exposed_ms", "ms", LOWER, "comm.exposed_ms")
    TRIAL_ROW("comm_overlap_pct", "%", HIGHER, "comm.overlap_pct")
    TRIAL_ROW("comm_wait_ms", "ms", LOWER, "comm.wait_ms")
    TRIAL_ROW("comm_transfer_ms", "ms", LOWER, "comm.transfer_ms")
    TRIAL_ROW("comm_busbw_gb_per_s", "GB/s", HIGHER, "comm.busbw_gb_per_s")
    TRIAL_ROW("comm_exposed_step_ms", "ms", LOWER, "comm.exposed_step_ms")
    TRIAL_ROW("comm_contention_ms", "ms", LOWER, "comm.contention_ms")
    TRIAL_ROW("compute_alone_ms", "ms", LOWER, "breakdown.compute_alone_ms")
    IMBALANCE_OF("memory")
    IMBALANCE_OF("busy")
    IMBALANCE_OF("bytes")
    TRIAL_ROW("accuracy", "1", HIGHER, "accuracy")
    TRIAL_ROW("test_loss", "nat", LOWER, "evaluation.loss")
    TRIAL_ROW("perplexity", "1", LOWER, "evaluation.perplexity")
    TRIAL_ROW("bits_per_byte", "bit", LOWER, "evaluation.bits_per_byte")
    TRIAL_ROW("flop_per_s_per_device", "FLOP/s", HIGHER, "arithmetic.flop_per_s_per_device")
    TRIAL_ROW("gemm_pct", "%", HIGHER, "arithmetic.gemm_pct")
    TRIAL_ROW("formula_flops_per_step", "FLOP", NEITHER, "arithmetic.formula_flops_per_step")
    TRIAL_ROW("flops_per_step", "FLOP", NEITHER, "flops_per_step")
    TRIAL_ROW("param_bytes", "B", NEITHER, "param_bytes")
    TRIAL_ROW("trained_bytes", "B", NEITHER, "trained_bytes")
    DEVICE_ROW("device_peak_bytes", "B", LOWER, "memory.peak_bytes")
    EL_TAG_LIST(TAG_AT_PEAK)
    EL_TAG_LIST(TAG_PEAK)
    DEVICE_ROW("device_reserved_bytes", "B", LOWER, "memory.reserved_bytes")
    DEVICE_ROW("device_driver_bytes", "B", LOWER, "memory.driver_bytes")
    DEVICE_ROW("device_unattributed_bytes", "B", LOWER, "memory.unattributed_bytes")
    DEVICE_ROW("device_grown_bytes", "B", LOWER, "memory.grown_bytes")
    DEVICE_ROW("device_busy_pct", "%", HIGHER, "utilization.busy_pct")
    DEVICE_ROW("device_cpu_pct", "%", HIGHER, "utilization.cpu_pct")
    DEVICE_ROW("device_system_pct", "%", HIGHER, "utilization.system_pct")
    DEVICE_ROW("device_step_ms", "ms", LOWER, "step_ms")
    EL_PHASE_LIST(PHASE_OF_DEVICE)
    DEVICE_ROW("device_idle_ms", "ms", LOWER, "idle_ms")
    DEVICE_ROW("device_bubble_ms", "ms", LOWER, "bubble_ms")
    DEVICE_ROW("device_window_ms", "ms", LOWER, "window_ms")
    DEVICE_ROW("device_activation_sets", "1", LOWER, "activation_sets")
    DEVICE_ROW("device_comm_total_ms", "ms", LOWER, "comm.total_ms")
    DEVICE_ROW("device_comm_exposed_ms", "ms", LOWER, "comm.exposed_ms")
    DEVICE_ROW("device_comm_wait_ms", "ms", LOWER, "comm.wait_ms")
    DEVICE_ROW("device_comm_transfer_ms", "ms", LOWER, "comm.transfer_ms")
    DEVICE_ROW("device_comm_cpu_ms", "ms", LOWER, "comm.cpu_ms")
    DEVICE_ROW("device_sent_bytes", "B", LOWER, "sent_bytes")
    DEVICE_ROW("device_received_bytes", "B", LOWER, "received_bytes")
    DEVICE_ROW("device_queue_ms", "ms", LOWER, "queue_ms")
    DEVICE_ROW("device_gpu_clock_mean_mhz", "MHz", NEITHER, "gpu.clock_mhz.mean")
    DEVICE_ROW("device_gpu_power_w", "W", LOWER, "gpu.power_w")
    DEVICE_ROW("device_gpu_energy_mj", "mJ", LOWER, "gpu.energy_mj")
    EL_NVML_THROTTLE_LIST(THROTTLED)
    DEVICE_ROW("device_gpu_used_bytes", "B", LOWER, "gpu.used_bytes")
    {0}
};
/* clang-format on */

const struct el_metric *el_metric_list(void)
{
    return metrics;
}

double el_metric_value(const struct el_metric *metric, const json_t *trial, const json_t *device)
{
    return el_json_number(metric->of == EL_METRIC_OF_TRIAL ? trial : device, metric->path);
}

const char *el_better_text(enum el_better better)
{
    static const char *const text[] = {
        [EL_BETTER_HIGHER] = "higher", [EL_BETTER_LOWER] = "lower", [EL_BETTER_NEITHER] = "-"};
    return text[better];
}
