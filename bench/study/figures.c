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

/* Of a launch. */
struct figure {
    double (*of)(const json_t *launch, const char *path);
    const char *path;
};

static double per_s(const json_t *launch, const char *path)
{
    return 1e3 / el_json_number(launch, path);
}

/* One for all rows: samples, if the DataLoader gave some in each launch. */
static struct figure rate_of(const json_t *launches)
{
    const struct figure samples = {el_json_number, "training.samples_per_s"};
    EL_EACH(row, launches) {
        EL_EACH(launch, row)
            if (is_ok(launch) && isnan(samples.of(launch, samples.path)))
                return (struct figure){per_s, "training.step_ms.mean"};
    }
    return samples;
}

/* Of the launches that ended well: their count, and the figure of each. */
static size_t collect(const json_t *launches, struct figure figure, double **values_p)
{
    size_t n = 0;
    *values_p = calloc(json_array_size(launches) + 1, sizeof **values_p);
    EL_EACH(launch, *values_p ? launches : NULL)
        if (is_ok(launch) && !isnan(figure.of(launch, figure.path))) (*values_p)[n++] = figure.of(launch, figure.path);
    return n;
}

static double median_of(const json_t *launches, struct figure figure)
{
    double *values;
    const size_t n = collect(launches, figure, &values);
    const double median = n ? el_stats_median(values, n) : NAN;
    free(values);
    return median;
}

static struct el_interval interval_of(const json_t *launches, struct figure figure, size_t *n_p)
{
    double *values;
    const size_t n = collect(launches, figure, &values);
    const struct el_interval interval = el_stats_interval(values, n);
    free(values);
    *n_p = n;
    return interval;
}

/* By launches with the same number, which ran in one round. */
static struct el_interval ratio_of(const json_t *own, const json_t *base, struct figure rate)
{
    const size_t room = json_array_size(own) + 1;
    double *x = calloc(room, sizeof *x), *y = calloc(room, sizeof *y);
    size_t n = 0;
    for (size_t k = 0; k + 1 < room && x && y; k++) {
        const json_t *a = json_array_get(own, k), *b = json_array_get(base, k);
        if (!is_ok(a) || !is_ok(b)) continue;
        x[n] = rate.of(a, rate.path);
        y[n++] = rate.of(b, rate.path);
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

static double data_of(const json_t *launch, const char *path)
{
    return mean_at(el_json_at(launch, "training.ranks"), path);
}

/* One process waits for nobody. */
static double wait_of(const json_t *launch, const char *path)
{
    const json_t *ranks = el_json_at(launch, "training.late.ranks");
    return json_array_size(el_json_at(launch, "training.ranks")) == 1 ? 0 : mean_at(ranks, path);
}

static double peak_of(const json_t *launch, const char *path)
{
    const double allocated = el_json_highest(el_json_at(launch, "training.ranks"), path);
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

static json_t *row_json(const struct el_study_row *row, const json_t *launches, const json_t *first, struct figure rate)
{
    size_t n;
    const struct el_interval own = interval_of(launches, rate, &n), ratio = ratio_of(launches, first, rate);
    json_t *steps =
        el_json_of(EL_KEY("median", median_of(launches, (struct figure){el_json_number, "training.step_ms.median"})),
                   EL_KEY("mean", median_of(launches, (struct figure){el_json_number, "training.step_ms.mean"})),
                   EL_KEY("p95", median_of(launches, (struct figure){el_json_number, "training.step_ms.p95"})));
    json_t *json = el_json_of(EL_KEY("name", (const char *)row->name),
                              EL_KEY("devices", el_json_count(row->devices ? row->devices : -1)),
                              EL_KEY("command", (const char *)row->words[2]), EL_KEY("launches", n),
                              EL_KEY("step_ms", steps), EL_KEY("samples_per_s", rate.of != per_s ? own.centre : NAN),
                              EL_KEY("steps_per_s", rate.of == per_s ? own.centre : NAN),
                              EL_KEY("ci95", el_json_interval(own.low, own.high)));
    el_json_put_all(json, EL_KEY("speedup", ratio.centre),
                    EL_KEY("speedup_ci95", el_json_interval(ratio.low, ratio.high)),
                    EL_KEY("data_ms", median_of(launches, (struct figure){data_of, "data_ms"})),
                    EL_KEY("wait_ms", median_of(launches, (struct figure){wait_of, "wait_exposed_ms"})),
                    EL_KEY("late", late_of(launches)),
                    EL_KEY("peak_bytes", median_of(launches, (struct figure){peak_of, "allocated_bytes"})),
                    EL_KEY("reason", reason_of(launches)));
    return json;
}

/* Ideal: each device has the rate of those of the first row. */
static void put_losses(json_t *row, const json_t *first)
{
    const double more = el_json_number(row, "devices") / el_json_number(first, "devices");
    const double step = el_json_number(row, "step_ms.median"), efficiency = el_json_number(row, "speedup") / more;
    el_json_put_all(row, EL_KEY("efficiency", efficiency), EL_KEY("ideal_ms", step * efficiency),
                    EL_KEY("lost_ms", el_stats_minus(step, step * efficiency)));
}

json_t *el_study_json(const struct el_study_row *rows, int n, const json_t *launches, const char *kind,
                      const char *command)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(list, row_json(&rows[i], json_array_get(launches, (size_t)i), json_array_get(launches, 0),
                                             rate_of(launches)));
    EL_EACH(row, list) put_losses(row, json_array_get(list, 0));
    return el_json_of(EL_KEY("kind", kind), EL_KEY("command", command), EL_KEY("rows", list));
}
