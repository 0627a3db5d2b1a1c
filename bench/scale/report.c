/* Scaling as a person reads it: two tables, the sweep's, and what is said of them. From the document alone. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/scale/scale.h"

enum { COLUMNS = 110, TEXT_BYTES = 160 };

static bool is_ok(const json_t *row)
{
    return strcmp(el_json_text(row, "status", "failed"), "ok") == 0;
}

static const char *shared_of(const json_t *row)
{
    return el_json_text(row, "shared", NULL);
}

/* "1.55 - 1.88", of a value times `scale`; "none". */
static const char *interval_text(const json_t *object, const char *name, double scale, char text[TEXT_BYTES])
{
    const json_t *interval = json_object_get(object, name);
    char low[EL_FIGURE_BYTES], high[EL_FIGURE_BYTES];
    snprintf(text, TEXT_BYTES, "none");
    if (json_is_array(interval))
        snprintf(text, TEXT_BYTES, "%s - %s", el_text_figure(el_json_number(interval, "0") * scale, low),
                 el_text_figure(el_json_number(interval, "1") * scale, high));
    return text;
}

/* "4*" where devices share. */
static const char *count_text(const json_t *row, char text[TEXT_BYTES])
{
    snprintf(text, TEXT_BYTES, "%.0f%s", el_json_number(row, "devices"), shared_of(row) ? "*" : "");
    return text;
}

static void print_failed(const json_t *row, FILE *out)
{
    char count[TEXT_BYTES], head[2 * TEXT_BYTES], text[4 * TEXT_BYTES];
    snprintf(head, sizeof head, "%-6s%8s  ", el_json_text(row, "mode", "?"), count_text(row, count));
    snprintf(text, sizeof text, "%s: %s", el_json_text(row, "status", "failed"),
             el_json_text(row, "reason", "no reason was given"));
    el_text_wrap(text, head, "                ", COLUMNS, out);
}

/* Speed-up, its interval, efficiency with its own: 45 columns; nothing where the row is its own baseline. */
static void print_ratio(const json_t *ratio, FILE *out)
{
    char speedup[EL_FIGURE_BYTES], interval[TEXT_BYTES], share[EL_FIGURE_BYTES], shares[TEXT_BYTES];
    if (!json_is_object(ratio)) return;
    fprintf(out, " %9s %14s %7s %11s", el_text_figure(el_json_number(ratio, "speedup"), speedup),
            interval_text(ratio, "speedup_ci95", 1, interval),
            el_text_figure(100 * el_json_number(ratio, "efficiency"), share),
            interval_text(ratio, "efficiency_ci95", 100, shares));
}

static void print_speedups(const json_t *rows, FILE *out)
{
    fprintf(out, "%-20s%45s%45s\n", "", "against plain single", "against the same mode on 1");
    fprintf(out, "%-6s%4s%10s%10s%15s%8s%12s%10s%15s%8s%12s\n", "mode", "dev.", "samples/s", "speed-up",
            "95 % interval", "effic.%", "95 %", "speed-up", "95 % interval", "effic.%", "95 %");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        char count[TEXT_BYTES], rate[EL_FIGURE_BYTES];
        if (!is_ok(row)) print_failed(row, out);
        if (isnan(el_json_number(row, "samples_per_s"))) continue;
        fprintf(out, "%-6s%4s %9s", el_json_text(row, "mode", "?"), count_text(row, count),
                el_text_figure(el_json_number(row, "samples_per_s"), rate));
        print_ratio(json_object_get(row, "plain"), out);
        print_ratio(json_object_get(row, "wrapped"), out);
        fputc('\n', out);
    }
}

static const char *verdict_of(const json_t *row)
{
    return shared_of(row) ? "shared" : el_json_text(row, "verdict", "?");
}

static void print_step(const json_t *row, FILE *out)
{
    static const char *const parts[] = {"step_ms",    "lost_ms", "compute_ms",   "contention_ms",
                                        "exposed_ms", "idle_ms", "comm_costs_ms"};
    static const int widths[] = {8, 8, 10, 13, 10, 7, 12};
    const json_t *step = json_object_get(row, "step");
    char count[TEXT_BYTES], text[EL_FIGURE_BYTES], interval[TEXT_BYTES];
    fprintf(out, "%-6s%4s", el_json_text(row, "mode", "?"), count_text(row, count));
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        fprintf(out, " %*s", widths[i] - 1, el_text_figure(el_json_number(step, parts[i]), text));
    fprintf(out, " %13s", interval_text(step, "comm_costs_ci95", 1, interval));
    fprintf(out, " %8s  %s\n", el_text_mib(el_json_number(row, "peak_bytes"), text), verdict_of(row));
}

