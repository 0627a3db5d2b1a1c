/* Where a step goes: a row a trial from its control blocks, then a line a device with its waits and transfers. All from
 * the record; trials on one device have no such rows. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/report/parts.h"
#include "bench/report/report.h"

static bool is_told(const json_t *trial)
{
    return json_is_object(json_object_get(trial, "breakdown")) || !isnan(el_json_number(trial, "comm.wait_ms"));
}

static void put_heads(FILE *out, bool colour)
{
    char line[EL_TABLE_LINE_BYTES];
    snprintf(line, sizeof line, "%-9s%-14s%8s%10s%13s%10s%9s%16s%14s", "mode", "global batch", "step", "= alone",
             "+ contention", "+ exposed", "+ idle", "| comm. costs", "95 % interval");
    el_table_line(out, EL_TABLE_BOLD, colour, line);
    snprintf(line, sizeof line, "  %-21s%8s%10s%13s%10s%9s%16s%14s", "device", "busy", "wait", "transfer", "exposed",
             "hidden %", "CPU of comm.", "step");
    el_table_line(out, EL_TABLE_DIM, colour, line);
}

/* "(-0.2 - 1.3)", or why there is none. */
static void interval_text(const json_t *breakdown, char *text, size_t bytes)
{
    char low[EL_FIGURE_BYTES], high[EL_FIGURE_BYTES];
    double from = el_json_number(breakdown, "exposed_step_ci95.0"),
           to = el_json_number(breakdown, "exposed_step_ci95.1");
    if (isnan(from) || isnan(to))
        snprintf(text, bytes, "none");
    else
        snprintf(text, bytes, "%s - %s", el_text_figure(from, low), el_text_figure(to, high));
}

static void put_trial(const json_t *trial, FILE *out, bool colour)
{
    static const char *const names[] = {"step_ms", "compute_alone_ms", "contention_ms", "exposed_ms"};
    const json_t *b = json_object_get(trial, "breakdown");
    char line[EL_TABLE_LINE_BYTES], batch[64], interval[80], figures[6][EL_FIGURE_BYTES];
    el_table_batch(trial, batch, sizeof batch);
    interval_text(b, interval, sizeof interval);
    for (int i = 0; i < 4; i++) el_text_figure(el_json_number(b, names[i]), figures[i]);
    el_text_figure(el_json_number(b, "other_ms") + el_json_number(b, "idle_ms"), figures[4]);
    el_text_figure(el_json_number(b, "exposed_step_ms"), figures[5]);
    snprintf(line, sizeof line, "%-9s%-14s%8s%10s%13s%10s%9s%16s%14s", el_json_text(trial, "mode", "?"), batch,
             figures[0], figures[1], figures[2], figures[3], figures[4], figures[5], interval);
    el_table_line(out, EL_TABLE_BOLD, colour, line);
}

static double busy_ms(const json_t *device)
{
    return el_json_number(device, "utilization.busy_pct") / 100 * el_json_number(device, "step_ms");
}

static double hidden_pct(const json_t *device)
{
    double total = el_json_number(device, "comm.total_ms");
    return total > 0 ? 100 * el_json_number(device, "comm.overlapped_ms") / total : NAN;
}

static void put_device(const json_t *device, FILE *out, bool colour)
{
    const double values[] = {busy_ms(device),
                             el_json_number(device, "comm.wait_ms"),
                             el_json_number(device, "comm.transfer_ms"),
                             el_json_number(device, "comm.exposed_ms"),
                             hidden_pct(device),
                             el_json_number(device, "comm.cpu_ms"),
                             el_json_number(device, "step_ms")};
    char line[EL_TABLE_LINE_BYTES], figures[7][EL_FIGURE_BYTES];
    for (int i = 0; i < 7; i++) el_text_figure(values[i], figures[i]);
    snprintf(line, sizeof line, "  %-21s%8s%10s%13s%10s%9s%16s%14s", el_json_text(device, "device", "?"), figures[0],
             figures[1], figures[2], figures[3], figures[4], figures[5], figures[6]);
    el_table_line(out, EL_TABLE_DIM, colour, line);
}

void el_report_steps(const json_t *run, FILE *out, bool colour)
{
    const json_t *trials = json_object_get(run, "trials");
    bool said = false;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i), *devices = json_object_get(trial, "per_device");
        if (!is_told(trial)) continue;
        if (!said) {
            fputs("\nWhere a step goes, ms: the slowest device in A/B blocks of steps with communication on and off; "
                  "below, "
                  "each\ndevice in the measured steps\n",
                  out);
            put_heads(out, colour);
        }
        said = true;
        put_trial(trial, out, colour);
        for (size_t k = 0; k < json_array_size(devices); k++) put_device(json_array_get(devices, k), out, colour);
    }
}
