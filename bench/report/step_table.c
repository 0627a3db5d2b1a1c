/* Tables of steps: costs, arithmetic, axes, padding, ops. Control blocks are other steps than the measured ones. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

static const double BLOCKS_RATIO = 0.1; /* tolerated difference between the blocks' steps and the measured ones */

static void show_figure(double value, char *text)
{
    char figure[EL_FIGURE_BYTES];
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(value, figure));
}

static void show_off(const json_t *trial, const json_t *context, char *text)
{
    const json_t *blocks = json_object_get(trial, "breakdown");
    (void)context;
    show_figure(el_json_number(blocks, "step_ms") - el_json_number(blocks, "exposed_step_ms"), text);
}

/* "cpu:1*": the slowest, whose exposed time is the trial's. */
static void show_device(const json_t *device, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s%s", el_json_text(device, "device", "?"),
             json_is_true(json_object_get(device, "slowest")) ? "*" : "");
}

static void show_hidden(const json_t *device, const json_t *context, char *text)
{
    double total_ms = el_json_number(device, el_at_device_comm_total_ms);
    (void)context;
    show_figure(total_ms > 0 ? 100 * el_json_number(device, "comm.overlapped_ms") / total_ms : NAN, text);
}

static const struct el_column trial_columns[] = EL_COLUMNS(EL_MODE_AND_BATCH);

const struct el_column el_report_comm_columns[] =
    EL_COLUMNS(EL_SHOWN("device", -8, show_device, .gap = 2), EL_FIGURE("compute", 8, "compute_ms"),
               EL_FIGURE("+ exposed", 10, el_at_device_comm_exposed_ms), EL_FIGURE("+ other", 8, "other_ms"),
               EL_FIGURE("+ idle", 7, "idle_ms"), EL_FIGURE("| wait", 7, el_at_device_comm_wait_ms),
               EL_FIGURE("transfer", 9, el_at_device_comm_transfer_ms), EL_SHOWN("hidden %", 9, show_hidden),
               EL_FIGURE("bubble", 7, "bubble_ms"), EL_FIGURE("CPU of comm.", 13, el_at_device_comm_cpu_ms),
               EL_FIGURE("bus GB/s", 9, "busbw_gb_per_s"));

const struct el_column el_report_step_columns[] =
    EL_COLUMNS(EL_MODE_AND_BATCH, EL_FIGURE("blocks on", 10, "breakdown.step_ms"), EL_SHOWN("blocks off", 12, show_off),
               EL_FIGURE("on - off", 10, "breakdown.exposed_step_ms"),
               EL_INTERVAL("95 % interval", 16, "breakdown.exposed_step_ci95"),
               EL_FIGURE("contention", 12, "breakdown.contention_ms"),
               EL_INTERVAL("95 % interval", 16, "breakdown.contention_ci95"));

json_t *el_report_comm_rows(const json_t *trial)
{
    json_t *rows = json_array();
    EL_EACH(device, json_object_get(trial, "per_device")) {
        json_t *row = json_copy(device);
        bool slowest = el_json_whole(trial, "slowest_member") == (int64_t)device_at.i;
        el_json_put(row, "slowest", json_boolean(slowest));
        if (slowest) el_json_put_real(row, "busbw_gb_per_s", el_json_number(trial, el_at_comm_busbw_gb_per_s));
        json_array_append_new(rows, row);
    }
    return rows;
}

bool el_report_communicates(const json_t *trial)
{
    return json_is_object(json_object_get(trial, "breakdown")) || !isnan(el_json_number(trial, el_at_comm_wait_ms));
}

