/* The table: a row per trial, a line per device, then what makes trials suspect. All from the record. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "runtime/base/probe.h"
#include "runtime/modes/mode_info.h"

enum { TAGS_WIDTH = 60 };

bool el_report_is_ok(const json_t *trial)
{
    return el_json_is(trial, "status", "ok");
}

const char *el_report_verdict(const json_t *trial)
{
    bool valid = el_json_is(trial, "verdict", "valid");
    if (valid && json_is_true(json_object_get(trial, "simulated"))) return "simulated";
    return el_json_text(trial, "verdict", "?");
}

void el_report_failed(const json_t *trial, const char *head, const char *rest, int columns, FILE *out)
{
    el_text_say(head, rest, columns, out, "%s: %s", el_json_text(trial, "status", "failed"),
                el_json_text(trial, "reason", "no reason was given"));
}

void el_report_mode(const json_t *trial, const json_t *context, char *text)
{
    (void)context;
    el_table_mode(trial, text, EL_CELL_BYTES);
}

/* Throughput over that of plain training with the same global batch. */
static void show_ratio(const json_t *trial, const json_t *trials, char *text)
{
    double rate = el_json_number(trial, "throughput.samples_per_s"), single_rate = NAN;
    char ratio[EL_FIGURE_BYTES];
    EL_EACH(other, trials)
        if (isnan(single_rate) && el_json_is(other, "mode", el_mode_plain()->name) &&
            el_json_number(other, "global_batch") == el_json_number(trial, "global_batch"))
            single_rate = el_json_number(other, "throughput.samples_per_s");
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(rate / single_rate, ratio));
}

static void show_verdict(const json_t *trial, const json_t *trials, char *text)
{
    (void)trials;
    snprintf(text, EL_CELL_BYTES, "%s", el_report_verdict(trial));
}

/* "param/grad/optimizer 10.4 each, bucket 9.9, other 10.0": the first n tags, those of the same figure together, and
 * the rest of `sum`; in MiB. */
static void name_tags(const struct el_tag_bytes *tags, int n, double sum, char *text)
{
    char mib[EL_FIGURE_BYTES], next[EL_FIGURE_BYTES];
    *text = '\0';
    for (int i = 0, same; i < n; i += same) {
        el_text_mib(tags[i].bytes, mib);
        for (same = 1; i + same < n && strcmp(el_text_mib(tags[i + same].bytes, next), mib) == 0;) same++;
        for (int k = i; k < i + same; k++) {
            el_text_append(text, EL_CELL_BYTES, "%s%s", k > i ? "/" : i > 0 ? ", " : "", el_tag_name(tags[k].tag));
            sum -= tags[k].bytes;
        }
        el_text_append(text, EL_CELL_BYTES, " %s%s", mib, same > 1 ? " each" : "");
    }
    if (sum > 0) el_text_append(text, EL_CELL_BYTES, ", other %s", el_text_mib(sum, mib));
}

/* The tags at the peak from the largest on, as many as the column can take. */
static void show_tags(const json_t *device, const json_t *trials, char *text)
{
    struct el_tag_bytes tags[EL_TAG_COUNT];
    char more[EL_CELL_BYTES];
    double bytes[EL_TAG_COUNT], sum = 0;
    (void)trials;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        double value = el_json_number(el_json_at(device, "memory.at_peak_by_tag"), el_tag_name((enum el_tag)t));
        sum += bytes[t] = isnan(value) ? 0 : value;
    }
    el_tags_by_size(bytes, tags);
    for (int n = 1; n <= EL_TAG_COUNT && tags[n - 1].bytes > 0; n++) {
        name_tags(tags, n, sum, more);
        if (strlen(more) <= TAGS_WIDTH) snprintf(text, EL_CELL_BYTES, "%s", more);
    }
}

/* "cpu:0", or "cpu:0 sum" of all devices on it. */
static void show_device(const json_t *device, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s%s", el_json_text(device, "device", "?"),
             json_object_get(device, "card") ? " sum" : "");
}

