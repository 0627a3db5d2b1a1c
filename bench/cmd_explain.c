/* `evenload explain`: where the time goes from dp's step to ddp's. */
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/explain/explain.h"
#include "bench/plot/plot.h"

static enum el_status show(const struct el_options *options, const struct el_store *store, const json_t *document)
{
    static const struct el_figure *const figure = &el_figure_explain;
    char path[EL_PATH_BYTES];
    FILE *messages = options->json ? NULL : stdout;
    el_store_path(store, path, "explain.json");
    EL_TRY(el_write_json(document, path));
    if (options->json) {
        EL_TRY(el_print_json(document, stdout));
    } else {
        el_explain_print(document, stdout);
        printf("\n");
        el_text_line(stdout, "%s", path);
    }
    el_say_not_drawn(el_plot_figures(&figure, 1, document, store->dir, messages), messages);
    if (!options->json)
        printf("\nNext: %s compare --modes dp,ddp    (memory and communication of both)\n", el_program_word());
    return EL_OK;
}

/* Nothing was measured to its end, and nothing can go on with the rest: the folder may be used again. */
static void forget(const struct el_store *store)
{
    char path[EL_PATH_BYTES];
    el_store_path(store, path, "command.json");
    if (store->locked) unlink(path);
    el_store_discard(store);
}

static enum el_status measure(const struct el_options *options, const struct el_trial_set *set, int *exit_status_p)
{
    struct el_store store = {.locked = false};
    json_t *samples = NULL, *echo = el_options_echo(EL_CMD_EXPLAIN, options);
    el_runner_catch_signals();
    enum el_status status = el_store_create(options->out, "explain", &store);
    if (status == EL_OK) status = el_store_save_command(&store, "explain", echo);
    json_decref(echo);
    if (status == EL_OK) status = el_explain_measure(options, set, &store, &samples);
    if (!samples) forget(&store);
    if (status == EL_OK && !samples) *exit_status_p = el_exit_interrupted();
    if (status == EL_OK && samples) {
        json_t *document = el_explain_document(&set->trials[0], samples);
        status = document ? show(options, &store, document) : el_fail_errno("what explains dp's step");
        json_decref(document);
    }
    json_decref(samples);
    return status;
}

enum el_status el_cmd_explain(struct el_options *options, int *exit_status_p)
{
    struct el_trial_set set;
    EL_TRY(el_explain_resolve(options, &set));
    enum el_status status = measure(options, &set, exit_status_p);
    el_trials_free(&set);
    return status;
}