static void put_measured(const json_t *trials, FILE *out)
{
    const struct el_table of_trials = {.columns = trial_columns, .out = out};
    const struct el_table of_devices = {.columns = el_report_comm_columns, .out = out};
    bool begun = false;
    EL_EACH(trial, trials) {
        if (!el_report_communicates(trial)) continue;
        if (!begun) {
            fputs(
                "\nWhere a step goes, ms: devices in the measured steps (*: the slowest; its exposed is the trial's)\n",
                out);
            el_table_heads(&of_devices, EL_TABLE_DIM);
        }
        begun = true;
        el_table_row(&of_trials, EL_TABLE_BOLD, trial);
        json_t *rows = el_report_comm_rows(trial);
        EL_EACH(row, rows) el_table_row(&of_devices, EL_TABLE_DIM, row);
        json_decref(rows);
    }
}

static void say_blocks(const json_t *trial, FILE *out)
{
    char blocks[EL_FIGURE_BYTES], measured[EL_FIGURE_BYTES], mode[64];
    double blocks_ms = el_json_number(trial, "breakdown.step_ms"), step_ms = el_json_number(trial, el_at_step_mean_ms);
    if (!(fabs(blocks_ms / step_ms - 1) > BLOCKS_RATIO)) return;
    el_table_mode(trial, mode, sizeof mode);
    el_text_say(
        "! ", "  ", out,
        "%s, batch %.0f: steps of the blocks took %s ms, the measured ones %s: the machine changed between them, "
        "so hold the blocks against each other only",
        mode, el_json_number(trial, "global_batch"), el_text_figure(blocks_ms, blocks),
        el_text_figure(step_ms, measured));
}

static void put_blocks(const json_t *trials, FILE *out)
{
    const struct el_table table = {.columns = el_report_step_columns, .out = out};
    json_t *rows = el_json_with(trials, "breakdown");
    el_table_list(
        &table, "\nWhat communication costs, ms: A/B blocks of further steps with it on and off, the slowest device\n",
        json_incref(rows));
    EL_EACH(trial, rows) say_blocks(trial, out);
    json_decref(rows);
}

void el_report_steps(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    put_measured(trials, out);
    put_blocks(trials, out);
}

static const struct el_column cost_columns[] = EL_COLUMNS(
    EL_MODE_AND_BATCH, EL_FIGURE("step ms", 8, el_at_step_mean_ms), EL_FIGURE("toggled us", 12, "recorder.toggled_us"),
    EL_INTERVAL("95 % interval", 16, "recorder.toggled_us_ci95"),
    EL_INTERVAL("in % of step", 17, "recorder.toggled_pct_ci95"));

void el_report_recorder(const json_t *run, FILE *out)
{
    const struct el_table table = {.columns = cost_columns, .out = out};
    el_table_list(&table, "\nWhat recording costs: A/B blocks of further steps with the recorder and without\n",
                  el_json_with(json_object_get(run, "trials"), "recorder.toggled_us"));
}

const struct el_column el_report_arithmetic_columns[] =
    EL_COLUMNS(EL_MODE_AND_BATCH, EL_FIGURE("GFLOP per step", 15, "flops_per_step", .scale = 1e-9),
               EL_FIGURE("6N+12LHQT", 11, el_at_formula_flops_per_step, .scale = 1e-9),
               EL_FIGURE("GFLOP/s per device", 18, el_at_flop_per_s_per_device, .scale = 1e-9),
               EL_PERCENT("of GEMM %", 11, el_at_gemm_pct));

json_t *el_report_arithmetic_rows(const json_t *trials)
{
    json_t *rows = json_array();
    EL_EACH(trial, trials)
        if (el_json_number(trial, el_at_formula_flops_per_step) > 0 ||
            el_json_number(trial, "arithmetic.gemm_flop_per_s") > 0)
            json_array_append(rows, trial);
    return rows;
}

