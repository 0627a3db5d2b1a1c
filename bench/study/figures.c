/* What the launches of a study come to. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/stats/stats.h"
#include "bench/study/study.h"

static bool is_ok(const json_t *launch)
{
    return el_json_is(launch, "status", "ok");
}

/* Steps a second, where the DataLoader gave no samples. */
static double rate_of(const json_t *launch)
{
    const double samples = el_json_number(launch, "training.samples_per_s");
    return isnan(samples) ? 1e3 / el_json_number(launch, "training.step_ms.mean") : samples;
}

/* Of the launches that ended well: their count, and the figure of each. */
static size_t collect(const json_t *launches, double (*figure)(const json_t *), double **values_p)
{
    size_t n = 0;
    *values_p = calloc(json_array_size(launches) + 1, sizeof **values_p);
    EL_EACH(launch, *values_p ? launches : NULL)
        if (is_ok(launch) && !isnan(figure(launch))) (*values_p)[n++] = figure(launch);
    return n;
}

static double median_of(const json_t *launches, double (*figure)(const json_t *))
{
    double *values;
    const size_t n = collect(launches, figure, &values);
    const double median = n ? el_stats_median(values, n) : NAN;
    free(values);
    return median;
}

static struct el_interval interval_of(const json_t *launches, double (*figure)(const json_t *))
{
    double *values;
    const size_t n = collect(launches, figure, &values);
    const struct el_interval interval = el_stats_interval(values, n);
    free(values);
    return interval;
}

/* By launches with the same number, which ran in one round. */
static struct el_interval ratio_of(const json_t *own, const json_t *base)
{
    const size_t room = json_array_size(own) + 1;
    double *x = calloc(room, sizeof *x), *y = calloc(room, sizeof *y);
    size_t n = 0;
    for (size_t k = 0; k + 1 < room && x && y; k++) {
        const json_t *a = json_array_get(own, k), *b = json_array_get(base, k);
        if (!is_ok(a) || !is_ok(b) || isnan(rate_of(a)) || isnan(rate_of(b))) continue;
        x[n] = rate_of(a);
        y[n++] = rate_of(b);
    }
    const struct el_interval ratio = el_stats_ratio_paired(x, y, n);
    free(x);
    free(y);
    return ratio;
}

static double mean_at(const json_t *list, const char *path)
{
    double sum = 0;
    EL_EACH(row, list) sum += el_json_number(row, path);
    return sum / (double)json_array_size(list);
}

static double step_of(const json_t *launch)
{
    return el_json_number(launch, "training.step_ms.median");
}

static double data_of(const json_t *launch)
{
    return mean_at(el_json_at(launch, "training.ranks"), "data_ms");
}

/* One process waits for nobody. */
static double wait_of(const json_t *launch)
{
    const json_t *ranks = el_json_at(launch, "training.late.ranks");
    return json_array_size(el_json_at(launch, "training.ranks")) == 1 ? 0 : mean_at(ranks, "wait_exposed_ms");
}

static double peak_of(const json_t *launch)
{
    const double allocated = el_json_highest(el_json_at(launch, "training.ranks"), "allocated_bytes");
    return allocated >= 0 ? allocated : el_json_number(launch, "peak_bytes");
}

static const char *named_in(const json_t *launch)
{
    const bool caused = json_is_object(el_json_at(launch, "training.late.blame.cause"));
    return caused ? el_json_text(launch, "training.late.blame.rank", NULL) : NULL;
}

/* {"rank", "launches", "part"}: who is blamed in most launches; null: nobody in half of them. */
static json_t *late_of(const json_t *launches)
{
    const char *most = NULL, *part = NULL;
    size_t n_most = 0, n_ok = 0;
    EL_EACH(launch, launches) {
        const char *who = named_in(launch);
        size_t n = 0;
        n_ok += is_ok(launch);
        EL_EACH(other, who ? launches : NULL) n += named_in(other) && !strcmp(named_in(other), who);
        if (n <= n_most) continue;
        n_most = n;
        most = who;
        part = el_json_text(launch, "training.late.blame.cause.part", NULL);
    }
    if (2 * n_most <= n_ok) return json_null();
    return el_json_of(EL_KEY("rank", most), EL_KEY("launches", n_most), EL_KEY("part", part));
}

static const char *reason_of(const json_t *launches)
{
    EL_EACH(launch, launches)
        if (!is_ok(launch)) return el_json_text(launch, "reason", "?");
    return NULL;
}

static json_t *row_json(const struct el_study_row *row, const json_t *launches, const json_t *first, int first_devices)
{
    const struct el_interval rate = interval_of(launches, rate_of), ratio = ratio_of(launches, first);
    const double samples = el_json_number(el_json_at(launches, "0"), "training.samples_per_s");
    const double n = row->devices && first_devices ? (double)row->devices / first_devices : NAN;
    double *values;
    const size_t n_ok = collect(launches, rate_of, &values);
    free(values);
    json_t *json = el_json_of(
        EL_KEY("name", (const char *)row->name), EL_KEY("devices", el_json_count(row->devices ? row->devices : -1)),
        EL_KEY("command", (const char *)row->words[2]), EL_KEY("launches", n_ok),
        EL_KEY("step_ms", median_of(launches, step_of)), EL_KEY("samples_per_s", isnan(samples) ? NAN : rate.centre),
        EL_KEY("steps_per_s", isnan(samples) ? rate.centre : NAN),
        EL_KEY("ci95", el_json_interval(rate.low, rate.high)));
    el_json_put_all(json, EL_KEY("speedup", ratio.centre),
                    EL_KEY("speedup_ci95", el_json_interval(ratio.low, ratio.high)),
                    EL_KEY("efficiency", ratio.centre / n), EL_KEY("data_ms", median_of(launches, data_of)),
                    EL_KEY("wait_ms", median_of(launches, wait_of)), EL_KEY("late", late_of(launches)),
                    EL_KEY("peak_bytes", median_of(launches, peak_of)), EL_KEY("reason", reason_of(launches)));
    return json;
}

/* A step of the first row at this row's rate a device is the ideal one. */
static void put_losses(json_t *row, const json_t *first)
{
    const double step = el_json_number(row, "step_ms"), efficiency = el_json_number(row, "efficiency");
    const double ideal = step * efficiency, lost = el_stats_minus(step, ideal);
    const double data =
        el_json_number(row, "data_ms") - el_json_number(first, "data_ms") * ideal / el_json_number(first, "step_ms");
    el_json_put_all(row, EL_KEY("ideal_ms", ideal), EL_KEY("lost_ms", lost), EL_KEY("lost_data_ms", data));
}

json_t *el_study_json(const struct el_study_row *rows, int n, const json_t *launches, const char *kind,
                      const char *command)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, row_json(&rows[i], json_array_get(launches, (size_t)i), json_array_get(launches, 0),
                                             rows[0].devices));
    EL_EACH(row, list) put_losses(row, json_array_get(list, 0));
    return el_json_of(EL_KEY("kind", kind), EL_KEY("command", command), EL_KEY("rows", list));
}
