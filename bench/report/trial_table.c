/* Tables of trials and of dry runs. */
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

/* A dry run's table: a line per device, a column per tag. If it is too wide, the smallest tags share the column
 * `other`. */

enum { COLUMNS_MAX = EL_TAG_COUNT + 6 };

#define TAG_COLUMN(id, text) EL_MIB(text, 1, "at_peak_by_tag." text),
static const struct el_column of_tags[] = {EL_TAG_LIST(TAG_COLUMN)};

struct layout {
    struct el_column columns[COLUMNS_MAX];
    int n, width;
};

static void show_other(const json_t *device, const json_t *own, char *text)
{
    double sum = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (!json_object_get(own, of_tags[t].head)) sum += fmax(0, el_json_number(device, of_tags[t].path));
    el_text_mib(sum, text);
}

static void add(struct layout *l, const json_t *devices, const json_t *context, struct el_column column)
{
    size_t width = strlen(column.head);
    EL_EACH(device, devices) {
        char text[EL_CELL_BYTES];
        el_table_cell(&column, device, context, text);
        if (strlen(text) > width) width = strlen(text);
    }
    column.width = column.width < 0 ? -(int)width : (int)width + 2;
    l->columns[l->n++] = column;
    l->width += column.gap + (int)width + 2;
}

/* The n_own largest tags have columns, and their names in `own`. */
static void lay_out(struct layout *l, const json_t *devices, const struct el_tag_bytes *tags, int n_own, json_t *own)
{
    l->n = l->width = 0;
    json_object_clear(own);
    for (int i = 0; i < n_own; i++) json_object_set_new(own, el_tag_name(tags[i].tag), json_true());
    add(l, devices, own, (struct el_column)EL_TEXT("device", -1, "device"));
    add(l, devices, own, (struct el_column)EL_MIB("peak", 1, "peak_bytes"));
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (json_object_get(own, of_tags[t].head)) add(l, devices, own, of_tags[t]);
    if (n_own < EL_TAG_COUNT && tags[n_own].bytes > 0)
        add(l, devices, own, (struct el_column)EL_SHOWN("other", 1, show_other));
    if (el_json_highest(devices, "activation_sets") > 0)
        add(l, devices, own, (struct el_column)EL_COUNT("sets", 1, "activation_sets"));
    add(l, devices, own, (struct el_column)EL_TEXT("in", -1, "moment", .gap = 2));
    l->columns[l->n] = (struct el_column)EL_NO_MORE;
}

static void print_memory(const json_t *devices, FILE *out)
{
    struct layout l;
    struct el_tag_bytes tags[EL_TAG_COUNT];
    json_t *most = json_object(), *own = json_object();
    int n = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++)
        el_json_put_real(most, of_tags[t].head, el_json_highest(devices, of_tags[t].path));
    el_tags_largest(most, tags);
    while (n < EL_TAG_COUNT && tags[n].bytes > 0) n++;
    do lay_out(&l, devices, tags, n, own);
    while (l.width > EL_REPORT_COLUMNS && n-- > 0);
    const struct el_table table = {.columns = l.columns, .context = own, .out = out};
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(device, devices) el_table_row(&table, EL_TABLE_PLAIN, device);
    if (el_json_highest(devices, "activation_sets") > 0)
        fputs("sets: of activations that the device holds at once\n", out);
    if (el_json_highest(devices, "at_peak_by_tag.allowance") > 0)
        EL_SAY(
            out,
            "allowance: the largest scratch memory that cuDNN may request. A real run holds what cuDNN did request, as "
            "workspace, and room for the way without cuDNN.");
    json_decref(most);
    json_decref(own);
}

static void say_assumed(const json_t *document, FILE *out)
{
    char text[1024] = "";
    EL_EACH_KEY(name, value, json_object_get(document, "assumed"))
        if (json_is_string(value))
            el_text_append(text, sizeof text, "%s--%s %s", *text ? ", " : "", name, json_string_value(value));
    if (*text) EL_SAY(out, "Not given, so assumed: %s.", text);
}

