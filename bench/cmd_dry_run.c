/* `evenload run --dry-run`: memory of each device by tag, by the schedule that would run, and beside it the closed form
 * of the persistent and reduced bytes (docs/semantics.md). No memory is taken, no step is run. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/commands.h"
#include "bench/record/record.h"

static enum el_status print_json(const struct el_trial *trial, const struct el_memory_forecast *forecasts)
{
    json_t *devices = json_array();
    for (int i = 0; i < trial->n_devices; i++) {
        const struct el_ledger *ledger = &forecasts[i].ledger;
        json_array_append_new(devices,
                              json_pack("{s:o, s:I, s:s, s:o, s:o}", "device",
                                        json_sprintf("%s:%d", trial->devices[i].backend, trial->devices[i].index),
                                        "peak_bytes", (json_int_t)ledger->peak_bytes, "moment", forecasts[i].moment,
                                        "at_peak_by_tag", el_record_tags(ledger->at_peak_by_tag), "peak_by_tag",
                                        el_record_tags(ledger->peak_by_tag)));
    }
    json_t *document = json_pack("{s:s, s:s, s:I, s:o}", "mode", trial->train.mode, "model", trial->train.model.name,
                                 "global_batch", (json_int_t)trial->train.global_batch, "devices", devices);
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
    printf("  in\n");
    for (int i = 0; i < trial->n_devices; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s:%d", trial->devices[i].backend, trial->devices[i].index);
        printf("%-10s %9.2f", name, (double)forecasts[i].ledger.peak_bytes / mib);
        for (int t = 0; t < EL_TAG_COUNT; t++)
            if (used[t]) printf(" %10.2f", (double)forecasts[i].ledger.at_peak_by_tag[t] / mib);
        printf("  %s\n", forecasts[i].moment);
    }
}

/* Backward does not only write gradients: it adds to those of the step before, or of another micro-batch. */
static bool adds_gradients(const struct el_train_config *config)
{
    return config->keep_grads || config->n_accumulate > 1 || config->n_micro > 1;
}

/* Adam's temporaries, new gradients beside kept ones, and what gets no gradient, in copies of the parameters
 * (docs/semantics.md). */
static enum el_status count_temporaries(const struct el_train_config *config, double *temporaries_p, double *fresh_p,
                                        double *unused_p)
{
    struct el_graph *graph;
    int64_t largest = 0, layer = 0, unused = 0;
    EL_TRY(el_model_build(&config->model, &graph));
    double all = (double)el_graph_param_count(graph);
    for (int n = 0; n < graph->n_nodes; n++) {
        int64_t own = 0;
        for (int i = 0; i < graph->nodes[n].n_params; i++) {
            int64_t count = el_param_count(graph, graph->nodes[n].params[i]);
            own += count;
            if (count > largest) largest = count;
        }
        if (own > layer) layer = own;
    }
    for (int p = 0; p < graph->n_params; p++)
        if (!el_graph_uses_param(graph, p)) unused += el_param_count(graph, p);
    *unused_p = (double)unused / all;
    el_graph_destroy(graph);
    double adam = config->foreach == EL_FOREACH_ON ? 1 : 2 * (double)largest / all;
    *temporaries_p = config->optimizer == EL_OPT_ADAM ? adam : 0;
    *fresh_p = adds_gradients(config) ? (double)layer / all : 0;
    return EL_OK;
}

/* What is left when activations, inputs, outputs and the kernels' workspace are left out. */
static enum el_status print_closed_form(const struct el_train_config *config, size_t params_bytes)
{
    const double p = (double)params_bytes / (1 << 20);
    double t, n, unused;
    int slots = config->optimizer == EL_OPT_ADAM ? 2 : config->optimizer == EL_OPT_MOMENTUM ? 1 : 0;
    struct el_mode_memory copies = el_mode_find(config->mode)->memory;
    bool several = config->n_devices > 1, uneven = several && copies.others > 0;
    if (config->bucket_view) copies.backward -= copies.view, copies.optimizer -= copies.view;
    if (copies.others > 0 && !several) copies = (struct el_mode_memory){.backward = 2, .optimizer = 2};
    EL_TRY(count_temporaries(config, &t, &n, &unused));
    bool fresh = adds_gradients(config) && copies.kept == 0;
    if (config->keep_grads) copies.backward += copies.kept;
    printf("\nclosed form, P = %.2f MiB of parameters, S = %d of the optimizer, T = %.2f of its temporaries", p, slots,
           t);
    if (fresh) printf(", N = %.2f of new gradients beside those they are added to", n);
    printf(":\nend of backward%s (%g + S%s) P = %.2f, optimizer (%g + S + T) P = %.2f", uneven ? " on the master" : "",
           copies.backward, fresh ? " + N" : "", (copies.backward + slots + (fresh ? n : 0)) * p, copies.optimizer,
           (copies.optimizer + slots + t) * p);
    if (uneven) printf("; on each other %g P = %.2f", copies.others, copies.others * p);
    printf("%s\n", several && !uneven ? " on each" : "");
    if (unused > 0) printf("less what U = %.4g P of parameters without gradients would have of these\n", unused);
    printf("(the table adds inputs, outputs, activations and workspace, and takes the moment at which the sum is "
           "highest)\n");
    return EL_OK;
}

enum el_status el_cmd_dry_run(const struct el_options *options)
{
    struct el_trial_set set;
    EL_TRY(el_trials_resolve(EL_CMD_RUN, options, &set));
    struct el_memory_forecast *forecasts = calloc(EL_MEMBERS_MAX, sizeof *forecasts);
    enum el_status status = forecasts ? el_trial_forecast(set.trials, forecasts) : el_fail_errno("forecast");
    if (status == EL_OK && options->json) {
        status = print_json(set.trials, forecasts);
    } else if (status == EL_OK) {
        print_table(set.trials, forecasts);
        status = print_closed_form(&set.trials->train, forecasts[0].ledger.at_peak_by_tag[EL_TAG_PARAM]);
    }
    free(forecasts);
    el_trials_free(&set);
    return status;
}