void el_report_arithmetic(const json_t *run, FILE *out)
{
    const struct el_table table = {.columns = el_report_arithmetic_columns, .out = out};
    json_t *rows = el_report_arithmetic_rows(json_object_get(run, "trials"));
    const json_t *first = json_array_get(rows, 0);
    char rate[EL_FIGURE_BYTES];
    const char *source = el_json_text(first, "arithmetic.gemm_source", NULL);
    if (source) {
        const char *end = strstr(source, ": "); /* the details stay in the record */
        fputc('\n', out);
        el_text_say("GEMM: ", "  ", out, "%s GFLOP/s (%s), %.*s",
                    el_text_figure(1e-9 * el_json_number(first, "arithmetic.gemm_flop_per_s"), rate),
                    el_json_text(first, "dtype", "?"), end ? (int)(end - source) : (int)strlen(source), source);
    } else if (first) {
        fputs("\nGEMM: not known; --machine FILE of 'evenload machine' gives this machine's rate\n", out);
    }
    el_table_list(&table, "", rows);
}

/* Of a trial's slowest device. In a group along several axes, pipeline messages are between stages. Copies between
 * devices are in no group. */

const char *el_report_axis(const char *group, const json_t *figures)
{
    return el_json_text(figures, "axis", !strcmp(group, "pipeline") ? "stage" : group);
}

static void add(json_t *row, const json_t *figures, const char *from, const char *what)
{
    double sum = el_json_number(row, what), more = el_json_number(figures, from);
    el_json_put_real(row, what, isnan(sum) ? more : sum + more);
}

json_t *el_report_axes_of(const json_t *trial)
{
    int64_t slowest = el_json_whole(trial, "slowest_member");
    const json_t *device = json_array_get(json_object_get(trial, "per_device"), slowest < 0 ? 0 : (size_t)slowest);
    const json_t *comm = json_object_get(device, "comm");
    json_t *axes = json_object();
    double bytes = el_json_number(comm, "bytes"), total = el_json_number(comm, "total_ms"),
           exposed = el_json_number(comm, "exposed_ms");
    EL_EACH_KEY(group, figures, json_object_get(comm, "by_group")) {
        const char *axis = el_report_axis(group, figures);
        if (!json_object_get(axes, axis)) el_json_put(axes, axis, json_object());
        json_t *row = json_object_get(axes, axis);
        add(row, figures, "sent_bytes", "sent_bytes");
        add(row, figures, "total_ms", "total_ms");
        add(row, figures, "wait_ms", "wait_ms");
        add(row, figures, "exposed_ms", "exposed_ms");
        bytes -= el_json_number(figures, "sent_bytes");
        total -= el_json_number(figures, "total_ms");
        exposed -= el_json_number(figures, "exposed_ms");
    }
    if (bytes >= 1)
        el_json_put(axes, "copies",
                    el_json_of(EL_KEY("sent_bytes", el_json_rounded(bytes)), EL_KEY("total_ms", total),
                               EL_KEY("wait_ms", (double)NAN), EL_KEY("exposed_ms", exposed)));
    return axes;
}

bool el_report_is_cut(const json_t *axes)
{
    EL_EACH_KEY(axis, figures, axes)
        if (json_is_object(figures) && (!strcmp(axis, "tensor") || !strcmp(axis, "stage"))) return true;
    return false;
}

json_t *el_report_axis_rows(const json_t *trials)
{
    json_t *rows = json_array();
    bool any_cut = false;
    EL_EACH(trial, trials) {
        char mode[64], batch[EL_CELL_BYTES];
        json_t *axes = el_report_axes_of(trial);
        el_table_mode(trial, mode, sizeof mode);
        el_table_batch(trial, NULL, batch);
        any_cut = any_cut || el_report_is_cut(axes);
        EL_EACH_KEY(axis, figures, axes) {
            double total_ms = el_json_number(figures, "total_ms"), exposed_ms = el_json_number(figures, "exposed_ms");
            json_t *row = json_copy(figures);
            el_json_put_all(
                row, EL_KEY("mode", mode), EL_KEY("devices", el_json_number(trial, "devices")), EL_KEY("batch", batch),
                EL_KEY("axis", axis),
                EL_KEY("hidden_pct", total_ms > 0 ? 1e-3 * round(1e5 * (1 - exposed_ms / total_ms)) : (double)NAN));
            json_array_append_new(rows, row);
        }
        json_decref(axes);
    }
    if (!any_cut) json_array_clear(rows);
    return rows;
}

