/* `evenload compare`: gate, all trials in turns, tables and sentences. */
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/trial.h"
#include "runtime/launch/launch.h"

static void print_next(const struct el_campaign *c)
{
    char word[EL_WORD_BYTES];
    bool several = false;
    for (int t = 0; t < c->set.n; t++) several = several || c->set.trials[t].n_devices > 1;
    printf("\n");
    el_text_line(stdout, "Next: %s %s %s%s", el_program_word(), several ? "imbalance" : "plot",
                 el_shell_word(c->store.dir, word, sizeof word), several ? "    (device by device)" : " --term");
}

/* Of the same model and data (scripts/peer-torch). */
static enum el_status read_peer(const struct el_options *options, json_t **trials_p)
{
    char path[EL_PATH_BYTES + 16];
    json_t *run = NULL, *trials;
    snprintf(path, sizeof path, "%s/results.json", options->peer);
    *trials_p = NULL;
    if (!options->peer[0]) return EL_OK;
    EL_TRY(el_record_read(path, &run));
    enum el_status status = EL_OK;
    trials = json_object_get(run, "trials");
    for (size_t i = 0; i < json_array_size(trials) && status == EL_OK; i++) {
        const json_t *trial = json_array_get(trials, i);
        const char *model = el_json_text(trial, "model", "?"), *data = el_json_text(trial, "config.data", "?");
        if (strcmp(model, options->train.model.name) || strcmp(data, options->data))
            status = el_fail(EL_ERR_INVALID,
                             "--peer %s: it trained %s on --data %s: give the same --model and --data, so that times "
                             "can be compared",
                             options->peer, model, data);
    }
    if (status == EL_OK) *trials_p = json_incref(trials);
    json_decref(run);
    return status;
}

static enum el_status print_tables(const struct el_campaign *c)
{
    json_t *peer, *shown = json_copy(c->run), *trials = json_copy(json_object_get(c->run, "trials"));
    enum el_status status = read_peer(c->options, &peer);
    json_array_extend(trials, peer);
    json_object_set_new(shown, "trials", trials);
    if (status == EL_OK) el_report_tables(shown, stdout);
    json_decref(shown);
    json_decref(peer);
    return status;
}

static enum el_status show(struct el_campaign *c)
{
    const struct el_options *options = c->options;
    if (options->json) {
        EL_TRY(el_print_json(c->run, stdout));
        el_say_not_drawn(el_plot_run(c->store.dir, NULL, NULL), NULL);
        return EL_OK;
    }
    EL_TRY(print_tables(c));
    printf("\n");
    el_report_sentences(c->run, stdout);
    printf("\n");
    el_text_line(stdout, "%s/results.json", c->store.dir);
    el_text_line(stdout, "%s/trials.csv", c->store.dir);
    el_say_not_drawn(el_plot_run(c->store.dir, &options->look, stdout), stdout);
    print_next(c);
    return EL_OK;
}

static enum el_status compare(const struct el_options *options, int *exit_status_p)
{
    struct el_campaign campaign;
    json_t *peer;
    EL_TRY(el_devices_check(options->devices, options->n_devices));
    EL_TRY(read_peer(options, &peer)); /* before two minutes of measuring */
    json_decref(peer);
    el_runner_catch_signals();
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_COMPARE, options));
    enum el_status status = el_campaign_measure(&campaign, true, el_dataset_info(campaign.set.dataset)->description);
    return el_end_campaign(&campaign, status, "the same command and --out", show, exit_status_p);
}

enum el_status el_cmd_compare(struct el_options *options, int *exit_status_p)
{
    struct el_launch_place place;
    if (options->launch == EL_LAUNCH_RANK)
        return el_fail(EL_ERR_INVALID, "--launcher rank is for 'run': 'compare' starts its own processes");
    if (options->launch == EL_LAUNCH_SELF) return compare(options, exit_status_p);
    EL_TRY(el_launch_environment(el_launch_getenv, NULL, &place));
    if (place.is_rank && place.rank > 0) {
        fprintf(stderr, "evenload compare: rank %d leaves: it starts its own processes, from rank 0\n", place.rank);
        return EL_OK;
    }
    if (place.is_rank) setenv("NO_COLOR", "1", 1); /* mpirun gives its ranks a terminal, wherever its output goes */
    return compare(options, exit_status_p);
}
