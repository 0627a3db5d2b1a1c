/* The table as JSON: the record's figures under the cards' names, and the differences. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/imbalance/imbalance.h"
#include "bench/report/excess.h"

static json_t *copy_of(const json_t *object, const char *path)
{
    json_t *value = el_json_at(object, path);
    return value ? json_deep_copy(value) : json_null();
}

static json_t *card(const json_t *device, size_t position)
{
    static const char *const copied[][2] = {
        {"peak_bytes", "memory.peak_bytes"},       {"at_peak_by_tag", "memory.at_peak_by_tag"},
        {"peak_by_tag", "memory.peak_by_tag"},     {"driver_bytes", "memory.driver_bytes"},
        {"library_bytes", "memory.library_bytes"}, {"unattributed_bytes", "memory.unattributed_bytes"},
        {"busy_pct", "utilization.busy_pct"},      {"sent_bytes", "sent_bytes"},
        {"received_bytes", "received_bytes"}};
    char name[16];
    json_t *card = json_object();
    json_object_set_new(card, "card", json_string(el_imbalance_card(position, name)));
    json_object_set_new(card, "device", copy_of(device, "device"));
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        json_object_set_new(card, copied[i][0], copy_of(device, copied[i][1]));
    json_object_set_new(card, "sum_of_tag_peaks_bytes", el_json_real(el_imbalance_highs(device)));
    return card;
}

static json_t *sentence(const json_t *trials, const json_t *trial)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    if (memory == NULL) return json_null();
    el_imbalance_say(trials, trial, memory);
    fclose(memory);
    json_t *string = json_string(text);
    free(text);
    return string;
}

/* Main minus the mean of the others, tag by tag as recorded. */
static json_t *difference(const json_t *trials, const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    size_t n = json_array_size(devices);
    double others = 0;
    json_t *tags = json_object();
    for (size_t i = 1; i < n; i++) others += el_imbalance_highs(json_array_get(devices, i));
    double highs = el_imbalance_highs(json_array_get(devices, 0)) - others / (double)(n - 1);
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        char path[64];
        snprintf(path, sizeof path, "memory.at_peak_by_tag.%s", el_tag_name((enum el_tag)t));
        json_object_set_new(tags, el_tag_name((enum el_tag)t), el_json_real(el_excess_of(devices, path)));
    }
    return json_pack("{s:s, s:o, s:o, s:o, s:o}", "against", n == 2 ? "second" : "mean of the others", "peak_bytes",
                     el_json_real(el_excess_of(devices, "memory.peak_bytes")), "at_peak_by_tag", tags,
                     "sum_of_tag_peaks_bytes", el_json_real(highs), "sentence", sentence(trials, trial));
}

static json_t *trial_of(const json_t *trials, const json_t *trial)
{
    static const char *const copied[] = {
        "id",     "mode",   "model",   "dtype",    "optimizer", "global_batch", "batch_per_device",
        "status", "reason", "verdict", "warnings", "simulated", "imbalance"};
    const json_t *devices = json_object_get(trial, "per_device");
    json_t *document = json_object(), *cards = json_array();
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++)
        json_object_set_new(document, copied[i], copy_of(trial, copied[i]));
    for (size_t i = 0; i < json_array_size(devices); i++)
        json_array_append_new(cards, card(json_array_get(devices, i), i));
    json_object_set_new(document, "cards", cards);
    json_object_set_new(document, "difference",
                        el_imbalance_has_cards(trial) ? difference(trials, trial) : json_null());
    return document;
}

json_t *el_imbalance_document(const json_t *run, const char *preset, const char *dir)
{
    const json_t *trials = json_object_get(run, "trials");
    bool predicted = !strcmp(el_json_text(trials, "0.verdict", ""), "predicted");
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(trials); i++)
        json_array_append_new(list, trial_of(trials, json_array_get(trials, i)));
    return json_pack("{s:o, s:o, s:b, s:o, s:o}", "preset", el_json_string(preset), "dir", el_json_string(dir),
                     "predicted", (int)predicted, "published", el_imbalance_published(run, preset), "trials", list);
}
