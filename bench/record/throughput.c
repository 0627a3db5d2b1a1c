/* Throughput and step times: first within a launch, over its own steps; then over launches, the geometric mean. So a
 * launch counts once, however many steps --min-time gave it, and throughput times mean step is the batch. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/jvalue.h"
#include "bench/record/parts.h"

double el_repeat_samples_per_s(const json_t *repeat, double global_batch)
{
    double *step_ms;
    size_t n = el_json_numbers(json_object_get(repeat, "step_ms"), &step_ms);
    double mean_ms = el_stats_mean(step_ms, n);
    free(step_ms);
    return mean_ms > 0 ? global_batch / mean_ms * 1e3 : NAN;
}

json_t *el_trial_interval(const struct el_interval *interval)
{
    if (!interval->valid) return json_null();
    return json_pack("[o, o]", el_json_real(interval->low), el_json_real(interval->high));
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
    json_t *throughput = json_object();
    el_json_put_real(throughput, "samples_per_s", interval.centre);
    el_json_put(throughput, "ci95", el_trial_interval(&interval));
    el_json_put_text(throughput, "ci_reason", kept == 0 ? "no repeat was finished" : interval.reason);
    return throughput;
}

enum { MEDIAN, MEAN, P95, N_FIGURES };

json_t *el_trial_step_ms(const json_t *repeats)
{
    static const char *const names[N_FIGURES] = {"median", "mean", "p95"};
    size_t n = json_array_size(repeats), kept = 0;
    double *launches[N_FIGURES];
    for (int f = 0; f < N_FIGURES; f++) launches[f] = calloc(n + 1, sizeof(double));
    for (size_t i = 0; i < n && launches[MEDIAN] && launches[MEAN] && launches[P95]; i++) {
        double *steps;
        size_t n_steps = el_json_numbers(json_object_get(json_array_get(repeats, i), "step_ms"), &steps);
        launches[MEDIAN][kept] = el_stats_median(steps, n_steps);
        launches[MEAN][kept] = el_stats_mean(steps, n_steps);
        launches[P95][kept] = el_stats_quantile(steps, n_steps, 0.95);
        kept += n_steps > 0;
        free(steps);
    }
    json_t *step_ms = json_object();
    for (int f = 0; f < N_FIGURES; f++) {
        el_json_put_real(step_ms, names[f], el_stats_geometric_mean(launches[f], kept));
        free(launches[f]);
    }
    return step_ms;
}