static void say_fit(const json_t *document, FILE *out)
{
    char wanted[EL_FIGURE_BYTES], limit[EL_FIGURE_BYTES];
    bool fits = json_is_true(json_object_get(document, "fits"));
    el_text_mib(el_json_number(document, "wanted_bytes"), wanted);
    el_text_mib(el_json_number(document, "limit_bytes"), limit);
    if (el_json_is(document, "limit", "device"))
        EL_SAY(out, "%s: a device needs up to %s MiB, and --devices mem allows %s.",
               fits ? "It fits" : "It does not fit", wanted, limit);
    else if (el_json_is(document, "limit", "host"))
        EL_SAY(out, "%s: all devices need %s MiB, and this host has %s free.",
               fits ? "It fits" : "It does not fit this host", wanted, limit);
    else
        EL_SAY(out, "Whether it fits is not known: --devices mem says how much a device has.");
}

static void say_step(const json_t *document, FILE *out)
{
    char step[EL_FIGURE_BYTES], low[EL_FIGURE_BYTES], high[EL_FIGURE_BYTES];
    double bubble_pct = el_json_number(document, "bubble_pct");
    const json_t *prediction = json_object_get(document, "prediction");
    const char *machine = el_json_text(prediction, "machine.name", "?");
    bool sure = json_is_array(json_object_get(document, "step_ms_ci95"));
    if (isnan(el_json_number(document, "step_ms"))) return;
    fprintf(out, "\na step of %s ms", el_text_figure(el_json_number(document, "step_ms"), step));
    if (sure)
        fprintf(out, " (%s to %s)", el_text_figure(el_json_number(document, "step_ms_ci95.0"), low),
                el_text_figure(el_json_number(document, "step_ms_ci95.1"), high));
    const bool tokens = !isnan(el_json_number(document, "tokens_per_s"));
    fprintf(out, ", %s %s/s", el_text_figure(el_json_number(document, tokens ? "tokens_per_s" : "samples_per_s"), step),
            tokens ? "tokens" : "samples");
    if (bubble_pct >= 0) fprintf(out, ", bubble %.1f %%", bubble_pct);
    el_text_line(out, ": predicted from %s", el_json_text(prediction, "costs", machine));
    if (!sure) EL_SAY(out, "No interval: %s.", el_json_text(prediction, "step_ms.reason", "it is not known"));
    json_t *trials = json_pack("[O]", document);
    el_report_warnings(trials, "", out);
    json_decref(trials);
}

void el_report_forecast(const json_t *document, FILE *out)
{
    fprintf(out, "%s %s, global batch %.0f: MiB at each device's peak, predicted\n",
            el_json_text(document, "model", "?"), el_json_text(document, "mode", "?"),
            el_json_number(document, "global_batch"));
    say_assumed(document, out);
    double longest = el_json_number(document, "longest");
    if (!isnan(longest))
        EL_SAY(
            out,
            "Peaks are of a batch with a sentence of %.0f words, the longest there can be: shorter batches take less.",
            longest);
    fputc('\n', out);
    print_memory(json_object_get(document, "devices"), out);
    say_fit(document, out);
    say_step(document, out);
}

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

void el_report_failed(const json_t *trial, const char *head, const char *rest, FILE *out)
{
    el_text_say(head, rest, out, "%s: %s", el_json_text(trial, "status", "failed"),
                el_json_text(trial, "reason", "no reason was given"));
}

void el_report_mode(const json_t *trial, const json_t *context, char *text)
{
    (void)context;
    el_table_mode(trial, text, EL_CELL_BYTES);
}

/* Throughput over that of single with the same global batch. */
static void show_ratio(const json_t *trial, const json_t *trials, char *text)
{
    double rate = el_json_number(trial, el_at_samples_per_s), single_rate = NAN;
    char ratio[EL_FIGURE_BYTES];
    EL_EACH(other, trials)
        if (isnan(single_rate) && el_json_is(other, "mode", el_mode_plain()->name) &&
            el_json_number(other, "global_batch") == el_json_number(trial, "global_batch"))
            single_rate = el_json_number(other, el_at_samples_per_s);
    snprintf(text, EL_CELL_BYTES, "%s", el_text_figure(rate / single_rate, ratio));
}

