/* What each rank has counted in the evaluation, and why ranks differ: they have other samples, some of them twice, or
 * other running statistics. */
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

enum { TEXT_BYTES = 256 };

const struct el_column el_report_rank_columns[] = {
    EL_TEXT("mode", -9, "mode"),        EL_TEXT("global batch", -14, "batch"),
    EL_COUNT("rank", 6, "rank"),        EL_COUNT("answers", 9, "counted"),
    EL_COUNT("right", 8, "correct"),    EL_PERCENT("accuracy %", 12, "accuracy_pct"),
    EL_FIGURE("mean loss", 11, "loss"), EL_NO_MORE};

/* On the test set; where there is none, on the held-out samples after the last epoch. NULL: by one rank, or none. */
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

/* "accuracies of 27.6 to 31.2 %"; where all have the same, "losses of 1.712 to 1.745". Empty: these are the same too.
 */
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

/* Why those who have the same samples differ. */
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
        el_text_append(text, TEXT_BYTES, " of %.0f answers, %.0f of them repeats (--eval exact has none)", counted,
                       counted - answers);
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
