/* `evenload baseline add|show|accept`: past runs of this machine, for `evenload regress --baseline` to compare with. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/runner.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "bench/regress/baseline.h"
#include "bench/regress/figure.h"
#include "bench/regress/launching.h"

enum action { ACTION_ADD, ACTION_SHOW, ACTION_ACCEPT, N_ACTIONS };

static const char *const actions[N_ACTIONS + 1] = {"add", "show", "accept", NULL};

static enum el_status check_from(const struct el_options *options)
{
    static const char *const names[] = {"launches", "name", "prepare",    "metric", "higher", "exact",
                                        "timeout",  "out",  "export-csv", "quiet",  NULL};
    for (size_t i = 0; names[i] && !options->regress.from[0]; i++)
        if (el_option_given(options, names[i]))
            return el_fail(EL_ERR_INVALID, "--%s is for --from 'COMMAND'", names[i]);
    return EL_OK;
}

static enum el_status find_action(const struct el_options *options, enum action *action_p)
{
    const char *word = options->action[0] ? options->action : actions[ACTION_SHOW];
    for (int i = 0; i < N_ACTIONS; i++) {
        if (strcmp(actions[i], word) != 0) continue;
        bool from = options->regress.from[0];
        if (i != ACTION_SHOW && !options->dir[0] && !from)
            return el_fail(EL_ERR_INVALID, "baseline %s: which run? give its folder: evenload baseline %s results/...",
                           word, word);
        if (from && (i == ACTION_SHOW || options->dir[0]))
            return el_fail(EL_ERR_INVALID, "--from 'COMMAND' is for 'baseline add' without a run's folder");
        *action_p = (enum action)i;
        return check_from(options);
    }
    return el_fail_unknown("action", word, actions);
}

/* Launches the program, so that there is a run's folder to add: DIR/program.json. */
static enum el_status launch(const struct el_options *options, struct el_store *store)
{
    struct el_regress_set set = {0};
    struct el_regress_launching launching;
    EL_TRY(el_store_create(options->out, "program", store));
    el_launching_begin(options, &launching);
    enum el_status status = el_launching_program(&launching, options, store->dir, &set);
    el_regress_free(&set);
    return status;
}

static int add(const struct el_options *options, bool accept)
{
    struct el_store store = {0};
    bool from = options->regress.from[0];
    enum el_status status = from ? launch(options, &store) : EL_OK;
    bool interrupted = from && el_runner_interrupted();
    if (status == EL_OK && !interrupted)
        status = el_baseline_add(options->store, from ? store.dir : options->dir, accept, options->force, stderr);
    if (from) el_store_discard(&store);
    if (interrupted) fprintf(stderr, "evenload: interrupted: nothing was added\n");
    return status != EL_OK ? el_exit_failed(status) : interrupted ? EL_EXIT_INTERRUPTED : 0;
}

/* What there is to do next: first what is odd, then what is missing. */
static void put_next(const struct el_options *options, const json_t *document, FILE *out)
{
    const char *program = program_invocation_name, *last = NULL;
    const json_t *machines = json_object_get(document, "machines");
    const bool elsewhere = strcmp(options->store, EL_BASELINE_STORE) != 0;
    char word[EL_WORD_BYTES], store[EL_WORD_BYTES];
    double needs = 0;
    for (size_t m = 0; m < json_array_size(machines); m++) {
        const json_t *workloads = json_object_get(json_array_get(machines, m), "workloads");
        for (size_t w = 0; w < json_array_size(workloads); w++) {
            const json_t *workload = json_array_get(workloads, w);
            json_t *figures = json_object_get(workload, "figures");
            for (void *at = json_object_iter(figures); at; at = json_object_iter_next(figures, at)) {
                const json_t *figure = json_object_iter_value(at);
                if (!el_figure_leads(workload, json_object_iter_key(at))) continue;
                if (json_is_true(json_object_get(figure, "last_is_outlier")))
                    last = el_json_text(workload, "last.dir", "DIR");
                needs = fmax(needs, el_json_number(figure, "sessions_needed"));
            }
        }
    }
    el_shell_word(options->store, store, sizeof store);
    fprintf(out, "\n");
    if (last)
        el_text_line(out, "Next: %s baseline accept %s%s%s    (if the new level is right)", program,
                     el_shell_word(last, word, sizeof word), elsewhere ? " --store " : "", elsewhere ? store : "");
    else if (needs > 0)
        el_text_line(out,
                     "Next: %s regress --baseline %s --current DIR --add    (%.0f more session%s before it can judge)",
                     program, store, needs, needs == 1 ? "" : "s");
    else
        el_text_line(out, "Next: %s regress --baseline %s --current DIR", program, store);
}

static enum el_status show(const struct el_options *options, FILE *notes)
{
    json_t *document = NULL;
    EL_TRY(el_baseline_describe(options->store, options->dir, notes, &document));
    enum el_status status = EL_OK;
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the store's document");
    if (options->json) {
        status = el_print_json(document, stdout);
    } else {
        el_baseline_print(document, stdout);
        put_next(options, document, stdout);
    }
    json_decref(document);
    return status;
}

int el_cmd_baseline(const struct el_options *options, int argc, char **argv)
{
    (void)argc, (void)argv;
    enum action action = ACTION_SHOW;
    enum el_status status = find_action(options, &action);
    FILE *notes = status == EL_OK && action != ACTION_SHOW ? NULL : stderr;
    int failed = status == EL_OK && action != ACTION_SHOW ? add(options, action == ACTION_ACCEPT) : 0;
    if (failed) return failed;
    if (status == EL_OK) status = show(options, notes);
    if (status == EL_OK) return el_exit_flush(0);
    int exit_status = el_exit_failed(status);
    return status == EL_ERR_ABSENT ? EL_REGRESS_NO_BASELINE : exit_status;
}
