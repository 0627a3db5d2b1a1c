/* `evenload run --dry-run`: memory of each device by tag, by the schedule that would run, and with --costs its step. No
 * memory is taken, no step is run. */
#include <stdlib.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/commands.h"
#include "bench/job/worker.h"
#include "bench/record/record.h"

/* With costs, the step: of all members in one virtual time, as `run` would simulate it. `record_p`: the trial's, NULL
 * without costs. */
static enum el_status predict_step(const struct el_trial *trial, const struct el_dataset *dataset, json_t **record_p)
{
    struct el_trial few = *trial;
    struct el_job job = {.trial = &few, .dataset = dataset};
    json_t *repeat = NULL;
    *record_p = NULL;
    if (!*trial->costs) return EL_OK;
    few.train.warmup = 2; /* ddp's buckets are rebuilt after the first step */
    few.train.steps = 2;
    few.train.min_time_s = 0;
    few.record = true;
    EL_TRY(el_bootstrap_open("self", &job.bootstrap));
    enum el_status status = el_job_measure(&job, &repeat);
    el_bootstrap_close(job.bootstrap);
    json_t *repeats = json_array();
    if (repeat) json_array_append_new(repeats, repeat);
    if (status == EL_OK) *record_p = el_record_trial(&few, "", repeats);
    json_decref(repeats);
    return status;
}

static enum el_status print_json(const struct el_trial *trial, const struct el_memory_forecast *forecasts,
                                 const json_t *record)
{
    json_t *devices = json_array();
    for (int i = 0; i < trial->n_devices; i++) {
        const struct el_ledger *ledger = &forecasts[i].ledger;
        json_array_append_new(
            devices, json_pack("{s:o, s:I, s:s, s:o, s:o, s:o}", "device",
                               json_sprintf("%s:%d", trial->devices[i].backend, trial->devices[i].index), "peak_bytes",
                               (json_int_t)ledger->peak_bytes, "moment", forecasts[i].moment, "at_peak_by_tag",
                               el_record_tags(ledger->at_peak_by_tag), "peak_by_tag",
                               el_record_tags(ledger->peak_by_tag), "activation_sets",
                               el_json_count(forecasts[i].activation_sets ? forecasts[i].activation_sets : -1)));
    }
    json_t *document = json_pack("{s:s, s:s, s:I, s:o, s:o, s:o}", "mode", trial->train.mode, "model",
                                 trial->train.model.name, "global_batch", (json_int_t)trial->train.global_batch,
                                 "devices", devices, "step_ms", el_json_real(el_json_number(record, "step_ms.mean")),
                                 "bubble_pct", el_json_real(el_json_number(record, "bubble_pct")));
    enum el_status status = el_print_json(document, stdout);
    json_decref(document);
    return status;
}

static void print_table(const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    const double mib = 1 << 20;
    printf("%s %s, global batch %lld: MiB at each device's peak, predicted\n\n", trial->train.model.name,
           trial->train.mode, (long long)trial->train.global_batch);
    printf("%-10s %9s", "device", "peak");
    bool used[EL_TAG_COUNT] = {false};
    for (int t = 0; t < EL_TAG_COUNT; t++) {
        for (int i = 0; i < trial->n_devices; i++) used[t] = used[t] || forecasts[i].ledger.at_peak_by_tag[t];
        if (used[t]) printf(" %10s", el_tag_name((enum el_tag)t));
    }
    bool has_sets = forecasts[0].activation_sets > 0;
    printf("%s  in\n", has_sets ? " activation sets" : "");
    for (int i = 0; i < trial->n_devices; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s:%d", trial->devices[i].backend, trial->devices[i].index);
        printf("%-10s %9.2f", name, (double)forecasts[i].ledger.peak_bytes / mib);
        for (int t = 0; t < EL_TAG_COUNT; t++)
            if (used[t]) printf(" %10.2f", (double)forecasts[i].ledger.at_peak_by_tag[t] / mib);
        if (has_sets) printf(" %15d", forecasts[i].activation_sets);
        printf("  %s\n", forecasts[i].moment);
    }
    if (used[EL_TAG_ALLOWANCE])
        el_text_line(stdout, "allowance: room for what cuDNN may ask for at most. A run holds what it did ask for, as "
                             "workspace, and room for the way without cuDNN.");
}

static void print_step(const struct el_trial *trial, const json_t *record)
{
    char step[EL_FIGURE_BYTES], rate[EL_FIGURE_BYTES];
    double bubble_pct = el_json_number(record, "bubble_pct");
    if (!record) return;
    printf("\na step of %s ms, %s samples/s", el_text_figure(el_json_number(record, "step_ms.mean"), step),
           el_text_figure(el_json_number(record, "throughput.samples_per_s"), rate));
    if (bubble_pct >= 0) printf(", bubble %.1f %%", bubble_pct);
    el_text_line(stdout, ": predicted from %s", trial->costs);
}

enum el_status el_cmd_dry_run(const struct el_options *options)
{
    struct el_trial_set set;
    EL_TRY(el_trials_resolve(EL_CMD_RUN, options, &set));
    struct el_memory_forecast *forecasts = calloc(EL_MEMBERS_MAX, sizeof *forecasts);
    json_t *record = NULL;
    if (!forecasts) {
        el_trials_free(&set);
        return el_fail(EL_ERR_HOST_MEMORY, "forecast: no memory");
    }
    enum el_status status = el_trial_forecast(set.trials, forecasts);
    if (status == EL_OK) status = predict_step(set.trials, set.dataset, &record);
    if (status == EL_OK && options->json) {
        status = print_json(set.trials, forecasts, record);
    } else if (status == EL_OK) {
        print_table(set.trials, forecasts);
        print_step(set.trials, record);
    }
    json_decref(record);
    free(forecasts);
    el_trials_free(&set);
    return status;
}
