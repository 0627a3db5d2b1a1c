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
#include "bench/study/study.h"
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

static enum el_status show(struct el_campaign *c)
{
    const struct el_options *options = c->options;
    if (options->json) {
        EL_TRY(el_print_json(c->run, stdout));
        el_say_not_drawn(el_plot_run(c->store.dir, NULL, NULL), NULL);
        return EL_OK;
    }
    el_report_tables(c->run, stdout);
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
    EL_TRY(el_devices_check(options->devices, options->n_devices));
    el_runner_catch_signals();
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_COMPARE, options));
    enum el_status status = el_campaign_measure(&campaign, true, el_dataset_info(campaign.set.dataset)->description);
    return el_end_campaign(&campaign, status, "the same command and --out", show, exit_status_p);
}

enum el_status el_cmd_compare(struct el_options *options, int *exit_status_p)
{
    struct el_launch_place place;
    if (options->command_at) return el_study_compare(options, exit_status_p);
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
