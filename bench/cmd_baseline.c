/* `evenload baseline add|show|accept`: past runs of this machine, for `evenload regress --baseline` to compare with. */
#include <errno.h>
#include <string.h>

#include "bench/commands.h"
#include "bench/record/jvalue.h"
#include "bench/record/record.h"
#include "bench/regress/baseline.h"
#include "bench/regress/session.h"

enum action { ACTION_ADD, ACTION_SHOW, ACTION_ACCEPT, N_ACTIONS };

static const char *const actions[N_ACTIONS + 1] = {"add", "show", "accept", NULL};

static enum el_status find_action(const struct el_options *options, enum action *action_p)
{
    const char *word = options->action[0] ? options->action : actions[ACTION_SHOW];
    for (int i = 0; i < N_ACTIONS; i++) {
        if (strcmp(actions[i], word) != 0) continue;
        if (i != ACTION_SHOW && !options->dir[0])
            return el_fail(EL_ERR_INVALID, "baseline %s: which run? give its folder: evenload baseline %s results/...",
                           word, word);
        *action_p = (enum action)i;
        return EL_OK;
    }
    return el_fail_unknown("action", word, actions);
}

/* What there is to do next: first what is odd, then what is missing. */
static void put_next(const struct el_options *options, const json_t *document, FILE *out)
{
    const char *program = program_invocation_name, *last = NULL;
    const json_t *machines = json_object_get(document, "machines");
    const bool elsewhere = strcmp(options->store, EL_BASELINE_STORE) != 0;
    double needs = 0;
    for (size_t m = 0; m < json_array_size(machines); m++) {
        const json_t *workloads = json_object_get(json_array_get(machines, m), "workloads");
        for (size_t w = 0; w < json_array_size(workloads); w++) {
            const json_t *workload = json_array_get(workloads, w);
            const json_t *figure = json_object_get(json_object_get(workload, "figures"), el_session_timed()[0]);
            if (json_is_true(json_object_get(figure, "last_far"))) last = el_json_text(workload, "last.dir", "DIR");
            if (el_json_number(figure, "needs") > needs) needs = el_json_number(figure, "needs");
        }
    }
    fprintf(out, "\nNext: %s ", program);
    if (last)
        fprintf(out, "baseline accept %s%s%s    (if the new level is right)\n", last, elsewhere ? " --store " : "",
                elsewhere ? options->store : "");
    else if (needs > 0)
        fprintf(out, "compare    (then 'baseline add': %.0f more before it can tell)\n", needs);
    else
        fprintf(out, "regress --baseline %s --current DIR\n", options->store);
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
    if (status == EL_OK && action != ACTION_SHOW)
        status = el_baseline_add(options->store, options->dir, action == ACTION_ACCEPT, options->force, stderr);
    if (status == EL_OK) status = show(options, notes);
    if (status == EL_OK) return el_exit_flush(0);
    int exit_status = el_exit_failed(status);
    return status == EL_ERR_ABSENT ? EL_REGRESS_NO_BASELINE : exit_status;
}
