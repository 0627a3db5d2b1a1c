/* Where a step goes: a line per device, from the spans of the measured steps; what communication costs: a row per
 * trial, from its control blocks; what recording costs, of trials whose control blocks switched that; and of training
 * whole epochs, what accuracy was reached after how many seconds. All from the record.
 *
 * Each table has one method, which its head names: the control blocks are other steps than the measured ones. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

static const double BLOCKS_RATIO = 0.1; /* by so much their steps may differ without a word */

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

/* "cpu:1*", the slowest, whose exposed time is the trial's. */
static void show_device(const json_t *device, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s%s", el_json_text(device, "device", "?"),
             json_is_true(json_object_get(device, "slowest")) ? "*" : "");
}

static void show_hidden(const json_t *device, const json_t *context, char *text)
{
    double total_ms = el_json_number(device, "comm.total_ms");
    (void)context;
    show_figure(total_ms > 0 ? 100 * el_json_number(device, "comm.overlapped_ms") / total_ms : NAN, text);
}

static const struct el_column trial_columns[] = {EL_SHOWN("mode", -9, el_report_mode),
                                                 EL_SHOWN("global batch", -14, el_table_batch), EL_NO_MORE};

const struct el_column el_report_comm_columns[] = {{.head = "device", .gap = 2, .width = -8, .show = show_device},
                                                   EL_FIGURE("compute", 8, "compute_ms"),
                                                   EL_FIGURE("+ exposed", 10, "comm.exposed_ms"),
                                                   EL_FIGURE("+ other", 8, "other_ms"),
                                                   EL_FIGURE("+ idle", 7, "idle_ms"),
                                                   EL_FIGURE("| wait", 7, "comm.wait_ms"),
                                                   EL_FIGURE("transfer", 9, "comm.transfer_ms"),
                                                   EL_SHOWN("hidden %", 9, show_hidden),
                                                   EL_FIGURE("bubble", 7, "bubble_ms"),
                                                   EL_FIGURE("CPU of comm.", 13, "comm.cpu_ms"),
                                                   EL_FIGURE("bus GB/s", 9, "busbw_gb_per_s"),
                                                   EL_NO_MORE};

const struct el_column el_report_step_columns[] = {EL_SHOWN("mode", -9, el_report_mode),
                                                   EL_SHOWN("global batch", -14, el_table_batch),
                                                   EL_FIGURE("blocks on", 10, "breakdown.step_ms"),
                                                   EL_SHOWN("blocks off", 12, show_off),
                                                   EL_FIGURE("on - off", 10, "breakdown.exposed_step_ms"),
                                                   EL_INTERVAL("95 % interval", 16, "breakdown.exposed_step_ci95"),
                                                   EL_FIGURE("contention", 12, "breakdown.contention_ms"),
                                                   EL_INTERVAL("95 % interval", 16, "breakdown.contention_ci95"),
                                                   EL_NO_MORE};

json_t *el_report_comm_rows(const json_t *trial)
{
    json_t *rows = json_array();
    EL_EACH(device, json_object_get(trial, "per_device")) {
        json_t *row = json_copy(device);
        bool slowest = el_json_whole(trial, "slowest_member") == (int64_t)device_at.i;
        el_json_put(row, "slowest", json_boolean(slowest));
        if (slowest) el_json_put_real(row, "busbw_gb_per_s", el_json_number(trial, "comm.busbw_gb_per_s"));
        json_array_append_new(rows, row);
    }
    return rows;
}

