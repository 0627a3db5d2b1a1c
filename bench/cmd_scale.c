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
#include "bench/scale/scale.h"
#include "bench/trial/default_devices.h"

/* The mode that sums by buckets, alone, with these sizes; NULL: what was asked for is not known, or is of one device.
 */
static struct el_options *with_buckets(const struct el_options *asked, const double *sizes_mib, int n)
{
    bool several = asked->n_counts > 0 && asked->counts[asked->n_counts - 1] > 1;
    struct el_options *next = several ? el_options_copy(asked) : NULL;
    if (!next) return NULL;
    snprintf(next->modes[0], sizeof next->modes[0], "%s", el_mode_with("bucket-mb")->name);
    next->n_modes = 1;
    for (int i = 0; i < n; i++) next->bucket_mib[i] = sizes_mib[i];
    next->n_buckets = n;
    return next;
}

/* The same trials with the size of buckets as a sweep. */
static bool print_sweep(const struct el_options *asked)
{
    static const double sizes_mib[] = {1, 5, 25, 100};
    char note[64];
    snprintf(note, sizeof note, "    (%s's buckets)", el_mode_with("bucket-mb")->name);
    return el_say_next(EL_CMD_SCALE, with_buckets(asked, sizes_mib, sizeof sizes_mib / sizeof sizes_mib[0]), note);
}

/* The recommended buckets on the most devices. */
static bool print_best(const struct el_options *asked, double best_mib)
{
    struct el_options *next = with_buckets(asked, &best_mib, 1);
    if (!next) return false;
    next->n_devices = asked->counts[asked->n_counts - 1];
    for (int i = 0; i < next->n_devices; i++) {
        next->devices[i].index = i;
        memcpy(next->devices[i].backend, asked->counts_backend, sizeof next->devices[i].backend);
    }
    return el_say_next(EL_CMD_COMPARE, next, "");
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

/* What the folder was begun with, where that can be read; else as given. */
static const struct el_options *recall(const struct el_options *given, struct el_options *begun)
{
    if (el_recall_command(EL_CMD_SCALE, "scale", given->dir, begun) != EL_OK) return given;
    begun->json = given->json;
    return begun;
}

/* From records alone. */
static int report(const struct el_options *options)
{
    json_t *run = NULL;
    enum el_status status = el_read_records("scale", options, &run);
    struct el_options *begun = status == EL_OK ? el_options_copy(options) : NULL;
    if (status == EL_OK) status = begun ? show(recall(options, begun), run, options->dir) : EL_ERR_HOST_MEMORY;
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

static enum el_status show_campaign(const struct el_campaign *c)
{
    return show(c->options, c->run, c->store.dir);
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
    return el_end_campaign(&campaign, status, "the same command and --out", show_campaign);
}

int el_cmd_scale(const struct el_options *asked, int argc, char **argv)
{
    (void)argc, (void)argv;
    if (asked->dir[0]) return report(asked);
    struct el_options *options = el_options_copy(asked);
    if (!options) return el_exit_failed(EL_ERR_HOST_MEMORY);
    enum el_status status = prepare(asked, options);
    int exit_status = status == EL_OK ? measure(options) : el_exit_failed(status);
    free(options);
    return exit_status;
}
