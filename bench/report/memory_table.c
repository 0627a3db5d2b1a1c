/* Memory by device, by card and by process: the first device's extra memory by tag; sums over devices on one card,
 * since processes that each use both cards look balanced device by device; what the system sees. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/report/report.h"

double el_excess_of(const json_t *per_device, const char *path)
{
    size_t n = json_array_size(per_device);
    double others = 0;
    for (size_t i = 1; i < n; i++) others += el_json_number(json_array_get(per_device, i), path);
    return el_json_number(json_array_get(per_device, 0), path) - others / (double)(n - 1);
}

void el_excess_by_tag(const json_t *per_device, double bytes_p[EL_TAG_COUNT])
{
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        char path[64];
        snprintf(path, sizeof path, "memory.at_peak_by_tag.%s", el_tag_name((enum el_tag)t));
        double bytes = el_excess_of(per_device, path);
        bytes_p[t] = isnan(bytes) ? 0 : bytes;
    }
    bytes_p[EL_TAG_PARAM] += bytes_p[EL_TAG_REPLICA];
    bytes_p[EL_TAG_REPLICA] = 0;
}

const char *el_excess_word(enum el_tag tag)
{
    static const char *const words[EL_TAG_COUNT] = {
        [EL_TAG_PARAM] = "parameters",       [EL_TAG_GRAD] = "gradients", [EL_TAG_OPTIMIZER] = "optimizer state",
        [EL_TAG_ACTIVATION] = "activations", [EL_TAG_INPUT] = "inputs",   [EL_TAG_OUTPUT] = "outputs",
        [EL_TAG_BUFFER] = "buffers",         [EL_TAG_BUCKET] = "buckets", [EL_TAG_MAILBOX] = "mailboxes"};
    return words[tag] ? words[tag] : el_tag_name(tag);
}

static int larger_first(const void *a, const void *b)
{
    double x = fabs(((const struct el_tag_bytes *)a)->bytes), y = fabs(((const struct el_tag_bytes *)b)->bytes);
    return (x < y) - (x > y);
}

static void sort_tags(const double bytes[EL_TAG_COUNT], struct el_tag_bytes parts_p[EL_TAG_COUNT])
{
    for (int t = 0; t < EL_TAG_COUNT; t++) parts_p[t] = (struct el_tag_bytes){.tag = (enum el_tag)t, .bytes = bytes[t]};
    qsort(parts_p, EL_TAG_COUNT, sizeof parts_p[0], larger_first);
}

void el_tags_largest(const json_t *tags, struct el_tag_bytes parts_p[EL_TAG_COUNT])
{
    double bytes[EL_TAG_COUNT];
    for (int t = 0; t < EL_TAG_COUNT; t++)
        bytes[t] = json_number_value(json_object_get(tags, el_tag_name((enum el_tag)t)));
    sort_tags(bytes, parts_p);
}

/* "23.8 MiB of param and 23.7 of grad": parts of this sign above `least_bytes`. */
static void list_parts(const struct el_tag_bytes *parts, double sign, double least_bytes, const char *before,
                       char *text, size_t bytes)
{
    char mib[EL_FIGURE_BYTES];
    int named = 0, n = 0;
    for (int t = 0; t < EL_TAG_COUNT; t++) n += parts[t].bytes * sign > least_bytes;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        if (!(parts[t].bytes * sign > least_bytes)) continue;
        size_t used = strlen(text);
        const char *joint = named == 0 ? before : named == n - 1 ? " and " : ", ";
        snprintf(text + used, bytes - used, "%s%s%s of %s", joint, el_text_mib(parts[t].bytes * sign, mib),
                 named == 0 ? " MiB" : "", el_excess_word(parts[t].tag));
        named++;
    }
}

const char *el_excess_text(const json_t *per_device, char *text, size_t bytes)
{
    double by_tag[EL_TAG_COUNT], least_bytes = fabs(el_excess_of(per_device, el_at_device_peak_bytes)) / 50;
    struct el_tag_bytes parts[EL_TAG_COUNT];
    el_excess_by_tag(per_device, by_tag);
    sort_tags(by_tag, parts);
    *text = '\0';
    list_parts(parts, 1, least_bytes, "", text, bytes);
    if (*text) list_parts(parts, -1, least_bytes, ", and less ", text, bytes);
    return text;
}

static void add_up(json_t *sum, const json_t *more)
{
    EL_EACH_KEY(key, value, sum) {
        const json_t *other = json_object_get(more, key);
        if (json_is_object(value)) add_up(value, other);
        json_int_t total; /* overflow in a foreign record: keep the first device's */
        if (json_is_integer(value) &&
            !__builtin_add_overflow(json_integer_value(value), json_integer_value(other), &total))
            json_integer_set(value, total);
        else if (json_is_real(value))
            json_real_set(value, json_real_value(value) + json_number_value(other));
    }
}

/* Two ranks may each call their own card cuda:0. */
static bool is_same_card(const json_t *a, const json_t *b)
{
    const char *uuid = el_json_text(a, "uuid", NULL);
    if (uuid && el_json_text(b, "uuid", NULL)) return el_json_is(b, "uuid", uuid);
    return el_json_is(a, "device", el_json_text(b, "device", "")) && el_json_is(a, "host", el_json_text(b, "host", ""));
}

