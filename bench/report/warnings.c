/* Each warning once, for any objects with `warnings` and `warning_rules`. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/verdict/verdict.h"

static const char *text_at(const json_t *trial, const char *list, size_t k)
{
    return json_string_value(json_array_get(json_object_get(trial, list), k));
}

const char *el_report_warned(const json_t *trial, const char *rule)
{
    EL_EACH(name, json_object_get(trial, "warning_rules"))
        if (el_json_is(name, "", rule)) return text_at(trial, "warnings", name_at.i);
    return NULL;
}

static bool is_note(const char *name)
{
    for (const struct el_verdict_rule *rule = el_verdict_rules(); name && rule->name; rule++)
        if (strcmp(rule->name, name) == 0) return rule->note;
    return false;
}

const char *el_report_doubt(const json_t *trial)
{
    const char *verdict = el_report_verdict(trial);
    if (strcmp(verdict, "valid") == 0) return NULL;
    for (size_t k = 0; k < json_array_size(json_object_get(trial, "warnings")); k++) {
        const char *text = text_at(trial, "warnings", k);
        if (text && !is_note(text_at(trial, "warning_rules", k))) return text;
    }
    return strcmp(verdict, "simulated") == 0 ? NULL : "the record gives no reason";
}

/* Equal rules are one warning, whatever their figures; `reported` compares texts. */
static bool same_warning(const json_t *a, size_t i, const json_t *b, size_t k)
{
    const char *rule_a = text_at(a, "warning_rules", i), *rule_b = text_at(b, "warning_rules", k);
    const char *text_a = text_at(a, "warnings", i), *text_b = text_at(b, "warnings", k);
    if (rule_a && rule_b && strcmp(rule_a, "reported") != 0) return strcmp(rule_a, rule_b) == 0;
    return text_a && text_b && strcmp(text_a, text_b) == 0;
}

/* 0 if an earlier trial has the warning. *alike_p: all with equal text. */
static size_t count_warned(const json_t *trials, size_t first, size_t k, bool *alike_p)
{
    const json_t *from = json_array_get(trials, first);
    size_t count = 0;
    *alike_p = true;
    EL_EACH(trial, trials) {
        size_t n = json_array_size(json_object_get(trial, "warnings")), w = 0;
        while (w < n && !same_warning(from, k, trial, w)) w++;
        if (w == n) continue;
        if (trial_at.i < first || (trial_at.i == first && w < k)) return 0;
        *alike_p = *alike_p && json_equal(json_array_get(json_object_get(trial, "warnings"), w),
                                          json_array_get(json_object_get(from, "warnings"), k));
        count++;
    }
    return count;
}

void el_report_warnings(const json_t *trials, const char *but, FILE *out)
{
    EL_EACH(trial, trials)
        EL_EACH(warning, json_object_get(trial, "warnings")) {
            const char *text = json_string_value(warning), *rule = text_at(trial, "warning_rules", warning_at.i);
            bool alike, left_out = *but && rule && strncmp(rule, but, strlen(but)) == 0;
            size_t count = text == NULL || left_out ? 0 : count_warned(trials, trial_at.i, warning_at.i, &alike);
            if (count == 0) continue;
            el_table_begin(out, EL_TABLE_YELLOW);
            el_text_say("! ", "  ", EL_REPORT_COLUMNS, out, "%s (%zu of %zu trials%s)", text, count,
                        json_array_size(trials), alike ? "" : ", with figures of their own");
            el_table_end(out);
        }
}

enum { TEXT_BYTES = 256 };

const struct el_column el_report_rank_columns[] = {
    EL_TEXT("mode", -9, "mode"),        EL_TEXT("global batch", -14, "batch"),
    EL_COUNT("rank", 6, "rank"),        EL_COUNT("answers", 9, "counted"),
    EL_COUNT("right", 8, "correct"),    EL_PERCENT("accuracy %", 12, "accuracy_pct"),
    EL_FIGURE("mean loss", 11, "loss"), EL_NO_MORE};

/* NULL: fewer than two ranks evaluated. */
static const json_t *evaluation_of(const json_t *trial)
{
    const json_t *epochs = json_object_get(trial, "epochs"), *evaluation = json_object_get(trial, "evaluation");
    if (!json_is_object(evaluation))
        evaluation = json_object_get(json_array_get(epochs, json_array_size(epochs) - 1), "held_out");
    return json_array_size(json_object_get(evaluation, "ranks")) > 1 ? evaluation : NULL;
}

json_t *el_report_rank_rows(const json_t *trials)
{
    json_t *rows = json_array();
    EL_EACH(trial, trials) {
        char mode[EL_CELL_BYTES], batch[EL_CELL_BYTES];
        int rank = 0;
        el_table_mode(trial, mode, sizeof mode);
        el_table_batch(trial, NULL, batch);
        EL_EACH(score, json_object_get(evaluation_of(trial), "ranks")) {
            json_t *row = json_copy(score);
            el_json_put_all(row, EL_KEY("mode", mode), EL_KEY("batch", batch), EL_KEY("rank", rank++),
                            EL_KEY("accuracy_pct", el_json_real(100 * el_json_number(score, "accuracy"))));
            json_array_append_new(rows, row);
        }
    }
    return rows;
}

