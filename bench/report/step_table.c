/* Where a step goes: a row a trial from its control blocks, then a line a device with its waits and transfers; and what
 * recording costs, of trials whose control blocks switched that. All from the record. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "bench/report/row_names.h"

static void show_figure(double value, char *text)
{
    char figure[EL_FIGURE_BYTES];
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(value, figure));
}

static void show_idle(const json_t *trial, const json_t *context, char *text)
{
    (void)context;
    show_figure(el_json_number(trial, "breakdown.other_ms") + el_json_number(trial, "breakdown.idle_ms"), text);
}

static void show_busy(const json_t *device, const json_t *context, char *text)
{
    (void)context;
    show_figure(el_json_number(device, "utilization.busy_pct") / 100 * el_json_number(device, "step_ms"), text);
}

static void show_hidden(const json_t *device, const json_t *context, char *text)
{
    double total_ms = el_json_number(device, "comm.total_ms");
    (void)context;
    show_figure(total_ms > 0 ? 100 * el_json_number(device, "comm.overlapped_ms") / total_ms : NAN, text);
}

const struct el_column el_report_step_columns[] = {EL_SHOWN("mode", -9, el_report_mode),
                                                   EL_SHOWN("global batch", -14, el_table_batch),
                                                   EL_FIGURE("step", 8, "breakdown.step_ms"),
                                                   EL_FIGURE("= alone", 10, "breakdown.compute_alone_ms"),
                                                   EL_FIGURE("+ contention", 13, "breakdown.contention_ms"),
                                                   EL_FIGURE("+ exposed", 10, "breakdown.exposed_ms"),
                                                   EL_SHOWN("+ idle", 9, show_idle),
                                                   EL_FIGURE("| comm. costs", 14, "breakdown.exposed_step_ms"),
                                                   EL_INTERVAL("95 % interval", 14, "breakdown.exposed_step_ci95"),
                                                   EL_FIGURE("bus GB/s", 9, "comm.busbw_gb_per_s"),
                                                   EL_NO_MORE};

const struct el_column el_report_comm_columns[] = {{.head = "device", .gap = 2, .width = -21, .path = "device"},
                                                   EL_SHOWN("busy", 8, show_busy),
                                                   EL_FIGURE("wait", 10, "comm.wait_ms"),
                                                   EL_FIGURE("transfer", 13, "comm.transfer_ms"),
                                                   EL_FIGURE("exposed", 10, "comm.exposed_ms"),
                                                   EL_SHOWN("hidden %", 9, show_hidden),
                                                   EL_FIGURE("bubble", 10, "bubble_ms"),
                                                   EL_FIGURE("CPU of comm.", 14, "comm.cpu_ms"),
                                                   EL_FIGURE("step", 14, "step_ms"),
                                                   EL_NO_MORE};

void el_report_steps(const json_t *run, FILE *out, bool colour)
{
    const json_t *trials = json_object_get(run, "trials");
    const struct el_table of_trials = {.columns = el_report_step_columns, .out = out, .colour = colour};
    const struct el_table of_devices = {.columns = el_report_comm_columns, .out = out, .colour = colour};
    bool begun = false;
    for (size_t i = 0; i < json_array_size(trials); i++) {
        const json_t *trial = json_array_get(trials, i), *devices = json_object_get(trial, "per_device");
        if (!json_is_object(json_object_get(trial, "breakdown")) && isnan(el_json_number(trial, "comm.wait_ms")))
            continue;
        if (!begun) {
            fputs("\nWhere a step goes, ms: the slowest device in A/B blocks of steps with communication on and off; "
                  "below, each\ndevice in the measured steps\n",
                  out);
            el_table_heads(&of_trials, EL_TABLE_BOLD);
            el_table_heads(&of_devices, EL_TABLE_DIM);
        }
        begun = true;
        el_table_row(&of_trials, EL_TABLE_BOLD, trial);
        for (size_t k = 0; k < json_array_size(devices); k++)
            el_table_row(&of_devices, EL_TABLE_DIM, json_array_get(devices, k));
    }
}

static const struct el_column cost_columns[] = {EL_SHOWN("mode", -9, el_report_mode),
                                                EL_SHOWN("global batch", -14, el_table_batch),
                                                EL_FIGURE("step ms", 8, "step_ms.mean"),
                                                EL_FIGURE("counted us", 12, "recorder.counted_us"),
                                                EL_FIGURE("% of step", 11, "recorder.counted_pct"),
                                                EL_FIGURE("toggled us", 12, "recorder.toggled_us"),
                                                EL_INTERVAL("95 % interval", 16, "recorder.toggled_us_ci95"),
                                                EL_INTERVAL("in % of step", 17, "recorder.toggled_pct_ci95"),
                                                EL_NO_MORE};

void el_report_recorder(const json_t *run, FILE *out, bool colour)
{
    const json_t *trials = json_object_get(run, "trials"), *trial;
    const struct el_table table = {.columns = cost_columns, .out = out, .colour = colour};
    bool begun = false;
    size_t i;
    json_array_foreach(trials, i, trial)
    {
        if (isnan(el_json_number(trial, "recorder.toggled_us"))) continue;
        if (!begun)
            fputs("\nWhat recording costs: its events by the price of each, and A/B blocks with and without\n", out);
        if (!begun) el_table_heads(&table, EL_TABLE_BOLD);
        begun = true;
        el_table_row(&table, EL_TABLE_PLAIN, trial);
    }
}
