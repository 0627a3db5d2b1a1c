/* `evenload run`: one trial, launched by this process, which is never a rank itself. As a rank of a user's mpirun
 * or torchrun it goes another way: cmd_run_rank.c. */
#include <stdlib.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/default_devices.h"
#include "runtime/launch/launch.h"

static void print_result(const struct el_campaign *c)
{
    json_t *trial = el_json_at(c->run, "trials.0");
    if (c->options->json) {
        el_print_json(trial, stdout);
        return;
    }
    bool colour = el_report_colour(stdout, getenv("NO_COLOR") != NULL);
    el_report_table(c->run, stdout, colour);
    el_report_steps(c->run, stdout, colour);
    el_report_processes(c->run, stdout, colour);
    printf("\n");
    el_text_line(stdout, "%s/results.json", c->store.dir);
    el_text_line(stdout, "%s/trials.csv", c->store.dir);
    el_text_line(stdout, "%s/logs/", c->store.dir);
}

static int run_self(const struct el_options *options)
{
    struct el_campaign campaign;
    enum el_status status = el_devices_check(options->devices, options->n_devices);
    el_runner_catch_signals();
    if (status == EL_OK) status = el_campaign_begin(&campaign, EL_CMD_RUN, options);
    if (status != EL_OK) return el_exit_failed(status);
    int exit_status = 0;
    if (campaign.set.trials->procs > 1) status = el_runner_check_launcher(campaign.set.trials);
    if (status == EL_OK) status = el_campaign_measure(&campaign, false, NULL);
    if (el_json_at(campaign.run, "trials.0")) {
        print_result(&campaign);
        exit_status = el_exit_flush(el_campaign_exit_status(&campaign));
    }
    if (status != EL_OK)
        exit_status = el_exit_failed(status);
    else if (el_runner_interrupted()) {
        fprintf(stderr, "evenload: interrupted\n");
        exit_status = EL_EXIT_INTERRUPTED;
    }
    el_campaign_end(&campaign);
    return exit_status;
}

int el_cmd_run(const struct el_options *options, int argc, char **argv)
{
    (void)argc, (void)argv;
    struct el_launch_place place;
    if (options->dry_run) return el_cmd_dry_run(options);
    enum el_status status = el_launch_environment(el_launch_getenv, NULL, &place);
    if (status != EL_OK && options->launch != EL_LAUNCH_SELF) return el_exit_failed(status);
    if (options->launch == EL_LAUNCH_RANK && !place.is_rank)
        return el_exit_failed(el_fail(EL_ERR_INVALID,
                                      "--launch rank: no launcher started this process; use mpirun -n "
                                      "N (or torchrun --no_python --nproc_per_node N) evenload run ..., or leave "
                                      "--launch out"));
    bool rank = options->launch == EL_LAUNCH_RANK ||
                (options->launch == EL_LAUNCH_AUTO && place.is_rank && options->n_devices == 0);
    return rank ? el_cmd_run_rank(options, &place) : run_self(options);
}
