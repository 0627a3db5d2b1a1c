/* `evenload run --dry-run`: allocates and runs nothing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/commands.h"
#include "bench/job/worker.h"
#include "bench/machine/host.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/machine.h"
#include "runtime/train/forecast.h"

/* All members in virtual time, as in `run`. `record_p`: the trial's; NULL: no costs. */
static enum el_status predict_step(const struct el_trial *trial, const struct el_dataset *dataset, json_t **record_p)
{
    struct el_trial few = *trial;
    struct el_job job = {.trial = &few, .dataset = dataset};
    json_t *repeat = NULL;
    *record_p = NULL;
    if (!el_trial_backend(trial).simulated || (!*trial->costs && !*trial->machine)) return EL_OK;
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

/* Defaults that the forecast depends on. */
static json_t *assumed(const struct el_options *given, const struct el_trial *trial)
{
    static const char *const names[] = {"classes", "batch", "precision", "optimizer", "data", NULL};
    struct el_options resolved;
    json_t *assumptions = json_object();
    el_trial_options(trial, &resolved);
    resolved.train.model = trial->train.model;
    json_t *echo = el_options_echo(EL_CMD_RUN, &resolved);
    const struct el_model_size *sizes = el_model_find(trial->train.model.name)->sizes;
    for (; sizes->name; sizes++)
        if (!el_option_given(given, sizes->name))
            json_object_set(assumptions, sizes->name, json_object_get(echo, sizes->name));
    for (int i = 0; names[i]; i++)
        if (!el_option_given(given, names[i]) && !el_option_given(given, "batch-per-device") &&
            (strcmp(names[i], "precision") || !el_option_given(given, "dtype")))
            json_object_set(assumptions, names[i], json_object_get(echo, names[i]));
    json_decref(echo);
    return assumptions;
}

/* Into each device's limit, else into the host's free memory. */
static void put_fit(json_t *document, const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    bool on_host = el_trial_backend(trial).on_host;
    double most = 0, sum = 0, free_bytes = on_host ? el_host_free_bytes("") : NAN;
    for (int i = 0; i < trial->n_devices; i++) {
        double peak = (double)forecasts[i].ledger.peak_bytes;
        most = fmax(most, peak);
        sum += peak;
    }
    bool limited = trial->device_mem_bytes > 0;
    double limit = limited ? (double)trial->device_mem_bytes : free_bytes, wanted = limited ? most : sum;
    el_json_put_text(document, "limit", limited ? "device" : !isnan(limit) ? "host" : NULL);
    el_json_put(document, "limit_bytes", el_json_count(isnan(limit) ? -1 : (int64_t)limit));
    el_json_put(document, "wanted_bytes", el_json_count((int64_t)wanted));
    el_json_put(document, "fits", isnan(limit) ? json_null() : json_boolean(wanted <= limit));
}

static json_t *devices_json(const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    json_t *devices = json_array();
    for (int i = 0; i < trial->n_devices; i++) {
        const struct el_ledger *ledger = &forecasts[i].ledger;
        json_array_append_new(
            devices, json_pack("{s:o, s:I, s:s, s:o, s:o, s:o}", "device",
                               json_sprintf("%s:%d", trial->devices[0].backend, el_nth_device(trial->devices, i).index),
                               "peak_bytes", (json_int_t)ledger->peak_bytes, "moment", forecasts[i].moment,
                               "at_peak_by_tag", el_record_tags(ledger->at_peak_by_tag), "peak_by_tag",
                               el_record_tags(ledger->peak_by_tag), "activation_sets",
                               el_json_count(forecasts[i].activation_sets ? forecasts[i].activation_sets : -1)));
    }
    return devices;
}

static json_t *document_of(const struct el_options *options, const struct el_trial *trial,
                           const struct el_memory_forecast *forecasts, const json_t *record)
{
    static const char *const copied[] = {"verdict", "warnings", "warning_rules", "prediction", NULL};
    json_t *document = json_pack("{s:s, s:s, s:I, s:o, s:o}", "mode", trial->train.mode, "model",
                                 trial->train.model.name, "global_batch", (json_int_t)trial->train.global_batch,
                                 "assumed", assumed(options, trial), "devices", devices_json(trial, forecasts));
    const json_t *step = el_json_at(record, "prediction.step_ms");
    put_fit(document, trial, forecasts);
    const int64_t longest = el_model_size(&trial->train.model, "seq");
    el_json_put(document, "longest", trial->train.length_by_batch ? json_integer(longest) : json_null());
    el_json_put_real(document, "step_ms", el_json_number(record, el_at_step_mean_ms));
    el_json_put(document, "step_ms_ci95", el_json_interval(el_json_number(step, "low"), el_json_number(step, "high")));
    el_json_put_real(document, "samples_per_s", el_json_number(record, el_at_samples_per_s));
    el_json_put_real(document, "tokens_per_s", el_json_number(record, el_at_tokens_per_s));
    el_json_put_real(document, "bubble_pct", el_json_number(record, "bubble_pct"));
    el_json_copy(document, record, copied);
    return document;
}

/* One of each kind is issued, with the same step. No bubbles. */
static bool is_large(const struct el_trial *trial)
{
    return el_trial_backend(trial).simulated && *trial->machine && !*trial->costs && trial->n_devices > EL_MEMBERS_MAX;
}

static enum el_status price_large(const struct el_trial *trial, const struct el_machine *machine,
                                  struct el_memory_forecast *forecasts, double *step_ns_p)
{
    struct el_inject *injects = calloc((size_t)trial->n_devices, sizeof *injects);
    if (!injects) return el_fail_errno("--inject");
    enum el_status status = el_inject_parse(trial->inject, trial->n_devices, injects);
    const struct el_predict_spec spec = {
        .machines = machine, .n_machines = 1, .injects = *trial->inject ? injects : NULL};
    if (status == EL_OK) status = el_train_predict(&trial->train, el_kernels_cpu(), &spec, forecasts, step_ns_p);
    free(injects);
    return status;
}

static enum el_status predict_large(const struct el_trial *trial, struct el_memory_forecast *forecasts,
                                    json_t **record_p)
{
    static const char no_interval[] = "priced by rates, without launches to draw from";
    struct el_machine machine;
    double step_ns = NAN;
    EL_TRY(el_machine_read(trial->machine, &machine));
    EL_TRY(price_large(trial, &machine, forecasts, &step_ns));
    const double samples = (double)trial->train.global_batch / step_ns * 1e9, tokens = (double)el_trial_tokens(trial);
    *record_p =
        el_json_of(EL_KEY("verdict", "simulated"), EL_KEY("step_ms", el_json_of(EL_KEY("mean", step_ns / 1e6))),
                   EL_KEY("prediction", el_json_of(EL_KEY("machine", el_machine_json(&machine)),
                                                   EL_KEY("step_ms", el_json_of(EL_KEY("reason", no_interval))))),
                   EL_KEY("throughput", el_json_of(EL_KEY("samples_per_s", samples),
                                                   EL_KEY("tokens_per_s", tokens > 0 ? samples * tokens : NAN))));
    if (*trial->inject)
        el_json_put_all(*record_p, EL_KEY("warning_rules", json_pack("[s]", "injected")),
                        EL_KEY("warnings", json_pack("[o]", json_sprintf("disturbances were injected: --inject %s",
                                                                         trial->inject))));
    return EL_OK;
}

static enum el_status dry_run(const struct el_options *options, const struct el_trial_set *set, int *exit_status_p)
{
    struct el_memory_forecast *forecasts = calloc(EL_SIMULATED_MAX, sizeof *forecasts);
    json_t *record = NULL, *document = NULL;
    if (!forecasts) return el_fail(EL_ERR_HOST_MEMORY, "forecast: no memory");
    const bool large = is_large(set->trials);
    enum el_status status =
        large ? predict_large(set->trials, forecasts, &record) : el_trial_forecast(set->trials, forecasts);
    if (status == EL_OK && !large) status = predict_step(set->trials, set->dataset, &record);
    if (status == EL_OK) document = document_of(options, set->trials, forecasts, record);
    if (document && options->json) status = el_print_json(document, stdout);
    if (document && !options->json) el_report_forecast(document, stdout);
    bool fails = el_json_is(document, "limit", "device") && json_is_false(json_object_get(document, "fits"));
    if (fails) *exit_status_p = EL_EXIT_TRIAL; /* as the run's own, with an `oom` row */
    json_decref(document);
    json_decref(record);
    free(forecasts);
    return status;
}

enum el_status el_cmd_dry_run(const struct el_options *options, int *exit_status_p)
{
    struct el_trial_set set;
    EL_TRY(el_trials_resolve(EL_CMD_RUN, options, &set));
    enum el_status status = dry_run(options, &set, exit_status_p);
    el_trials_free(&set);
    return status;
}