static void show_verdict(const json_t *trial, const json_t *trials, char *text)
{
    (void)trials;
    snprintf(text, EL_CELL_BYTES, "%s", el_report_verdict(trial));
}

/* The first n tags, equal figures together, and the rest of `sum`, in MiB: "param/grad/optimizer 10.4 each, bucket 9.9,
 * other 10.0" */
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

static void show_tags(const json_t *device, const json_t *trials, char *text)
{
    struct el_tag_bytes tags[EL_TAG_COUNT];
    char more[EL_CELL_BYTES];
    double sum = 0;
    (void)trials;
    el_tags_largest(el_json_at(device, "memory.at_peak_by_tag"), tags);
    for (int t = 0; t < EL_TAG_COUNT; t++) sum += tags[t].bytes;
    for (int n = 1; n <= EL_TAG_COUNT && tags[n - 1].bytes > 0; n++) {
        name_tags(tags, n, sum, more);
        if (strlen(more) <= TAGS_WIDTH) snprintf(text, EL_CELL_BYTES, "%s", more);
    }
}

/* "cpu:0", or "cpu:0 sum" for all devices on it. */
static void show_device(const json_t *device, const json_t *context, char *text)
{
    (void)context;
    snprintf(text, EL_CELL_BYTES, "%s%s", el_json_text(device, "device", "?"),
             json_object_get(device, "card") ? " sum" : "");
}

/* clang-format off */
#define TRIAL_COLUMNS(rate, figure, interval) \
    EL_SHOWN("mode", -9, el_report_mode, .alone = true), EL_SHOWN("global batch", -14, el_table_batch), EL_FIGURE(rate, 11, figure), \
    EL_INTERVAL("95 % interval", 18, interval), EL_SHOWN("/single", 9, show_ratio), \
    EL_FIGURE("step ms", 8, el_at_step_mean_ms), EL_FIGURE("p95 ms", 9, el_at_step_p95_ms), \
    EL_FIGURE("exposed ms", 11, el_at_comm_exposed_ms), EL_SHOWN("verdict", -9, show_verdict, .gap = 2)
/* clang-format on */
const struct el_column el_report_trial_columns[] =
    EL_COLUMNS(TRIAL_COLUMNS("samples/s", el_at_samples_per_s, "throughput.ci95"));
const struct el_column el_report_token_columns[] =
    EL_COLUMNS(TRIAL_COLUMNS("tokens/s", el_at_tokens_per_s, "throughput.tokens_ci95"));

bool el_report_of_tokens(const json_t *trials)
{
    return el_json_highest(trials, "tokens_per_sample") > 0;
}

const struct el_column el_report_device_columns[] =
    EL_COLUMNS(EL_SHOWN("device", -10, show_device, .gap = 2), EL_MIB("peak MiB", 9, el_at_device_peak_bytes),
               EL_SHOWN("by tag", -TAGS_WIDTH, show_tags, .gap = 2), EL_FIGURE("busy %", 7, el_at_device_busy_pct),
               EL_MIB("sent MiB", 10, "sent_bytes"));

static void put_devices(const struct el_table *table, const json_t *devices)
{
    EL_EACH(device, devices) el_table_row(table, EL_TABLE_DIM, device);
}

static void put_failed(const json_t *trial, FILE *out)
{
    char head[128 + EL_CELL_BYTES], mode[96], batch[EL_CELL_BYTES];
    el_table_mode(trial, mode, sizeof mode);
    el_table_batch(trial, NULL, batch);
    snprintf(head, sizeof head, "%-8s %-13s ", mode, batch);
    el_table_begin(out, EL_TABLE_RED);
    el_report_failed(trial, head, "                       ", out);
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
        if (!isnan(el_json_number(trial, el_at_samples_per_s)))
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
