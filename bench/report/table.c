/* The table: a row a trial, a line a device, then what makes trials suspect. All from the record. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/parts.h"
#include "bench/report/report.h"
#include "runtime/base/probe.h"

enum { LINE_BYTES = EL_TABLE_LINE_BYTES, TAGS_SHOWN = 3 };

bool el_report_colour(FILE *out, bool no_colour)
{
    const char *term = getenv("TERM");
    return !no_colour && isatty(fileno(out)) && term != NULL && strcmp(term, "dumb") != 0;
}

static void put_heads(FILE *out, bool colour)
{
    char line[LINE_BYTES];
    snprintf(line, sizeof line, "%-9s%-14s%11s%18s%9s%8s%9s%11s  %s", "mode", "global batch", "samples/s",
             "95 % interval", "/single", "step ms", "p95 ms", "exposed ms", "verdict");
    el_table_line(out, EL_TABLE_BOLD, colour, line);
    snprintf(line, sizeof line, "  %-10s%10s   %-53s%9s%10s", "device", "peak MiB", "of which", "busy %", "sent MiB");
    el_table_line(out, EL_TABLE_DIM, colour, line);
}

/* Throughput of `single` with the same global batch; NAN if there is none. */
static double single_rate(const json_t *trials, const json_t *trial)
{
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *other = json_array_get(trials, i);
        if (strcmp(el_json_text(other, "mode", ""), "single") != 0) continue;
        if (el_json_number(other, "global_batch") != el_json_number(trial, "global_batch")) continue;
        return el_json_number(other, "throughput.samples_per_s");
    }
    return NAN;
}

const char *el_report_verdict(const json_t *trial)
{
    bool valid = strcmp(el_json_text(trial, "verdict", ""), "valid") == 0;
    if (valid && json_is_true(json_object_get(trial, "simulated"))) return "simulated";
    return el_json_text(trial, "verdict", "?");
}

static void interval_text(const json_t *trial, char *text, size_t bytes)
{
    char low[EL_FIGURE_BYTES], high[EL_FIGURE_BYTES];
    double from = el_json_number(trial, "throughput.ci95.0"), to = el_json_number(trial, "throughput.ci95.1");
    if (isnan(from) || isnan(to)) {
        snprintf(text, bytes, "none");
    } else {
        snprintf(text, bytes, "%s - %s", el_text_figure(from, low), el_text_figure(to, high));
    }
}

static void put_finished(const json_t *trials, const json_t *trial, FILE *out, bool colour)
{
    char line[LINE_BYTES], batch[64], interval[80], rate[EL_FIGURE_BYTES], ratio[EL_FIGURE_BYTES];
    char step[EL_FIGURE_BYTES], p95[EL_FIGURE_BYTES], exposed[EL_FIGURE_BYTES];
    double samples_per_s = el_json_number(trial, "throughput.samples_per_s");
    bool suspect = strcmp(el_json_text(trial, "verdict", ""), "valid") != 0;
    el_table_batch(trial, batch, sizeof batch);
    interval_text(trial, interval, sizeof interval);
    snprintf(line, sizeof line, "%-9s%-14s%11s%18s%9s%8s%9s%11s  %s", el_json_text(trial, "mode", "?"), batch,
             el_text_figure(samples_per_s, rate), interval,
             el_text_figure(samples_per_s / single_rate(trials, trial), ratio),
             el_text_figure(el_json_number(trial, "step_ms.mean"), step),
             el_text_figure(el_json_number(trial, "step_ms.p95"), p95),
             el_text_figure(el_json_number(trial, "comm.exposed_ms"), exposed), el_report_verdict(trial));
    el_table_line(out, suspect ? EL_TABLE_YELLOW : EL_TABLE_BOLD, colour, line);
}

static void put_failed(const json_t *trial, FILE *out, bool colour)
{
    char head[128], text[LINE_BYTES], batch[64];
    el_table_batch(trial, batch, sizeof batch);
    snprintf(head, sizeof head, "%-9s%-14s", el_json_text(trial, "mode", "?"), batch);
    snprintf(text, sizeof text, "%s: %s", el_json_text(trial, "status", "failed"),
             el_json_text(trial, "reason", "no reason was given"));
    el_table_begin(out, EL_TABLE_RED, colour);
    el_text_wrap(text, head, "                       ", EL_REPORT_COLUMNS, out);
    el_table_end(out, colour);
}

struct share {
    const char *tag;
    double bytes;
};

static int larger_first(const void *a, const void *b)
{
    double x = ((const struct share *)a)->bytes, y = ((const struct share *)b)->bytes;
    return (x < y) - (x > y);
}

