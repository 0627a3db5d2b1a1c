/* JSON of a program into metrics: one of our records, or an object of numbers in one of the forms that are about:
 *
 *     {"step_ms": 12.5}                                   {"step_ms": {"value": 12.5, "unit": "ms"}}
 *     {"mlp": {"latency": {"value": 12.5}}}               Bencher: the cell is "mlp latency"
 *     [{"name": "step", "value": 12.5, "unit": "ms"}]     github-action-benchmark
 *     {"benchmarks": [{"name": "f", "real_time": 12.5, "time_unit": "ns"}]}      Google Benchmark
 *
 * Text, booleans and what lies deeper are skipped. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/regress/readings.h"
#include "bench/regress/session.h"
#include "bench/stats/stats.h"

enum { DEPTH_MAX = 4 };

/* What a gate is for: times by the median step, which a neighbour's burst does not move; all else has no noise. */
static bool is_gated(const struct el_metric *metric)
{
    return !strcmp(metric->name, el_session_timed()[0]) || el_session_is_exact(metric);
}

static enum el_status take_metric(struct el_readings *readings, const struct el_metric *metric, const char *before,
                                  const json_t *trial, const json_t *device)
{
    char name[EL_CELL_NAME_BYTES], figure[EL_CELL_NAME_BYTES];
    double value = el_metric_value(metric, trial, device);
    if (isnan(value)) return EL_OK; /* not measured */
    el_readings_join(figure, sizeof figure, metric->name, device ? el_json_text(device, "device", "?") : "");
    el_readings_join(name, sizeof name, figure, before);
    EL_TRY(el_readings_add(readings, name, metric->unit, value));
    readings->rows[readings->n - 1].extra = !is_gated(metric);
    readings->rows[readings->n - 1].exact = el_session_is_exact(metric);
    return EL_OK;
}

/* The tenth of the steps that ran least disturbed, of the best repeat: for machines that others use too. */
static enum el_status take_fast_steps(struct el_readings *readings, const json_t *trial, const char *before)
{
    const json_t *repeats = json_object_get(trial, "repeats");
    char name[EL_CELL_NAME_BYTES];
    double fast_ms = INFINITY;
    for (size_t r = 0; r < json_array_size(repeats); r++) {
        double *steps = NULL;
        size_t n = el_json_numbers(el_json_at(json_array_get(repeats, r), "step_ms"), &steps);
        if (n > 0) fast_ms = fmin(fast_ms, el_stats_quantile(steps, n, 0.1));
        free(steps);
    }
    if (isinf(fast_ms)) return EL_OK;
    el_readings_join(name, sizeof name, "step_p10_ms", before);
    EL_TRY(el_readings_add(readings, name, "ms", fast_ms));
    readings->rows[readings->n - 1].extra = true;
    return EL_OK;
}

static enum el_status take_trial(struct el_readings *readings, const json_t *trial, const char *before)
{
    const json_t *devices = json_object_get(trial, "per_device");
    if (strcmp(el_json_text(trial, "status", "?"), "ok") != 0)
        return el_fail(EL_ERR_INVALID, "printed a trial that did not finish: %s",
                       el_json_text(trial, "reason", "no reason"));
    for (const struct el_metric *m = el_metric_list(); m->name; m++) {
        bool of_trial = m->of == EL_METRIC_OF_TRIAL;
        for (size_t d = 0; d < (of_trial ? 1 : json_array_size(devices)); d++)
            EL_TRY(take_metric(readings, m, before, trial, of_trial ? NULL : json_array_get(devices, d)));
    }
    return take_fast_steps(readings, trial, before);
}

static enum el_status take_run(struct el_readings *readings, const json_t *trials)
{
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        char name[EL_CELL_NAME_BYTES], buckets[EL_WORKLOAD_BUCKETS_BYTES];
        el_workload_buckets(trial, buckets, sizeof buckets);
        snprintf(name, sizeof name, "%s %.0f %s batch %.0f%s", el_json_text(trial, "mode", "?"),
                 el_json_number(trial, "devices"), el_json_text(trial, "model", "?"),
                 el_json_number(trial, "global_batch"), buckets);
        EL_TRY(take_trial(readings, trial, name));
    }
    return EL_OK;
}

static bool is_figure(const json_t *value)
{
    return json_is_number(value) || json_is_null(value);
}

/* {"name"?, "value", "unit"?}, or Google's. */
static bool is_row(const json_t *object)
{
    return is_figure(json_object_get(object, "value")) ||
           (json_is_string(json_object_get(object, "name")) && json_is_number(json_object_get(object, "real_time")));
}

static enum el_status take_row(struct el_readings *readings, const json_t *object, const char *before)
{
    char name[EL_CELL_NAME_BYTES];
    bool google = json_object_get(object, "value") == NULL;
    if (google && !strcmp(el_json_text(object, "run_type", ""), "aggregate")) return EL_OK; /* a mean, a stddev */
    el_readings_join(name, sizeof name, before, el_json_text(object, "name", ""));
    return el_readings_add(readings, *name ? name : "value", el_json_text(object, google ? "time_unit" : "unit", ""),
                           el_json_number(object, google ? "real_time" : "value"));
}

static enum el_status take(struct el_readings *readings, const json_t *value, const char *before, int depth);

static enum el_status take_members(struct el_readings *readings, const json_t *object, const char *before, int depth)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)object, key, value)
    {
        char name[EL_CELL_NAME_BYTES];
        el_readings_join(name, sizeof name, before, key);
        if (!strcmp(key, "context")) continue; /* of the machine, by Google Benchmark */
        if (is_figure(value))
            EL_TRY(el_readings_add(readings, name, "", json_is_number(value) ? json_number_value(value) : NAN));
        else if (json_is_object(value))
            EL_TRY(take(readings, value, name, depth + 1));
        else if (json_is_array(value)) /* a list's own name ("benchmarks") is none of its rows' */
            EL_TRY(take(readings, value, before, depth + 1));
    }
    return EL_OK;
}

static enum el_status take(struct el_readings *readings, const json_t *value, const char *before, int depth)
{
    if (depth > DEPTH_MAX) return EL_OK;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (json_is_object(json_array_get(value, i)))
            EL_TRY(take(readings, json_array_get(value, i), before, depth + 1));
    if (!json_is_object(value)) return EL_OK;
    if (json_is_array(json_object_get(value, "trials")) && json_object_get(value, "schema"))
        return take_run(readings, json_object_get(value, "trials"));
    if (json_object_get(value, "mode") && json_object_get(value, "step_ms")) return take_trial(readings, value, before);
    return is_row(value) ? take_row(readings, value, before) : take_members(readings, value, before, depth);
}

enum el_status el_readings_json(struct el_readings *readings, const json_t *document)
{
    return take(readings, document, "", 0);
}