const struct el_column el_report_axis_columns[] = EL_COLUMNS(
    EL_TEXT("mode", -9, "mode"), EL_TEXT("global batch", -14, "batch"), EL_COUNT("dev.", 4, "devices"),
    EL_TEXT("axis", -8, "axis", .gap = 2), EL_MIB("sent MiB", 9, "sent_bytes"), EL_FIGURE("total", 8, "total_ms"),
    EL_FIGURE("wait", 8, "wait_ms"), EL_FIGURE("exposed", 9, "exposed_ms"), EL_FIGURE("hidden %", 10, "hidden_pct"));

void el_report_axis_list(json_t *rows, FILE *out)
{
    const struct el_table table = {.columns = el_report_axis_columns, .out = out};
    el_table_list(&table,
                  "\nCommunication by axis, ms per step of the slowest device; exposed: not hidden, with the wait\n",
                  rows);
}

void el_report_axes(const json_t *run, FILE *out)
{
    el_report_axis_list(el_report_axis_rows(json_object_get(run, "trials")), out);
}

static const struct el_column device_columns[] =
    EL_COLUMNS(EL_TEXT("device", -8, "device", .gap = 2), EL_FIGURE("words", 8, "loading.length.words"),
               EL_FIGURE("padded to", 11, "loading.length.mean"), EL_FIGURE("at most", 9, "loading.length.max"),
               EL_FIGURE("padding %", 11, "loading.length.padding_pct"), EL_FIGURE("compute ms", 12, "compute_ms"),
               EL_FIGURE("longest in % of steps", 23, "longest_pct"));

static double computed_ms(const json_t *device, size_t step)
{
    return json_number_value(json_array_get(el_json_at(device, "steps.compute_ms"), step));
}

/* Of the steps kept by all devices. */
static double longest_pct(const json_t *devices, size_t own)
{
    size_t n = json_array_size(el_json_at(json_array_get(devices, 0), "steps.compute_ms")), times = 0;
    for (size_t step = 0; step < n; step++) {
        bool longest = true;
        for (size_t d = 0; d < json_array_size(devices); d++)
            longest &= d == own ||
                       computed_ms(json_array_get(devices, own), step) > computed_ms(json_array_get(devices, d), step);
        times += longest;
    }
    return n ? 100 * (double)times / (double)n : NAN;
}

static bool has_lengths(const json_t *trial)
{
    return el_report_is_ok(trial) && json_is_object(el_json_at(trial, "per_device.0.steps"));
}

static void put_trial(const struct el_table *of_trials, const struct el_table *of_devices, const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    el_table_row(of_trials, EL_TABLE_PLAIN, trial);
    EL_EACH(device, devices) {
        json_t *row = json_copy((json_t *)(uintptr_t)device);
        if (json_array_size(devices) > 1)
            el_json_put(row, "longest_pct", el_json_real(longest_pct(devices, device_at.i)));
        el_table_row(of_devices, EL_TABLE_DIM, row);
        json_decref(row);
    }
}

void el_report_lengths(const json_t *run, FILE *out)
{
    const struct el_table of_trials = {.columns = trial_columns, .out = out},
                          of_devices = {.columns = device_columns, .out = out};
    bool any = false;
    EL_EACH(trial, json_object_get(run, "trials")) {
        if (!has_lengths(trial)) continue;
        if (!any) fputs("\nLengths: words of a sentence, what batches are padded to, and who computes longest\n", out);
        if (!any) el_table_heads(&of_devices, EL_TABLE_BOLD);
        any = true;
        put_trial(&of_trials, &of_devices, trial);
    }
}
