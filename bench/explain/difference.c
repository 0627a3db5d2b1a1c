/* The difference of two sides: parts of a step, memory. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/explain/explain.h"
#include "bench/report/report.h"
#include "runtime/base/probe.h"

static const struct {
    const char *name, *what;
} parts[EL_PARTS] = {
    [EL_PART_COMPUTE] = {"compute", "kernels, as long as they take without communication beside them"},
    [EL_PART_CONTENTION] = {"contention", "kernels that are slower while communication runs"},
    [EL_PART_EXPOSED] = {"exposed", "communication that moves data while the device does not compute"},
    [EL_PART_SKEW] = {"skew", "waiting in collectives for a later device, without computing"},
    [EL_PART_BUBBLE] = {"bubble", "a stage waits for its neighbours, or for the pipeline to fill or drain"},
    [EL_PART_DATA] = {"data", "making or awaiting the batch, and copying it to the device"},
    [EL_PART_FORWARD] = {"forward", "the script from the batch to backward"},
    [EL_PART_BACKWARD] = {"backward", "the script in backward"},
    [EL_PART_OPTIMIZER] = {"optimizer", "the script from backward to the optimizer's end"},
    [EL_PART_PAUSE] = {"pause", "Python's garbage collection"},
    [EL_PART_IDLE] = {"idle", "none of these: the device waits for its host"},
};

static bool knows(const struct el_side *side, int part)
{
    return isfinite(side->mean.ms[part]);
}

static void split(struct el_side *side, int whole, int part, bool both)
{
    for (size_t i = 0; i <= side->n; i++) {
        struct el_parts *of = i == side->n ? &side->mean : &side->launches[i];
        if (both) of->ms[whole] -= of->ms[part];
        if (!both) of->ms[part] = NAN;
    }
}

static void split_both(struct el_side *a, struct el_side *b)
{
    static const enum el_part of[][2] = {{EL_PART_COMPUTE, EL_PART_CONTENTION}, {EL_PART_EXPOSED, EL_PART_SKEW}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        bool both = knows(a, of[i][1]) && knows(b, of[i][1]);
        split(a, of[i][0], of[i][1], both);
        split(b, of[i][0], of[i][1], both);
    }
}

/* Launches of one run with the same number took turns. */
static bool are_paired(const struct el_side *a, const struct el_side *b)
{
    bool paired = !strcmp(a->record, b->record) && a->n == b->n;
    for (size_t i = 0; i < a->n && paired; i++) paired = a->repeat[i] == b->repeat[i];
    return paired;
}

static struct el_interval between(const struct el_side *a, const struct el_side *b, const double *of_a,
                                  const double *of_b)
{
    if (!are_paired(a, b)) return el_stats_difference_unpaired(of_a, a->n, of_b, b->n);
    double differences[EL_REPEATS_MAX];
    for (size_t i = 0; i < a->n; i++) differences[i] = el_stats_minus(of_b[i], of_a[i]);
    return el_stats_difference(differences, a->n);
}

static json_t *difference_json(const struct el_side *a, const struct el_side *b, const double *of_a, const double *of_b)
{
    json_t *row = json_object();
    el_explain_put(row, "ms", "ci95", between(a, b, of_a, of_b));
    return row;
}

/* `part` negative: the step minus all counted parts; 0 if that is only rounding. */
static double figure(const struct el_side *side, size_t launch, int part, const bool *counted)
{
    const struct el_parts *of = side->knows_launches ? &side->launches[launch] : &side->mean;
    double step = side->step_ms[launch], rest = step;
    if (part >= 0) rest = of->ms[part];
    for (int p = 0; p < EL_PARTS && part < 0; p++)
        if (counted[p]) rest -= figure(side, launch, p, counted);
    return el_stats_minus(step + rest, step) == 0 ? 0 : rest;
}

static json_t *row_json(const struct el_side *a, const struct el_side *b, int part, const bool *counted)
{
    double of_a[EL_REPEATS_MAX], of_b[EL_REPEATS_MAX];
    for (size_t i = 0; i < a->n; i++) of_a[i] = figure(a, i, part, counted);
    for (size_t i = 0; i < b->n; i++) of_b[i] = figure(b, i, part, counted);
    json_t *row = difference_json(a, b, of_a, of_b);
    if (!a->knows_launches || !b->knows_launches)
        el_json_put(row, "ci95", json_null()); /* every launch has the same mean */
    el_json_put_real(row, "a_ms", el_stats_mean(of_a, a->n));
    el_json_put_real(row, "b_ms", el_stats_mean(of_b, b->n));
    return row;
}

