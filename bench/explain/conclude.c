/* Which schedules to measure, and the causes from their samples. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/explain/explain.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/verdict/verdict.h"

static unsigned without(int n)
{
    unsigned fixes = 0;
    for (int i = 0; i < n; i++) fixes |= el_dp_fix_rows()[i].fix;
    return fixes;
}

static int find(const struct el_explain_way *way, unsigned fixes)
{
    for (int v = 0; v < way->n; v++)
        if (!strcmp(way->variants[v].mode, "dp") && way->variants[v].fixes == fixes) return v;
    return -1;
}

static void go_from_dp(struct el_explain_way *way)
{
    *way = (struct el_explain_way){
        .n_causes = EL_DP_FIXES,
        .rest = "one host thread starts the work of all devices; in ddp each device has its own"};
    for (int k = 0; k <= EL_DP_FIXES; k++)
        way->variants[way->n++] = (struct el_explain_variant){.mode = "dp", .fixes = without(k)};
    way->variants[way->n++] = (struct el_explain_variant){.mode = "ddp"};
    for (int i = 0; i < EL_DP_FIXES; i++) {
        const struct el_dp_fix_row *row = &el_dp_fix_rows()[i];
        struct el_explain_cause *cause = &way->causes[i];
        const unsigned fixes = el_dp_fix_close(row->fix);
        if (find(way, fixes) < 0) way->variants[way->n++] = (struct el_explain_variant){.mode = "dp", .fixes = fixes};
        *cause = (struct el_explain_cause){.name = row->name, .what = row->cause, .alone = find(way, fixes)};
        el_dp_fix_text(fixes, cause->with, sizeof cause->with);
    }
}

static void go_from_zero(int stage, struct el_explain_way *way)
{
    static const struct el_explain_variant variants[] = {{.mode = "zero3"},
                                                         {.mode = "zero3", .option = "reshard", .value = "off"},
                                                         {.mode = "zero2"},
                                                         {.mode = "zero1"}};
    static const struct el_explain_cause causes[] = {
        {"again", "parameters are freed after forward, and gathered once more for backward", 1, ""},
        {"gather", "parameters are gathered unit by unit before their layers; else all of them after the update", -1,
         ""},
        {"parts", "whole gradients are made and freed unit by unit; else they stay in their place", -1, ""}};
    const int first = stage == 3 ? 0 : stage == 2 ? 2 : 3;
    *way = (struct el_explain_way){.n_causes = 3 - first,
                                   .rest = "parts are reduced, updated and gathered; in ddp gradients are copied to "
                                           "buckets, all-reduced, and each device updates all"};
    for (int v = first; v < 4; v++) way->variants[way->n++] = variants[v];
    way->variants[way->n++] = (struct el_explain_variant){.mode = "ddp"};
    for (int c = first; c < 3; c++) way->causes[c - first] = causes[c];
}

enum el_status el_explain_way(const char *mode, struct el_explain_way *way_p)
{
    if (strcmp(mode, "dp") == 0)
        go_from_dp(way_p);
    else if (strcmp(mode, "zero2") == 0 || strcmp(mode, "zero3") == 0)
        go_from_zero(mode[4] - '0', way_p);
    else
        return el_fail(EL_ERR_INVALID,
                       "explain --mode %s: must be dp, zero2 or zero3, whose step is compared with ddp's", mode);
    return EL_OK;
}

struct steps {
    size_t n;                                           /* launches */
    double ms[EL_EXPLAIN_VARIANTS_MAX][EL_REPEATS_MAX]; /* by launch */
    struct el_explain_way way;
};

static double launch_ms(const json_t *launch, int variant)
{
    double *blocks = NULL;
    const json_t *part = json_array_get(json_object_get(launch, "variants"), (size_t)variant);
    size_t n = el_json_numbers(json_object_get(part, "block_ms"), &blocks);
    double median = el_stats_median(blocks, n);
    free(blocks);
    return median;
}

void el_explain_put(json_t *row, const char *key, const char *interval_key, struct el_interval interval)
{
    el_json_put_real(row, key, interval.centre);
    el_json_put(row, interval_key, el_json_interval(interval.low, interval.high));
}

static void put_difference(json_t *row, const char *key, const char *interval_key, const struct steps *steps, int from,
                           int to)
{
    double differences[EL_REPEATS_MAX];
    for (size_t i = 0; i < steps->n; i++) differences[i] = el_stats_minus(steps->ms[from][i], steps->ms[to][i]);
    el_explain_put(row, key, interval_key, el_stats_difference(differences, steps->n));
}

