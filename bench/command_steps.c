/* What several subcommands do alike: read a folder's records, end a campaign, say which command comes next. */
#include <string.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/commands.h"
#include "bench/record/record.h"
#include "runtime/launch/launch.h"

bool el_say_next(unsigned command, struct el_options *next, const char *note)
{
    char line[2 * EL_PATH_BYTES];
    next->out[0] = 0;
    next->quiet = next->json = false;
    bool fits = el_options_command_line(command, next, line, sizeof line) == EL_OK;
    if (fits) el_text_line(stdout, "Next: %s%s%s", el_program_word(), line + strlen("evenload"), note);
    return fits;
}

enum el_status el_takes_place(const struct el_options *options, struct el_launch_place *place_p, bool *rank_p)
{
    enum el_status status = el_launch_environment(el_launch_getenv, NULL, place_p);
    if (status != EL_OK && options->launch != EL_LAUNCH_SELF) return status;
    if (options->launch == EL_LAUNCH_RANK && !place_p->is_rank)
        return el_fail(EL_ERR_INVALID, "--launch rank: no launcher started this process; use mpirun -n N (or torchrun "
                                       "--no_python --nproc_per_node N) evenload ..., or leave --launch out");
    bool told = options->launch == EL_LAUNCH_AUTO && place_p->is_rank;
    if (told && place_p->size > 1 && options->n_devices > 0 && !el_option_given(options, "launcher"))
        return el_fail(EL_ERR_INVALID,
                       "--devices is given, and %s started %d ranks, each of which would run a job of its own on these "
                       "devices: leave --devices out, so that each rank takes one; or give --launch self",
                       place_p->launcher, place_p->size);
    bool alone = options->launch == EL_LAUNCH_AUTO && !place_p->is_rank;
    if (alone && el_launch_getenv(NULL, "MASTER_ADDR") && !options->quiet)
        fprintf(stderr, "evenload: MASTER_ADDR is set, but RANK and WORLD_SIZE are not: this process is no rank, and "
                        "starts a job of its own\n");
    *rank_p = options->launch == EL_LAUNCH_RANK || (told && options->n_devices == 0);
    return EL_OK;
}

/* Folders of commands that make no trials say which one made them. */
static enum el_status check_has_trials(const char *command, const char *dir)
{
    static const char *const others[] = {"comm", "explain", "data", "regress", "verify"};
    char path[EL_PATH_BYTES + 16];
    snprintf(path, sizeof path, "%s/results.json", dir);
    bool is_run = access(path, F_OK) == 0;
    for (size_t i = 0; i < sizeof others / sizeof others[0] && !is_run; i++) {
        snprintf(path, sizeof path, "%s/%s.json", dir, others[i]);
        if (access(path, F_OK) == 0)
            return el_fail(EL_ERR_INVALID,
                           "%s is a folder of 'evenload %s': %s reads those of run, compare, scale, imbalance and data",
                           dir, others[i], command);
    }
    return EL_OK;
}

enum el_status el_read_records(const char *command, const struct el_options *options, json_t **run_p)
{
    char path[EL_PATH_BYTES + 16];
    json_t *run;
    EL_TRY(el_options_check_records_alone(command, options));
    EL_TRY(check_has_trials(command, options->dir));
    snprintf(path, sizeof path, "%s/results.json", options->dir);
    EL_TRY(el_record_read(path, &run));
    if (json_object_get(run, "watch")) {
        json_decref(run);
        return el_fail(EL_ERR_INVALID,
                       "%s was watched from outside, where neither memory by tag nor counts of devices can be seen: "
                       "'evenload plot %s' draws what there is",
                       options->dir, options->dir);
    }
    *run_p = run;
    return EL_OK;
}

enum el_status el_end_campaign(struct el_campaign *campaign, enum el_status status, const char *how,
                               enum el_status (*show)(struct el_campaign *campaign), int *exit_status_p)
{
    if (el_runner_interrupted()) {
        el_exit_failed(status);
        if (how) el_campaign_say_interrupted(campaign, how);
        *exit_status_p = how ? EL_EXIT_INTERRUPTED : el_exit_interrupted();
        status = EL_OK;
    } else if (status == EL_OK) {
        campaign->exit_status = el_campaign_exit_status(campaign);
        status = show(campaign);
        *exit_status_p = campaign->exit_status;
        if (campaign->no_launcher[0]) fprintf(stderr, "evenload: %s\n", campaign->no_launcher);
    }
    el_campaign_end(campaign);
    return status;
}
