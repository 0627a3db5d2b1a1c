/* From samples to causes. */
#include <math.h>
#include <stdlib.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/explain/explain.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "bench/verdict/verdict.h"

struct steps {
    size_t n;                            /* launches */
    double *ms[EL_EXPLAIN_VARIANTS_MAX]; /* [n]: a launch's step */
    struct el_explain_variant variants[EL_EXPLAIN_VARIANTS_MAX];
    int n_variants;
};

static void name_variant(const struct el_explain_variant *variant, char name[EL_DP_FIX_TEXT_BYTES])
{
    if (variant->is_ddp)
        snprintf(name, EL_DP_FIX_TEXT_BYTES, "ddp");
    else
        el_dp_fix_text(variant->fixes, name, EL_DP_FIX_TEXT_BYTES);
}

static double launch_ms(const json_t *launch, int variant)
{
    double *blocks = NULL;
    const json_t *part = json_array_get(json_object_get(launch, "variants"), (size_t)variant);
    size_t n = el_json_numbers(json_object_get(part, "block_ms"), &blocks);
    double median = el_stats_median(blocks, n);
    free(blocks);
    return median;
}

/* A step less another, launch by launch. */
static void put_difference(json_t *row, const char *key, const char *interval_key, const struct steps *steps, int from,
                           int to)
{
    double *differences = calloc(steps->n + 1, sizeof *differences);
    for (size_t i = 0; differences && i < steps->n; i++)
        differences[i] = el_stats_minus(steps->ms[from][i], steps->ms[to][i]);
    struct el_interval interval = el_stats_difference(differences, differences ? steps->n : 0);
    el_json_put_real(row, key, interval.centre);
    el_json_put(row, interval_key, el_json_interval(interval.low, interval.high));
    free(differences);
}

/* What the master holds more than the mean of the others. */
static double excess_of(const json_t *memory)
{
    double others = 0;
    size_t n = json_array_size(memory);
    for (size_t d = 1; d < n; d++) others += el_json_number(json_array_get(memory, d), "peak_bytes") / (double)(n - 1);
    return el_json_number(json_array_get(memory, 0), "peak_bytes") - others;
}

static json_t *step_json(const struct steps *steps, const json_t *launch, int v)
{
    char name[EL_DP_FIX_TEXT_BYTES];
    name_variant(&steps->variants[v], name);
    json_t *memory = el_json_at(json_array_get(json_object_get(launch, "variants"), (size_t)v), "memory");
    json_t *row = json_pack("{s:s, s:s, s:o, s:O}", "mode", steps->variants[v].is_ddp ? "ddp" : "dp", "dp_fix",
                            steps->variants[v].is_ddp ? "none" : name, "samples_ms",
                            el_json_reals(steps->ms[v], steps->n), "memory", memory);
    struct el_interval interval = el_stats_difference(steps->ms[v], steps->n);
    el_json_put_real(row, "step_ms", interval.centre);
    el_json_put(row, "step_ci95", el_json_interval(interval.low, interval.high));
    el_json_put_real(row, "excess_bytes", excess_of(memory));
    return row;
}

static json_t *cause_json(const struct steps *steps, const json_t *rows, int cause)
{
    const struct el_dp_fix_row *fix = &el_dp_fix_rows()[cause];
    int alone = el_explain_alone(cause);
    char with[EL_DP_FIX_TEXT_BYTES];
    el_dp_fix_text(steps->variants[alone].fixes, with, sizeof with);
    json_t *row = json_pack("{s:s, s:s, s:s}", "cause", fix->name, "what", fix->cause, "alone_is", with);
    put_difference(row, "ms", "ci95", steps, cause, cause + 1);
    put_difference(row, "alone_ms", "alone_ci95", steps, 0, alone);
    el_json_put_real(row, "excess_bytes",
                     el_json_number(json_array_get(rows, (size_t)cause), "excess_bytes") -
                         el_json_number(json_array_get(rows, (size_t)cause + 1), "excess_bytes"));
    return row;
}

static json_t *part_json(const struct steps *steps, int from, int to)
{
    json_t *row = json_object();
    put_difference(row, "ms", "ci95", steps, from, to);
    return row;
}

/* Of simulated devices: what their times rest on, as a trial's record has it. */
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

static json_t *conclude(const struct steps *steps, const struct el_trial *trial, const json_t *samples)
{
    json_t *rows = json_array(), *causes = json_array();
    char command[2 * EL_PATH_BYTES] = "";
    for (int v = 0; v < steps->n_variants; v++)
        json_array_append_new(rows, step_json(steps, json_array_get(samples, 0), v));
    for (int c = 0; c < EL_DP_FIXES; c++) json_array_append_new(causes, cause_json(steps, rows, c));
    if (el_trial_command(trial, command, sizeof command) != EL_OK) command[0] = 0;
    json_t *document = json_pack(
        "{s:i, s:s, s:O, s:s, s:s, s:I, s:o, s:s, s:I, s:i, s:o, s:o, s:o, s:o}", "schema", EL_EXPLAIN_SCHEMA, "kind",
        "explain", "environment", json_object_get(json_array_get(samples, 0), "environment"), "dp", command, "model",
        trial->train.model.name, "global_batch", (json_int_t)trial->train.global_batch, "devices",
        el_trial_device_names(trial), "inject", trial->inject, "launches", (json_int_t)steps->n, "blocks_per_launch",
        EL_EXPLAIN_BLOCKS, "causes", causes, "rest", part_json(steps, EL_DP_FIXES, EL_EXPLAIN_DDP), "whole",
        part_json(steps, 0, EL_EXPLAIN_DDP), "steps", rows);
    if (document) el_json_put_real(document, "others_waited_pct", el_json_highest(samples, "others_waited_pct"));
    if (document) put_prediction(document, json_array_get(samples, 0));
    return document;
}

json_t *el_explain_document(const struct el_trial *trial, const json_t *samples)
{
    struct steps steps = {.n = json_array_size(samples)};
    bool room = true;
    steps.n_variants = el_explain_variants(steps.variants);
    for (int v = 0; v < steps.n_variants; v++) {
        steps.ms[v] = calloc(steps.n + 1, sizeof *steps.ms[v]);
        room = room && steps.ms[v];
        for (size_t i = 0; steps.ms[v] && i < steps.n; i++) steps.ms[v][i] = launch_ms(json_array_get(samples, i), v);
    }
    json_t *document = room && steps.n > 0 ? conclude(&steps, trial, samples) : NULL;
    for (int v = 0; v < steps.n_variants; v++) free(steps.ms[v]);
    return document;
}

enum el_status el_explain_read(const char *path, json_t **document_p)
{
    json_t *document;
    EL_TRY(el_read_json(path, &document));
    bool known = el_json_is(document, "kind", "explain") || el_json_is(document, "kind", "difference");
    if (known && el_json_whole(document, "schema") == EL_EXPLAIN_SCHEMA) {
        el_json_printable(document);
        *document_p = document;
        return EL_OK;
    }
    json_decref(document);
    return el_fail(EL_ERR_INVALID, "%s is nothing that 'evenload explain' of this version wrote", path);
}