/* clang-format off */
#define TRIAL_COLUMNS(rate, figure, interval) \
    EL_SHOWN("mode", -9, el_report_mode), EL_SHOWN("global batch", -14, el_table_batch), EL_FIGURE(rate, 11, figure), \
    EL_INTERVAL("95 % interval", 18, interval), EL_SHOWN("/single", 9, show_ratio), \
    EL_FIGURE("step ms", 8, "step_ms.mean"), EL_FIGURE("p95 ms", 9, "step_ms.p95"), \
    EL_FIGURE("exposed ms", 11, "comm.exposed_ms"), {.head = "verdict", .gap = 2, .width = -9, .show = show_verdict}, \
    EL_NO_MORE
/* clang-format on */
const struct el_column el_report_trial_columns[] = {
    TRIAL_COLUMNS("samples/s", "throughput.samples_per_s", "throughput.ci95")};
const struct el_column el_report_token_columns[] = {
    TRIAL_COLUMNS("tokens/s", "throughput.tokens_per_s", "throughput.tokens_ci95")};

bool el_report_of_tokens(const json_t *trials)
{
    return el_json_highest(trials, "tokens_per_sample") > 0;
}

const struct el_column el_report_device_columns[] = {
    {.head = "device", .gap = 2, .width = -10, .show = show_device},
    EL_MIB("peak MiB", 9, "memory.peak_bytes"),
    {.head = "by tag", .gap = 2, .width = -TAGS_WIDTH, .show = show_tags},
    EL_FIGURE("busy %", 7, "utilization.busy_pct"),
    EL_MIB("sent MiB", 10, "sent_bytes"),
    EL_NO_MORE};

static void put_devices(const struct el_table *table, const json_t *devices)
{
    EL_EACH(device, devices) el_table_row(table, EL_TABLE_DIM, device);
}

static void put_failed(const json_t *trial, FILE *out)
{
    char head[64 + EL_CELL_BYTES], mode[32], batch[EL_CELL_BYTES];
    el_table_mode(trial, mode, sizeof mode);
    el_table_batch(trial, NULL, batch);
    snprintf(head, sizeof head, "%-8s %-13s ", mode, batch);
    el_table_begin(out, EL_TABLE_RED);
    el_report_failed(trial, head, "                       ", EL_REPORT_COLUMNS, out);
    el_table_end(out);
}

void el_report_table(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials");
    const struct el_table of_trials = {.columns = el_report_of_tokens(trials) ? el_report_token_columns
                                                                              : el_report_trial_columns,
                                       .context = trials,
                                       .out = out};
    const struct el_table of_devices = {.columns = el_report_device_columns, .out = out};
    el_table_heads(&of_trials, EL_TABLE_BOLD);
    el_table_heads(&of_devices, EL_TABLE_DIM);
    EL_EACH(trial, trials) {
        const json_t *devices = json_object_get(trial, "per_device");
        bool valid = el_json_is(trial, "verdict", "valid");
        if (!el_report_is_ok(trial)) put_failed(trial, out);
        if (!isnan(el_json_number(trial, "throughput.samples_per_s")))
            el_table_row(&of_trials, valid ? EL_TABLE_BOLD : EL_TABLE_YELLOW, trial);
        json_t *shared = el_report_shared_cards(devices);
        put_devices(&of_devices, devices);
        put_devices(&of_devices, shared);
        json_decref(shared);
    }
    el_report_warnings(trials, "", out);
}

void el_report_tables(const json_t *run, FILE *out)
{
    el_report_table(run, out);
    el_report_steps(run, out);
    el_report_axes(run, out);
    el_report_lengths(run, out);
    el_report_recorder(run, out);
    el_report_arithmetic(run, out);
    el_report_epochs(run, out);
    el_report_evaluations(run, out);
    el_report_processes(run, out);
    el_report_checkpoints(run, out);
}
