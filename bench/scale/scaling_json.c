/* Ratios to the two baselines, and where a step's loss goes. */
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/scale/scale.h"
#include "kernels/kernels.h"
#include "runtime/modes/mode_info.h"

struct baselines {
    const json_t *plain;
    bool weak;
    double cap_bytes; /* of buckets: trials of `compare` with another size are skipped */
};

static const char *shared_words(const json_t *trial)
{
    const char *core = el_report_warned(trial, "shared_core");
    return core ? core : el_report_warned(trial, "shared_gpu");
}

bool el_scale_disturbed(const json_t *trial)
{
    return el_report_warned(trial, "others") || el_report_warned(trial, "gpu_others") ||
           el_report_warned(trial, "stolen");
}

static json_t *copy_of_array(const json_t *array)
{
    return json_is_array(array) ? json_deep_copy(array) : json_null();
}

static json_t *ratio_of(const json_t *trial, const json_t *base)
{
    size_t n;
    double devices = el_json_number(trial, "devices");
    struct el_interval ratio = el_report_ratio(trial, base, &n), repeat = el_stats_interval_stretch(ratio, sqrt(2));
    bool disturbed = el_scale_disturbed(trial) || el_scale_disturbed(base);
    if (disturbed) repeat.low = NAN; /* no interval under other load */
    return el_json_of(
        EL_KEY("speedup", ratio.centre), EL_KEY("speedup_ci95", el_json_interval(ratio.low, ratio.high)),
        EL_KEY("speedup_repeat95", el_json_interval(repeat.low, repeat.high)),
        EL_KEY("efficiency", ratio.centre / devices),
        EL_KEY("efficiency_ci95", el_json_interval(ratio.low / devices, ratio.high / devices)),
        EL_KEY("efficiency_repeat95", el_json_interval(repeat.low / devices, repeat.high / devices)),
        EL_KEY("reason", n == 0 ? "no repeat of both was finished" : ratio.reason),
        EL_KEY("repeat_reason", ratio.valid && disturbed ? "other work was on the machine" : ratio.reason));
}

static double step_ms(const json_t *trial)
{
    return el_json_number(trial, "global_batch") / el_json_number(trial, el_at_samples_per_s) * 1e3;
}

/* By how much the ops that plain single has too, of the same size, take longer: those that FLOPs bound, and those that
 * memory bounds. */
static void put_longer(json_t *step, const json_t *device, const json_t *plain)
{
    double ms[2][2] = {{0}};
    EL_EACH(op, json_object_get(device, "ops"))
        EL_EACH(one, el_json_at(plain, "per_device.0.ops"))
            if (json_equal(json_object_get(op, "op"), json_object_get(one, "op")) &&
                json_equal(json_object_get(op, "phase"), json_object_get(one, "phase")) &&
                el_json_number(op, "bytes") == el_json_number(one, "bytes")) {
                const bool of_flops = el_op_is_bound_by_flops(el_json_text(op, "op", ""));
                ms[of_flops][0] += el_json_number(op, "ms");
                ms[of_flops][1] += el_json_number(one, "ms");
            }
    el_json_put_all(step, EL_KEY("products_longer_pct", 100 * (ms[1][0] / ms[1][1] - 1)),
                    EL_KEY("others_longer_pct", 100 * (ms[0][0] / ms[0][1] - 1)));
}

/* ideal + compute + contention + exposed + idle = step. Compute and exposed: the slowest device's measured steps;
 * contention: control blocks, in proportion; idle: the rest. Without control blocks, or in older records: ideal + lost
 * = step. */