json_t *el_report_shared_cards(const json_t *devices)
{
    json_t *cards = json_array();
    EL_EACH(device, devices) {
        json_t *sum = NULL;
        bool first = true;
        for (size_t k = 0; k < device_at.i; k++) first &= !is_same_card(json_array_get(devices, k), device);
        for (size_t k = device_at.i + 1; k < json_array_size(devices) && first; k++) {
            if (!is_same_card(json_array_get(devices, k), device)) continue;
            if (!sum) sum = json_deep_copy(device);
            add_up(sum, json_array_get(devices, k));
        }
        if (!sum) continue;
        el_json_put(sum, "card", json_string("sum"));
        json_array_append_new(cards, sum);
    }
    return cards;
}

/* Memory as the system sees it, process x device like nvidia-smi, beside the ledger's. Each mode's largest finished
 * batch. */

enum { DEVICES_SHOWN = 6, HEADS = 2, PATH_BYTES = 32 };

/* Devices are those of the trial with the most. */
struct process_columns {
    struct el_column list[HEADS + DEVICES_SHOWN + 2];
    char paths[DEVICES_SHOWN][PATH_BYTES];
    size_t n; /* devices */
    struct el_table table;
};

static bool has_reading(const json_t *trial)
{
    return !isnan(el_json_number(trial, "per_device.0.memory.driver_bytes"));
}

static bool is_outdone(const json_t *trials, size_t i)
{
    const json_t *trial = json_array_get(trials, i);
    double batch = el_json_number(trial, "global_batch");
    EL_EACH(other, trials) {
        double theirs = el_json_number(other, "global_batch");
        if (other_at.i == i || !el_json_is(other, "mode", el_json_text(trial, "mode", "")) || !has_reading(other))
            continue;
        if (theirs > batch || (theirs == batch && other_at.i < i)) return true;
    }
    return false;
}

static size_t shown(const json_t *trial)
{
    size_t n = json_array_size(json_object_get(trial, "per_device"));
    return n < DEVICES_SHOWN ? n : DEVICES_SHOWN;
}

static void lay_out(const json_t *trial, FILE *out, struct process_columns *columns)
{
    struct el_column *next = columns->list;
    columns->n = shown(trial);
    columns->table = (struct el_table){.columns = columns->list, .out = out};
    *next++ = (struct el_column)EL_TEXT("mode, batch", -14, "head");
    *next++ = (struct el_column)EL_TEXT("resident MiB", -26, "what");
    for (size_t d = 0; d < columns->n; d++) {
        const json_t *device = json_array_get(json_object_get(trial, "per_device"), d);
        snprintf(columns->paths[d], PATH_BYTES, "bytes.%zu", d);
        *next++ = (struct el_column)EL_MIB(el_json_text(device, "device", "?"), 9, columns->paths[d]);
    }
    *next++ = (struct el_column)EL_MIB("host", 16, "host");
    *next = (struct el_column)EL_NO_MORE;
}

static void put_row(struct process_columns *columns, enum el_table_style style, const char *head, const char *what,
                    const json_t *items, const char *path, double host)
{
    json_t *bytes = json_array();
    for (size_t d = 0; d < columns->n; d++)
        json_array_append_new(bytes, el_json_real(el_json_number(json_array_get(items, d), path)));
    json_t *row = el_json_of(EL_KEY("head", head), EL_KEY("what", what), EL_KEY("bytes", bytes), EL_KEY("host", host));
    columns->table.first = isnan(host) ? HEADS + (int)columns->n : 0;
    el_table_row(&columns->table, style, row);
    json_decref(row);
}

static void put_trial(const json_t *trial, struct process_columns *columns)
{
    const json_t *devices = json_object_get(trial, "per_device");
    char head[64], what[64];
    snprintf(head, sizeof head, "%s %.0f", el_json_text(trial, "mode", "?"), el_json_number(trial, "global_batch"));
    EL_EACH(process, json_object_get(trial, "processes")) {
        json_t *own = json_deep_copy(json_object_get(process, "per_device_bytes"));
        EL_EACH(value, own)
            if (!(json_number_value(value) > 0)) json_array_set_new(own, value_at.i, json_null());
        snprintf(what, sizeof what, "rank %.0f, process %.0f", el_json_number(process, "rank"),
                 el_json_number(process, "pid"));
        put_row(columns, EL_TABLE_PLAIN, process_at.i == 0 ? head : "", what, own, "",
                el_json_number(process, "process_bytes"));
        json_decref(own);
    }
    put_row(columns, EL_TABLE_DIM, "", "the ledger's peak in it", devices, el_at_device_peak_bytes, NAN);
    put_row(columns, EL_TABLE_DIM, "", "unattributed", devices, el_at_device_unattributed_bytes, NAN);
}

void el_report_processes(const json_t *run, FILE *out)
{
    const json_t *trials = json_object_get(run, "trials"), *widest = NULL;
    struct process_columns columns;
    EL_EACH(trial, trials)
        if (has_reading(trial) && (!widest || shown(trial) > shown(widest))) widest = trial;
    if (!widest) return;
    fputs("\nMemory as the system sees it, when the measured steps had ended\n", out);
    lay_out(widest, out, &columns);
    el_table_heads(&columns.table, EL_TABLE_BOLD);
    EL_EACH(trial, trials)
        if (has_reading(trial) && !is_outdone(trials, trial_at.i)) put_trial(trial, &columns);
}
