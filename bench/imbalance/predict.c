/* A run's document without a run: each trial's memory by forecast, put through the record as if a repeat had told it,
 * so that one table reads both. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/imbalance/imbalance.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "runtime/train/forecast.h"

/* A run resides at its ledgers' sum and what surrounds them; addresses planned by first fit may lie a little wider. */
#define NEED_RATIO      1.05
#define NEED_REST_BYTES (256.0 * (1 << 20))

static json_t *member_of(const struct el_trial *trial, int position, const struct el_layout *layout,
                         const struct el_memory_forecast *forecast)
{
    char name[64];
    const struct el_device_name device = el_nth_device(trial->devices, position);
    snprintf(name, sizeof name, "%s:%d", device.backend, device.index);
    struct el_member_account account = {.device = name,
                                        .rank = el_layout_spot(layout, position).process,
                                        .layout = layout,
                                        .spot = el_layout_spot(layout, position),
                                        .ledger = &forecast->ledger,
                                        .reserved_bytes = -1,
                                        .driver_bytes = -1,
                                        .grown_bytes = -1,
                                        .driver_reason = "predicted: nothing was run"};
    return el_record_member(&account);
}

static json_t *repeat_of(const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    struct el_layout layout;
    json_t *members = json_array(), *batches = json_array();
    el_layout_of(&trial->train, trial->procs, &layout);
    for (int i = 0; i < trial->n_devices; i++) {
        json_array_append_new(members, member_of(trial, i, &layout, &forecasts[i]));
        json_array_append_new(batches, json_integer(el_layout_spot(&layout, i).samples));
    }
    return json_pack("{s:i, s:s, s:s, s:o, s:o}", "schema", EL_SCHEMA, "trial", trial->id, "status", "ok",
                     "batch_per_device", batches, "members", members);
}

static json_t *trial_of(const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    json_t *repeats = json_pack("[o]", repeat_of(trial, forecasts));
    json_t *record = el_record_trial(trial, "", repeats);
    el_json_put_all(record, EL_KEY("verdict", "predicted"), EL_KEY("warnings", json_array()),
                    EL_KEY("warning_rules", json_array()));
    json_decref(repeats);
    return record;
}

enum el_status el_imbalance_predict(const struct el_trial_set *set, json_t **run_p)
{
    struct el_memory_forecast *forecasts = calloc(EL_SIMULATED_MAX, sizeof *forecasts);
    json_t *trials = json_array();
    enum el_status status = forecasts && trials ? EL_OK : el_fail_errno("forecasts");
    for (int t = 0; t < set->n && status == EL_OK; t++) {
        status = el_trial_forecast(&set->trials[t], forecasts);
        if (status == EL_OK) json_array_append_new(trials, trial_of(&set->trials[t], forecasts));
    }
    free(forecasts);
    if (status == EL_OK) *run_p = json_pack("{s:O}", "trials", trials);
    json_decref(trials);
    return status;
}

enum el_status el_imbalance_check_memory(const struct el_trial_set *set)
{
    const double gib_bytes = 1 << 30;
    double most_bytes = 0, free_bytes = el_host_free_bytes("");
    json_t *run;
    EL_TRY(el_imbalance_predict(set, &run));
    for (int t = 0; t < set->n; t++) {
        const json_t *trial = json_array_get(json_object_get(run, "trials"), (size_t)t);
        double bytes = 0;
        EL_EACH(device, json_object_get(trial, "per_device")) bytes += el_json_number(device, "memory.peak_bytes");
        if (el_trial_backend(&set->trials[t]).on_host) most_bytes = fmax(most_bytes, bytes);
    }
    json_decref(run);
    double need_bytes = NEED_RATIO * most_bytes + NEED_REST_BYTES;
    if (most_bytes <= 0 || !(free_bytes < need_bytes)) return EL_OK;
    return el_fail(EL_ERR_ABSENT,
                   "imbalance: the run needs %.1f GiB of memory, %.1f GiB are free here: make room, or give --dry-run, "
                   "which predicts the same",
                   need_bytes / gib_bytes, free_bytes / gib_bytes);
}
