/* A trial's devices against each other: the difference between the first one's memory and the others', taken apart by
 * tag; and the sums over those that are on one card (or on cores that stand for one). Two processes that both take both
 * cards look balanced device by device; what a card holds is the sum. */
#include "bench/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"

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
    double x = ((const struct el_tag_bytes *)a)->bytes, y = ((const struct el_tag_bytes *)b)->bytes;
    return (x < y) - (x > y);
}

void el_tags_by_size(const double bytes[EL_TAG_COUNT], struct el_tag_bytes parts_p[EL_TAG_COUNT])
{
    for (int t = 0; t < EL_TAG_COUNT; t++) parts_p[t] = (struct el_tag_bytes){.tag = (enum el_tag)t, .bytes = bytes[t]};
    qsort(parts_p, EL_TAG_COUNT, sizeof parts_p[0], larger_first);
}

/* Appends "23.8 MiB of param and 23.7 of grad": the parts of the sign that make up more than `least_bytes`, after
 * `before`. */
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
    double by_tag[EL_TAG_COUNT], least_bytes = fabs(el_excess_of(per_device, "memory.peak_bytes")) / 50;
    struct el_tag_bytes parts[EL_TAG_COUNT];
    el_excess_by_tag(per_device, by_tag);
    el_tags_by_size(by_tag, parts);
    *text = '\0';
    list_parts(parts, 1, least_bytes, "", text, bytes);
    if (*text) list_parts(parts, -1, least_bytes, ", and less ", text, bytes);
    return text;
}

/* Adds every number of `more` to the one of the same place; the rest stays the first device's. */
static void add_up(json_t *sum, const json_t *more)
{
    EL_EACH_KEY(key, value, sum) {
        const json_t *other = json_object_get(more, key);
        if (json_is_object(value)) add_up(value, other);
        json_int_t total; /* of a foreign record it may be too large: then the first device's stays */
        if (json_is_integer(value) &&
            !__builtin_add_overflow(json_integer_value(value), json_integer_value(other), &total))
            json_integer_set(value, total);
        else if (json_is_real(value))
            json_real_set(value, json_real_value(value) + json_number_value(other));
    }
}

/* Two ranks may each call a card of their own cuda:0. */
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
