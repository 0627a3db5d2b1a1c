/* What recording cost a trial: counted in each repeat, and where there are control blocks of the recorder, toggled. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/parts.h"

/* Which figure of a repeat; NAN where it has none. */
typedef double (*figure_fn)(const json_t *repeat);

static double counted_us(const json_t *repeat)
{
    return el_json_number(repeat, "recorder_cost.counted_us");
}

static double mean_of(const json_t *array)
{
    double *values;
    size_t n = el_json_numbers(array, &values);
    double mean = el_stats_mean(values, n);
    free(values);
    return mean;
}

static double counted_pct(const json_t *repeat)
{
    return counted_us(repeat) * 0.1 / mean_of(json_object_get(repeat, "step_ms")); /* 100 % * 1e-3 ms */
}

/* The shift between blocks with the recorder and their neighbours without it, and the step without it, in ms. */
static double shift_ms(const json_t *repeat, double *off_ms_p)
{
    double *on_ms, *off_ms, shift = NAN;
    size_t n_on = el_json_numbers(el_json_at(repeat, "control.on_ms"), &on_ms);
    size_t n_off = el_json_numbers(el_json_at(repeat, "control.off_ms"), &off_ms);
    bool record = strcmp(el_json_text(repeat, "control.kind", ""), "record") == 0;
    *off_ms_p = el_stats_median(off_ms, n_off);
    for (size_t i = 0; record && i < n_on && n_on == n_off; i++) on_ms[i] -= off_ms[i];
    if (record && n_on == n_off) shift = el_stats_hodges_lehmann(on_ms, n_on);
    free(on_ms);
    free(off_ms);
    return shift;
}

static double toggled_us(const json_t *repeat)
{
    double off_ms;
    return shift_ms(repeat, &off_ms) * 1e3;
}

static double toggled_pct(const json_t *repeat)
{
    double off_ms, shift = shift_ms(repeat, &off_ms);
    return 100 * shift / off_ms;
}

static size_t figures_of(const json_t *ok, figure_fn figure, double **values_p)
{
    size_t n = 0;
    double *values = calloc(json_array_size(ok) + 1, sizeof *values);
    for (size_t i = 0; values && i < json_array_size(ok); i++) {
        values[n] = figure(json_array_get(ok, i));
        n += isfinite(values[n]);
    }
    *values_p = values;
    return n;
}

static void put_median(json_t *recorder, const char *name, const json_t *ok, figure_fn figure)
{
    double *values;
    size_t n = figures_of(ok, figure, &values);
    json_object_set_new(recorder, name, el_json_real(el_stats_median(values, n)));
    free(values);
}

static void put_interval(json_t *recorder, const char *name, const char *ci_name, const json_t *ok, figure_fn figure)
{
    double *values;
    size_t n = figures_of(ok, figure, &values);
    struct el_interval interval = el_stats_difference(values, n);
    free(values);
    el_json_put_real(recorder, name, n ? interval.centre : NAN);
    el_json_put(recorder, ci_name, el_trial_interval(&interval));
    el_json_put_text(recorder, "ci_reason", n ? interval.reason : "no control blocks of the recorder");
}

/* null: no finished repeat had a recorder, or times are virtual. */
json_t *el_trial_recorder(const json_t *ok)
{
    json_t *recorder = json_object();
    const json_t *first = json_array_get(ok, 0), *cost = json_object_get(first, "recorder_cost");
    if (!json_is_object(cost)) {
        json_decref(recorder);
        return json_null();
    }
    json_object_set_new(recorder, "events", json_deep_copy(json_object_get(cost, "events")));
    json_object_set_new(recorder, "cost_ns", json_deep_copy(json_object_get(cost, "cost_ns")));
    put_median(recorder, "counted_us", ok, counted_us);
    put_median(recorder, "counted_pct", ok, counted_pct);
    put_interval(recorder, "toggled_us", "toggled_us_ci95", ok, toggled_us);
    put_interval(recorder, "toggled_pct", "toggled_pct_ci95", ok, toggled_pct);
    return recorder;
}
