/* Tables and sentences of training: accuracy by epoch and by rank, what a type of gradients changes, checkpoints. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

enum { TEXT_BYTES = 256, NAME_BYTES = 64 };

/* clang-format off */
#define EPOCH_COLUMNS \
    EL_MODE_AND_BATCH, \
    EL_COUNT("epochs", 7, "reached.epochs"), EL_FIGURE("s per epoch", 13, "reached.epoch_s"), \
    EL_PERCENT("held-out %", 12, "reached.best_pct"), EL_FIGURE("after s", 9, "reached.after_s"), \
    EL_PERCENT("test %", 8, "reached.test_pct")
/* clang-format on */
const struct el_column el_report_epoch_columns[] = EL_COLUMNS(EPOCH_COLUMNS);
const struct el_column el_report_token_epoch_columns[] =
    EL_COLUMNS(EPOCH_COLUMNS, EL_FIGURE("loss", 8, "reached.loss"), EL_FIGURE("perplexity", 11, "reached.perplexity"),
               EL_FIGURE("bits/byte", 10, "reached.bits_per_byte"));

static json_t *reached(const json_t *trial)
{
    static const char *const of_tokens[] = {"loss", "perplexity", "bits_per_byte", NULL};
    const json_t *epochs = json_object_get(trial, "epochs"), *test = json_object_get(trial, "evaluation");
    const json_t *held_out = NULL;
    double seconds = 0, best = NAN, after = NAN;
    size_t n = json_array_size(epochs);
    EL_EACH(epoch, epochs) {
        double accuracy = el_json_number(epoch, "held_out_accuracy");
        seconds += el_json_number(epoch, "seconds");
        if (!(accuracy > best) && !isnan(best)) continue;
        best = accuracy;
        after = seconds;
        held_out = json_object_get(epoch, "held_out");
    }
    json_t *row =
        el_json_of(EL_KEY("epochs", (int)n), EL_KEY("epoch_s", seconds / (double)n), EL_KEY("best_pct", 100 * best),
                   EL_KEY("after_s", after), EL_KEY("test_pct", 100 * el_json_number(trial, "accuracy")));
    el_json_copy(row, json_is_object(test) ? test : held_out, of_tokens);
    return row;
}

json_t *el_report_epoch_rows(const json_t *all)
{
    json_t *trials = el_json_with(all, "epochs.0"), *rows = json_array();
    EL_EACH(trial, trials) {
        json_t *row = json_copy(trial);
        json_object_set_new(row, "reached", reached(trial));
        json_array_append_new(rows, row);
    }
    json_decref(trials);
    return rows;
}

void el_report_epochs(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    const bool tokens = el_report_of_tokens(trials);
    const struct el_table table = {.columns = tokens ? el_report_token_epoch_columns : el_report_epoch_columns,
                                   .out = out};
    el_table_list(
        &table,
        tokens ? "\nAccuracy, and loss of a token (nat), in the first launch: best epoch by held-out tokens, and the\n"
                 "training until its end; loss is on the test set, or without one on held-out tokens\n"
               : "\nAccuracy in the first launch: best epoch by held-out samples, and the training until its "
                 "end\n",
        el_report_epoch_rows(trials));
}

const struct el_column el_report_rank_columns[] =
    EL_COLUMNS(EL_TEXT("mode", -9, "mode"), EL_TEXT("global batch", -14, "batch"), EL_COUNT("rank", 6, "rank"),
               EL_COUNT("answers", 9, "counted"), EL_COUNT("right", 8, "correct"),
               EL_PERCENT("accuracy %", 12, "accuracy_pct"), EL_FIGURE("mean loss", 11, "loss"));

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

static void say_evaluation(const json_t *trial, FILE *out)
{
    const json_t *evaluation = evaluation_of(trial);
    char range[TEXT_BYTES], reason[TEXT_BYTES] = "", mode[EL_CELL_BYTES], batch[EL_CELL_BYTES];
    write_range(json_object_get(evaluation, "ranks"), range);
    if (!range[0]) return;
    append_reason(trial, evaluation, reason);
    el_table_mode(trial, mode, sizeof mode);
    el_table_batch(trial, NULL, batch);
    EL_ITEM(out, "%s, batch %s: ranks show %s %s.", mode, batch, range, reason);
}

void el_report_say_evaluations(const json_t *trials, FILE *out)
{
    EL_EACH(trial, trials) say_evaluation(trial, out);
}

void el_report_evaluations(const json_t *run, FILE *out)
{
    const struct el_table table = {.columns = el_report_rank_columns, .out = out};
    const json_t *trials = json_object_get(run, "trials");
    el_table_list(&table, "\nEvaluation by rank in the first launch, by the weights of the best epoch\n",
                  el_report_rank_rows(trials));
    el_report_say_evaluations(trials, out);
}

