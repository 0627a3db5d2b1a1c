/* The table of a dry run: a line per device, a column per tag, as wide as their figures; where that is wider than a
 * report the smallest tags are one column, `other`. Below it whether it fits, and the predicted step with its doubts.
 */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"
#include "runtime/base/probe.h"

enum { COLUMNS_MAX = EL_TAG_COUNT + 6, PATH_BYTES = 40 };

#define SAY(out, ...) el_text_say("", "  ", EL_REPORT_COLUMNS, out, __VA_ARGS__)

/* The table as it is laid out: which tags have columns of their own. */
struct layout {
    bool own[EL_TAG_COUNT];
    char paths[EL_TAG_COUNT][PATH_BYTES];
    struct el_column columns[COLUMNS_MAX];
    int n, width;
};

static double most_of(const json_t *devices, const char *path)
{
    double most = el_json_highest(devices, path);
    return isnan(most) ? 0 : most;
}

/* Tags that have no column; `context` has an entry for each that has. */
static void show_other(const json_t *device, const json_t *context, char *text)
{
    const json_t *tags = json_object_get(device, "at_peak_by_tag");
    double sum = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        const char *name = el_tag_name((enum el_tag)t);
        if (!json_object_get(context, name)) sum += fmax(0, el_json_number(tags, name));
    }
    el_text_mib(sum, text);
}

/* As wide as its head and its widest cell. */
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

static void lay_out(struct layout *l, const json_t *devices, json_t *context)
{
    bool others = false;
    l->n = l->width = 0;
    json_object_clear(context);
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (l->own[t]) json_object_set_new(context, el_tag_name((enum el_tag)t), json_true());
    add(l, devices, context, (struct el_column)EL_TEXT("device", -1, "device"));
    add(l, devices, context, (struct el_column)EL_MIB("peak", 1, "peak_bytes"));
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        snprintf(l->paths[t], PATH_BYTES, "at_peak_by_tag.%s", el_tag_name((enum el_tag)t));
        if (l->own[t])
            add(l, devices, context, (struct el_column)EL_MIB(el_tag_name((enum el_tag)t), 1, l->paths[t]));
        else
            others |= most_of(devices, l->paths[t]) > 0;
    }
    if (others) add(l, devices, context, (struct el_column)EL_SHOWN("other", 1, show_other));
    if (most_of(devices, "activation_sets") > 0)
        add(l, devices, context, (struct el_column)EL_COUNT("sets", 1, "activation_sets"));
    add(l, devices, context, (struct el_column){.head = "in", .gap = 2, .width = -1, .path = "moment"});
    l->columns[l->n] = (struct el_column)EL_NO_MORE;
}

/* The tag with the smallest figures loses its column. */
static void merge_smallest(struct layout *l, const json_t *devices)
{
    int smallest = -1;
    for (int t = 0; t < EL_TAG_COUNT; t++)
        if (l->own[t] && (smallest < 0 || most_of(devices, l->paths[t]) < most_of(devices, l->paths[smallest])))
            smallest = t;
    if (smallest >= 0) l->own[smallest] = false;
}

static void print_memory(const json_t *devices, FILE *out)
{
    struct layout l = {.n = 0};
    json_t *context = json_object();
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        char path[PATH_BYTES];
        snprintf(path, sizeof path, "at_peak_by_tag.%s", el_tag_name((enum el_tag)t));
        l.own[t] = most_of(devices, path) > 0;
    }
    lay_out(&l, devices, context);
    for (int t = 0; t < EL_TAG_COUNT && l.width > EL_REPORT_COLUMNS; t++) {
        merge_smallest(&l, devices);
        lay_out(&l, devices, context);
    }
    const struct el_table table = {.columns = l.columns, .context = context, .out = out};
    el_table_heads(&table, EL_TABLE_PLAIN);
    EL_EACH(device, devices) el_table_row(&table, EL_TABLE_PLAIN, device);
    if (most_of(devices, "activation_sets") > 0) fputs("sets: of activations that the device holds at once\n", out);
    if (most_of(devices, "at_peak_by_tag.allowance") > 0)
        SAY(out,
            "allowance: the largest scratch memory that cuDNN may request. A real run holds what cuDNN did request, as "
            "workspace, and room for the way without cuDNN.");
    json_decref(context);
}

static void say_assumed(const json_t *document, FILE *out)
{
    char text[1024] = "";
    EL_EACH_KEY(name, value, json_object_get(document, "assumed"))
        if (json_is_string(value))
            el_text_append(text, sizeof text, "%s--%s %s", *text ? ", " : "", name, json_string_value(value));
    if (*text) SAY(out, "Not given, so assumed: %s.", text);
}

static void say_fit(const json_t *document, FILE *out)
{
    char wanted[EL_FIGURE_BYTES], limit[EL_FIGURE_BYTES];
    bool fits = json_is_true(json_object_get(document, "fits"));
    el_text_mib(el_json_number(document, "wanted_bytes"), wanted);
    el_text_mib(el_json_number(document, "limit_bytes"), limit);
    if (el_json_is(document, "limit", "device"))
        SAY(out, "%s: a device needs up to %s MiB, and --device-mem allows %s.", fits ? "It fits" : "It does not fit",
            wanted, limit);
    else if (el_json_is(document, "limit", "host"))
        SAY(out, "%s: all devices need %s MiB, and this host has %s free.",
            fits ? "It fits" : "It does not fit this host", wanted, limit);
    else
        SAY(out, "Whether it fits is not known: --device-mem says how much a device has.");
}

/* "a step of 5.79 ms (5.10 to 6.52), 22,090 samples/s, bubble 3.1 %: predicted from wire,s64". */
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
    if (!sure) SAY(out, "No interval: %s.", el_json_text(prediction, "step_ms.reason", "it is not known"));
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
        SAY(out,
            "Peaks are of a batch with a sentence of %.0f words, the longest there can be: shorter batches take less.",
            longest);
    fputc('\n', out);
    print_memory(json_object_get(document, "devices"), out);
    say_fit(document, out);
    say_step(document, out);
}
