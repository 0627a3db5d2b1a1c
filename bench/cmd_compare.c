/* `evenload compare`: gate, then all trials in turns, each repeat in fresh processes, then what a person wants to see.
 * What was measured is on disk after every repeat, so that Ctrl-C, a crash or a full disk costs what is in progress
 * only. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/campaign/campaign.h"
#include "bench/campaign/gate.h"
#include "bench/campaign/plan.h"
#include "bench/commands.h"
#include "bench/options/devices.h"
#include "bench/plot/plot.h"
#include "bench/record/jvalue.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "runtime/launch/launch.h"

/* A resumed run has the options it was begun with; those given now come on top. */
static enum el_status read_resumed(int argc, char **argv, struct el_options *options)
{
    struct el_store store;
    json_t *echo;
    char dir[EL_PATH_BYTES];
    memcpy(dir, options->dir[0] ? options->dir : options->out, sizeof dir);
    if (!dir[0])
        return el_fail(EL_ERR_INVALID, "--resume: which run? give its folder: evenload compare --resume --out DIR");
    EL_TRY(el_store_open(dir, &store));
    EL_TRY(el_store_load_command(&store, &echo));
    el_options_defaults(EL_CMD_COMPARE, options);
    enum el_status status = EL_OK;
    for (const struct el_option_row *row = el_option_rows(); row->name && status == EL_OK; row++) {
        const char *text = json_string_value(json_object_get(echo, row->name));
        if (text && (row->commands & EL_CMD_COMPARE)) status = el_option_set(row, text, options);
    }
    json_decref(echo);
    EL_TRY(status);
    EL_TRY(el_options_parse(EL_CMD_COMPARE, argc, argv, options));
    memcpy(options->out, dir, sizeof dir);
    options->resume = true;
    return EL_OK;
}

/* What an earlier command measured. Failures are tried again. */
static void load_repeats(struct el_campaign *c)
{
    for (int t = 0; t < c->set.n; t++)
        for (int r = 0; r < c->options->repeats; r++) {
            json_t *repeat = el_store_load_repeat(&c->store, &c->set.trials[t], r);
            const char *status = el_json_text(repeat, "status", "failed");
            if (!strcmp(status, "ok") || !strcmp(status, "oom"))
                *el_campaign_repeat(c, t, r) = repeat;
            else
                json_decref(repeat);
        }
}

/* A row without a launch: refused by the gate, or a library is missing. */
static json_t *without_launch(const struct el_campaign *c, const struct el_plan_entry *entry, const char *lack)
{
    const struct el_trial *trial = &c->set.trials[entry->trial];
    const char *refusal = el_gate_refusal(c, trial);
    if (lack && trial->procs > 1) return el_record_failed_repeat(trial, entry->repeat, entry->order, "absent", lack);
    if (!refusal) return NULL;
    return el_record_failed_repeat(trial, entry->repeat, entry->order, "failed", refusal);
}

static enum el_status measure_one(struct el_campaign *c, const struct el_runner *runner, struct el_progress *progress,
                                  const struct el_plan_entry *entry, const char *lack)
{
    const struct el_trial *trial = &c->set.trials[entry->trial];
    if (*el_campaign_repeat(c, entry->trial, entry->repeat)) {
        el_progress_skip(progress);
        return EL_OK;
    }
    json_t *document = without_launch(c, entry, lack);
    if (document) {
        el_progress_skip(progress);
        EL_TRY(el_store_save_repeat(&c->store, trial, entry->repeat, document));
    } else {
        el_progress_begin(progress, trial, entry->repeat);
        enum el_status status = el_runner_measure(runner, trial, entry->repeat, entry->order, &document);
        el_progress_end(progress, document);
        EL_TRY(status);
    }
    return document ? el_campaign_take(c, entry->trial, entry->repeat, document) : EL_OK;
}

