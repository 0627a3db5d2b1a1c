/* The judgement and the table. The toggled cost decides, since it holds what no count can know; the counted one stands
 * beside it, as it tells where the cost is and is sharp where the other one's interval is wide. */
#include "bench/overhead/overhead.h"
#include "bench/options/options.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

const char *el_overhead_judge(const json_t *recorder, const char **why_p)
{
    double low = el_json_number(recorder, "toggled_pct_ci95.0"), high = el_json_number(recorder, "toggled_pct_ci95.1");
    *why_p = "";
    if (low <= high && high < EL_OVERHEAD_LIMIT_PCT) return EL_OVERHEAD_UNDER; /* NAN: no interval */
    if (low <= high && low > EL_OVERHEAD_LIMIT_PCT) return EL_OVERHEAD_OVER;
    *why_p = !json_is_object(recorder)   ? "nothing was recorded"
             : isnan(low) || isnan(high) ? el_json_text(recorder, "ci_reason", "no interval")
                                         : "the interval reaches above 1 %, more repeats are needed";
    return EL_OVERHEAD_INCONCLUSIVE;
}

/* Their steps are empty: any share of one is large, and no share of one that computes. */
static bool computes(const json_t *trial)
{
    return strncmp(el_json_text(trial, "device_names.0", ""), "null:", 5) != 0;
}

static json_t *row_of(const json_t *trial, const char **verdict_p)
{
    static const char *const copied[] = {"mode",     "global_batch", "status",        "reason", "device_names",
                                         "recorder", "warnings",     "warning_rules", NULL};
    const char *why;
    json_t *row = json_object();
    *verdict_p = el_overhead_judge(json_object_get(trial, "recorder"), &why);
    if (!computes(trial)) {
        *verdict_p = EL_OVERHEAD_INCONCLUSIVE;
        why = "null devices compute nothing: hold toggled us against a step that does";
    }
    el_json_copy(row, trial, copied);
    el_json_put_real(row, "step_ms", el_json_number(trial, "step_ms.mean"));
    el_json_put_text(row, "verdict", *verdict_p);
    el_json_put_text(row, "why", *why ? why : NULL);
    return row;
}

json_t *el_overhead_document(const json_t *run, const char *dir)
{
    const json_t *trials = json_object_get(run, "trials");
    json_t *rows = json_array();
    bool over = false, sure = true;
    for (size_t t = 0; t < json_array_size(trials); t++) {
        const char *verdict;
        json_array_append_new(rows, row_of(json_array_get(trials, t), &verdict));
        over = over || !strcmp(verdict, EL_OVERHEAD_OVER);
        sure = sure && strcmp(verdict, EL_OVERHEAD_INCONCLUSIVE);
    }
    json_t *holds = over ? json_false() : sure && json_array_size(rows) > 0 ? json_true() : json_null();
    return json_pack("{s:f, s:o, s:s, s:o}", "limit_pct", EL_OVERHEAD_LIMIT_PCT, "holds", holds, "dir", dir, "trials",
                     rows);
}

static void show_verdict(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s%s", el_json_text(row, "verdict", ""),
             el_json_text(row, "why", NULL) ? "" : " 1 %");
}

static const struct el_column columns[] = {EL_TEXT("mode", -8, "mode"),
                                           EL_COUNT("batch", 6, "global_batch"),
                                           EL_FIGURE("step ms", 9, "step_ms"),
                                           EL_FIGURE("counted us", 12, "recorder.counted_us"),
                                           EL_FIGURE("% of step", 11, "recorder.counted_pct"),
                                           EL_FIGURE("toggled us", 12, "recorder.toggled_us"),
                                           EL_INTERVAL("95 % interval", 17, "recorder.toggled_us_ci95"),
                                           EL_INTERVAL("in % of step", 17, "recorder.toggled_pct_ci95"),
                                           {.head = "verdict", .gap = 2, .width = -12, .show = show_verdict},
                                           EL_NO_MORE};

