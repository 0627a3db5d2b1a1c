/* The judgement and the table. The toggled cost decides, since it holds what no count can know; the counted one stands
 * beside it, as it tells where the cost is and is sharp where the other one's interval is wide. */
#include "bench/overhead/overhead.h"
#include "bench/options/options.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/verdict/verdict.h"

static const char *const names[] = {
    [EL_OVERHEAD_UNDER] = "under", [EL_OVERHEAD_OVER] = "over", [EL_OVERHEAD_INCONCLUSIVE] = "inconclusive"};

enum el_overhead el_overhead_judge(const json_t *recorder, const char **why_p)
{
    double low = el_json_number(recorder, "toggled_pct_ci95.0"), high = el_json_number(recorder, "toggled_pct_ci95.1");
    *why_p = "";
    if (!json_is_object(recorder)) {
        *why_p = "nothing was recorded";
        return EL_OVERHEAD_INCONCLUSIVE;
    }
    if (isnan(low) || isnan(high)) {
        *why_p = el_json_text(recorder, "ci_reason", "no interval");
        return EL_OVERHEAD_INCONCLUSIVE;
    }
    if (high < EL_OVERHEAD_LIMIT_PCT) return EL_OVERHEAD_UNDER;
    if (low > EL_OVERHEAD_LIMIT_PCT) return EL_OVERHEAD_OVER;
    *why_p = "the interval reaches above 1 %, more repeats are needed";
    return EL_OVERHEAD_INCONCLUSIVE;
}

/* Their steps are empty: any share of one is large, and no share of one that computes. */
static bool computes(const json_t *trial)
{
    return strncmp(el_json_text(trial, "device_names.0", ""), "null:", 5) != 0;
}

static json_t *row_of(const json_t *trial, enum el_overhead *verdict_p)
{
    static const char *const copied[] = {"mode",         "global_batch", "status",   "reason",
                                         "device_names", "recorder",     "warnings", "warning_rules"};
    const char *why;
    json_t *row = json_object();
    *verdict_p = el_overhead_judge(json_object_get(trial, "recorder"), &why);
    if (!computes(trial)) {
        *verdict_p = EL_OVERHEAD_INCONCLUSIVE;
        why = "null devices compute nothing: hold toggled us against a step that does";
    }
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        json_object_set_new(row, copied[i], json_deep_copy(json_object_get(trial, copied[i])));
    json_object_set_new(row, "step_ms", el_json_real(el_json_number(trial, "step_ms.mean")));
    json_object_set_new(row, "verdict", json_string(names[*verdict_p]));
    json_object_set_new(row, "why", el_json_string(*why ? why : NULL));
    return row;
}

json_t *el_overhead_document(const json_t *run, const char *dir)
{
    const json_t *trials = json_object_get(run, "trials");
    json_t *rows = json_array();
    bool over = false, told = true;
    for (size_t t = 0; t < json_array_size(trials); t++) {
        enum el_overhead verdict;
        json_array_append_new(rows, row_of(json_array_get(trials, t), &verdict));
        over = over || verdict == EL_OVERHEAD_OVER;
        told = told && verdict != EL_OVERHEAD_INCONCLUSIVE;
    }
    json_t *holds = over ? json_false() : told && json_array_size(rows) > 0 ? json_true() : json_null();
    return json_pack("{s:f, s:o, s:s, s:o}", "limit_pct", EL_OVERHEAD_LIMIT_PCT, "holds", holds, "dir", dir, "trials",
                     rows);
}

/* "-0.31 to 0.22" */
static void interval_text(const json_t *recorder, const char *name, char *text, size_t bytes)
{
    const json_t *interval = json_object_get(recorder, name);
    char low[EL_FIGURE_BYTES], high[EL_FIGURE_BYTES];
    snprintf(text, bytes, "none");
    if (json_is_array(interval))
        snprintf(text, bytes, "%s to %s", el_text_figure(el_json_number(interval, "0"), low),
                 el_text_figure(el_json_number(interval, "1"), high));
}

static void print_events(const json_t *recorder, FILE *out)
{
    char clock[EL_FIGURE_BYTES], cpu[EL_FIGURE_BYTES], byte[EL_FIGURE_BYTES], bytes[EL_FIGURE_BYTES];
    fprintf(out, "  a step: %.0f clock readings at %s ns, %.0f of a CPU clock at %s ns, %s bytes kept at %s ns\n",
            el_json_number(recorder, "events.clock_reads"),
            el_text_figure(el_json_number(recorder, "cost_ns.clock_read"), clock),
            el_json_number(recorder, "events.cpu_clock_reads"),
            el_text_figure(el_json_number(recorder, "cost_ns.cpu_clock_read"), cpu),
            el_text_figure(el_json_number(recorder, "events.kept_bytes"), bytes),
            el_text_figure(el_json_number(recorder, "cost_ns.kept_byte"), byte));
}

