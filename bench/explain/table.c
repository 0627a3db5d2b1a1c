/* The table of `explain`, for people. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/explain/explain.h"
#include "bench/report/report.h"
#include "bench/stats/stats.h"

/* Above it figures are of a busy machine. */
static const double BUSY_PCT = 5;

static void show_alone(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    const char *with = el_json_text(row, "alone_is", ""), *name = el_json_text(row, "cause", "");
    snprintf(text, EL_CELL_BYTES, "%s", strcmp(with, name) ? with : "");
}

static const struct el_column time_columns[] = {
    EL_TEXT("cause", -8, "cause"),
    EL_FIGURE("ms", 9, "ms"),
    EL_INTERVAL("95 % interval", 17, "ci95"),
    EL_FIGURE("alone ms", 11, "alone_ms"),
    EL_INTERVAL("95 % interval", 17, "alone_ci95"),
    {.head = "with what it needs", .gap = 2, .width = -24, .show = show_alone},
    EL_NO_MORE};

static const struct el_column memory_columns[] = {EL_TEXT("dp without", -34, "without"), EL_MIB("first", 9, "first"),
                                                  EL_MIB("others", 9, "others"), EL_MIB("more", 9, "excess"),
                                                  EL_NO_MORE};

/* A time with its interval, and nothing alone. */
static void print_time(const char *name, const json_t *of, const char *ms, const char *interval, FILE *out)
{
    json_t *row = json_pack("{s:s, s:O, s:O}", "cause", name, "ms", json_object_get(of, ms), "ci95",
                            json_object_get(of, interval));
    el_table_row(&(struct el_table){.columns = time_columns, .first = 3, .out = out}, EL_TABLE_PLAIN, row);
    json_decref(row);
}

static void print_times(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = time_columns, .out = out};
    const json_t *steps = json_object_get(document, "steps"), *causes = json_object_get(document, "causes");
    el_table_heads(&table, EL_TABLE_PLAIN);
    print_time("dp", json_array_get(steps, 0), "step_ms", "step_ci95", out);
    for (size_t c = 0; c < json_array_size(causes); c++)
        el_table_row(&table, EL_TABLE_PLAIN, json_array_get(causes, c));
    print_time("rest", json_object_get(document, "rest"), "ms", "ci95", out);
    print_time("ddp", json_array_get(steps, EL_EXPLAIN_DDP), "step_ms", "step_ci95", out);
    print_time("dp - ddp", json_object_get(document, "whole"), "ms", "ci95", out);
}

/* The causes whose intervals exclude 0, with their times; *unshown_p: how many others there are. Where no cause has an
 * interval, neither. */
static void shown_text(const json_t *causes, char *text, size_t bytes, size_t *unshown_p)
{
    *text = '\0';
    *unshown_p = 0;
    EL_EACH(cause, causes) {
        double low = el_json_number(cause, "ci95.0"), high = el_json_number(cause, "ci95.1");
        char ms[EL_FIGURE_BYTES];
        *unshown_p += low <= 0 && high >= 0;
        if (low > 0 || high < 0)
            el_text_append(text, bytes, "%s%s (%s ms)", *text ? ", " : "", el_json_text(cause, "cause", "?"),
                           el_text_figure(el_json_number(cause, "ms"), ms));
    }
}

/* What the intervals say, in a sentence. Nothing where there are none. */
static void print_answer(const json_t *document, FILE *out)
{
    char names[256];
    size_t unshown;
    shown_text(json_object_get(document, "causes"), names, sizeof names, &unshown);
    if (!*names && unshown == 0) return;
    fputc('\n', out);
    if (*names)
        el_text_say("", "", EL_REPORT_COLUMNS, out, "Shown to make a difference, in turn: %s.%s", names,
                    unshown == 0   ? ""
                    : unshown == 1 ? " The other cause is not: its interval contains 0."
                                   : " No other cause is: their intervals contain 0.");
    else
        el_text_say(
            "", "", EL_REPORT_COLUMNS, out,
            "No cause is shown to make a difference, in turn: each interval contains 0. More launches (--repeats) or "
            "longer ones (--min-time) narrow them.");
}

static void print_words(const json_t *document, FILE *out)
{
    const json_t *causes = json_object_get(document, "causes");
    fputc('\n', out);
    EL_EACH(cause, causes)
        fprintf(out, "%-10s%s\n", el_json_text(cause, "cause", "?"), el_json_text(cause, "what", "?"));
    fprintf(out, "%-10s%s\n\n", "rest",
            "one host thread starts the work of all devices; in ddp each device has its own");
    el_text_wrap(
        "ms: the time that a step loses when the cause is removed after those above it; causes and rest add up to "
        "dp - ddp. Alone: when only it is removed, with the causes that it needs. If the two differ, one cause "
        "hides behind another.",
        "", "", EL_REPORT_COLUMNS, out);
}

/* Of dp, with one cause less after another, and of ddp. */
static void print_memory(const json_t *document, FILE *out)
{
    const struct el_table table = {.columns = memory_columns, .out = out};
    const json_t *steps = json_object_get(document, "steps"), *causes = json_object_get(document, "causes");
    fprintf(out, "\nPeak memory, MiB: the first device, the mean of the others, and what the first holds more\n");
    el_table_heads(&table, EL_TABLE_PLAIN);
    for (size_t v = 0; v <= EL_EXPLAIN_DDP; v++) {
        const json_t *step = json_array_get(steps, v);
        double first = el_json_number(step, "memory.0.peak_bytes"), excess = el_json_number(step, "excess_bytes");
        char name[64];
        snprintf(name, sizeof name, "%s%s", v > 1 ? "and " : "",
                 v == 0 ? "nothing: as it is" : el_json_text(json_array_get(causes, v - 1), "cause", ""));
        json_t *row = json_pack("{s:s, s:f, s:f, s:f}", "without", v == EL_EXPLAIN_DDP ? "(ddp)" : name, "first", first,
                                "others", first - excess, "excess", excess);
        el_table_row(&table, EL_TABLE_PLAIN, row);
        json_decref(row);
    }
}

void el_explain_print(const json_t *document, FILE *out)
{
    double launches = el_json_number(document, "launches"),
           n = (double)json_array_size(json_object_get(document, "devices"));
    const char *inject = el_json_text(document, "inject", "");
    bool virtual = !strncmp(el_json_text(document, "devices.0", ""), "sim", strlen("sim"));
    el_text_line(
        out, "What makes dp slower than ddp here: %s, batch %.0f on %.0f %sdevices, %.0f launch%s of %.0f blocks",
        el_json_text(document, "model", "?"), el_json_number(document, "global_batch"), n, virtual ? "simulated " : "",
        launches, launches == 1 ? "" : "es", el_json_number(document, "blocks_per_launch"));
    if (*inject) el_text_line(out, "! disturbed on purpose: --inject %s", inject);
    json_t *documents = json_pack("[O]", document); /* its warnings, of simulated devices */
    el_report_warnings(documents, "", out, false);
    json_decref(documents);
    if (!virtual && el_json_number(document, "others_waited_pct") > BUSY_PCT)
        el_text_line(
            out, "! other programs took up to %.0f %% of a core meanwhile: on a quiet machine intervals are narrower",
            el_json_number(document, "others_waited_pct"));
    fputc('\n', out);
    print_times(document, out);
    print_answer(document, out);
    print_words(document, out);
    if (virtual)
        fputs("In virtual time launches do not scatter: one is enough, and there are no intervals.\n", out);
    else if (launches < EL_REPEATS_MIN)
        fputs("An interval needs five launches (--repeats).\n", out);
    print_memory(document, out);
}