static enum el_status measure(struct el_campaign *c, const char *lack)
{
    struct el_runner runner;
    struct el_progress progress;
    struct el_plan plan;
    EL_TRY(el_runner_init(&runner, &c->store));
    EL_TRY(el_plan_make(c->set.n, c->options->repeats, c->options->train.seed, &plan));
    el_runner_catch_signals();
    el_progress_init(&progress, plan.n, c->options->quiet);
    runner.tick = el_progress_tick;
    runner.context = &progress;
    el_progress_say(&progress, "%s; results go to %s", el_dataset_describe(c->set.dataset), c->store.dir);
    if (lack) el_progress_say(&progress, "%s", lack);
    el_progress_phase(&progress, "comparing the modes' first steps with the reference");
    enum el_status status = el_gate_run(c, &runner, &progress);
    el_progress_start(&progress);
    for (int i = 0; i < plan.n && status == EL_OK && !el_runner_interrupted(); i++)
        status = measure_one(c, &runner, &progress, &plan.entries[i], lack);
    if (status == EL_OK) status = el_campaign_write(c);
    el_plan_free(&plan);
    return status;
}

static enum el_status show(const struct el_campaign *c, bool colour)
{
    const struct el_options *options = c->options;
    if (options->json) {
        EL_TRY(el_print_json(c->run, stdout));
        return el_plot_run(c->store.dir, false, NULL);
    }
    el_report_table(c->run, stdout, colour);
    el_report_steps(c->run, stdout, colour);
    el_report_processes(c->run, stdout, colour);
    printf("\n");
    el_report_sentences(c->run, stdout);
    printf("\n%s/results.json\n%s/results.csv\n", c->store.dir, c->store.dir);
    EL_TRY(el_plot_run(c->store.dir, options->term, stdout));
    printf("\nNext: %s run --mode dp --model %s --devices 8 --batch 512 --dry-run\n"
           "      (the memory of eight devices by tag, without having them)\n",
           program_invocation_name, options->train.model.name);
    return EL_OK;
}

static int compare(const struct el_options *options, bool colour)
{
    struct el_campaign campaign;
    char lack[EL_ERROR_TEXT_BYTES] = "";
    const struct el_trial *several = NULL; /* one of several processes: what it lacks all of them do */
    enum el_status status = el_devices_check(options->devices, options->n_devices);
    if (status == EL_OK) status = el_campaign_begin(&campaign, EL_CMD_COMPARE, options);
    if (status != EL_OK) return el_exit_failed(status);
    for (int t = 0; t < campaign.set.n; t++)
        if (campaign.set.trials[t].procs > 1) several = &campaign.set.trials[t];
    if (several && el_runner_check_launcher(several) != EL_OK) snprintf(lack, sizeof lack, "%s", el_error_message());
    if (options->resume) load_repeats(&campaign);
    status = measure(&campaign, *lack ? lack : NULL);
    int exit_status = status == EL_OK ? 0 : el_exit_failed(status);
    if (el_runner_interrupted()) {
        fprintf(stderr, "evenload: interrupted; what was measured is kept. Go on with: %s compare --resume --out %s\n",
                program_invocation_name, campaign.store.dir);
        exit_status = EL_EXIT_INTERRUPTED;
    } else if (status == EL_OK) {
        status = show(&campaign, colour);
        exit_status = status == EL_OK ? el_campaign_exit_status(&campaign) : el_exit_failed(status);
        if (*lack) fprintf(stderr, "evenload: %s\n", lack);
        exit_status = el_exit_flush(exit_status);
    }
    el_campaign_end(&campaign);
    return exit_status;
}

int el_cmd_compare(const struct el_options *asked, int argc, char **argv)
{
    struct el_launch_place place;
    enum el_status status = el_launch_environment(el_launch_getenv, NULL, &place);
    if (asked->launch == EL_LAUNCH_RANK)
        status = el_fail(EL_ERR_INVALID, "--launch rank is for 'run': 'compare' starts its own processes");
    if (status != EL_OK) return el_exit_failed(status);
    if (place.is_rank && place.rank > 0 && asked->launch == EL_LAUNCH_AUTO) {
        fprintf(stderr, "evenload compare: rank %d leaves: it starts its own processes, from rank 0\n", place.rank);
        return 0;
    }
    struct el_options *options = malloc(sizeof *options);
    if (!options) return el_exit_failed(el_fail_errno("options"));
    *options = *asked;
    if (asked->resume) status = read_resumed(argc, argv, options);
    /* mpirun gives its ranks a terminal, wherever its own output goes. */
    bool colour = el_report_colour(stdout, place.is_rank || getenv("NO_COLOR") != NULL);
    int exit_status = status == EL_OK ? compare(options, colour) : el_exit_failed(status);
    free(options);
    return exit_status;
}
