#include "bench/record/metrics.h"

#include "bench/base/jvalue.h"
#include "profiles/nvml.h"
#include "runtime/base/probe.h"

#define ROW(column, its_unit, which, level, ...)                                                                       \
    {.name = (column),                                                                                                 \
     .unit = (its_unit),                                                                                               \
     .better = EL_BETTER_##which,                                                                                      \
     .of = EL_METRIC_OF_##level,                                                                                       \
     .path = __VA_ARGS__},
#define TRIAL(id, unit, better, ...)  ROW(#id, unit, better, TRIAL, __VA_ARGS__)
#define DEVICE(id, unit, better, ...) ROW(#id, unit, better, DEVICE, __VA_ARGS__)

/* clang-format off */
#define FAMILY(list, of) list(of)
#define PHASE_OF_TRIAL(id, text) ROW("phase_" text "_ms", "ms", LOWER, TRIAL, "phases_ms." text)
#define PHASE_OF_DEVICE(id, text) ROW("device_" text "_ms", "ms", LOWER, DEVICE, "busy_ms." text)
#define TAG_AT_PEAK(id, text) ROW("at_peak_" text "_bytes", "B", LOWER, DEVICE, "memory.at_peak_by_tag." text)
#define TAG_PEAK(id, text) ROW("peak_" text "_bytes", "B", LOWER, DEVICE, "memory.peak_by_tag." text, .exact = true)
#define THROTTLED(bit, text, name) ROW("device_gpu_throttled_" name "_pct", "%", LOWER, DEVICE, "gpu.throttled_pct." text)
#define IMBALANCE_OF(of) \
    ROW("imbalance_" of "_max_over_mean_minus_1", "1", LOWER, TRIAL, "imbalance." of ".max_over_mean_minus_1") \
    ROW("imbalance_" of "_pct", "%", LOWER, TRIAL, "imbalance." of ".imbalance_pct") \
    ROW("imbalance_" of "_lb", "1", HIGHER, TRIAL, "imbalance." of ".lb") \
    ROW("imbalance_" of "_cv", "1", LOWER, TRIAL, "imbalance." of ".cv") \
    ROW("imbalance_" of "_first_over_rest", "1", NEITHER, TRIAL, "imbalance." of ".first_over_rest")

static const struct el_metric metrics[] = {EL_METRICS(TRIAL, DEVICE, FAMILY) {.name = NULL}};
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
