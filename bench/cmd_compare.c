/* `evenload compare`: gate, then all trials in turns, each repeat in fresh processes, then what a person wants to see.
 */
#include <stdlib.h>
#include <string.h>

#include "bench/base/io.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/default_devices.h"
#include "runtime/launch/launch.h"

enum { VALUE_BYTES = 2048 };

/* Options that leave the trials what they are: how long one may take, who starts us, where all lies. Flags say how it
 * is shown. */
static bool may_change(const struct el_option_row *row)
{
    static const char *const names[] = {"timeout", "launch", "out"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strcmp(row->name, names[i])) return true;
    return row->kind == EL_OPTION_FLAG || !(row->commands & EL_CMD_COMPARE);
}

/* Other trials would take those that were measured out of results.json; more repeats only add to them. */
static enum el_status check_same(const struct el_options *begun, const struct el_options *options, const char *dir)
{
    for (const struct el_option_row *row = el_option_rows(); row->name; row++) {
        char was[VALUE_BYTES], is[VALUE_BYTES];
        if (!el_option_given(options, row->name) || may_change(row)) continue;
        if (!strcmp(row->name, "repeats") && options->repeats >= begun->repeats) continue;
        el_option_show(row, begun, was, sizeof was);
        el_option_show(row, options, is, sizeof is);
        if (!strcmp(was, is)) continue;
        return el_fail(EL_ERR_INVALID,
                       "--%s: %s was begun with%s %s, and --resume goes on with the same trials: leave --%s out, or "
                       "measure into another --out without --resume",
                       row->name, dir, *was ? "" : "out", *was ? was : "it", row->name);
    }
    return EL_OK;
}

/* A resumed run has the options it was begun with; of those given now the ones that change no trial come on top. */
static enum el_status read_resumed(struct el_options *options)
{
    struct el_options begun;
    char dir[EL_PATH_BYTES];
    memcpy(dir, options->dir[0] ? options->dir : options->out, sizeof dir);
    if (!dir[0])
        return el_fail(EL_ERR_INVALID, "--resume: which run? give its folder: evenload compare --resume --out DIR");
    EL_TRY(el_recall_command(EL_CMD_COMPARE, "compare", dir, &begun));
    int argc = options->argc;
    char **argv = options->argv;
    *options = begun;
    EL_TRY(el_options_parse(EL_CMD_COMPARE, argc, argv, options));
    EL_TRY(check_same(&begun, options, dir));
    memcpy(options->out, dir, sizeof dir);
    options->resume = true;
    return EL_OK;
}

/* Eight devices with this comparison's model, data and batch. How long to measure has no meaning there. */
static void print_next(const struct el_campaign *c)
{
    enum { DEVICES = 8 };
    struct el_options next, initial;
    el_options_defaults(EL_CMD_RUN, &initial);
    el_trial_options(&c->set.trials[c->set.n - 1], &next);
    const struct el_mode_info *mode = el_mode_list();
    while (mode[1].name && mode->memory.others == 0) mode++; /* whose devices do not hold the same */
    snprintf(next.modes[0], sizeof next.modes[0], "%s", mode->name);
    for (int i = 0; i < DEVICES; i++) {
        next.devices[i].index = i;
        memcpy(next.devices[i].backend, next.devices[0].backend, sizeof next.devices[i].backend);
    }
    next.n_devices = DEVICES;
    next.procs = 0;
    if (!next.batch_is_per_device && next.batches[0] < DEVICES) next.batches[0] = DEVICES;
    next.train.steps = initial.train.steps;
    next.train.warmup = initial.train.warmup;
    next.train.min_time_s = initial.train.min_time_s;
    next.train.control = initial.train.control;
    next.train.epochs = 0;
    next.timeout_s = initial.timeout_s;
    next.inject[0] = 0;
    next.bucket_view = EL_VIEW_OFF;
    next.dry_run = true;
    printf("\n");
    if (el_say_next(EL_CMD_RUN, &next, "")) printf("      (the memory of eight devices by tag, without having them)\n");
}

static enum el_status show(struct el_campaign *c)
{
    const struct el_options *options = c->options;
    struct el_launch_place place = {.is_rank = false};
    enum el_status status = el_launch_environment(el_launch_getenv, NULL, &place);
    /* mpirun gives its ranks a terminal, wherever its own output goes */
    bool colour = el_report_colour(stdout, status != EL_OK || place.is_rank || getenv("NO_COLOR") != NULL);
    if (options->json) {
        EL_TRY(el_print_json(c->run, stdout));
        el_say_not_drawn(el_plot_run(c->store.dir, false, NULL), NULL);
        return EL_OK;
    }
    el_report_table(c->run, stdout, colour);
    el_report_steps(c->run, stdout, colour);
    el_report_recorder(c->run, stdout, colour);
    el_report_processes(c->run, stdout, colour);
    printf("\n");
    el_report_sentences(c->run, stdout);
    printf("\n");
    el_text_line(stdout, "%s/results.json", c->store.dir);
    el_text_line(stdout, "%s/trials.csv", c->store.dir);
    el_say_not_drawn(el_plot_run(c->store.dir, options->term, stdout), stdout);
    print_next(c);
    return EL_OK;
}

static enum el_status compare(const struct el_options *options, int *exit_status_p)
{
    struct el_campaign campaign;
    char how[EL_WORD_BYTES + 32];
    EL_TRY(el_devices_check(options->devices, options->n_devices));
    el_runner_catch_signals();
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_COMPARE, options));
    enum el_status status = el_campaign_measure(&campaign, true, el_dataset_describe(campaign.set.dataset));
    snprintf(how, sizeof how, "%s compare --resume --out", el_program_word());
    return el_end_campaign(&campaign, status, how, show, exit_status_p);
}

enum el_status el_cmd_compare(struct el_options *options, int *exit_status_p)
{
    struct el_launch_place place;
    if (options->launch == EL_LAUNCH_RANK)
        return el_fail(EL_ERR_INVALID, "--launch rank is for 'run': 'compare' starts its own processes");
    EL_TRY(el_launch_environment(el_launch_getenv, NULL, &place));
    if (place.is_rank && place.rank > 0 && options->launch == EL_LAUNCH_AUTO) {
        fprintf(stderr, "evenload compare: rank %d leaves: it starts its own processes, from rank 0\n", place.rank);
        return EL_OK;
    }
    if (options->resume) EL_TRY(read_resumed(options));
    return compare(options, exit_status_p);
}