bool el_report_communicates(const json_t *trial)
{
    return json_is_object(json_object_get(trial, "breakdown")) || !isnan(el_json_number(trial, "comm.wait_ms"));
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

/* Where the machine changed between the measured steps and the blocks. */
static void say_blocks(const json_t *trial, FILE *out)
{
    char blocks[EL_FIGURE_BYTES], measured[EL_FIGURE_BYTES], mode[64];
    double blocks_ms = el_json_number(trial, "breakdown.step_ms"), step_ms = el_json_number(trial, "step_ms.mean");
    if (!(fabs(blocks_ms / step_ms - 1) > BLOCKS_RATIO)) return;
    el_table_mode(trial, mode, sizeof mode);
    el_text_say(
        "! ", "  ", EL_REPORT_COLUMNS, out,
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

static const struct el_column cost_columns[] = {EL_SHOWN("mode", -9, el_report_mode),
                                                EL_SHOWN("global batch", -14, el_table_batch),
                                                EL_FIGURE("step ms", 8, "step_ms.mean"),
                                                EL_FIGURE("toggled us", 12, "recorder.toggled_us"),
                                                EL_INTERVAL("95 % interval", 16, "recorder.toggled_us_ci95"),
                                                EL_INTERVAL("in % of step", 17, "recorder.toggled_pct_ci95"),
                                                EL_NO_MORE};

void el_report_recorder(const json_t *run, FILE *out)
{
    const struct el_table table = {.columns = cost_columns, .out = out};
    el_table_list(&table, "\nWhat recording costs: A/B blocks of further steps with the recorder and without\n",
                  el_json_with(json_object_get(run, "trials"), "recorder.toggled_us"));
}

/* clang-format off */
#define EPOCH_COLUMNS \
    EL_SHOWN("mode", -9, el_report_mode), EL_SHOWN("global batch", -14, el_table_batch), \
    EL_COUNT("epochs", 7, "reached.epochs"), EL_FIGURE("s per epoch", 13, "reached.epoch_s"), \
    EL_PERCENT("held-out %", 12, "reached.best_pct"), EL_FIGURE("after s", 9, "reached.after_s"), \
    EL_PERCENT("test %", 8, "reached.test_pct")
/* clang-format on */
const struct el_column el_report_epoch_columns[] = {EPOCH_COLUMNS, EL_NO_MORE};
const struct el_column el_report_token_epoch_columns[] = {
    EPOCH_COLUMNS, EL_FIGURE("loss", 8, "reached.loss"), EL_FIGURE("perplexity", 11, "reached.perplexity"),
    EL_FIGURE("bits/byte", 10, "reached.bits_per_byte"), EL_NO_MORE};

/* The best epoch by held-out accuracy, and the training until its end. */
static json_t *reached(const json_t *trial)
{
    static const char *const of_tokens[] = {"loss", "perplexity", "bits_per_byte", NULL};
    const json_t *epochs = json_object_get(trial, "epochs"), *test = json_object_get(trial, "evaluation");
    const json_t *held_out = NULL;
    double seconds = 0, best = NAN, after = NAN;
    size_t n = json_array_size(epochs);
    EL_EACH(epoch, epochs) {
        double accuracy = el_json_number(epoch, "held_out_accuracy");
        seconds += el_json_number(epoch, "seconds");
        if (!(accuracy > best) && !isnan(best)) continue;
        best = accuracy;
        after = seconds;
        held_out = json_object_get(epoch, "held_out");
    }
    json_t *row =
        el_json_of(EL_KEY("epochs", (int)n), EL_KEY("epoch_s", seconds / (double)n), EL_KEY("best_pct", 100 * best),
                   EL_KEY("after_s", after), EL_KEY("test_pct", 100 * el_json_number(trial, "accuracy")));
    el_json_copy(row, json_is_object(test) ? test : held_out, of_tokens);
    return row;
}

json_t *el_report_epoch_rows(const json_t *all)
{
    json_t *trials = el_json_with(all, "epochs.0"), *rows = json_array();
    EL_EACH(trial, trials) {
        json_t *row = json_copy(trial);
        json_object_set_new(row, "reached", reached(trial));
        json_array_append_new(rows, row);
    }
    json_decref(trials);
    return rows;
}

void el_report_epochs(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    const bool tokens = el_report_of_tokens(trials);
    const struct el_table table = {.columns = tokens ? el_report_token_epoch_columns : el_report_epoch_columns,
                                   .out = out};
    el_table_list(
        &table,
        tokens ? "\nAccuracy, and loss of a token (nat), in the first launch: best epoch by held-out tokens, and the\n"
                 "training until its end; loss is on the test set, or without one on held-out tokens\n"
               : "\nAccuracy in the first launch: best epoch by held-out samples, and the training until its "
                 "end\n",
        el_report_epoch_rows(trials));
}

const struct el_column el_report_arithmetic_columns[] = {
    EL_SHOWN("mode", -9, el_report_mode),
    EL_SHOWN("global batch", -14, el_table_batch),
    {.head = "GFLOP per step", .width = 15, .kind = EL_CELL_FIGURE, .path = "flops_per_step", .scale = 1e-9},
    {.head = "6N+12LHQT",
     .width = 11,
     .kind = EL_CELL_FIGURE,
     .path = "arithmetic.formula_flops_per_step",
     .scale = 1e-9},
    {.head = "GFLOP/s per device",
     .width = 18,
     .kind = EL_CELL_FIGURE,
     .path = "arithmetic.flop_per_s_per_device",
     .scale = 1e-9},
    EL_PERCENT("of GEMM %", 11, "arithmetic.gemm_pct"),
    EL_NO_MORE};

json_t *el_report_arithmetic_rows(const json_t *trials)
{
    json_t *rows = json_array();
    EL_EACH(trial, trials)
        if (el_json_number(trial, "arithmetic.formula_flops_per_step") > 0 ||
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
        const char *end = strstr(source, ": "); /* how, in detail: the record has it */
        fputc('\n', out);
        el_text_say("GEMM: ", "  ", EL_REPORT_COLUMNS, out, "%s GFLOP/s (%s), %.*s",
                    el_text_figure(1e-9 * el_json_number(first, "arithmetic.gemm_flop_per_s"), rate),
                    el_json_text(first, "dtype", "?"), end ? (int)(end - source) : (int)strlen(source), source);
    } else if (first) {
        fputs("\nGEMM: not known; --machine FILE of 'evenload machine' gives this machine's rate\n", out);
    }
    el_table_list(&table, "", rows);
}