static json_t *step_of(const json_t *trial, const struct baselines *base)
{
    const json_t *b = json_object_get(trial, "breakdown");
    int64_t slowest = el_json_whole(trial, "slowest_member");
    const json_t *device =
        json_array_get(json_object_get(trial, "per_device"), slowest < 0 ? SIZE_MAX : (size_t)slowest);
    double ideal = step_ms(base->plain) / (base->weak ? 1 : el_json_number(trial, "devices"));
    double step = step_ms(trial), blocks = el_json_number(b, "step_ms");
    double contention = el_json_number(b, "contention_ms") * step / blocks, lost = el_stats_minus(step, ideal);
    double compute = el_stats_minus(el_json_number(device, "compute_ms") - contention, ideal);
    double exposed = isnan(compute) ? NAN : el_json_number(trial, el_at_comm_exposed_ms);
    double idle = el_stats_minus(lost, compute + contention + exposed);
    json_t *row = el_json_of(EL_KEY("ideal_ms", ideal), EL_KEY("step_ms", step), EL_KEY("lost_ms", lost),
                             EL_KEY("compute_ms", compute), EL_KEY("contention_ms", isnan(compute) ? NAN : contention),
                             EL_KEY("exposed_ms", exposed), EL_KEY("idle_ms", idle), EL_KEY("blocks_step_ms", blocks),
                             EL_KEY("comm_costs_ms", el_json_number(b, "exposed_step_ms")),
                             EL_KEY("comm_costs_ci95", copy_of_array(json_object_get(b, "exposed_step_ci95"))));
    const char *name = el_json_text(trial, "device_names.0", "");
    if (base->weak && !strncmp(name, "cpu:", 4)) put_longer(row, device, base->plain);
    return row;
}

static bool has_other_buckets(const json_t *trial, const struct baselines *base)
{
    return el_json_number(trial, "config.bucket_cap_bytes") != base->cap_bytes;
}

static const json_t *wrapped_one(const json_t *trials, const json_t *trial, const struct baselines *base)
{
    EL_EACH(other, trials) {
        bool same = el_json_is(other, "mode", el_json_text(trial, "mode", "?"));
        if (same && el_json_number(other, "devices") == 1 && !has_other_buckets(other, base)) return other;
    }
    return NULL;
}

static json_t *row_of(const json_t *trials, const json_t *trial, const struct baselines *base)
{
    static const char *const copied[] = {
        "mode",   "devices", "device_names", "procs",         "global_batch",      "status",
        "reason", "verdict", "warnings",     "warning_rules", "tokens_per_sample", NULL};
    const json_t *one = wrapped_one(trials, trial, base);
    bool held = one && one != trial && one != base->plain;
    double peak_bytes = el_json_highest(json_object_get(trial, "per_device"), el_at_device_peak_bytes);
    json_t *row = json_object();
    if (!(peak_bytes < 0x1p63)) peak_bytes = NAN; /* a foreign record */
    el_json_copy(row, trial, copied);
    el_json_put_all(row, EL_KEY("shared", shared_words(trial)),
                    EL_KEY("samples_per_s", el_json_number(trial, el_at_samples_per_s)),
                    EL_KEY("ci95", copy_of_array(el_json_at(trial, "throughput.ci95"))),
                    EL_KEY("tokens_per_s", el_json_number(trial, el_at_tokens_per_s)),
                    EL_KEY("plain", trial == base->plain ? json_null() : ratio_of(trial, base->plain)),
                    EL_KEY("wrapped", held ? ratio_of(trial, one) : json_null()),
                    EL_KEY("peak_bytes", el_json_count(peak_bytes >= 0 ? (int64_t)peak_bytes : -1)),
                    EL_KEY("step", step_of(trial, base)));
    return row;
}

