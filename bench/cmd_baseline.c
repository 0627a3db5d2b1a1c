/* `evenload baseline add|show|accept`: past runs of this machine for `evenload regress --baseline`. */
#include <string.h>

#include "bench/base/io.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/regress/answer.h"
#include "bench/regress/history.h"
#include "bench/regress/launches.h"
#include "bench/regress/store.h"

enum action { ACTION_ADD, ACTION_SHOW, ACTION_ACCEPT, N_ACTIONS };

static const char *const actions[N_ACTIONS + 1] = {"add", "show", "accept", NULL};

static enum el_status find_action(const struct el_options *options, enum action *action_p)
{
    static const char *const of_from[] = {"launches", "name",    "prepare", "metric", "higher", "lower",
                                          "exact",    "timeout", "out",     "quiet",  NULL};
    const char *word = options->action[0] ? options->action : actions[ACTION_SHOW];
    for (int i = 0; i < N_ACTIONS; i++) {
        if (strcmp(actions[i], word) != 0) continue;
        bool from = options->regress.from[0];
        if (i != ACTION_SHOW && !options->dir[0] && !from)
            return el_fail(EL_ERR_INVALID, "baseline %s: which run? give its folder: evenload baseline %s results/...",
                           word, word);
        if (from && (i == ACTION_SHOW || options->dir[0]))
            return el_fail(EL_ERR_INVALID, "--from 'COMMAND' is for 'baseline add' without a run's folder");
        if (i == ACTION_SHOW && options->dir[0])
            return el_fail(EL_ERR_INVALID, "baseline show takes no folder: it shows the store; another is --store DIR");
        if (options->draw && i != ACTION_SHOW) return el_fail(EL_ERR_INVALID, "--plot is for 'baseline show'");
        for (int k = 0; of_from[k] && !from; k++)
            if (el_option_given(options, of_from[k]) && !(options->draw && !strcmp(of_from[k], "out")))
                return el_fail(EL_ERR_INVALID, "--%s is for --from 'COMMAND'%s", of_from[k],
                               strcmp(of_from[k], "out") ? "" : ", and for --plot");
        *action_p = (enum action)i;
        return EL_OK;
    }
    return el_fail_unknown("action", word, actions);
}

static enum el_status add(const struct el_options *options, bool accept, int *exit_status_p)
{
    struct el_store store = {0};
    struct el_regress_set set = {0};
    bool from = options->regress.from[0];
    enum el_status status = from ? el_store_create(options->out, "program", &store) : EL_OK;
    if (status == EL_OK && from) status = el_launching_from(options, store.dir, &set); /* makes a run's folder */
    el_answer_unjudged(set.unjudged, stderr);
    el_regress_free(&set);
    bool interrupted = from && el_runner_interrupted();
    if (status == EL_OK && !interrupted)
        status = el_baseline_add(options->store, from ? store.dir : options->dir, accept, options->force);
    if (from) el_store_discard(&store);
    if (interrupted) fprintf(stderr, "evenload: interrupted: nothing was added\n");
    if (interrupted && status == EL_OK) *exit_status_p = EL_EXIT_INTERRUPTED;
    if (status == EL_ERR_TIMEOUT) *exit_status_p = EL_EXIT_USE; /* like a failing program */
    return status;
}

static enum el_status draw(const struct el_options *options, const json_t *document)
{
    static const struct el_figure *const figure = &el_figure_baseline;
    const char *dir = options->out[0] ? options->out : options->store;
    FILE *messages = options->json ? NULL : stdout;
    enum el_status status = el_plot_figures(&figure, 1, document, dir, messages);
    if (status != EL_ERR_ABSENT) return status;
    el_say_not_drawn(status, messages);
    return EL_OK;
}

static enum el_status show(const struct el_options *options)
{
    json_t *document = NULL;
    EL_TRY(el_baseline_describe(options->store, &document));
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the store's document");
    bool makes = options->draw && options->out[0];
    enum el_status status = makes ? el_folder_make(options->out, "give another --out") : EL_OK;
    if (status == EL_OK && options->json)
        status = el_print_json(document, stdout);
    else if (status == EL_OK)
        el_baseline_print(document, stdout);
    if (status == EL_OK && options->draw) status = draw(options, document);
    json_decref(document);
    return status;
}

enum el_status el_cmd_baseline(struct el_options *options, int *exit_status_p)
{
    enum action action = ACTION_SHOW;
    EL_TRY(find_action(options, &action));
    bool adds = action != ACTION_SHOW;
    if (adds) EL_TRY(add(options, action == ACTION_ACCEPT, exit_status_p));
    enum el_status status = *exit_status_p ? EL_OK : show(options);
    if (status == EL_ERR_ABSENT) *exit_status_p = EL_REGRESS_NO_BASELINE;
    return status;
}