static json_t *parts_json(const struct el_side *a, const struct el_side *b, const bool *counted)
{
    json_t *list = json_array();
    for (int p = 0; p < EL_PARTS; p++) {
        if (!counted[p]) continue;
        json_t *row = row_json(a, b, p, counted);
        el_json_put_text(row, "part", parts[p].name);
        el_json_put_text(row, "what", parts[p].what);
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *tags_json(const json_t *a, const json_t *b)
{
    const json_t *of_a = el_json_at(a, "memory.at_peak_by_tag"), *of_b = el_json_at(b, "memory.at_peak_by_tag");
    if (!json_is_object(of_a) || !json_is_object(of_b)) return json_null();
    json_t *by_tag = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        const char *tag = el_tag_name((enum el_tag)t);
        double change = json_number_value(json_object_get(of_b, tag)) - json_number_value(json_object_get(of_a, tag));
        if (change != 0) el_json_put(by_tag, tag, json_integer((json_int_t)change));
    }
    return by_tag;
}

static json_t *device_json(const json_t *a, const json_t *b)
{
    double of_a = el_json_number(a, el_at_device_peak_bytes), of_b = el_json_number(b, el_at_device_peak_bytes);
    return el_json_of(EL_KEY("a_device", el_json_text(a, "device", NULL)),
                      EL_KEY("b_device", el_json_text(b, "device", NULL)), EL_KEY("a_bytes", el_json_rounded(of_a)),
                      EL_KEY("b_bytes", el_json_rounded(of_b)), EL_KEY("change_bytes", el_json_rounded(of_b - of_a)),
                      EL_KEY("by_tag", tags_json(a, b)));
}

static json_t *memory_json(const struct el_side *a, const struct el_side *b)
{
    const json_t *of_a = json_object_get(a->trial, "per_device"), *of_b = json_object_get(b->trial, "per_device");
    size_t n = json_array_size(of_a) > json_array_size(of_b) ? json_array_size(of_a) : json_array_size(of_b);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(list, device_json(json_array_get(of_a, i), json_array_get(of_b, i)));
    return list;
}

/* None if neither is cut: the parts say it all. */
static json_t *axes_json(const struct el_side *a, const struct el_side *b)
{
    json_t *of_a = el_report_axes_of(a->trial), *of_b = el_report_axes_of(b->trial), *list = json_array();
    const bool shown = el_report_is_cut(of_a) || el_report_is_cut(of_b);
    const json_t *of[] = {of_a, of_b};
    for (int side = 0; side < 2; side++)
        EL_EACH_KEY(axis, figures, of[side]) {
            const json_t *one = json_object_get(of_a, axis), *two = json_object_get(of_b, axis);
            if (!shown || !figures || (side == 1 && one)) continue;
            double a_ms = one ? el_json_number(one, "exposed_ms") : 0,
                   b_ms = two ? el_json_number(two, "exposed_ms") : 0;
            json_array_append_new(list, el_json_of(EL_KEY("axis", axis),
                                                   EL_KEY("a_sent_bytes", one ? el_json_number(one, "sent_bytes") : 0),
                                                   EL_KEY("b_sent_bytes", two ? el_json_number(two, "sent_bytes") : 0),
                                                   EL_KEY("a_exposed_ms", a_ms), EL_KEY("b_exposed_ms", b_ms),
                                                   EL_KEY("ms", b_ms - a_ms)));
        }
    json_decref(of_a);
    json_decref(of_b);
    return list;
}

static json_t *side_json(const struct el_side *side)
{
    static const char *const copied[] = {"id", "mode", "devices", "verdict", "simulated", "command", NULL};
    int64_t slowest = el_json_whole(side->trial, "slowest_member");
    const json_t *device =
        json_array_get(json_object_get(side->trial, "per_device"), slowest < 0 ? 0 : (size_t)slowest);
    json_t *json = json_pack("{s:o, s:I}", "record", el_json_string(side->record), "launches", (json_int_t)side->n);
    el_json_copy(json, side->trial, copied);
    el_json_put_text(json, "device", el_json_text(device, "device", NULL));
    const char *doubt = el_report_doubt(side->trial); /* before informational ones */
    el_json_put_text(json, "warning", doubt ? doubt : el_json_text(side->trial, "warnings.0", NULL));
    el_explain_put(json, "step_ms", "step_ci95", el_stats_difference(side->step_ms, side->n));
    return json;
}

static const char *reason_of(const struct el_side *a, const struct el_side *b)
{
    if (json_is_true(json_object_get(a->trial, "simulated")) && json_is_true(json_object_get(b->trial, "simulated")))
        return "in virtual time launches do not scatter";
    if (a->n < EL_REPEATS_MIN || b->n < EL_REPEATS_MIN)
        return el_json_is(a->trial, "mode", "traces") ? "one of them has fewer than 5 steps; profile more"
               : el_json_is(a->trial, "mode", "watch")
                   ? "a watched job is one launch; compare a=\'CMD\' b=\'CMD\' launches both in turns"
                   : "one of them has fewer than 5 launches; measure it again with --repeats 5";
    if (!a->knows_launches || !b->knows_launches)
        return "parts need each launch's own figures, and a record has no folder repeats/ beside it; keep that folder, "
               "or measure again";
    return between(a, b, a->step_ms, b->step_ms).reason;
}

json_t *el_difference_document(struct el_side *a, struct el_side *b)
{
    bool counted[EL_PARTS];
    split_both(a, b);
    for (int p = 0; p < EL_PARTS; p++)
        counted[p] = knows(a, p) && knows(b, p) && (a->mean.ms[p] != 0 || b->mean.ms[p] != 0);
    return el_json_of(
        EL_KEY("schema", EL_EXPLAIN_SCHEMA), EL_KEY("kind", "difference"),
        EL_KEY("model", json_incref(json_object_get(a->trial, "model"))),
        EL_KEY("global_batch", json_incref(json_object_get(a->trial, "global_batch"))), EL_KEY("a", side_json(a)),
        EL_KEY("b", side_json(b)), EL_KEY("whole", difference_json(a, b, a->step_ms, b->step_ms)),
        EL_KEY("parts", parts_json(a, b, counted)), EL_KEY("rest", row_json(a, b, -1, counted)),
        EL_KEY("paired", are_paired(a, b)), EL_KEY("differs", el_sides_differences(a, b)),
        EL_KEY("axes", axes_json(a, b)), EL_KEY("memory", memory_json(a, b)), EL_KEY("ci_reason", reason_of(a, b)));
}