/* Uses means, as its one launch belongs to no round; `same`: rests on measurements here. */
static json_t *predicted_of(const json_t *trials, const json_t *trial, const struct baselines *base, bool same)
{
    double rate = el_json_number(trial, el_at_samples_per_s), devices = el_json_number(trial, "devices");
    double one = el_json_number(base->plain, el_at_samples_per_s), measured = NAN;
    double low = el_json_number(trial, el_at_samples_per_s_ci95_low) / one,
           high = el_json_number(trial, el_at_samples_per_s_ci95_high) / one;
    EL_EACH(other, trials)
        if (same && el_json_is(other, "mode", el_json_text(trial, "mode", "?")) && !has_other_buckets(other, base) &&
            el_json_number(other, "devices") == devices)
            measured = el_json_number(other, el_at_samples_per_s);
    json_t *row = row_of(trials, trial, base);
    el_json_put_all(
        row, EL_KEY("measured_samples_per_s", measured), EL_KEY("error_pct", 100 * (rate / measured - 1)),
        EL_KEY("plain", el_json_of(EL_KEY("speedup", rate / one), EL_KEY("speedup_ci95", el_json_interval(low, high)),
                                   EL_KEY("efficiency", rate / one / devices),
                                   EL_KEY("efficiency_ci95", el_json_interval(low / devices, high / devices)))));
    json_object_set_new(row, "wrapped", json_null());
    return row;
}

static const json_t *find_plain(const json_t *trials)
{
    EL_EACH(trial, trials)
        if (el_json_is(trial, "mode", el_mode_plain()->name)) return trial;
    return NULL;
}

/* If a measurement lies outside a mode's interval, no row of the mode has one. */
static void forget_missed(json_t *rows)
{
    EL_EACH(row, rows) {
        const double one = el_json_number(row, "samples_per_s") / el_json_number(row, "plain.speedup"),
                     low = one * el_json_number(row, "plain.speedup_ci95.0"),
                     high = one * el_json_number(row, "plain.speedup_ci95.1"),
                     measured = el_json_number(row, "measured_samples_per_s");
        char figures[3][EL_FIGURE_BYTES];
        if (!(measured < low) && !(measured > high)) continue;
        EL_EACH(other, rows) {
            json_t *plain = json_object_get(other, "plain");
            if (!json_equal(json_object_get(other, "mode"), json_object_get(row, "mode"))) continue;
            el_json_put(plain, "speedup_ci95", json_null());
            el_json_put(plain, "efficiency_ci95", json_null());
            el_json_put(plain, "reason",
                        json_sprintf("on %.0f devices %s samples/s were measured, outside the predicted %s to %s",
                                     el_json_number(row, "devices"), el_text_figure(measured, figures[0]),
                                     el_text_figure(low, figures[1]), el_text_figure(high, figures[2])));
        }
    }
}

/* Predictions from rates alone, maybe another machine's, use plain single there. */
static void add_predicted(const json_t *trials, const char *dir, const struct baselines *base, json_t *document)
{
    char path[2 * EL_PATH_BYTES];
    json_t *run = NULL, *rows = json_array();
    snprintf(path, sizeof path, "%s/predicted/results.json", dir);
    if (access(path, F_OK) != 0 || el_read_json(path, &run) != EL_OK) run = NULL;
    struct baselines of = *base;
    const json_t *plain = find_plain(json_object_get(run, "trials"));
    if (plain) of.plain = plain;
    EL_EACH(trial, json_object_get(run, "trials")) {
        const json_t *prediction = json_object_get(trial, "prediction");
        if (trial == plain) continue;
        json_array_append_new(rows, predicted_of(trials, trial, &of, !plain));
        el_json_put_all(document, EL_KEY("predicted_costs", el_json_text(prediction, "costs", NULL)),
                        EL_KEY("predicted_machine", el_json_text(prediction, "machine.name", NULL)));
    }
    forget_missed(rows);
    el_json_put(document, "predicted", rows);
    json_decref(run);
}

static double batch_of(const json_t *trial, bool weak)
{
    return el_json_number(trial, "global_batch") / (weak ? el_json_number(trial, "devices") : 1);
}