static void print_row(const json_t *row, FILE *out)
{
    const json_t *recorder = json_object_get(row, "recorder");
    const char *verdict = el_json_text(row, "verdict", ""), *why = el_json_text(row, "why", "");
    char step[EL_FIGURE_BYTES], counted[EL_FIGURE_BYTES], share[EL_FIGURE_BYTES], toggled[EL_FIGURE_BYTES];
    char interval_us[2 * EL_FIGURE_BYTES + 4], interval_pct[2 * EL_FIGURE_BYTES + 4];
    if (strcmp(el_json_text(row, "status", "failed"), "ok") != 0) {
        fprintf(out, "%-8s%6.0f  %s: %s\n", el_json_text(row, "mode", "?"), el_json_number(row, "global_batch"),
                el_json_text(row, "status", "failed"), el_json_text(row, "reason", "no reason was given"));
        return;
    }
    interval_text(recorder, "toggled_us_ci95", interval_us, sizeof interval_us);
    interval_text(recorder, "toggled_pct_ci95", interval_pct, sizeof interval_pct);
    fprintf(out, "%-8s%6.0f%9s%12s%11s%12s%17s%17s  %s%s\n", el_json_text(row, "mode", "?"),
            el_json_number(row, "global_batch"), el_text_figure(el_json_number(row, "step_ms"), step),
            el_text_figure(el_json_number(recorder, "counted_us"), counted),
            el_text_figure(el_json_number(recorder, "counted_pct"), share),
            el_text_figure(el_json_number(recorder, "toggled_us"), toggled), interval_us, interval_pct, verdict,
            *why ? "" : " 1 %");
    if (json_is_object(recorder)) print_events(recorder, out);
    if (*why) el_text_wrap(why, "  inconclusive: ", "    ", EL_REPORT_COLUMNS, out);
}

/* What disturbed a trial disturbs the toggled cost; few steps and few repeats have been reported. */
static void print_warnings(const json_t *rows, FILE *out)
{
    for (size_t t = 0; t < json_array_size(rows); t++) {
        const json_t *row = json_array_get(rows, t), *warnings = json_object_get(row, "warnings");
        for (size_t w = 0; w < json_array_size(warnings); w++) {
            char first[64];
            const char *rule = json_string_value(json_array_get(json_object_get(row, "warning_rules"), w));
            const char *verdict = el_verdict_of_rule(rule);
            bool note = !strcmp(verdict, "valid");
            snprintf(first, sizeof first, "  %s%s%s: ", el_json_text(row, "mode", "?"), note ? "" : " is ",
                     note ? "" : verdict);
            el_text_wrap(json_string_value(json_array_get(warnings, w)), first, "    ", EL_REPORT_COLUMNS, out);
        }
    }
}

/* The row whose share by `name` is the largest above the limit; NULL: none is. */
static const json_t *above_limit(const json_t *rows, const char *name)
{
    const json_t *found = NULL;
    for (size_t t = 0; t < json_array_size(rows); t++) {
        const json_t *row = json_array_get(rows, t), *recorder = json_object_get(row, "recorder");
        double share = el_json_number(recorder, name);
        if (!(share > EL_OVERHEAD_LIMIT_PCT)) continue;
        if (!found || share > el_json_number(json_object_get(found, "recorder"), name)) found = row;
    }
    return found;
}

static bool has_interval(const json_t *row)
{
    return json_is_array(json_object_get(json_object_get(row, "recorder"), "toggled_pct_ci95"));
}

/* What there is to say where no interval decides: counted shares are sharp, so they come before toggled ones. */
static void say_inconclusive(const json_t *rows, FILE *out)
{
    const json_t *counted = above_limit(rows, "counted_pct"), *toggled = above_limit(rows, "toggled_pct");
    const json_t *row = counted ? counted : toggled;
    char share[EL_FIGURE_BYTES];
    if (!row) {
        fputs("No estimate is above 1 % of a step, but not every interval lies below it.", out);
        return;
    }
    el_text_figure(el_json_number(json_object_get(row, "recorder"), counted ? "counted_pct" : "toggled_pct"), share);
    fprintf(out, "Inconclusive: %s %s at %s %% of a step, and %s.",
            counted ? "counting alone puts" : "the toggled cost puts", el_json_text(row, "mode", "?"), share,
            has_interval(row) ? "the interval does not decide" : "there is no interval");
}

static void say(const json_t *rows, const json_t *holds, FILE *out)
{
    if (!computes(json_array_get(rows, 0)))
        fputs("Null devices compute nothing: toggled us is what recording takes, sharp since steps are short.", out);
    else if (json_is_true(holds))
        fputs("Recording costs under 1 % of a step: every interval lies below it.", out);
    else if (json_is_false(holds))
        fputs("Recording costs over 1 % of a step: an interval lies above it.", out);
    else
        say_inconclusive(rows, out);
}

void el_overhead_print(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "trials"), *holds = json_object_get(document, "holds");
    fprintf(out, "%-8s%6s%9s%12s%11s%12s%17s%17s  %s\n", "mode", "batch", "step ms", "counted us", "% of step",
            "toggled us", "95 % interval", "in % of step", "verdict");
    for (size_t t = 0; t < json_array_size(rows); t++) print_row(json_array_get(rows, t), out);
    fputc('\n', out);
    say(rows, holds, out);
    fputs("\nCounted: events by the price of each. Toggled: A/B blocks with and without; 95 % interval over "
          "repeats.\n",
          out);
    print_warnings(rows, out);
    fputc('\n', out);
    el_text_line(out, "%s/results.json", el_json_text(document, "dir", ""));
    fputc('\n', out);
    if (!computes(json_array_get(rows, 0)))
        fprintf(out, "Next: %s overhead    (the share of a step that computes)\n", el_program_word());
    else if (json_is_null(holds))
        fprintf(out, "Next: %s overhead --repeats 20    (a narrower interval)\n", el_program_word());
    else
        fprintf(out, "Next: %s compare    (each trial's record has its counted cost, under 'recorder')\n",
                el_program_word());
}
