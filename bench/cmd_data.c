/* `evenload data`: all numbers of workers are trials of one campaign, in turns. */
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/campaign/store.h"
#include "bench/commands.h"
#include "bench/data/data.h"
#include "bench/plot/plot.h"
#include "bench/report/report.h"

static enum el_status show(struct el_campaign *c)
{
    static const struct el_figure *const figure = &el_figure_loading;
    FILE *messages = c->options->json ? NULL : stdout;
    char path[EL_PATH_BYTES], word[EL_WORD_BYTES];
    json_t *document = NULL;
    EL_TRY(el_loading_document(c, &document));
    el_store_path(&c->store, path, "data.json");
    enum el_status status = el_write_json(document, path);
    if (status == EL_OK && c->options->json) status = el_print_json(document, stdout);
    if (status == EL_OK && messages) {
        el_loading_print(document, messages);
        el_report_warnings(c->trials, "", messages);
        fputc('\n', messages);
        el_text_line(messages, "%s", path);
    }
    if (status == EL_OK) el_say_not_drawn(el_plot_figures(&figure, 1, document, c->store.dir, messages), messages);
    if (status == EL_OK && messages) {
        fputc('\n', messages);
        el_text_line(messages, "Next: %s report %s", el_program_word(), el_shell_word(c->store.dir, word, sizeof word));
    }
    json_decref(document);
    return status;
}

static enum el_status use_files(struct el_options *options, struct el_data_files *files_p)
{
    if (options->in_files && strcmp(options->data, "dummy") == 0)
        return el_fail(EL_ERR_INVALID, "--data dummy: nothing lies in files, so there is nothing to load: take "
                                       "--data synthetic, or a file or folder of your own");
    if (!options->in_files || strcmp(options->data, "synthetic")) return EL_OK;
    EL_TRY(el_data_files_write(options, files_p));
    memcpy(options->data, files_p->train, sizeof files_p->train);
    return EL_OK;
}

static enum el_status take(const char *name, const char *text, struct el_options *options)
{
    return el_option_take(EL_CMD_DATA, el_option_of_command(EL_CMD_DATA, name), text, options);
}

/* Numbers of workers rise, from the baseline of 0 on. */
static enum el_status order_workers(struct el_options *options)
{
    const char *given = el_option_list(options, "workers");
    char text[EL_LIST_BYTES] = "0", one[16];
    bool seen[EL_WORKERS_MAX + 1] = {false};
    snprintf(one, sizeof one, "%d", options->train.loading.workers);
    for (const char *at = given ? given : one; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        seen[strtol(at, NULL, 10)] = true;
    for (int n = 1; n <= EL_WORKERS_MAX; n++)
        if (seen[n]) el_text_append(text, sizeof text, ",%d", n);
    return take("workers", text, options);
}

/* Cold rows only if the page cache can be dropped. */
static enum el_status check_cache(struct el_options *options)
{
    const bool both = el_option_list(options, "page-cache") != NULL;
    if (!both && !options->train.loading.cold) return EL_OK;
    if (!options->in_files && !both)
        return el_fail(EL_ERR_INVALID, "--data-in cache=cold: with --data-in memory a step reads nothing");
    enum el_status status = options->in_files ? el_page_cache_drops(options->data) : EL_ERR_ABSENT;
    if (status != EL_ERR_ABSENT || !both) return status;
    if (options->in_files) fprintf(stderr, "evenload: only a warm page cache is measured: %s\n", el_error_message());
    return take("page-cache", "warm", options);
}

enum el_status el_cmd_data(struct el_options *options, int *exit_status_p)
{
    struct el_campaign campaign;
    struct el_data_files files = {.existing = 0};
    char headline[96];
    if (options->n_devices && el_backend_facts(options->devices[0].backend).simulated)
        return el_fail(EL_ERR_INVALID, "data: simulated devices load nothing: give cpu, null or cuda devices");
    EL_TRY(use_files(options, &files));
    enum el_status status = check_cache(options);
    if (status == EL_OK) status = order_workers(options);
    if (status == EL_OK) {
        el_runner_catch_signals();
        status = el_campaign_begin(&campaign, EL_CMD_DATA, options);
    }
    if (status != EL_OK) {
        el_data_files_take_back(&files);
        return status;
    }
    snprintf(headline, sizeof headline, "%d trials, %d launch%s each, in turns", campaign.set.n, options->repeats,
             options->repeats == 1 ? "" : "es");
    status = el_campaign_measure(&campaign, false, headline);
    return el_end_campaign(&campaign, status, "the same command and --out", show, exit_status_p);
}
