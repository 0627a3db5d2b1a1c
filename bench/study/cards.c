/* The devices on which a study is run, and what the driver says of them where they are GPUs: how much of a card is no
 * tensor is measured there, and is what the published table leaves over. */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/options/devices.h"
#include "bench/study/study.h"

enum { TEXT_BYTES = 512 };

static const double mib_bytes = 1 << 20;

enum el_status el_study_on(struct el_study *study, const struct el_options *options)
{
    if (options->n_devices != 0 && options->n_devices != EL_STUDY_CARDS)
        return el_fail(EL_ERR_INVALID,
                       "--devices: this study has two cards, %d device%s named: take cpu:2, cuda:0,cuda:1, or "
                       "cuda:0,cuda:0 for two on one card",
                       options->n_devices, options->n_devices == 1 ? " is" : "s are");
    for (int card = 0; card < EL_STUDY_CARDS; card++) {
        study->devices[card] = (struct el_device_name){.backend = "cpu", .index = card};
        if (options->n_devices) study->devices[card] = options->devices[card];
    }
    return options->n_devices && !options->dry_run ? el_devices_check(study->devices, EL_STUDY_CARDS) : EL_OK;
}

bool el_study_has_cards(const struct el_study *study)
{
    return strcmp(study->devices[0].backend, "cuda") == 0;
}

const char *el_study_devices(const struct el_study *study, char *text, size_t bytes)
{
    const struct el_device_name *first = &study->devices[0], *second = &study->devices[1];
    if (el_study_has_cards(study))
        snprintf(text, bytes, "%s:%d and %s:%d", first->backend, first->index, second->backend, second->index);
    else
        snprintf(text, bytes, "2 %s devices", first->backend);
    return text;
}

/* A figure of a card in MiB, or a dash. */
static void put_mib(double bytes, int width, FILE *out)
{
    if (isnan(bytes))
        fprintf(out, "%*s", width, "-");
    else
        fprintf(out, "%*.1f", width, bytes / mib_bytes);
}

static void put_reading(const struct el_study *study, FILE *out)
{
    char text[TEXT_BYTES];
    bool shared = study->devices[0].index == study->devices[1].index;
    snprintf(text, sizeof text,
             "Outside tensors: what the context and each library took when they were opened, by the driver; the "
             "published table leaves %.0f MiB for it on the second card.%s",
             study->unattributed_mib[0][EL_STUDY_SECOND],
             shared ? " Both devices are on one card, which has one context: it counts for the first, and the driver "
                      "gives no figure for each."
                    : "");
    fprintf(out, "\n");
    el_text_wrap(text, "", "", EL_REPORT_COLUMNS, out);
}

void el_study_print_held(const struct el_study *study, FILE *out)
{
    if (!study->measured || !el_study_has_cards(study)) return;
    fprintf(out, "\nWhat the driver says of our cards at the end of each run, MiB\n\n  %-5s%33s%33s\n  %-5s", "",
            "main card", "second card", "batch");
    for (int card = 0; card < EL_STUDY_CARDS; card++) fprintf(out, "%14s%19s", "driver", "outside tensors");
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        fprintf(out, "\n  %-5lld", (long long)study->rows[i].global_batch);
        for (int card = 0; card < EL_STUDY_CARDS; card++) {
            put_mib(study->held[i][card].driver_bytes, 14, out);
            put_mib(study->held[i][card].outside_bytes, 19, out);
        }
    }
    fprintf(out, "\n");
    put_reading(study, out);
}

json_t *el_study_held_json(const struct el_study *study)
{
    if (!study->measured || !el_study_has_cards(study)) return json_null();
    json_t *rows = json_array();
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        json_t *cards = json_array();
        for (int card = 0; card < EL_STUDY_CARDS; card++)
            json_array_append_new(cards, json_pack("{s:o, s:o}", "driver_bytes",
                                                   el_json_real(study->held[i][card].driver_bytes), "outside_bytes",
                                                   el_json_real(study->held[i][card].outside_bytes)));
        json_array_append_new(rows, cards);
    }
    return rows;
}
