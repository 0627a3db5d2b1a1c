/* `evenload scale`: what more devices bring. All counts and modes are trials of one campaign, in turns; with the folder
 * of an earlier one it measures what is missing, and as `evenload scale DIR` it only reads. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/machine/cores.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/scale/scale.h"
#include "bench/trial/default_devices.h"

/* The same study with ddp's bucket size as a sweep; false: what was asked for is not known, or it is of one device. */
static bool print_sweep(const struct el_options *asked)
{
    static const double sizes[] = {1, 5, 25, 100};
    char line[2 * EL_PATH_BYTES];
    bool several = asked->n_counts > 0 && asked->counts[asked->n_counts - 1] > 1;
    struct el_options *next = !several ? NULL : malloc(sizeof *next);
    if (!next) return false;
    *next = *asked;
    next->out[0] = 0;
    next->quiet = next->json = false;
    snprintf(next->modes[0], sizeof next->modes[0], "ddp");
    next->n_modes = 1;
    memcpy(next->bucket_mib, sizes, sizeof sizes);
    next->n_buckets = sizeof sizes / sizeof sizes[0];
    bool fits = el_options_command_line(EL_CMD_SCALE, next, line, sizeof line) == EL_OK;
    free(next);
    if (fits) el_text_line(stdout, "Next: %s%s    (ddp's buckets)", el_program_word(), line + strlen("evenload"));
    return fits;
}

/* ddp with the recommended buckets on the most devices; false: what was asked for is not known. */
static bool print_best(const struct el_options *asked, double best_mib)
{
    char line[2 * EL_PATH_BYTES];
    struct el_options *next = asked->n_counts == 0 ? NULL : malloc(sizeof *next);
    if (!next) return false;
    *next = *asked;
    next->out[0] = 0;
    next->quiet = next->json = false;
    snprintf(next->modes[0], sizeof next->modes[0], "ddp");
    next->n_modes = next->n_buckets = 1;
    next->bucket_mib[0] = best_mib;
    next->n_devices = asked->counts[asked->n_counts - 1];
    for (int i = 0; i < next->n_devices; i++) {
        next->devices[i].index = i;
        memcpy(next->devices[i].backend, asked->counts_backend, sizeof next->devices[i].backend);
    }
    bool fits = el_options_command_line(EL_CMD_COMPARE, next, line, sizeof line) == EL_OK;
    free(next);
    if (fits) el_text_line(stdout, "Next: %s%s", el_program_word(), line + strlen("evenload"));
    return fits;
}

static void print_next(const json_t *document, const struct el_options *options, const char *dir)
{
    const char *program = el_program_word();
    char word[EL_WORD_BYTES];
    double best = el_json_number(document, "buckets.recommended_mib");
    bool swept = json_is_object(json_object_get(document, "buckets"));
    if (best > 0 && print_best(options, best)) return;
    if (best > 0)
        printf("Next: %s compare --modes ddp --bucket-mb %g\n", program, best);
    else if (swept || !print_sweep(options))
        el_text_line(stdout, "Next: %s plot %s --term", program, el_shell_word(dir, word, sizeof word));
}

static enum el_status show(const struct el_options *options, const json_t *run, const char *dir)
{
    static const struct el_figure *const figures[] = {&el_figure_scale, &el_figure_buckets};
    FILE *messages = options->json ? NULL : stdout;
    json_t *document = NULL;
    enum el_status status = EL_OK;
    EL_TRY(el_scale_document(run, dir, &document));
    if (options->json) {
        status = el_print_json(document, stdout);
    } else {
        el_scale_print(document, stdout);
        printf("\n");
        el_text_line(stdout, "%s/results.json", dir);
    }
    if (status == EL_OK) el_say_not_drawn(el_plot_figures(figures, 2, document, dir, messages), messages);
    if (status == EL_OK && !options->json) {
        printf("\n");
        print_next(document, options, dir);
    }
    json_decref(document);
    return status;
}

/* What the folder's study was begun with, from its command.json, where that can be read; else as given. */
static const struct el_options *recall(const struct el_options *given, struct el_options *begun)
{
    struct el_store store = {0};
    json_t *echo;
    snprintf(store.dir, sizeof store.dir, "%s", given->dir);
    if (el_store_load_command(&store, "scale", &echo) != EL_OK) return given;
    el_options_defaults(EL_CMD_SCALE, begun);
    enum el_status status = EL_OK;
    for (const struct el_option_row *row = el_option_rows(); row->name && status == EL_OK; row++) {
        const char *text = json_string_value(json_object_get(echo, row->name));
        if (text && row->commands & EL_CMD_SCALE) status = el_option_set(row, text, begun);
    }
    json_decref(echo);
    begun->json = given->json;
    return status == EL_OK ? begun : given;
}

/* From records alone. */
static int report(const struct el_options *options)
{
    char path[EL_PATH_BYTES + 16];
    json_t *run = NULL;
    enum el_status status = el_options_check_records_alone("scale", options);
    snprintf(path, sizeof path, "%s/results.json", options->dir);
    if (status == EL_OK) status = el_record_read(path, &run);
    if (status == EL_OK && json_object_get(run, "watch"))
        status =
            el_fail(EL_ERR_INVALID,
                    "%s was watched from outside, and has no counts of devices: 'evenload plot %s' draws what there "
                    "is",
                    options->dir, options->dir);
    struct el_options *begun = status == EL_OK ? malloc(sizeof *begun) : NULL;
    if (status == EL_OK) status = show(begun ? recall(options, begun) : options, run, options->dir);
    free(begun);
    json_decref(run);
    return status == EL_OK ? el_exit_flush(0) : el_exit_failed(status);
}

static enum el_status prepare(const struct el_options *asked, struct el_options *options)
{
    struct el_cores cores;
    struct el_device_name last = {.index = 0};
    el_cores_find("", &cores);
    EL_TRY(el_scale_options(asked, cores.n, el_device_gpus(), options));
    memcpy(last.backend, options->counts_backend, sizeof last.backend);
    last.index = options->counts[options->n_counts - 1] - 1;
    return el_devices_check(&last, 1);
}

static int measure(const struct el_options *options)
{
    struct el_campaign campaign;
    char headline[96];
    el_runner_catch_signals();
    enum el_status status = el_campaign_continue(&campaign, EL_CMD_SCALE, options);
    if (status != EL_OK) return el_exit_failed(status);
    snprintf(headline, sizeof headline, "%d trials, %d launches each, in turns", campaign.set.n, options->repeats);
    status = el_campaign_measure(&campaign, true, headline);
    int exit_status = status == EL_OK ? 0 : el_exit_failed(status);
    if (el_runner_interrupted()) {
        el_campaign_say_interrupted(&campaign, "the same command and --out");
        exit_status = EL_EXIT_INTERRUPTED;
    } else if (status == EL_OK) {
        status = show(options, campaign.run, campaign.store.dir);
        exit_status = status == EL_OK ? el_campaign_exit_status(&campaign) : el_exit_failed(status);
        if (campaign.lack[0]) fprintf(stderr, "evenload: %s\n", campaign.lack);
        exit_status = el_exit_flush(exit_status);
    }
    el_campaign_end(&campaign);
    return exit_status;
}

int el_cmd_scale(const struct el_options *asked, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (asked->dir[0]) return report(asked);
    struct el_options *options = malloc(sizeof *options);
    if (!options) return el_exit_failed(el_fail_errno("options"));
    enum el_status status = prepare(asked, options);
    int exit_status = status == EL_OK ? measure(options) : el_exit_failed(status);
    free(options);
    return exit_status;
}