static void say_cost(const json_t *of, FILE *out)
{
    char size[EL_FIGURE_BYTES], still[EL_FIGURE_BYTES], write[EL_FIGURE_BYTES], rate[EL_FIGURE_BYTES];
    const double n = el_json_number(of, "n"), failed = el_json_number(of, "failed");
    if (!(n > 0)) {
        EL_SAY(out, "No checkpoint was due: give a smaller --checkpoint every.");
        return;
    }
    EL_SAY(out,
           "Checkpoints in %s: %.0f, of %s MB by the first rank; for each training stood still %s ms, and it was "
           "written in %s ms, at %s MB/s.",
           el_json_text(of, "dir", "?"), n, el_text_figure(el_json_number(of, "bytes") / 1e6, size),
           el_text_figure(el_json_number(of, "copy_ms") + el_json_number(of, "wait_ms"), still),
           el_text_figure(el_json_number(of, "write_ms"), write),
           el_text_figure(el_json_number(of, "write_mb_per_s"), rate));
    if (failed > 0) EL_SAY(out, "%.0f of them could not be written: the logs say why.", failed);
}

void el_report_checkpoints(const json_t *run, FILE *out)
{
    EL_EACH(trial, json_object_get(run, "trials")) {
        const json_t *of = json_object_get(trial, "checkpoints"), *restarts = json_object_get(trial, "restarts");
        const double first = el_json_number(trial, "first_step");
        if (!json_is_object(of) && !(first > 0)) continue;
        fputc('\n', out);
        EL_EACH(restart, restarts)
            EL_SAY(out, "Started again on %.0f devices, from step %.0f: %s.", el_json_number(restart, "devices"),
                   el_json_number(restart, "step"), el_json_text(restart, "reason", "?"));
        if (first > 0)
            EL_SAY(out, "Steps are counted from %.0f on, where a checkpoint was; figures are of those.", first);
        if (json_is_object(of)) say_cost(of, out);
    }
}

static double loss_after(const json_t *trial, size_t n)
{
    return n > 0 ? json_number_value(json_array_get(json_object_get(trial, "loss"), n - 1)) : NAN;
}

static void append_loss(const json_t *trial, const json_t *base, char *text)
{
    size_t n = json_array_size(json_object_get(trial, "loss")), n_base = json_array_size(json_object_get(base, "loss"));
    if (n_base < n) n = n_base;
    double loss = loss_after(trial, n), without = loss_after(base, n);
    if (json_is_true(json_object_get(trial, "simulated")) || !(loss > 0 && without > 0)) return;
    el_text_append(text, TEXT_BYTES, "; loss %.4g after %zu steps, not %.4g", loss, n, without);
}

static void say_hook(const json_t *trial, const json_t *base, FILE *out)
{
    char name[NAME_BYTES], base_name[NAME_BYTES], bytes[EL_FIGURE_BYTES], text[TEXT_BYTES] = "";
    size_t n;
    struct el_interval ratio = el_report_ratio(trial, base, &n);
    const char *doubt = el_report_doubt(trial) ? el_report_doubt(trial) : el_report_doubt(base);
    el_table_mode(trial, name, sizeof name);
    el_table_mode(base, base_name, sizeof base_name);
    if (ratio.centre > 0) el_text_append(text, TEXT_BYTES, "; %.2f times the samples/s", ratio.centre);
    if (ratio.valid) el_text_append(text, TEXT_BYTES, " (%.3f to %.3f)", ratio.low, ratio.high);
    append_loss(trial, base, text);
    EL_ITEM(out, "%s against %s at batch %.0f: %s times the bytes sent%s.%s%s%s", name, base_name,
            el_json_number(trial, "global_batch"),
            el_text_figure(el_json_number(trial, el_at_comm_bytes) / el_json_number(base, el_at_comm_bytes), bytes),
            text, doubt ? " Times are suspect: " : "", doubt ? doubt : "", doubt ? "." : "");
}

static bool is_there(const json_t *trial)
{
    return el_report_is_ok(trial) && el_json_number(trial, el_at_comm_bytes) > 0;
}

void el_report_hooks(const json_t *run, FILE *out)
{
    static const char *const but[] = {"comm_hook", NULL};
    const json_t *trials = json_object_get(run, "trials");
    EL_EACH(trial, trials) {
        const json_t *base = NULL;
        EL_EACH(other, trials) {
            bool none = el_json_is(other, "config.comm_hook", "none");
            if (is_there(other) && el_report_are_like(trial, other, but) && (!base || none)) base = other;
        }
        if (is_there(trial) && base && base != trial) say_hook(trial, base, out);
    }
}