/* What is lost of a step is what it is longer than the ideal one. */
static void print_losses(const json_t *rows, FILE *out)
{
    fprintf(out, "%-6s%4s%8s%8s%10s%13s%10s%7s%12s%14s%9s  %s\n", "mode", "dev.", "step ms", "lost", "= compute",
            "+ contention", "+ exposed", "+ idle", "comm. costs", "95 % interval", "peak MiB", "verdict");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        if (!isnan(el_json_number(row, "samples_per_s"))) print_step(row, out);
    }
}

static void print_heading(const json_t *document, FILE *out)
{
    bool weak = strcmp(el_json_text(document, "scaling", ""), "weak") == 0;
    char text[4 * TEXT_BYTES];
    snprintf(text, sizeof text, "%s scaling%s: %.0f samples a step on %s; %s, %s, %s. Efficiency is %s.",
             weak ? "Weak" : "Strong", json_is_true(json_object_get(document, "simulated")) ? " (simulated)" : "",
             el_json_number(document, "batch"), weak ? "each device" : "all devices together",
             el_json_text(document, "model", "?"), el_json_text(document, "dtype", "?"),
             el_json_text(document, "optimizer", "?"),
             weak ? "samples a second over n times those of one device" : "one device's step over n times that of n");
    el_text_wrap(text, "", "", COLUMNS, out);
    fputc('\n', out);
}

static void print_bucket_row(const json_t *row, FILE *out)
{
    char mib[EL_FIGURE_BYTES], first[EL_FIGURE_BYTES], largest[EL_FIGURE_BYTES], step[EL_FIGURE_BYTES];
    char ratio[EL_FIGURE_BYTES], costs[EL_FIGURE_BYTES], interval[TEXT_BYTES], told[TEXT_BYTES];
    bool base = json_is_null(json_object_get(row, "ci95")) && json_is_null(json_object_get(row, "reason"));
    snprintf(mib, sizeof mib, "%g", el_json_number(row, "mib"));
    if (!is_ok(row)) {
        fprintf(out, "%8s  %s: %s\n", mib, el_json_text(row, "status", "failed"),
                el_json_text(row, "failure", "no reason was given"));
        return;
    }
    fprintf(out, "%8s %8.0f %10s %12s %8s %12s %8s", mib, el_json_number(row, "buckets"),
            el_text_mib(el_json_number(row, "first_bytes"), first),
            el_text_mib(el_json_number(row, "largest_bytes"), largest),
            el_text_figure(el_json_number(row, "step_ms"), step),
            el_text_figure(el_json_number(row, "comm_costs_ms"), costs),
            el_text_figure(el_json_number(row, "ratio"), ratio));
    if (!base)
        fprintf(out, " %14s %17s%s", interval_text(row, "ci95", 1, interval),
                interval_text(row, "significant95", 1, told),
                json_is_true(json_object_get(row, "same")) ? " same" : "");
    fputc('\n', out);
}

static void print_buckets(const json_t *buckets, FILE *out)
{
    const json_t *rows = json_object_get(buckets, "rows");
    fprintf(out, "\nBuckets of %s on %.0f devices, MiB; 'same': the same buckets as %g MiB, as tensors are not split\n",
            el_json_text(buckets, "mode", "?"), el_json_number(buckets, "devices"),
            el_json_number(buckets, "base_mib"));
    fprintf(out, "%8s%9s%11s%13s%9s%13s%9s%15s%18s\n", "size", "buckets", "first MiB", "largest MiB", "step ms",
            "comm. costs", "ratio", "95 % interval", "corrected");
    for (size_t i = 0; i < json_array_size(rows); i++) print_bucket_row(json_array_get(rows, i), out);
}

void el_scale_print(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows"), *buckets = json_object_get(document, "buckets");
    print_heading(document, out);
    print_speedups(rows, out);
    fputs("\nWhere the time goes, ms a step: lost = step - ideal step\n", out);
    print_losses(rows, out);
    if (json_is_object(buckets)) print_buckets(buckets, out);
    fputc('\n', out);
    el_scale_say(document, out);
}
