/* Trials that differ only in ddp's bucket size: the best one. Intervals are corrected for all pairs (Bonferroni); sizes
 * with equal buckets count once. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "runtime/base/probe.h"

enum { SIZES_MAX = 16, TEXT_BYTES = 1024, NAME_BYTES = 64 };

struct sizes {
    const json_t *trial[SIZES_MAX];
    int same_as[SIZES_MAX]; /* the first with equal buckets, often itself */
    int n, n_different;
};

static bool has_times(const json_t *trial)
{
    return el_report_is_ok(trial) && el_json_number(trial, el_at_samples_per_s) > 0;
}

/* Steals both. */
static bool are_equal(json_t *a, json_t *b)
{
    bool equal = json_equal(a, b);
    json_decref(a);
    json_decref(b);
    return equal;
}

static json_t *rest_of(const json_t *trial, const char *const *but)
{
    static const char *const fields[] = {"mode",      "model", "global_batch", "devices", "dtype",
                                         "optimizer", "seed",  "config",       NULL};
    json_t *rest = json_object();
    el_json_copy(rest, trial, fields);
    for (; *but; but++) json_object_del(json_object_get(rest, "config"), *but);
    return rest;
}

bool el_report_are_like(const json_t *a, const json_t *b, const char *const *but)
{
    return json_object_get(a, "config") && are_equal(rest_of(a, but), rest_of(b, but));
}

/* Empty: not recorded. */
static json_t *buckets_of(const json_t *trial)
{
    json_t *bytes = json_array();
    EL_EACH(collective, json_object_get(trial, "collectives"))
        if (el_json_is(collective, "phase", el_phase_name(EL_PHASE_COMM)))
            json_array_append(bytes, json_object_get(collective, "bytes"));
    return bytes;
}

static bool same_buckets(const json_t *a, const json_t *b)
{
    json_t *of_a = buckets_of(a);
    bool known = json_array_size(of_a) > 0;
    return are_equal(of_a, buckets_of(b)) && known;
}

static void take(struct sizes *sizes, const json_t *trial)
{
    if (sizes->n == SIZES_MAX) return;
    int k = 0;
    while (k < sizes->n && !same_buckets(sizes->trial[k], trial)) k++;
    sizes->n_different += k == sizes->n;
    sizes->same_as[sizes->n] = k;
    sizes->trial[sizes->n++] = trial;
}

/* Empty if an earlier trial is like trial `at`. */
static struct sizes sizes_of(const json_t *trials, size_t at)
{
    static const char *const but[] = {"bucket_first_bytes", "bucket_cap_bytes", NULL};
    struct sizes sizes = {.n = 0};
    const json_t *trial = json_array_get(trials, at);
    EL_EACH(other, trials) {
        if (!has_times(other) || !el_report_are_like(trial, other, but)) continue;
        if (other_at.i < at) return (struct sizes){.n = 0};
        take(&sizes, other);
    }
    return sizes;
}

static const char *name_of(const struct sizes *sizes, int k, char name[NAME_BYTES])
{
    el_table_mode(sizes->trial[k], name, NAME_BYTES);
    return name;
}

/* "ddp 1M, ddp 5M" */
static void name_same(const struct sizes *sizes, int k, char names[TEXT_BYTES], int *n_p)
{
    char name[NAME_BYTES];
    *names = '\0';
    *n_p = 0;
    for (int i = 0; i < sizes->n; i++)
        if (sizes->same_as[i] == k)
            el_text_append(names, TEXT_BYTES, "%s%s", (*n_p)++ ? ", " : "", name_of(sizes, i, name));
}

static void say_same(const struct sizes *sizes, FILE *out)
{
    for (int k = 0; k < sizes->n; k++) {
        char names[TEXT_BYTES], mib[EL_FIGURE_BYTES];
        int n;
        double bytes = 0;
        name_same(sizes, k, names, &n);
        if (n < 2) continue;
        json_t *list = buckets_of(sizes->trial[k]);
        size_t n_buckets = json_array_size(list);
        EL_EACH(bucket, list) bytes += json_number_value(bucket);
        EL_ITEM(out, "%s make the same buckets (%zu all-reduce%s per step, %s MiB): tensors are not split%s.", names,
                n_buckets, n_buckets == 1 ? "" : "s", el_text_mib(bytes, mib),
                sizes->n_different == 1 ? ", so the size makes no difference here" : "");
        json_decref(list);
    }
}

