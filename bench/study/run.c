/* The study's candidate, measured: one trial a batch through trials, runner and store, as any run. Peaks and tags are
 * what is wanted; a few steps give them, and no time is looked at. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/study/study.h"

/* A run of two-cards resided at the ledgers' sum and 32 MiB of the process's own; addresses planned by first fit may
 * lie a little wider than the peak. */
#define NEED_RATIO      1.05
#define NEED_REST_BYTES (256.0 * (1 << 20))
/* A step of the largest batch takes seconds on a core. */
#define TIMEOUT_S       1800

double el_study_need_bytes(const struct el_study *study)
{
    double most_bytes = 0;
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        double bytes = 0;
        for (int card = 0; card < EL_STUDY_CARDS; card++) bytes += (double)study->memory[i][card].ledger.peak_bytes;
        most_bytes = fmax(most_bytes, bytes);
    }
    return NEED_RATIO * most_bytes + NEED_REST_BYTES;
}

void el_study_options(const struct el_study *study, const struct el_options *asked, struct el_options *options_p)
{
    struct el_options *o = options_p;
    el_options_defaults(EL_CMD_COMPARE, o);
    memcpy(o->modes[0], study->config.mode, sizeof o->modes[0]);
    o->n_modes = 1;
    o->train = study->config;
    o->n_batches = EL_STUDY_ROWS;
    for (int i = 0; i < EL_STUDY_ROWS; i++) o->batches[i] = study->rows[i].global_batch;
    memcpy(o->devices, study->devices, sizeof study->devices);
    o->n_devices = EL_STUDY_CARDS;
    o->repeats = 1;
    o->timeout_s = TIMEOUT_S;
    o->quiet = asked->quiet;
    snprintf(o->data, sizeof o->data, "dummy");
    memcpy(o->out, asked->out, sizeof o->out);
}

static void read_tags(const json_t *device, const char *path, size_t bytes[EL_TAG_COUNT])
{
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        double value = el_json_number(el_json_at(device, path), el_tag_name((enum el_tag)t));
        bytes[t] = isnan(value) ? 0 : (size_t)value;
    }
}

/* The record's memory takes the forecast's place; the moment of the peak stays as predicted, for no record has it. */
static enum el_status read_trial(const json_t *trial, struct el_memory_forecast memory[EL_STUDY_CARDS])
{
    const char *status = el_json_text(trial, "status", "failed");
    if (strcmp(status, "ok"))
        return el_fail(EL_ERR_INTERNAL, "study: dp with batch %.0f: %s: %s", el_json_number(trial, "global_batch"),
                       status, el_json_text(trial, "reason", "no reason was given"));
    for (int card = 0; card < EL_STUDY_CARDS; card++) {
        const json_t *device = json_array_get(json_object_get(trial, "per_device"), (size_t)card);
        double peak_bytes = el_json_number(device, "memory.peak_bytes");
        if (isnan(peak_bytes)) return el_fail(EL_ERR_INTERNAL, "study: the record has no peak of device %d", card);
        memory[card].ledger.peak_bytes = (size_t)peak_bytes;
        read_tags(device, "memory.at_peak_by_tag", memory[card].ledger.at_peak_by_tag);
        read_tags(device, "memory.peak_by_tag", memory[card].ledger.peak_by_tag);
    }
    return EL_OK;
}

/* What a card holds that is no tensor: what CUDA and its libraries were seen to take. */
static void read_held(const json_t *trial, struct el_study_held held[EL_STUDY_CARDS])
{
    for (int card = 0; card < EL_STUDY_CARDS; card++) {
        const json_t *device = json_array_get(json_object_get(trial, "per_device"), (size_t)card);
        json_t *libraries = el_json_at(device, "memory.library_bytes");
        const char *name;
        json_t *bytes;
        held[card].driver_bytes = el_json_number(device, "memory.driver_bytes");
        held[card].outside_bytes = el_json_text(device, "uuid", NULL) ? 0 : NAN;
        json_object_foreach(libraries, name, bytes) held[card].outside_bytes += json_number_value(bytes);
    }
}

enum el_status el_study_read(const json_t *run, struct el_study *study)
{
    const json_t *trials = json_object_get(run, "trials");
    for (int i = 0; i < EL_STUDY_ROWS; i++) {
        const json_t *trial = json_array_get(trials, (size_t)i);
        EL_TRY(read_trial(trial, study->memory[i]));
        read_held(trial, study->held[i]);
    }
    study->measured = true;
    return EL_OK;
}

enum el_status el_study_run(struct el_study *study, const struct el_options *asked)
{
    struct el_campaign campaign;
    struct el_options *options = calloc(1, sizeof *options);
    if (!options) return el_fail_errno("options");
    el_study_options(study, asked, options);
    el_runner_catch_signals();
    enum el_status status = el_campaign_begin(&campaign, EL_CMD_COMPARE | EL_CMD_STUDY, options);
    if (status == EL_OK) {
        memcpy(study->dir, campaign.store.dir, sizeof study->dir);
        status = el_campaign_measure(
            &campaign, false, el_study_has_cards(study) ? "three trials" : "three trials, about a minute on two cores");
        if (status == EL_OK && !el_runner_interrupted()) status = el_study_read(campaign.run, study);
        el_campaign_end(&campaign);
    }
    free(options);
    return status;
}
