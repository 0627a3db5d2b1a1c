/* `evenload scale`: all counts and modes are one campaign, in turns; an earlier folder is completed; `evenload scale
 * DIR` only reads. */
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/machine/host.h"
#include "bench/plot/plot.h"
#include "bench/scale/scale.h"
#include "bench/study/study.h"
#include "bench/trial/trial.h"

static enum el_status show(const struct el_options *options, const json_t *run, const char *dir)
{
    static const struct el_figure *const figure = &el_figure_scale;
    char word[EL_WORD_BYTES];
    FILE *messages = options->json ? NULL : stdout;
    json_t *document = NULL;
    char path[EL_PATH_BYTES + 16];
    EL_TRY(el_scale_document(run, dir, &document));
    snprintf(path, sizeof path, "%s/scale.csv", dir);
    enum el_status status = el_write_file(path, el_scale_csv, document);
    if (options->json && status == EL_OK) {
        status = el_print_json(document, stdout);
    } else if (status == EL_OK) {
        el_scale_print(document, stdout);
        printf("\n");
        el_text_line(stdout, "%s/results.json", dir);
        el_text_line(stdout, "%s/scale.csv", dir);
    }
    if (status == EL_OK) el_say_not_drawn(el_plot_figures(&figure, 1, document, dir, messages), messages);
    if (status == EL_OK && !options->json) {
        printf("\n");
        el_text_line(stdout, "Next: %s plot %s --term", el_program_word(), el_shell_word(dir, word, sizeof word));
    }
    json_decref(document);
    return status;
}

static enum el_status report(const struct el_options *options)
{
    json_t *run;
    EL_TRY(el_read_records("scale", options, &run));
    if (json_object_get(run, "study") && !options->json) el_study_print(run, stdout);
    enum el_status status = !json_object_get(run, "study") ? show(options, run, options->dir)
                            : options->json                ? el_print_json(run, stdout)
                                                           : EL_OK;
    json_decref(run);
    return status;
}

static enum el_status show_campaign(struct el_campaign *c)
{
    return show(c->options, c->run, c->store.dir);
}

static enum el_status check_predicted(const json_t *run)
{
    EL_EACH(trial, json_object_get(run, "trials"))
        if (!el_json_is(trial, "status", "ok"))
            return el_fail(EL_ERR_INVALID, "--predict: %s on %.0f devices: %s", el_json_text(trial, "mode", "?"),
                           el_json_number(trial, "devices"), el_json_text(trial, "reason", "not finished"));
    return EL_OK;
}

/* Made anew each time, as its records grow. `given`: with --costs and --machine. */
static enum el_status predict(const struct el_campaign *measured, const struct el_options *given)
{
    struct el_options options = *measured->options;
    struct el_campaign campaign;
    char file[EL_PATH_BYTES];
    el_store_path(&measured->store, file, "predicted/results.json");
    unlink(file);
    if (given->sizes.n == 0) return EL_OK;
    options.settings = given->settings;
    snprintf(options.counts_backend, sizeof options.counts_backend, "sim");
    options.n_counts = given->sizes.n;
    memcpy(options.counts, given->sizes.v, sizeof options.counts);
    if (*options.costs) { /* measured here, with its plain single, which is first */
        options.n_modes--;
        memmove(options.modes, options.modes + 1, sizeof options.modes[0] * (size_t)options.n_modes);
    }
    options.repeats = 1;
    options.train.products = EL_PRODUCTS_AUTO; /* simulated devices have no library's */
    if (*options.costs) el_text_append(options.costs, sizeof options.costs, ",%s", measured->store.dir);
    el_store_path(&measured->store, options.out, "predicted");
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_SCALE, &options));
    for (int t = 0; t < campaign.set.n; t++) {
        json_t **repeat = el_campaign_repeat(&campaign, t, 0);
        json_decref(*repeat);
        *repeat = NULL;
    }
    enum el_status status = el_campaign_measure(&campaign, false, NULL);
    if (status == EL_OK && !el_runner_interrupted()) status = check_predicted(campaign.run);
    if (status != EL_OK || el_runner_interrupted()) unlink(file);
    el_campaign_end(&campaign);
    return status;
}

static enum el_status prepare(struct el_options *options)
{
    struct el_options asked = *options;
    struct el_cores cores;
    struct el_device_name last = {.index = 0};
    int gpus = 0;
    if (asked.sizes.n && !*asked.costs && !*asked.machine)
        return el_fail(EL_ERR_INVALID, "--predict: how long messages take is not known: measure it with 'evenload comm "
                                       "all --out DIR' and give --costs DIR, or give --machine");
    el_cores_find("", &cores);
    if (asked.n_counts == 0) EL_TRY(el_device_gpus(&gpus));
    EL_TRY(el_scale_options(&asked, cores.n, gpus, options));
    const struct el_backend_facts facts = el_backend_facts(options->counts_backend);
    if (asked.sizes.n && (facts.simulated || !facts.computes))
        return el_fail(EL_ERR_INVALID, "--predict goes on from devices that were measured: --devices %s has none",
                       options->counts_backend);
    if (asked.sizes.n) *options->costs = *options->machine = 0; /* only for the prediction */
    memcpy(last.backend, options->counts_backend, sizeof last.backend);
    last.index = options->counts[options->n_counts - 1] - 1;
    return el_devices_check(&last, 1);
}

enum el_status el_cmd_scale(struct el_options *options, int *exit_status_p)
{
    struct el_campaign campaign;
    char headline[96];
    if (options->command_at) return el_study_scale(options, exit_status_p);
    if (options->dir[0]) return report(options);
    const struct el_options given = *options;
    EL_TRY(prepare(options));
    el_runner_catch_signals();
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_SCALE, options));
    campaign.asked = &given;
    snprintf(headline, sizeof headline, "%d trials, %d launch%s each, in turns", campaign.set.n, options->repeats,
             options->repeats == 1 ? "" : "es");
    enum el_status status = el_campaign_measure(&campaign, true, headline);
    if (status == EL_OK && !el_runner_interrupted()) status = predict(&campaign, &given);
    return el_end_campaign(&campaign, status, "the same command and --out", show_campaign, exit_status_p);
}
