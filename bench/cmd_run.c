/* `evenload run`: this process is never a rank (see cmd_run_rank.c). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/job/worker.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/trial.h"
#include "runtime/launch/launch.h"

/* On a full disk the tables are all. */
static void print_result(const struct el_campaign *c, bool written)
{
    json_t *trial = el_json_at(c->run, "trials.0");
    if (c->options->json) {
        el_print_json(trial, stdout);
        return;
    }
    el_report_tables(c->run, stdout);
    el_report_profile(c->run, c->options->sort, stdout);
    if (!written) return;
    printf("\n");
    el_text_line(stdout, "%s/results.json", c->store.dir);
    el_text_line(stdout, "%s/trials.csv", c->store.dir);
    el_text_line(stdout, "%s/logs/", c->store.dir);
    if (isnan(el_json_number(trial, "bubble_pct"))) return;
    printf("\n");
    el_text_line(stdout, "Next: %s plot %s    (bubbles: a step of each stage, in %s/plots/stages.png)",
                 el_program_word(), c->store.dir, c->store.dir);
}

static enum el_status run_self(const struct el_options *options, int *exit_status_p)
{
    struct el_campaign campaign;
    struct el_device_name devices[EL_MEMBERS_MAX] = {options->devices[0]};
    int n = 1;
    EL_TRY(el_devices_check(options->devices, options->n_devices));
    if (options->beside && options->n_devices == 0) EL_TRY(el_devices_default(devices, &n));
    EL_TRY(el_job_check_beside(devices, options->beside));
    el_runner_catch_signals();
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_RUN, options));
    enum el_status status = EL_OK;
    if (campaign.set.trials->procs > 1) status = el_runner_check_launcher(campaign.set.trials);
    if (status != EL_OK) {
        el_campaign_undo(&campaign);
        return status;
    }
    if (el_dataset_info(campaign.set.dataset)->unspaced && !options->quiet)
        el_text_line(stderr, "%s", el_dataset_info(campaign.set.dataset)->description);
    status = el_campaign_measure(&campaign, false, NULL);
    bool interrupted = status == EL_OK && el_runner_interrupted();
    if (el_json_at(campaign.run, "trials.0")) {
        print_result(&campaign, status == EL_OK);
        int exit_status = el_exit_flush(el_campaign_exit_status(&campaign));
        if (status == EL_OK) *exit_status_p = exit_status;
    }
    if (interrupted) *exit_status_p = el_exit_interrupted();
    if (campaign.run)
        el_campaign_end(&campaign);
    else
        el_campaign_undo(&campaign);
    return status;
}

/* recover has these options with its own folders. */
static enum el_status check_checkpoint_options(const struct el_options *options)
{
    static const char *const names[] = {"checkpoint-every", "checkpoint-keep", "checkpoint-async"};
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !*options->checkpoint; i++)
        if (el_option_given(options, names[i]))
            return el_fail(EL_ERR_INVALID,
                           "--checkpoint %s: no checkpoints are written: give a folder too, "
                           "--checkpoint DIR,%s=...",
                           names[i] + strlen("checkpoint-"), names[i] + strlen("checkpoint-"));
    return EL_OK;
}

enum el_status el_cmd_run(struct el_options *options, int *exit_status_p)
{
    struct el_launch_place place;
    EL_TRY(check_checkpoint_options(options));
    if (options->dry_run) return el_cmd_dry_run(options, exit_status_p);
    bool rank;
    EL_TRY(el_takes_place(options, &place, &rank));
    return rank ? el_cmd_run_rank(options, &place, exit_status_p) : run_self(options, exit_status_p);
}
