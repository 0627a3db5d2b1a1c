/* Scaling as a person reads it: two tables, and what is said of them. From the document alone. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/scale/scale.h"

enum { COLUMNS = EL_REPORT_COLUMNS };

/* "4*" where devices share. */
static void show_count(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    bool shared = json_is_string(json_object_get(row, "shared"));
    snprintf(text, EL_CELL_BYTES, "%.0f%s", el_json_number(row, "devices"), shared ? "*" : "");
}

static void show_verdict(const json_t *row, const json_t *context, char *text)
{
    (void)context;
    bool shared = json_is_string(json_object_get(row, "shared"));
    snprintf(text, EL_CELL_BYTES, "%s", shared ? "shared" : el_json_text(row, "verdict", "?"));
}

static void print_failed(const json_t *row, FILE *out)
{
    char count[EL_CELL_BYTES], head[EL_CELL_BYTES + 32];
    show_count(row, NULL, count);
    snprintf(head, sizeof head, "%-6s%8s  ", el_json_text(row, "mode", "?"), count);
    el_report_failed(row, head, "                ", COLUMNS, out);
}

/* Three columns, four against plain single, four against the mode on one device: none of a row that is this itself. */
const struct el_column el_scale_columns[] = {
    EL_TEXT("mode", -6, "mode"),
    EL_SHOWN("dev.", 4, show_count),
    EL_FIGURE("samples/s", 10, "samples_per_s"),
    EL_FIGURE("speed-up", 9, "plain.speedup"),
    EL_INTERVAL("95 %", 13, "plain.speedup_ci95"),
    {.head = "eff. %", .width = 7, .kind = EL_CELL_FIGURE, .path = "plain.efficiency", .scale = 100},
    {.head = "95 %", .width = 11, .kind = EL_CELL_INTERVAL, .path = "plain.efficiency_ci95", .scale = 100},
    EL_FIGURE("speed-up", 9, "wrapped.speedup"),
    EL_INTERVAL("95 %", 13, "wrapped.speedup_ci95"),
    {.head = "eff. %", .width = 7, .kind = EL_CELL_FIGURE, .path = "wrapped.efficiency", .scale = 100},
    {.head = "95 %", .width = 11, .kind = EL_CELL_INTERVAL, .path = "wrapped.efficiency_ci95", .scale = 100},
    EL_NO_MORE};

static void print_speedups(const json_t *rows, FILE *out)
{
    fprintf(out, "%-20s%40s%40s\n", "", "against plain single", "against the same mode on 1");
    struct el_table table = {.columns = el_scale_columns, .out = out};
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows) {
        table.first = !json_is_object(json_object_get(row, "plain"))     ? 3
                      : !json_is_object(json_object_get(row, "wrapped")) ? 7
                                                                         : 11;
        if (!el_report_is_ok(row)) print_failed(row, out);
        if (!isnan(el_json_number(row, "samples_per_s"))) el_table_row(&table, EL_TABLE_PLAIN, row);
    }
}

/* What is lost of a step is what it is longer than the ideal one. */
static const struct el_column loss_columns[] = {EL_TEXT("mode", -6, "mode"),
                                                EL_SHOWN("dev.", 4, show_count),
                                                EL_FIGURE("step", 7, "step.step_ms"),
                                                EL_FIGURE("lost", 7, "step.lost_ms"),
                                                EL_FIGURE("= compute", 10, "step.compute_ms"),
                                                EL_FIGURE("+ contention", 13, "step.contention_ms"),
                                                EL_FIGURE("+ exposed", 10, "step.exposed_ms"),
                                                EL_FIGURE("+ idle", 7, "step.idle_ms"),
                                                EL_FIGURE("costs", 7, "step.comm_costs_ms"),
                                                EL_INTERVAL("95 %", 12, "step.comm_costs_ci95"),
                                                EL_MIB("MiB", 7, "peak_bytes"),
                                                {.head = "verdict", .gap = 1, .width = -9, .show = show_verdict},
                                                EL_NO_MORE};

static void print_losses(const json_t *rows, FILE *out)
{
    const struct el_table table = {.columns = loss_columns, .out = out};
    fputs("\nWhere the time goes, ms per step: lost = step - ideal step; costs: by communication; MiB: peak\n", out);
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(row, rows)
        if (!isnan(el_json_number(row, "samples_per_s"))) el_table_row(&table, EL_TABLE_PLAIN, row);
}

static void print_heading(const json_t *document, FILE *out)
{
    bool weak = strcmp(el_json_text(document, "scaling", ""), "weak") == 0;
    el_text_say("", "", COLUMNS, out, "%s scaling%s: %.0f samples per step on %s; %s, %s, %s. Efficiency is %s.",
                weak ? "Weak" : "Strong", json_is_true(json_object_get(document, "simulated")) ? " (simulated)" : "",
                el_json_number(document, "batch"), weak ? "each device" : "all devices together",
                el_json_text(document, "model", "?"), el_json_text(document, "dtype", "?"),
                el_json_text(document, "optimizer", "?"),
                weak ? "samples per second over n times those of one device"
                     : "one device's step over n times that of n");
    fputc('\n', out);
}

void el_scale_print(const json_t *document, FILE *out)
{
    const json_t *rows = json_object_get(document, "rows");
    print_heading(document, out);
    print_speedups(rows, out);
    print_losses(rows, out);
    fputc('\n', out);
    el_scale_say(document, out);
}
