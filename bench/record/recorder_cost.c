/* What recording cost a trial: counted in each repeat, and where there are control blocks of the recorder, toggled. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/record/parts.h"

enum { COUNTED_US, COUNTED_PCT, TOGGLED_US, TOGGLED_PCT, N_FIGURES };

/* Of one repeat; NAN: it has none. */
static void figures_of(const json_t *repeat, double figures[N_FIGURES])
{
    double *steps_ms, *on_ms, *off_ms;
    size_t n_steps = el_json_numbers(json_object_get(repeat, "step_ms"), &steps_ms);
    size_t n_on = el_json_numbers(el_json_at(repeat, "control.on_ms"), &on_ms);
    size_t n_off = el_json_numbers(el_json_at(repeat, "control.off_ms"), &off_ms);
    bool record = strcmp(el_json_text(repeat, "control.kind", ""), "record") == 0 && n_on == n_off;
    double off_median_ms = el_stats_median(off_ms, n_off);
    /* The shift between blocks with the recorder and their neighbours without it. */
    for (size_t i = 0; record && i < n_on; i++) on_ms[i] -= off_ms[i];
    double shift_ms = record ? el_stats_hodges_lehmann(on_ms, n_on) : NAN;
    figures[COUNTED_US] = el_json_number(repeat, "recorder_cost.counted_us");
    figures[COUNTED_PCT] = figures[COUNTED_US] * 0.1 / el_stats_mean(steps_ms, n_steps); /* 100 % * 1e-3 ms */
    figures[TOGGLED_US] = shift_ms * 1e3;
    figures[TOGGLED_PCT] = 100 * shift_ms / off_median_ms;
    free(steps_ms);
    free(on_ms);
    free(off_ms);
}

/* A figure over `n` repeats: a median, or where it has an interval, the centre of that. */
static void put_figure(json_t *recorder, int figure, const double *values, size_t n)
{
    static const char *const names[N_FIGURES] = {"counted_us", "counted_pct", "toggled_us", "toggled_pct"};
    static const char *const intervals[N_FIGURES] = {NULL, NULL, "toggled_us_ci95", "toggled_pct_ci95"};
    struct el_interval interval = el_stats_difference(values, n);
    if (!intervals[figure]) {
        el_json_put_real(recorder, names[figure], el_stats_median(values, n));
        return;
    }
    el_json_put_real(recorder, names[figure], n ? interval.centre : NAN);
    el_json_put(recorder, intervals[figure], el_trial_interval(&interval));
    el_json_put_text(recorder, "ci_reason", n ? interval.reason : "no control blocks of the recorder");
}

/* null: no finished repeat had a recorder, or times are virtual. */
json_t *el_trial_recorder(const json_t *ok)
{
    const json_t *cost = el_json_at(ok, "0.recorder_cost");
    size_t n = json_array_size(ok), kept[N_FIGURES] = {0};
    double *values = json_is_object(cost) ? malloc(N_FIGURES * n * sizeof *values) : NULL;
    if (!values) return json_null();
    for (size_t i = 0; i < n; i++) {
        double figures[N_FIGURES];
        figures_of(json_array_get(ok, i), figures);
        for (size_t f = 0; f < N_FIGURES; f++)
            if (isfinite(figures[f])) values[f * n + kept[f]++] = figures[f];
    }
    json_t *recorder = json_object();
    el_json_put(recorder, "events", json_deep_copy(json_object_get(cost, "events")));
    el_json_put(recorder, "cost_ns", json_deep_copy(json_object_get(cost, "cost_ns")));
    for (int f = 0; f < N_FIGURES; f++) put_figure(recorder, f, values + (size_t)f * n, kept[f]);
    free(values);
    return recorder;
}
