/* The table as JSON: the record's figures under the cards' names, and the differences. */
#include <math.h>

#include "bench/base/jvalue.h"
#include "bench/imbalance/imbalance.h"
#include "bench/report/report.h"

/* Memory by tag is the ledger's alone: what was watched from outside (bench/watch) has none. */
bool el_imbalance_has_cards(const json_t *trial)
{
    const json_t *devices = json_object_get(trial, "per_device");
    return json_array_size(devices) > 1 && json_object_size(el_json_at(devices, "0.memory.at_peak_by_tag")) > 0;
}

/* Tags that are younger than the record count nothing. */
double el_imbalance_highs(const json_t *device)
{
    const json_t *tags = el_json_at(device, "memory.peak_by_tag");
    double sum = tags ? 0 : NAN;
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        const char *name = el_tag_name((enum el_tag)t);
        if (t != EL_TAG_WORKSPACE && t != EL_TAG_ALLOWANCE && t != EL_TAG_PADDING && json_object_get(tags, name))
            sum += el_json_number(tags, name);
    }
    return sum;
}

static json_t *card_of(const json_t *device, size_t position)
{
    static const char *const copied[] = {"device",
                                         "host",
                                         "memory.peak_bytes",
                                         "memory.at_peak_by_tag",
                                         "memory.peak_by_tag",
                                         "memory.driver_bytes",
                                         "memory.library_bytes",
                                         "memory.unattributed_bytes",
                                         "utilization.busy_pct",
                                         "sent_bytes",
                                         "received_bytes",
                                         NULL};
    static const char *const names[] = {"main", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"};
    char number[32];
    snprintf(number, sizeof number, "card %zu", position + 1);
    json_t *card = el_json_of(EL_KEY("card", position < sizeof names / sizeof names[0] ? names[position] : number));
    el_json_copy(card, device, copied);
    el_json_put_real(card, "sum_of_tag_peaks_bytes", el_imbalance_highs(device));
    return card;
}

/* Main minus the mean of the others, figure by figure, tag by tag as recorded. */
static json_t *difference_of(const json_t *cards, const char *sentence)
{
    static const char *const figures[] = {"peak_bytes", "sum_of_tag_peaks_bytes", "unattributed_bytes", "busy_pct",
                                          "sent_bytes", "received_bytes"};
    json_t *tags = json_object();
    json_t *difference = el_json_of(EL_KEY("against", json_array_size(cards) == 2 ? "second" : "mean of the others"),
                                    EL_KEY("at_peak_by_tag", tags), EL_KEY("sentence", sentence));
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++)
        el_json_put_real(difference, figures[i], el_excess_of(cards, figures[i]));
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        char path[64];
        snprintf(path, sizeof path, "at_peak_by_tag.%s", el_tag_name((enum el_tag)t));
        if (el_json_at(json_array_get(cards, 0), path))
            el_json_put_real(tags, el_tag_name((enum el_tag)t), el_excess_of(cards, path));
    }
    return difference;
}

static json_t *trial_of(const json_t *trials, const json_t *trial)
{
    static const char *const copied[] = {
        "id",     "mode",   "model",   "dtype",    "optimizer", "global_batch", "batch_per_device",
        "status", "reason", "verdict", "warnings", "simulated", "imbalance",    "config",
        NULL};
    const json_t *devices = json_object_get(trial, "per_device");
    bool several = el_imbalance_has_cards(trial);
    json_t *document = json_object(), *cards = json_array();
    char sentence[EL_SENTENCE_BYTES];
    el_json_copy(document, trial, copied);
    EL_EACH(device, devices) json_array_append_new(cards, card_of(device, device_at.i));
    if (several) el_imbalance_sentence(trials, trial, sentence);
    el_json_put_all(document, EL_KEY("cards", cards), EL_KEY("shared_cards", el_report_shared_cards(cards)),
                    EL_KEY("difference", several ? difference_of(cards, sentence) : json_null()),
                    EL_KEY("time", el_imbalance_time(trial)), EL_KEY("bytes", el_imbalance_bytes(trial)));
    return document;
}

json_t *el_imbalance_document(const json_t *run, const char *preset, const char *dir)
{
    const json_t *trials = json_object_get(run, "trials");
    bool predicted = el_json_is(trials, "0.verdict", "predicted");
    json_t *list = json_array();
    EL_EACH(trial, trials) json_array_append_new(list, trial_of(trials, trial));
    return el_json_of(EL_KEY("preset", preset), EL_KEY("dir", dir), EL_KEY("predicted", predicted),
                      EL_KEY("trials", list), EL_KEY("published", el_imbalance_published(run, preset)));
}
