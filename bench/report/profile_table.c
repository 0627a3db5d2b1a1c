/* The table by op, as torch.profiler's key_averages().table() shows it: whole steps, phases, ops; all sums over the
 * active steps. From the record. */
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

/* Of the rows' sum, which is the context. */
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

static const struct el_column columns[] = {
    EL_SHOWN("op", -27, show_name),
    EL_FIGURE("self ms", 9, "self_ms"),
    EL_SHOWN("self %", 7, show_share),
    EL_FIGURE("total ms", 10, "total_ms"),
    EL_COUNT("calls", 8, "calls"),
    EL_SHOWN("us per call", 10, show_average),
    {.head = "MFLOP", .width = 10, .kind = EL_CELL_FIGURE, .path = "flops", .scale = 1e-6},
    EL_MIB("MiB moved", 10, "bytes"),
    EL_MIB("MiB held", 9, "memory_bytes"),
    EL_NO_MORE};

/* Of ops by the column, what is more first, names by the alphabet. */
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
    size_t n = json_array_size(rows), first = 0; /* of the ops, behind the step and its phases */
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
    const struct el_table table = {.columns = columns, .context = sum, .out = out};
    fprintf(out, "\n");
    el_text_line(out, "%s, %d active steps:", el_json_text(device, "device", "?"), (int)el_json_whole(device, "steps"));
    el_table_heads(&table, EL_TABLE_BOLD);
    for (size_t i = 0; i < n && i < ROWS_MAX; i++)
        el_table_row(&table, i < first ? EL_TABLE_DIM : EL_TABLE_PLAIN, sorted[i]);
    if (n > ROWS_MAX) el_text_line(out, "  ... %zu more: trials[0].profile of the record has all", n - ROWS_MAX);
    json_decref(sum);
    free(sorted);
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