/* "accuracies of 27.6 to 31.2 %"; losses if those are equal; empty if all are. */
static void write_range(const json_t *ranks, char text[TEXT_BYTES])
{
    double low, high;
    text[0] = 0;
    el_json_range(ranks, "accuracy", &low, &high);
    if (low < high) {
        snprintf(text, TEXT_BYTES, "accuracies of %.1f to %.1f %%", 100 * low, 100 * high);
        return;
    }
    el_json_range(ranks, "loss", &low, &high);
    if (low < high) snprintf(text, TEXT_BYTES, "losses of %.5g to %.5g", low, high);
}

static void append_statistics(const json_t *trial, char text[TEXT_BYTES])
{
    const char *mode = el_json_text(trial, "mode", "");
    el_text_append(text, TEXT_BYTES, "running statistics of its own (%s)",
                   strcmp(mode, "manual") == 0 ? "manual never exchanges them" : "--broadcast-buffers off");
}

static void append_reason(const json_t *trial, const json_t *evaluation, char text[TEXT_BYTES])
{
    const double samples = el_json_number(evaluation, "samples"), counted = el_json_number(evaluation, "counted");
    const double tokens = el_json_number(trial, "tokens_per_sample"), answers = samples * (tokens > 0 ? tokens : 1);
    const bool own = json_is_true(json_object_get(evaluation, "own_statistics"));
    if (el_json_is(trial, "config.eval", "each")) {
        el_text_append(text, TEXT_BYTES, "of the same %.0f samples because each ", samples);
        if (own) el_text_append(text, TEXT_BYTES, "normalizes by ");
        if (own) append_statistics(trial, text);
        if (!own) el_text_append(text, TEXT_BYTES, "has weights of its own");
        return;
    }
    el_text_append(text, TEXT_BYTES, "because each has evaluated another part of the %.0f samples", samples);
    if (own) el_text_append(text, TEXT_BYTES, ", by ");
    if (own) append_statistics(trial, text);
    el_text_append(text, TEXT_BYTES, "; together %.1f %%", 100 * el_json_number(evaluation, "accuracy"));
    if (counted > answers)
        el_text_append(text, TEXT_BYTES, " of %.0f answers, %.0f of them repeats (--epochs eval=exact has none)",
                       counted, counted - answers);
}

static void say(const json_t *trial, FILE *out)
{
    const json_t *evaluation = evaluation_of(trial);
    char range[TEXT_BYTES], reason[TEXT_BYTES] = "", mode[EL_CELL_BYTES], batch[EL_CELL_BYTES];
    write_range(json_object_get(evaluation, "ranks"), range);
    if (!range[0]) return;
    append_reason(trial, evaluation, reason);
    el_table_mode(trial, mode, sizeof mode);
    el_table_batch(trial, NULL, batch);
    el_text_say("* ", "  ", EL_REPORT_COLUMNS, out, "%s, batch %s: ranks show %s %s.", mode, batch, range, reason);
}

void el_report_say_evaluations(const json_t *trials, FILE *out)
{
    EL_EACH(trial, trials) say(trial, out);
}

void el_report_evaluations(const json_t *run, FILE *out)
{
    const struct el_table table = {.columns = el_report_rank_columns, .out = out};
    const json_t *trials = json_object_get(run, "trials");
    el_table_list(&table, "\nEvaluation by rank in the first launch, by the weights of the best epoch\n",
                  el_report_rank_rows(trials));
    el_report_say_evaluations(trials, out);
}

#define SAY(out, ...) el_text_say("", "  ", EL_REPORT_COLUMNS, out, __VA_ARGS__)

static void say_cost(const json_t *of, FILE *out)
{
    char size[EL_FIGURE_BYTES], still[EL_FIGURE_BYTES], write[EL_FIGURE_BYTES], rate[EL_FIGURE_BYTES];
    const double n = el_json_number(of, "n"), failed = el_json_number(of, "failed");
    if (!(n > 0)) {
        SAY(out, "No checkpoint was due: give a smaller --checkpoint every.");
        return;
    }
    SAY(out,
        "Checkpoints in %s: %.0f, of %s MB by the first rank; for each training stood still %s ms, and it was "
        "written in %s ms, at %s MB/s.",
        el_json_text(of, "dir", "?"), n, el_text_figure(el_json_number(of, "bytes") / 1e6, size),
        el_text_figure(el_json_number(of, "copy_ms") + el_json_number(of, "wait_ms"), still),
        el_text_figure(el_json_number(of, "write_ms"), write),
        el_text_figure(el_json_number(of, "write_mb_per_s"), rate));
    if (failed > 0) SAY(out, "%.0f of them could not be written: the logs say why.", failed);
}

void el_report_checkpoints(const json_t *run, FILE *out)
{
    EL_EACH(trial, json_object_get(run, "trials")) {
        const json_t *of = json_object_get(trial, "checkpoints"), *restarts = json_object_get(trial, "restarts");
        const double first = el_json_number(trial, "first_step");
        if (!json_is_object(of) && !(first > 0)) continue;
        fputc('\n', out);
        EL_EACH(restart, restarts)
            SAY(out, "Started again on %.0f devices, from step %.0f: %s.", el_json_number(restart, "devices"),
                el_json_number(restart, "step"), el_json_text(restart, "reason", "?"));
        if (first > 0) SAY(out, "Steps are counted from %.0f on, where a checkpoint was; figures are of those.", first);
        if (json_is_object(of)) say_cost(of, out);
    }
}
