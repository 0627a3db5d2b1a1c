/* The rows. Names stay: they are columns in people's spreadsheets. */
#include "bench/record/metrics.h"

#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "profiles/nvml_api.h"
#include "runtime/base/probe.h"

#define TRIAL_ROW(name_, unit_, label_, better_, path_, measured_, formula_)                                           \
    {name_, unit_, label_, EL_BETTER_##better_, EL_METRIC_OF_TRIAL, path_, measured_, formula_},
#define DEVICE_ROW(name_, unit_, label_, better_, path_, measured_, formula_)                                          \
    {name_, unit_, label_, EL_BETTER_##better_, EL_METRIC_OF_DEVICE, path_, measured_, formula_},

#define SPANS    "spans of the ops"
#define LEDGER   "ledger of allocations"
#define CLOCK    "host clock round each step"
#define ARRIVALS "spans of all members on one clock"
#define CONTROL  "A/B control blocks, on and off"
#define SYSTEM   "the system, at the end of the measured steps"
#define NVML     "NVML, over the measured steps"
#define BYTES    "bytes counted at each copy and collective"

/* clang-format off */
#define PHASE_OF_TRIAL(id, text)                                                                                       \
    TRIAL_ROW("phase_" text "_ms", "ms", text, LOWER, "phases_ms." text, SPANS,                                        \
              "union of the intervals of all " text " ops on the slowest member, a step")
#define PHASE_OF_DEVICE(id, text)                                                                                      \
    DEVICE_ROW("device_" text "_ms", "ms", text, LOWER, "busy_ms." text, SPANS,                                        \
               "union of the intervals of all " text " ops on the device, a step")
#define TAG_AT_PEAK(id, text)                                                                                          \
    DEVICE_ROW("at_peak_" text "_bytes", "B", text, LOWER, "memory.at_peak_by_tag." text, LEDGER,                      \
               "bytes of tag " text " at the moment of the device's peak")
#define TAG_PEAK(id, text)                                                                                             \
    DEVICE_ROW("peak_" text "_bytes", "B", text, LOWER, "memory.peak_by_tag." text, LEDGER,                            \
               "highest bytes of tag " text " at any moment")
#define THROTTLED(bit, text, name)                                                                                     \
    DEVICE_ROW("device_gpu_throttled_" name "_pct", "%", "throttled: " text, LOWER, "gpu.throttled_pct." text, NVML,   \
               "share of the samples at which the clock was held down: " text)
#define IMBALANCE_OF(of, of_text)                                                                                      \
    TRIAL_ROW("imbalance_" of "_max_over_mean_minus_1", "1", "max/mean - 1", LOWER,                                    \
              "imbalance." of ".max_over_mean_minus_1", of_text, "largest over mean, minus 1; 0 is even")              \
    TRIAL_ROW("imbalance_" of "_pct", "%", "imbalance", LOWER, "imbalance." of ".imbalance_pct", of_text,              \
              "(max - mean) / max * n / (n - 1) * 100; 0 is even, 100 is all on one device")                           \
    TRIAL_ROW("imbalance_" of "_lb", "1", "load balance", HIGHER, "imbalance." of ".lb", of_text,                      \
              "mean over largest; 1 is even")                                                                          \
    TRIAL_ROW("imbalance_" of "_cv", "1", "CV", LOWER, "imbalance." of ".cv", of_text,                                 \
              "standard deviation over mean")                                                                          \
    TRIAL_ROW("imbalance_" of "_first_over_rest", "1", "first/rest", NEITHER, "imbalance." of ".first_over_rest",      \
              of_text, "the first device over the mean of the others")

static const struct el_metric metrics[] = {
    TRIAL_ROW("samples_per_s", "samples/s", "throughput", HIGHER, "throughput.samples_per_s", CLOCK,
              "global batch over mean step of a launch; geometric mean over launches")
    TRIAL_ROW("samples_per_s_ci95_low", "samples/s", "throughput, low", HIGHER, "throughput.ci95.0", CLOCK,
              "lower end of the 95 % interval over launches: Student's t on logarithms")
    TRIAL_ROW("samples_per_s_ci95_high", "samples/s", "throughput, high", HIGHER, "throughput.ci95.1", CLOCK,
              "upper end of the 95 % interval")
    TRIAL_ROW("step_median_ms", "ms", "step, median", LOWER, "step_ms.median", CLOCK,
              "median step of a launch; geometric mean over launches")
    TRIAL_ROW("step_mean_ms", "ms", "step", LOWER, "step_ms.mean", CLOCK,
              "mean step of a launch; geometric mean over launches: global batch over throughput")
    TRIAL_ROW("step_p95_ms", "ms", "step, p95", LOWER, "step_ms.p95", CLOCK,
              "95th percentile of a launch's steps, nearest rank; geometric mean over launches")
    EL_PHASE_LIST(PHASE_OF_TRIAL)
    TRIAL_ROW("idle_ms", "ms", "idle", LOWER, "idle_ms", SPANS,
              "step minus the union of all ops of the slowest member")
    TRIAL_ROW("comm_bytes", "B", "sent", LOWER, "comm.bytes", BYTES,
              "bytes that all devices together sent each other, a step")
    TRIAL_ROW("comm_total_ms", "ms", "communication", LOWER, "comm.total_ms", SPANS,
              "|K|: union of collectives and of copies between devices, slowest member; waiting for peers is in it")
    TRIAL_ROW("comm_overlapped_ms", "ms", "overlapped", NEITHER, "comm.overlapped_ms", SPANS,
              "|K and C|: the part of it during which a kernel ran on the same device")
    TRIAL_ROW("comm_exposed_ms", "ms", "exposed", LOWER, "comm.exposed_ms", SPANS, "|K| - |K and C|")
    TRIAL_ROW("comm_overlap_pct", "%", "overlap", HIGHER, "comm.overlap_pct", SPANS, "100 * |K and C| / |K|")
    TRIAL_ROW("comm_wait_ms", "ms", "wait", LOWER, "comm.wait_ms", ARRIVALS,
              "|W|: the part of collectives before the last member had arrived, slowest member")
    TRIAL_ROW("comm_transfer_ms", "ms", "transfer", LOWER, "comm.transfer_ms", ARRIVALS, "|K| - |W|")
    TRIAL_ROW("comm_exposed_step_ms", "ms", "exposed in the step", LOWER, "comm.exposed_step_ms", CONTROL,
              "step minus the same step with communication switched off")
    TRIAL_ROW("comm_contention_ms", "ms", "contention", LOWER, "comm.contention_ms", CONTROL,
              "compute with communication minus compute alone")
    TRIAL_ROW("compute_alone_ms", "ms", "compute alone", LOWER, "breakdown.compute_alone_ms", CONTROL,
              "|C| with communication switched off")
    IMBALANCE_OF("memory", LEDGER)
    IMBALANCE_OF("busy", SPANS)
    IMBALANCE_OF("bytes", BYTES)
    TRIAL_ROW("recorder_counted_pct", "%", "recording", LOWER, "recorder.counted_pct", "events counted, each at its price",
              "100 * what recording a step costs, one event after the other / mean step")
    TRIAL_ROW("accuracy", "1", "accuracy", HIGHER, "accuracy", "evaluation after training",
              "right answers over all answers on the test set, by the weights of the best epoch")
    TRIAL_ROW("flops_per_step", "FLOP", "work", NEITHER, "flops_per_step", "counted by each op's definition",
              "model FLOPs of forward and backward, all devices together, no recomputation")
    TRIAL_ROW("param_bytes", "B", "parameters", NEITHER, "param_bytes", "counted", "logical bytes of the parameters, P")
    DEVICE_ROW("device_peak_bytes", "B", "peak memory", LOWER, "memory.peak_bytes", LEDGER,
               "highest sum of allocated bytes, without warm-up")
    EL_TAG_LIST(TAG_AT_PEAK)
    EL_TAG_LIST(TAG_PEAK)
    DEVICE_ROW("device_reserved_bytes", "B", "reserved", LOWER, "memory.reserved_bytes", LEDGER,
               "mapped for allocations and for the step's arena; above the peak by the arena's fragmentation")
    DEVICE_ROW("device_driver_bytes", "B", "driver", LOWER, "memory.driver_bytes", SYSTEM,
               "what the driver (on CPU: the kernel, resident pages) says the device holds")
    DEVICE_ROW("device_unattributed_bytes", "B", "unattributed", LOWER, "memory.unattributed_bytes", SYSTEM,
               "driver's bytes minus the ledger's peak and the libraries'")
    DEVICE_ROW("device_grown_bytes", "B", "grown", LOWER, "memory.grown_bytes", SYSTEM,
               "driver's bytes at the end of the measured steps minus those at their begin")
    DEVICE_ROW("device_busy_pct", "%", "utilization", HIGHER, "utilization.busy_pct", SPANS,
               "share of the step in which its compute stream had work, wall time: 100 * union of kernels and copies / step")
    DEVICE_ROW("device_cpu_pct", "%", "CPU time", HIGHER, "utilization.cpu_pct", "CPU clocks of the threads",
               "100 * CPU time of the process's threads on the device's cores / window; under busy where others had them")
    DEVICE_ROW("device_system_pct", "%", "utilization by the system", HIGHER, "utilization.system_pct",
               "/proc/stat, or NVML, over the measured steps",
               "100 * busy time of the device's cores, or the GPU's, / window, by any process")
    DEVICE_ROW("device_step_ms", "ms", "step", LOWER, "step_ms", SPANS, "mean step as the device saw it")
    EL_PHASE_LIST(PHASE_OF_DEVICE)
    DEVICE_ROW("device_idle_ms", "ms", "idle", LOWER, "idle_ms", SPANS, "step minus the union of the device's ops")
    DEVICE_ROW("device_comm_total_ms", "ms", "communication", LOWER, "comm.total_ms", SPANS, "|K| of the device")
    DEVICE_ROW("device_comm_exposed_ms", "ms", "exposed", LOWER, "comm.exposed_ms", SPANS, "|K| - |K and C| of the device")
    DEVICE_ROW("device_comm_wait_ms", "ms", "wait", LOWER, "comm.wait_ms", ARRIVALS,
               "|W|: the part of the device's collectives before the last member had arrived")
    DEVICE_ROW("device_comm_transfer_ms", "ms", "transfer", LOWER, "comm.transfer_ms", ARRIVALS,
               "|K| - |W| of the device")
    DEVICE_ROW("device_comm_cpu_ms", "ms", "CPU of communication", LOWER, "comm.cpu_ms", "CPU clocks of the threads",
               "CPU time of the device's collectives and copies from other devices, a step")
    DEVICE_ROW("device_sent_bytes", "B", "sent", LOWER, "sent_bytes", BYTES,
               "bytes that left the device for another one, a step")
    DEVICE_ROW("device_received_bytes", "B", "received", LOWER, "received_bytes", BYTES,
               "bytes that reached the device from another one or from the host, a step")
    DEVICE_ROW("device_queue_ms", "ms", "queueing", LOWER, "queue_ms", CLOCK,
               "the host's time to queue a step's kernels and copies on the device's streams, loading and collectives left out")
    DEVICE_ROW("device_gpu_clock_mean_mhz", "MHz", "clock", NEITHER, "gpu.clock_mhz.mean", NVML,
               "mean clock of the card's multiprocessors")
    DEVICE_ROW("device_gpu_power_w", "W", "power", LOWER, "gpu.power_w", NVML, "mean power of the whole card")
    DEVICE_ROW("device_gpu_energy_mj", "mJ", "energy", LOWER, "gpu.energy_mj", NVML,
               "the card's counter of energy at the end minus that at the begin, in millijoules; all measured steps together")
    EL_NVML_THROTTLE_LIST(THROTTLED)
    DEVICE_ROW("device_gpu_used_bytes", "B", "card's memory in use", LOWER, "gpu.used_bytes", NVML,
               "the highest that the driver said of the card, by any process")
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