static int fastest_of(const struct sizes *sizes)
{
    int fastest = 0;
    for (int k = 1; k < sizes->n; k++)
        if (sizes->same_as[k] == k && el_json_number(sizes->trial[k], el_at_samples_per_s) >
                                          el_json_number(sizes->trial[fastest], el_at_samples_per_s))
            fastest = k;
    return fastest;
}

/* Corrected for `comparisons`. Exact in virtual time. */
static struct el_interval ratio_of(const json_t *trial, const json_t *fastest, int comparisons)
{
    size_t n;
    struct el_interval ratio = el_report_ratio(trial, fastest, &n);
    double df = (double)n - 1;
    if (json_is_true(json_object_get(trial, "simulated")) && ratio.centre > 0)
        return (struct el_interval){.centre = ratio.centre, .low = ratio.centre, .high = ratio.centre, .valid = true};
    if (!ratio.valid) return ratio;
    return el_stats_interval_stretch(ratio,
                                     el_stats_t_quantile(1 - 0.025 / comparisons, df) / el_stats_t_quantile(0.975, df));
}

static const char *sort_out(const struct sizes *sizes, int fastest, char slower[TEXT_BYTES], char alike[TEXT_BYTES])
{
    char name[NAME_BYTES];
    const char *reason = NULL;
    const char *unit = el_json_number(sizes->trial[fastest], "tokens_per_sample") > 0 ? "tokens" : "samples";
    for (int k = 0; k < sizes->n; k++) {
        int pairs = sizes->n_different * (sizes->n_different - 1) / 2;
        if (k == fastest || sizes->same_as[k] != k) continue;
        struct el_interval ratio = ratio_of(sizes->trial[k], sizes->trial[fastest], pairs);
        if (!ratio.valid) reason = ratio.reason;
        bool is_slower = ratio.valid && ratio.high < 1;
        char *list = is_slower ? slower : alike;
        el_text_append(list, TEXT_BYTES, "%s%s", *list ? ", " : "", name_of(sizes, k, name));
        if (is_slower) el_text_append(list, TEXT_BYTES, " (%.2f times its %s/s", ratio.centre, unit);
        if (is_slower && ratio.low < ratio.high)
            el_text_append(list, TEXT_BYTES, ", %.3f to %.3f", ratio.low, ratio.high);
        if (is_slower) el_text_append(list, TEXT_BYTES, ")");
    }
    return reason;
}

static const char *doubt_of(const struct sizes *sizes)
{
    const char *doubt = NULL;
    for (int k = 0; k < sizes->n && !doubt; k++) doubt = el_report_doubt(sizes->trial[k]);
    return doubt;
}

static void say_best(const struct sizes *sizes, FILE *out)
{
    char slower[TEXT_BYTES] = "", alike[TEXT_BYTES] = "", name[NAME_BYTES], suspect[TEXT_BYTES] = "";
    int fastest = fastest_of(sizes), pairs = sizes->n_different * (sizes->n_different - 1) / 2;
    double batch = el_json_number(sizes->trial[0], "global_batch");
    const char *reason = sort_out(sizes, fastest, slower, alike), *doubt = doubt_of(sizes);
    if (doubt) snprintf(suspect, sizeof suspect, " It is suspect: %s.", doubt);
    name_of(sizes, fastest, name);
    if (reason)
        EL_ITEM(out, "Size of buckets at batch %.0f: none is recommended, as their ratios have no interval (%s).",
                batch, reason);
    else if (!*slower)
        EL_ITEM(out, "Size of buckets at batch %.0f: no significant difference, so none is recommended.%s", batch,
                suspect);
    else
        EL_ITEM(out, "Size of buckets at batch %.0f: %s%s%s%s; slower: %s%s.%s", batch,
                *alike ? "no significant difference between " : "recommended: ", name, *alike ? " and " : "", alike,
                slower, pairs > 1 && strstr(slower, " to ") ? "; intervals are corrected for several comparisons" : "",
                suspect);
}

void el_report_buckets(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    double first_batch = NAN;
    EL_EACH(trial, trials) {
        if (!has_times(trial)) continue;
        struct sizes sizes = sizes_of(trials, trial_at.i);
        double batch = el_json_number(trial, "global_batch");
        if (sizes.n < 2) continue;
        if (isnan(first_batch)) first_batch = batch;
        if (batch == first_batch) say_same(&sizes, out);
        if (sizes.n_different > 1) say_best(&sizes, out);
    }
}