static void print_row(const struct el_table *table, const json_t *row)
{
    const json_t *recorder = json_object_get(row, "recorder");
    const char *why = el_json_text(row, "why", NULL);
    char clock[EL_FIGURE_BYTES], cpu[EL_FIGURE_BYTES], byte[EL_FIGURE_BYTES], bytes[EL_FIGURE_BYTES], head[64];
    if (!el_report_is_ok(row)) {
        snprintf(head, sizeof head, "%-8.20s%6.0f  ", el_json_text(row, "mode", "?"),
                 el_json_number(row, "global_batch"));
        el_report_failed(row, head, "    ", EL_REPORT_COLUMNS, table->out);
        return;
    }
    el_table_row(table, EL_TABLE_PLAIN, row);
    if (json_is_object(recorder))
        el_text_line(table->out,
                     "  a step: %.0f clock readings at %s ns, %.0f of a CPU clock at %s ns, %s bytes kept at %s ns",
                     el_json_number(recorder, "events.clock_reads"),
                     el_text_figure(el_json_number(recorder, "cost_ns.clock_read"), clock),
                     el_json_number(recorder, "events.cpu_clock_reads"),
                     el_text_figure(el_json_number(recorder, "cost_ns.cpu_clock_read"), cpu),
                     el_text_figure(el_json_number(recorder, "events.kept_bytes"), bytes),
                     el_text_figure(el_json_number(recorder, "cost_ns.kept_byte"), byte));
    if (why) el_text_wrap(why, "  inconclusive: ", "    ", EL_REPORT_COLUMNS, table->out);
}

/* The row whose share by `path` is the largest above the limit; NULL: none is. */
static const json_t *above_limit(const json_t *rows, const char *path)
{
    const json_t *found = NULL;
    double most = EL_OVERHEAD_LIMIT_PCT;
    for (size_t t = 0; t < json_array_size(rows); t++) {
        double share = el_json_number(json_array_get(rows, t), path);
        if (!(share > most)) continue;
        found = json_array_get(rows, t);
        most = share;
    }
    return found;
}

/* What there is to say where no interval decides: counted shares are sharp, so they come before toggled ones. */
static void say_inconclusive(const json_t *rows, FILE *out)
{
    const json_t *counted = above_limit(rows, "recorder.counted_pct");
    const char *path = counted ? "recorder.counted_pct" : "recorder.toggled_pct";
    const json_t *row = counted ? counted : above_limit(rows, path);
    char share[EL_FIGURE_BYTES];
    if (row)
        fprintf(out, "Inconclusive: %s %s at %s %% of a step, and %s.",
                counted ? "counting alone puts" : "the toggled cost puts", el_json_text(row, "mode", "?"),
                el_text_figure(el_json_number(row, path), share),
                json_is_array(el_json_at(row, "recorder.toggled_pct_ci95")) ? "the interval does not decide"
                                                                            : "there is no interval");
    else
        fputs("No estimate is above 1 % of a step, but not every interval lies below it.", out);
}

void el_overhead_print(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "trials"), *holds = json_object_get(document, "holds");
    const struct el_table table = {.columns = columns, .out = out};
    bool empty = !computes(json_array_get(rows, 0));
    el_table_heads(&table, EL_TABLE_PLAIN);
    for (size_t t = 0; t < json_array_size(rows); t++) print_row(&table, json_array_get(rows, t));
    fputc('\n', out);
    if (empty)
        fputs("Null devices compute nothing: toggled us is what recording takes, sharp since steps are short.", out);
    else if (json_is_boolean(holds))
        fprintf(out, "Recording costs %s",
                json_is_true(holds) ? "under 1 % of a step: every interval lies below it."
                                    : "over 1 % of a step: an interval lies above it.");
    else
        say_inconclusive(rows, out);
    fputs("\nCounted: events by the price of each. Toggled: A/B blocks with and without; 95 % interval over "
          "repeats.\n",
          out);
    el_report_warnings(rows, "", out, false);
    fputc('\n', out);
    el_text_line(out, "%s/results.json", el_json_text(document, "dir", ""));
    fputc('\n', out);
    fprintf(out, "Next: %s %s\n", el_program_word(),
            empty                 ? "overhead    (the share of a step that computes)"
            : json_is_null(holds) ? "overhead --repeats 20    (a narrower interval)"
                                  : "compare    (each trial's record has its counted cost, under 'recorder')");
}