static enum el_status find_baselines(const json_t *trials, const char *dir, struct baselines *base_p)
{
    const json_t *plain = find_plain(trials);
    if (!plain)
        return el_fail(EL_ERR_INVALID,
                       "%s: baseline `%s` is missing: 'evenload scale --out' another folder measures it", dir,
                       el_mode_plain()->name);
    bool weak = !strcmp(el_json_text(plain, "config.batch_given", "global"), "per_device");
    EL_EACH(trial, trials)
        if (batch_of(trial, weak) != batch_of(plain, weak))
            return el_fail(
                EL_ERR_INVALID,
                "%s: its trials have several batches, and scaling needs one: 'evenload scale --batch-per-device N "
                "--out' another folder measures it",
                dir);
    *base_p =
        (struct baselines){.plain = plain, .weak = weak, .cap_bytes = el_json_number(plain, "config.bucket_cap_bytes")};
    return EL_OK;
}

enum el_status el_scale_document(const json_t *run, const char *dir, json_t **document_p)
{
    const json_t *trials = json_object_get(run, "trials");
    struct baselines base = {0};
    EL_TRY(find_baselines(trials, dir, &base));
    json_t *rows = json_array();
    EL_EACH(trial, trials)
        if (!has_other_buckets(trial, &base)) json_array_append_new(rows, row_of(trials, trial, &base));
    json_t *document =
        el_json_of(EL_KEY("scaling", base.weak ? "weak" : "strong"), EL_KEY("dir", dir),
                   EL_KEY("batch", el_json_count((int64_t)batch_of(base.plain, base.weak))),
                   EL_KEY("model", el_json_text(base.plain, "model", "?")),
                   EL_KEY("dtype", el_json_text(base.plain, "dtype", "?")),
                   EL_KEY("optimizer", el_json_text(base.plain, "optimizer", "?")),
                   EL_KEY("simulated", json_boolean(json_is_true(json_object_get(base.plain, "simulated")))),
                   EL_KEY("rows", rows), EL_KEY("axes", el_report_axis_rows(trials)));
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the scaling document");
    add_predicted(trials, dir, &base, document);
    *document_p = document;
    return EL_OK;
}

#define RATIO(prefix, path)                                                                                            \
    {prefix "speedup", path "speedup"}, {prefix "speedup_low", path "speedup_ci95.0"},                                 \
        {prefix "speedup_high", path "speedup_ci95.1"}, {prefix "efficiency", path "efficiency"},                      \
        {prefix "efficiency_low", path "efficiency_ci95.0"},                                                           \
    {                                                                                                                  \
        prefix "efficiency_high", path "efficiency_ci95.1"                                                             \
    }

enum el_status el_scale_csv(const void *document, FILE *file)
{
    static const char *const lists[] = {"rows", "predicted"};
    static const char *const columns[][2] = {{"mode", "mode"},
                                             {"devices", "devices"},
                                             {"global_batch", "global_batch"},
                                             {"status", "status"},
                                             {"verdict", "verdict"},
                                             {"samples_per_s", "samples_per_s"},
                                             {"samples_per_s_low", "ci95.0"},
                                             {"samples_per_s_high", "ci95.1"},
                                             RATIO("", "plain."),
                                             RATIO("wrapped_", "wrapped."),
                                             {"step_ms", "step.step_ms"},
                                             {"lost_ms", "step.lost_ms"},
                                             {"compute_ms", "step.compute_ms"},
                                             {"contention_ms", "step.contention_ms"},
                                             {"exposed_ms", "step.exposed_ms"},
                                             {"idle_ms", "step.idle_ms"},
                                             {"peak_bytes", "peak_bytes"}};
    const size_t n = sizeof columns / sizeof columns[0];
    fputs("kind", file);
    for (size_t c = 0; c < n; c++) fprintf(file, ",%s", columns[c][0]);
    for (int list = 0; list < 2; list++) {
        EL_EACH(row, json_object_get(document, lists[list])) {
            fputs(list ? "\npredicted" : "\nmeasured", file);
            for (size_t c = 0; c < n; c++) {
                fputc(',', file);
                el_csv_value(el_json_at(row, columns[c][1]), file);
            }
        }
    }
    fputc('\n', file);
    return EL_OK;
}
