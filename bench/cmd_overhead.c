/* `evenload overhead`: what recording costs. Trials as compare's, in turns, with control blocks that have the recorder
 * off and on; judged from the run's document. No gate: nothing is said here of one mode against another. */
#include <stdlib.h>
#include <string.h>

#include "bench/campaign/campaign.h"
#include "bench/campaign/plan.h"
#include "bench/campaign/progress.h"
#include "bench/commands.h"
#include "bench/overhead/overhead.h"
#include "bench/record/record.h"

static enum el_status check(const struct el_options *options)
{
    if (!strcmp(options->devices[0].backend, "sim"))
        return el_fail(EL_ERR_INVALID, "overhead: simulated devices do no work that recording could delay: give cpu or "
                                       "null devices");
    if (options->train.min_time_s <= 0)
        return el_fail(EL_ERR_INVALID, "overhead: --min-time 0 leaves no time to compare steps in: give more");
    return EL_OK;
}

static enum el_status check_ranks(const struct el_campaign *c)
{
    bool several = false;
    for (int t = 0; t < c->set.n; t++) several = several || c->set.trials[t].procs > 1;
    return several ? el_runner_check_mpi() : EL_OK;
}

static enum el_status measure(struct el_campaign *c)
{
    struct el_runner runner;
    struct el_progress progress;
    struct el_plan plan;
    EL_TRY(check_ranks(c));
    EL_TRY(el_runner_init(&runner, &c->store));
    EL_TRY(el_plan_make(c->set.n, c->options->repeats, c->options->train.seed, &plan));
    el_runner_catch_signals();
    el_progress_init(&progress, plan.n, c->options->quiet);
    runner.tick = el_progress_tick;
    runner.context = &progress;
    el_progress_say(&progress, "%d launches, in each of them steps with and without the recorder; results go to %s",
                    plan.n, c->store.dir);
    enum el_status status = EL_OK;
    for (int i = 0; i < plan.n && status == EL_OK && !el_runner_interrupted(); i++) {
        const struct el_plan_entry *entry = &plan.entries[i];
        const struct el_trial *trial = &c->set.trials[entry->trial];
        json_t *document = NULL;
        el_progress_begin(&progress, trial, entry->repeat);
        status = el_runner_measure(&runner, trial, entry->repeat, entry->order, &document);
        el_progress_end(&progress, document);
        if (status == EL_OK && document) status = el_campaign_take(c, entry->trial, entry->repeat, document);
    }
    el_plan_free(&plan);
    return status;
}

static int show(const struct el_campaign *c)
{
    json_t *document = el_overhead_document(c->run, c->store.dir);
    if (!document) return el_exit_failed(el_fail(EL_ERR_HOST_MEMORY, "no memory for what recording costs"));
    int exit_status = el_campaign_exit_status(c);
    if (exit_status == 0 && json_is_false(json_object_get(document, "holds"))) exit_status = EL_EXIT_TRIAL;
    enum el_status status = EL_OK;
    if (c->options->json)
        status = el_print_json(document, stdout);
    else
        el_overhead_print(document, stdout);
    json_decref(document);
    return status == EL_OK ? el_exit_flush(exit_status) : el_exit_failed(status);
}

static int overhead(const struct el_options *options)
{
    struct el_campaign campaign;
    enum el_status status = el_campaign_begin(&campaign, EL_CMD_OVERHEAD, options);
    if (status != EL_OK) return el_exit_failed(status);
    status = measure(&campaign);
    int exit_status = status == EL_OK ? 0 : el_exit_failed(status);
    if (el_runner_interrupted()) {
        fprintf(stderr, "evenload: interrupted\n");
        exit_status = EL_EXIT_INTERRUPTED;
    } else if (status == EL_OK) {
        exit_status = show(&campaign);
    }
    el_campaign_end(&campaign);
    return exit_status;
}

int el_cmd_overhead(const struct el_options *asked, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct el_options *options = malloc(sizeof *options);
    if (!options) return el_exit_failed(el_fail_errno("options"));
    *options = *asked;
    options->train.control = EL_CONTROL_RECORD;
    enum el_status status = check(options);
    int exit_status = status == EL_OK ? overhead(options) : el_exit_failed(status);
    free(options);
    return exit_status;
}