/* "grad 47.6, param 23.8, replica 23.8, other 6.7": the largest tags at the peak, in MiB. */
static void tags_text(const json_t *device, char *text, size_t bytes)
{
    struct share shares[EL_TAG_COUNT];
    char mib[EL_FIGURE_BYTES];
    double other = 0;
    size_t used = 0;
    text[0] = '\0';
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        const char *tag = el_tag_name((enum el_tag)t);
        double value = el_json_number(el_json_at(device, "memory.at_peak_by_tag"), tag);
        shares[t] = (struct share){.tag = tag, .bytes = isnan(value) ? 0 : value};
    }
    qsort(shares, EL_TAG_COUNT, sizeof shares[0], larger_first);
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        if (t >= TAGS_SHOWN || shares[t].bytes <= 0) {
            other += shares[t].bytes;
            continue;
        }
        used += (size_t)snprintf(text + used, bytes - used, "%s%s %s", t == 0 ? "" : ", ", shares[t].tag,
                                 el_text_mib(shares[t].bytes, mib));
    }
    if (other > 0) snprintf(text + used, bytes - used, ", other %s", el_text_mib(other, mib));
}

static void put_device(const json_t *device, FILE *out, bool colour)
{
    char line[LINE_BYTES], tags[256], peak[EL_FIGURE_BYTES], busy[EL_FIGURE_BYTES], sent[EL_FIGURE_BYTES];
    tags_text(device, tags, sizeof tags);
    snprintf(line, sizeof line, "  %-10s%10s   %-53s%9s%10s", el_json_text(device, "device", "?"),
             el_text_mib(el_json_number(device, "memory.peak_bytes"), peak), tags,
             el_text_figure(el_json_number(device, "utilization.busy_pct"), busy),
             el_text_mib(el_json_number(device, "sent_bytes"), sent));
    el_table_line(out, EL_TABLE_DIM, colour, line);
}

static const char *text_at(const json_t *trial, const char *list, size_t k)
{
    return json_string_value(json_array_get(json_object_get(trial, list), k));
}

/* Two warnings are one where a rule says both, though with other figures; what repeats say themselves goes by its text.
 */
static bool same_warning(const json_t *a, size_t i, const json_t *b, size_t k)
{
    const char *rule_a = text_at(a, "warning_rules", i), *rule_b = text_at(b, "warning_rules", k);
    const char *text_a = text_at(a, "warnings", i), *text_b = text_at(b, "warnings", k);
    if (rule_a && rule_b && strcmp(rule_a, "reported") != 0) return strcmp(rule_a, rule_b) == 0;
    return text_a && text_b && strcmp(text_a, text_b) == 0;
}

/* How many trials carry warning k of trial `first`, and whether with its very words; 0 if an earlier one does, for then
 * it has been said. */
static size_t count_warned(const json_t *trials, size_t first, size_t k, bool *alike_p)
{
    const json_t *from = json_array_get(trials, first);
    size_t count = 0;
    *alike_p = true;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i);
        size_t n = json_array_size(json_object_get(trial, "warnings")), w = 0;
        while (w < n && !same_warning(from, k, trial, w)) w++;
        if (w == n) continue;
        if (i < first || (i == first && w < k)) return 0;
        *alike_p = *alike_p && json_equal(json_array_get(json_object_get(trial, "warnings"), w),
                                          json_array_get(json_object_get(from, "warnings"), k));
        count++;
    }
    return count;
}

void el_report_warnings(const json_t *trials, FILE *out, bool colour)
{
    size_t n = json_array_size(trials);
    for (size_t i = 0; i < n; i++) {
        const json_t *warnings = json_object_get(json_array_get(trials, i), "warnings");
        for (size_t k = 0; k < json_array_size(warnings); k++) {
            const char *text = json_string_value(json_array_get(warnings, k));
            bool alike;
            size_t count = text == NULL ? 0 : count_warned(trials, i, k, &alike);
            if (count == 0) continue;
            char line[LINE_BYTES];
            snprintf(line, sizeof line,
                     alike ? "%s (%zu of %zu trials)" : "%s (%zu of %zu trials, with figures of their own)", text,
                     count, n);
            el_table_begin(out, EL_TABLE_YELLOW, colour);
            el_text_wrap(line, "! ", "  ", EL_REPORT_COLUMNS, out);
            el_table_end(out, colour);
        }
    }
}

void el_report_table(const json_t *run, FILE *out, bool colour)
{
    const json_t *trials = json_object_get(run, "trials");
    put_heads(out, colour);
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i), *devices = json_object_get(trial, "per_device");
        if (strcmp(el_json_text(trial, "status", ""), "ok") != 0) put_failed(trial, out, colour);
        if (!isnan(el_json_number(trial, "throughput.samples_per_s"))) put_finished(trials, trial, out, colour);
        for (size_t k = 0; k < json_array_size(devices); k++) put_device(json_array_get(devices, k), out, colour);
    }
    el_report_warnings(trials, out, colour);
}
