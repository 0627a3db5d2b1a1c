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

/* The baseline is 0 workers. */
static void add_none(struct el_options *options)
{
    struct el_number_list *list = &options->workers;
    if (list->n > 0 && list->v[0] == 0) return;
    int n = list->n < EL_LIST_MAX ? list->n : EL_LIST_MAX - 1;
    memmove(list->v + 1, list->v, (size_t)n * sizeof *list->v);
    list->v[0] = 0;
    list->n = n + 1;
}

/* Cold rows only if the page cache can be dropped. */
static enum el_status check_cache(struct el_options *options)
{
    if (options->page_cache == EL_CACHE_WARM) return EL_OK;
    if (!options->in_files) {
        if (options->page_cache == EL_CACHE_COLD)
            return el_fail(EL_ERR_INVALID, "--data-in cache=cold: with --data-in memory a step reads nothing");
        options->page_cache = EL_CACHE_WARM;
        return EL_OK;
    }
    enum el_status status = el_page_cache_drops(options->data);
    if (status != EL_ERR_ABSENT || options->page_cache == EL_CACHE_COLD) return status;
    fprintf(stderr, "evenload: only a warm page cache is measured: %s\n", el_error_message());
    options->page_cache = EL_CACHE_WARM;
    return EL_OK;
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
    if (status == EL_OK) {
        add_none(options);
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
