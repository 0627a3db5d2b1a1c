/* Throughput and step times over repeats. A repeat is the unit of the interval; percentiles are over all steps. */
#include <math.h>
#include <stdlib.h>

#include "bench/record/jvalue.h"
#include "bench/record/stats.h"
#include "bench/stats/stats.h"

double el_repeat_samples_per_s(const json_t *repeat, double global_batch)
{
    double *step_ms;
    size_t n = el_json_numbers(json_object_get(repeat, "step_ms"), &step_ms);
    double mean_ms = el_stats_mean(step_ms, n);
    free(step_ms);
    return mean_ms > 0 ? global_batch / mean_ms * 1e3 : NAN;
}

json_t *el_trial_throughput(const json_t *ok, double global_batch)
{
    size_t n = json_array_size(ok), kept = 0;
    double *rates = malloc((n + 1) * sizeof *rates);
    for (size_t i = 0; i < n && rates != NULL; i++) {
        double rate = el_repeat_samples_per_s(json_array_get(ok, i), global_batch);
        if (!isnan(rate)) rates[kept++] = rate;
    }
    struct el_interval interval = el_stats_interval(rates, kept);
    free(rates);
    json_t *ci = interval.valid ? json_array() : json_null();
    if (interval.valid) {
        json_array_append_new(ci, el_json_real(interval.low));
        json_array_append_new(ci, el_json_real(interval.high));
    }
    json_t *throughput = json_object();
    json_object_set_new(throughput, "samples_per_s", el_json_real(interval.centre));
    json_object_set_new(throughput, "ci95", ci);
    json_object_set_new(throughput, "ci_reason",
                        el_json_string(kept == 0 ? "no repeat was finished" : interval.reason));
    return throughput;
}

json_t *el_trial_step_ms(const json_t *ok)
{
    json_t *all = json_array();
    for (size_t i = 0; i < json_array_size(ok); i++) {
        json_t *steps = json_object_get(json_array_get(ok, i), "step_ms");
        if (json_is_array(steps)) json_array_extend(all, steps);
    }
    double *steps;
    size_t n = el_json_numbers(all, &steps);
    json_t *step_ms = json_object();
    json_object_set_new(step_ms, "median", el_json_real(el_stats_median(steps, n)));
    json_object_set_new(step_ms, "mean", el_json_real(el_stats_mean(steps, n)));
    json_object_set_new(step_ms, "p95", el_json_real(el_stats_quantile(steps, n, 0.95)));
    free(steps);
    json_decref(all);
    return step_ms;
}
