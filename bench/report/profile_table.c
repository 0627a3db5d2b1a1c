/* The tables of --profile: by op, like torch.profiler's key_averages().table() (steps, phases, ops; sums over the
 * active steps), and by part of a step. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

enum { ROWS_MAX = 30 };

static void show_name(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s%s", el_json_is(row, "kind", "op") ? "  " : "", el_json_text(row, "name", "?"));
}

/* `context`: the rows' sum. */
static void show_share(const json_t *row, const json_t *context, char *text)
{
    double sum = json_number_value(context);
    snprintf(text, EL_CELL_BYTES, "%.1f", sum > 0 ? 100 * el_json_number(row, "self_ms") / sum : 0.0);
}

static void show_average(const json_t *row, const json_t *context, char *text)
{
    char figure[EL_FIGURE_BYTES];
    (void)context;
    double each_us = el_json_number(row, "total_ms") / el_json_number(row, "calls") * 1e3;
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(each_us, figure));
}

static const struct el_column profile_columns[] =
    EL_COLUMNS(EL_SHOWN("op", -27, show_name), EL_FIGURE("self ms", 9, "self_ms"), EL_SHOWN("self %", 7, show_share),
               EL_FIGURE("total ms", 10, "total_ms"), EL_COUNT("calls", 8, "calls"),
               EL_SHOWN("us per call", 10, show_average), EL_FIGURE("MFLOP", 10, "flops", .scale = 1e-6),
               EL_MIB("MiB moved", 10, "bytes"), EL_MIB("MiB held", 9, "memory_bytes"));

/* `context`: the step, in ms. */
static void show_part(const json_t *part, const json_t *context, char *text)
{
    char figure[EL_FIGURE_BYTES];
    const double pct = 100 * el_json_number(part, "ms") / json_number_value(context);
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(pct, figure));
}

static void show_reached(const json_t *part, const json_t *context, char *text)
{
    char figure[EL_FIGURE_BYTES];
    const double pct = 100 * el_json_number(part, "limit_ms") / el_json_number(part, "ms");
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(pct, figure));
}

static const struct el_column part_columns[] = EL_COLUMNS(
    EL_TEXT("part", -14, "part", .gap = 2), EL_FIGURE("ms per step", 11, "ms"), EL_SHOWN("% of step", 11, show_part),
    EL_FIGURE("at the rates", 13, "limit_ms"), EL_SHOWN("% of the rates", 15, show_reached));

static void put_parts(const json_t *device, FILE *out)
{
    const json_t *step = json_array_get(json_object_get(device, "rows"), 0);
    json_t *step_ms = json_real(el_json_number(step, "total_ms") / el_json_number(device, "steps"));
    const struct el_table table = {.columns = part_columns, .context = step_ms, .out = out};
    fprintf(out, "\n");
    el_text_line(out, "%s, by part; at the rates: FLOPs or bytes at the rates of --machine FILE",
                 el_json_text(device, "device", "?"));
    el_table_list(&table, "", json_incref(json_object_get(device, "parts")));
    json_decref(step_ms);
}

static int compare(const void *a, const void *b, void *column)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    if (!strcmp(column, "name")) return strcmp(el_json_text(x, "name", ""), el_json_text(y, "name", ""));
    double left = el_json_number(x, column), right = el_json_number(y, column);
    return (left < right) - (left > right);
}

static void put_device(const json_t *device, int sort, FILE *out)
{
    static const char *const keys[] = {"self_ms", "total_ms", "calls", "memory_bytes", "flops", "bytes", "name"};
    const json_t *rows = json_object_get(device, "rows");
    size_t n = json_array_size(rows), first = 0; /* ops follow the step and its phases */
    double sum_ms = 0;
    json_t **sorted = calloc(n + 1, sizeof(json_t *));
    if (!sorted) return;
    for (size_t i = 0; i < n; i++) {
        sorted[i] = json_array_get(rows, i);
        sum_ms += el_json_number(sorted[i], "self_ms");
        first += !el_json_is(sorted[i], "kind", "op");
    }
    qsort_r(sorted + first, n - first, sizeof *sorted, compare, (void *)(uintptr_t)keys[sort]);
    json_t *sum = json_real(sum_ms);
    const struct el_table table = {.columns = profile_columns, .context = sum, .out = out};
    fprintf(out, "\n");
    el_text_line(out, "%s, %d active steps:", el_json_text(device, "device", "?"), (int)el_json_whole(device, "steps"));
    el_table_heads(&table, EL_TABLE_BOLD);
    for (size_t i = 0; i < n && i < ROWS_MAX; i++)
        el_table_row(&table, i < first ? EL_TABLE_DIM : EL_TABLE_PLAIN, sorted[i]);
    if (n > ROWS_MAX) el_text_line(out, "  ... %zu more: trials[0].profile of the record has all", n - ROWS_MAX);
    json_decref(sum);
    free(sorted);
    put_parts(device, out);
}

void el_report_profile(const json_t *run, int sort, FILE *out)
{
    const json_t *profile = el_json_at(run, "trials.0.profile"), *devices = json_object_get(profile, "devices");
    for (size_t d = 0; d < json_array_size(devices); d++) put_device(json_array_get(devices, d), sort, out);
    const char *folder = el_json_text(profile, "trace", "");
    if (*folder) fprintf(out, "\n");
    if (*folder)
        el_text_line(out, "%s/rank-0.pt.trace.json ...    traces for ui.perfetto.dev, HTA, 'evenload trace-stats %s'",
                     folder, folder);
}
