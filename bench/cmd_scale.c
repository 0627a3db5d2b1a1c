/* `evenload scale`: what more devices bring. All counts and modes are trials of one campaign, in turns; with the folder
 * of an earlier one it measures what is missing, and as `evenload scale DIR` it only reads. */
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/machine/cores.h"
#include "bench/plot/plot.h"
#include "bench/scale/scale.h"
#include "bench/trial/default_devices.h"

/* The mode that sums by buckets, alone, with these sizes. False: what was asked for is not known, or is of one device.
 */
static bool with_buckets(const struct el_options *asked, const double *sizes_mib, int n, struct el_options *next)
{
    *next = *asked;
    snprintf(next->modes[0], sizeof next->modes[0], "%s", el_mode_with("bucket-mb")->name);
    next->n_modes = 1;
    memcpy(next->bucket_mib, sizes_mib, sizeof *sizes_mib * (size_t)n);
    next->n_buckets = n;
    return asked->n_counts > 0 && asked->counts[asked->n_counts - 1] > 1;
}

/* The same trials with the size of buckets as a sweep. */
static bool print_sweep(const struct el_options *asked)
{
    static const double sizes_mib[] = {1, 5, 25, 100};
    struct el_options next;
    char note[64];
    snprintf(note, sizeof note, "    (%s's buckets)", el_mode_with("bucket-mb")->name);
    return with_buckets(asked, sizes_mib, sizeof sizes_mib / sizeof sizes_mib[0], &next) &&
           el_say_next(EL_CMD_SCALE, &next, note);
}

/* The recommended buckets on the most devices. */
static bool print_best(const struct el_options *asked, double best_mib)
{
    struct el_options next;
    if (!with_buckets(asked, &best_mib, 1, &next)) return false;
    next.n_devices = asked->counts[asked->n_counts - 1];
    for (int i = 0; i < next.n_devices; i++) {
        next.devices[i].index = i;
        memcpy(next.devices[i].backend, asked->counts_backend, sizeof next.devices[i].backend);
    }
    return el_say_next(EL_CMD_COMPARE, &next, "");
}

static void print_next(const json_t *document, const struct el_options *options, const char *dir)
{
    const char *program = el_program_word();
    char word[EL_WORD_BYTES];
    double best = el_json_number(document, "buckets.recommended_mib");
    bool swept = json_is_object(json_object_get(document, "buckets"));
    if (best > 0 && print_best(options, best)) return;
    if (best > 0)
        printf("Next: %s compare --modes %s --bucket-mb %g\n", program, el_mode_with("bucket-mb")->name, best);
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

/* From records alone; what comes next as the folder was begun, where that can be read. */
static enum el_status report(struct el_options *options)
{
    struct el_options begun;
    char dir[EL_PATH_BYTES];
    json_t *run;
    EL_TRY(el_read_records("scale", options, &run));
    bool json = options->json, known = el_recall_command(EL_CMD_SCALE, "scale", options->dir, &begun) == EL_OK;
    memcpy(dir, options->dir, sizeof dir);
    if (known) *options = begun;
    options->json = json;
    enum el_status status = show(options, run, dir);
    json_decref(run);
    return status;
}

static enum el_status show_campaign(struct el_campaign *c)
{
    return show(c->options, c->run, c->store.dir);
}

static enum el_status prepare(struct el_options *options)
{
    struct el_options asked = *options;
    struct el_cores cores;
    struct el_device_name last = {.index = 0};
    el_cores_find("", &cores);
    EL_TRY(el_scale_options(&asked, cores.n, el_device_gpus(), options));
    memcpy(last.backend, options->counts_backend, sizeof last.backend);
    last.index = options->counts[options->n_counts - 1] - 1;
    return el_devices_check(&last, 1);
}

enum el_status el_cmd_scale(struct el_options *options, int *exit_status_p)
{
    struct el_campaign campaign;
    char headline[96];
    if (options->dir[0]) return report(options);
    EL_TRY(prepare(options));
    el_runner_catch_signals();
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_SCALE, options));
    snprintf(headline, sizeof headline, "%d trials, %d launches each, in turns", campaign.set.n, options->repeats);
    enum el_status status = el_campaign_measure(&campaign, true, headline);
    return el_end_campaign(&campaign, status, "the same command and --out", show_campaign, exit_status_p);
}