static json_t *step_json(const struct steps *steps, const json_t *launch, int v)
{
    const struct el_explain_variant *variant = &steps->way.variants[v];
    char fixes[EL_DP_FIX_TEXT_BYTES], option[64] = "";
    el_dp_fix_text(variant->fixes, fixes, sizeof fixes);
    if (variant->option) snprintf(option, sizeof option, "%s=%s", variant->option, variant->value);
    json_t *memory = json_object_get(json_array_get(json_object_get(launch, "variants"), (size_t)v), "memory");
    json_t *row =
        el_json_of(EL_KEY("mode", variant->mode), EL_KEY("dp_fix", fixes), EL_KEY("option", *option ? option : NULL),
                   EL_KEY("samples_ms", el_json_reals(steps->ms[v], steps->n)), EL_KEY("memory", json_incref(memory)));
    el_explain_put(row, "step_ms", "step_ci95", el_stats_difference(steps->ms[v], steps->n));
    el_json_put_real(row, "excess_bytes", el_excess_of(memory, "peak_bytes"));
    return row;
}

static json_t *cause_json(const struct steps *steps, const json_t *rows, int c)
{
    const struct el_explain_cause *cause = &steps->way.causes[c];
    json_t *row = el_json_of(EL_KEY("cause", cause->name), EL_KEY("what", cause->what),
                             EL_KEY("alone_is", *cause->with ? cause->with : cause->name));
    put_difference(row, "ms", "ci95", steps, c, c + 1);
    if (cause->alone >= 0) put_difference(row, "alone_ms", "alone_ci95", steps, 0, cause->alone);
    el_json_put_real(row, "excess_bytes",
                     el_json_number(json_array_get(rows, (size_t)c), "excess_bytes") -
                         el_json_number(json_array_get(rows, (size_t)c + 1), "excess_bytes"));
    return row;
}

static json_t *part_json(const struct steps *steps, int from, int to)
{
    json_t *row = json_object();
    put_difference(row, "ms", "ci95", steps, from, to);
    return row;
}

static void put_prediction(json_t *document, const json_t *sample)
{
    json_t *prediction = json_object_get(sample, "prediction"), *warnings = json_array(), *rules = json_array();
    if (json_is_object(prediction)) {
        json_t *ok = json_pack("[{s:s, s:b, s:O}]", "status", "ok", "simulated", 1, "prediction", prediction);
        el_json_put_text(document, "verdict", el_verdict_judge(ok, ok, warnings, rules));
        el_json_put(document, "prediction", json_incref(prediction));
        el_json_put(document, "warnings", json_incref(warnings));
        el_json_put(document, "warning_rules", json_incref(rules));
        json_decref(ok);
    }
    json_decref(warnings);
    json_decref(rules);
}

json_t *el_explain_document(const struct el_trial *trial, const json_t *samples)
{
    struct steps steps = {.n = json_array_size(samples)};
    if (el_explain_way(trial->train.mode, &steps.way) != EL_OK) return NULL;
    const json_t *first = json_array_get(samples, 0);
    json_t *rows = json_array(), *causes = json_array();
    char command[2 * EL_PATH_BYTES] = "";
    const int last = steps.way.n_causes + 1;
    for (int v = 0; v < steps.way.n; v++) {
        EL_EACH(sample, samples) steps.ms[v][sample_at.i] = launch_ms(sample, v);
        json_array_append_new(rows, step_json(&steps, first, v));
    }
    for (int c = 0; c < steps.way.n_causes; c++) json_array_append_new(causes, cause_json(&steps, rows, c));
    if (el_trial_command(trial, command, sizeof command) != EL_OK) command[0] = 0;
    json_t *document = el_json_of(
        EL_KEY("schema", EL_EXPLAIN_SCHEMA), EL_KEY("kind", "explain"),
        EL_KEY("environment", json_incref(json_object_get(first, "environment"))), EL_KEY("mode", trial->train.mode),
        EL_KEY("command", command), EL_KEY("rest_is", steps.way.rest), EL_KEY("model", trial->train.model.name),
        EL_KEY("global_batch", trial->train.global_batch), EL_KEY("devices", el_trial_device_names(trial)),
        EL_KEY("inject", trial->inject), EL_KEY("launches", steps.n), EL_KEY("blocks_per_launch", EL_EXPLAIN_BLOCKS),
        EL_KEY("causes", causes), EL_KEY("rest", part_json(&steps, steps.way.n_causes, last)),
        EL_KEY("whole", part_json(&steps, 0, last)), EL_KEY("steps", rows),
        EL_KEY("others_waited_pct", el_json_highest(samples, "others_waited_pct")));
    put_prediction(document, first);
    return document;
}

bool el_explain_is(const json_t *document)
{
    bool known = el_json_is(document, "kind", "explain") || el_json_is(document, "kind", "difference");
    return known && el_json_whole(document, "schema") == EL_EXPLAIN_SCHEMA;
}
