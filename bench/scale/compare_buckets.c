/* The size of ddp's buckets: each against the usual one, repeat by repeat, and which is to be taken.
 *
 * A size is recommended only if it is faster beyond chance, with all sizes looked at together: of four sizes without
 * any difference one is at 95 % for itself soon found. Sizes that give the very buckets of the usual one (a tensor is
 * never divided) are the same configuration, and are no candidates: what they differ by is the noise. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/report/report.h"
#include "bench/scale/scale.h"

static const double MIB = 1 << 20;

static double cap_of(const json_t *trial)
{
    return el_json_number(trial, "config.bucket_cap_bytes");
}

/* The trial of the usual size that the sweep's are held against: same mode, same devices. */
static const json_t *find_base(const json_t *trials, const json_t *swept, double base_cap_bytes)
{
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        bool same = !strcmp(el_json_text(trial, "mode", ""), el_json_text(swept, "mode", "?"));
        if (same && cap_of(trial) == base_cap_bytes &&
            el_json_number(trial, "devices") == el_json_number(swept, "devices"))
            return trial;
    }
    return NULL;
}

/* Bytes of collective i of the step, NAN after the last. Each all-reduce is a bucket. */
static double bucket_bytes(const json_t *trial, size_t i)
{
    return el_json_number(json_array_get(json_object_get(trial, "collectives"), i), "bytes");
}

static size_t count_buckets(const json_t *trial)
{
    return json_array_size(json_object_get(trial, "collectives"));
}

static bool same_buckets(const json_t *a, const json_t *b)
{
    size_t n = count_buckets(a);
    bool same = n > 0 && n == count_buckets(b);
    for (size_t i = 0; i < n && same; i++) same = bucket_bytes(a, i) == bucket_bytes(b, i);
    return same;
}

static json_t *row_of(const json_t *trial, const json_t *base, int looks)
{
    double largest = el_json_highest(json_object_get(trial, "collectives"), "bytes");
    size_t n = count_buckets(trial), pairs = 0;
    struct el_interval ratio = el_report_ratio(base, trial, &pairs); /* of times: the inverse of that of rates */
    struct el_interval told = el_stats_interval_stretch(ratio, el_stats_stretch_of_looks(pairs, looks));
    if (trial == base) ratio.centre = 1;
    bool known = trial != base;
    json_t *row = json_object();
    el_json_put_real(row, "mib", cap_of(trial) / MIB);
    el_json_put_text(row, "status", el_json_text(trial, "status", "failed"));
    el_json_put_text(row, "failure", el_json_text(trial, "reason", NULL));
    json_object_set_new(row, "buckets", n ? json_integer((json_int_t)n) : json_null());
    json_object_set_new(row, "first_bytes", el_json_count(el_json_whole(trial, "collectives.0.bytes")));
    json_object_set_new(row, "largest_bytes", el_json_count(largest >= 0 && largest < 9e15 ? (int64_t)largest : -1));
    json_object_set_new(row, "same", json_boolean(trial != base && same_buckets(trial, base)));
    el_json_put_real(row, "step_ms",
                     el_json_number(trial, "global_batch") / el_json_number(trial, "throughput.samples_per_s") * 1e3);
    el_json_put_real(row, "comm_costs_ms", el_json_number(trial, "comm.exposed_step_ms"));
    el_json_put_real(row, "ratio", ratio.centre);
    json_object_set_new(row, "ci95", known ? el_scale_interval(ratio, 1) : json_null());
    json_object_set_new(row, "significant95", known ? el_scale_interval(told, 1) : json_null());
    el_json_put_text(row, "reason", known ? ratio.reason : NULL);
    return row;
}

/* The fastest of those whose interval lies below 1; NAN: none does. */
static double recommend(const json_t *rows)
{
    double best = NAN, ratio = 1;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        bool told = el_json_number(row, "significant95.1") < 1 && json_is_false(json_object_get(row, "same"));
        if (!told || !(el_json_number(row, "ratio") < ratio)) continue;
        ratio = el_json_number(row, "ratio");
        best = el_json_number(row, "mib");
    }
    return best;
}

static bool is_swept_like(const json_t *trial, const json_t *base, double base_cap_bytes)
{
    return cap_of(trial) != base_cap_bytes && !strcmp(el_json_text(trial, "mode", ""), el_json_text(base, "mode", "?"));
}

/* In rising order of their sizes; `base` among them. */
static void insert(json_t *rows, json_t *row)
{
    size_t at = 0;
    while (at < json_array_size(rows) && el_json_number(json_array_get(rows, at), "mib") < el_json_number(row, "mib"))
        at++;
    json_array_insert_new(rows, at, row);
}

json_t *el_scale_buckets(const json_t *trials, double base_cap_bytes)
{
    const json_t *base = NULL;
    int looks = 0;
    size_t n = json_array_size(trials);
    for (size_t i = 0; i < n && !base; i++) {
        const json_t *trial = json_array_get(trials, i);
        if (cap_of(trial) != base_cap_bytes) base = find_base(trials, trial, base_cap_bytes);
    }
    if (!base) return json_null();
    for (size_t i = 0; i < n; i++) {
        const json_t *trial = json_array_get(trials, i);
        looks += is_swept_like(trial, base, base_cap_bytes) && !same_buckets(trial, base);
    }
    json_t *rows = json_array();
    insert(rows, row_of(base, base, looks));
    for (size_t i = 0; i < n; i++) {
        const json_t *trial = json_array_get(trials, i);
        if (is_swept_like(trial, base, base_cap_bytes)) insert(rows, row_of(trial, base, looks));
    }
    const char *shared = el_scale_shared(base);
    return json_pack("{s:s, s:o, s:o, s:o, s:i, s:o, s:o}", "mode", el_json_text(base, "mode", "?"), "devices",
                     el_json_count(el_json_whole(base, "devices")), "base_mib", el_json_real(base_cap_bytes / MIB),
                     "shared", el_json_string(shared), "comparisons", looks, "recommended_mib",
                     el_json_real(shared ? NAN : recommend(rows)), "rows", rows);
}
