/* `evenload imbalance`: from a folder (imbalance DIR), PyTorch's memory snapshots (imbalance FILE FILE), a forecast
 * (--dry-run), or a campaign that launches what its folder lacks. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/imbalance/imbalance.h"
#include "bench/imbalance/placement.h"
#include "bench/imbalance/snapshots.h"
#include "bench/options/options.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/report/report.h"
#include "bench/trial/trial.h"

/* Paths go to standard output, except with --json. A folder that cannot be written is still shown. */
static void draw(const json_t *run, const char *dir, bool json)
{
    static const struct el_figure *const figures[] = {&el_figure_imbalance, &el_figure_device_steps,
                                                      &el_figure_device_bytes, &el_figure_routing};
    FILE *messages = json ? NULL : stdout;
    el_say_not_drawn(el_plot_figures(figures, 4, run, dir, messages), messages);
}

static enum el_status show(const json_t *run, const struct el_options *options, const char *dir)
{
    const char *preset = options->preset[0] ? options->preset : NULL;
    json_t *solution = json_object_get(run, "solution");
    if (!options->json) {
        el_imbalance_print(run, stdout);
        if (json_is_object(solution)) el_text_wrap(el_json_text(solution, "sentence", ""), "* ", "  ", stdout);
        el_imbalance_put_published(run, preset, stdout);
        return EL_OK;
    }
    json_t *document = el_imbalance_document(run, preset, dir);
    if (document) json_object_set(document, "solution", solution ? solution : json_null());
    enum el_status status = document ? el_print_json(document, stdout) : el_fail_errno("the table's document");
    json_decref(document);
    return status;
}

static void say_next(const struct el_options *options)
{
    struct el_options next = *options;
    if (options->json) return;
    printf("\n");
    next.dry_run = false;
    if (options->dry_run)
        el_say_next(EL_CMD_IMBALANCE, &next, "    (the same, measured)");
    else
        printf("Next: %s imbalance --preset two-cards --dry-run    (a published table, predicted)\n",
               el_program_word());
}

static enum el_status present(const json_t *run, const struct el_options *options, const char *dir, bool measured)
{
    EL_TRY(show(run, options, dir));
    if (!options->json) {
        printf("\n");
        el_text_line(stdout, "%s/results.json", dir);
        if (measured) el_text_line(stdout, "%s/trials.csv", dir);
    }
    draw(run, dir, options->json);
    say_next(options);
    return EL_OK;
}

static enum el_status check_cards(const json_t *run, const char *dir)
{
    EL_EACH(trial, json_object_get(run, "trials"))
        if (el_imbalance_has_cards(trial)) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "%s has no finished trial on two devices or more, and nothing that could be uneven: 'evenload "
                   "imbalance' without a folder runs dp and ddp",
                   dir);
}

/* Before a folder is made. */
static enum el_status check_several(const struct el_options *options)
{
    struct el_device_name devices[EL_MEMBERS_MAX];
    int n = options->n_devices;
    if (n == 0) EL_TRY(el_devices_default(devices, &n));
    for (int m = 0; m < options->n_modes; m++)
        if (el_mode_devices(options->modes[m], n) > 1) return EL_OK;
    return el_fail(EL_ERR_INVALID, "imbalance: every trial is on one device, where nothing can be uneven: give --modes "
                                   "dp,ddp and two --devices or more");
}

static enum el_status from_records(const struct el_options *options)
{
    json_t *run;
    EL_TRY(el_read_records("imbalance", options, &run));
    enum el_status status = check_cards(run, options->dir);
    if (status == EL_OK) status = present(run, options, options->dir, false);
    json_decref(run);
    return status;
}

static enum el_status list_snapshots(const struct el_options *options, json_t **paths_p)
{
    static const char *const endings[] = {".pickle", ".pkl", NULL};
    const char *const names[] = {options->dir, options->other};
    return el_input_paths(names, options->other[0] ? 2 : 1, endings, paths_p);
}

/* Files are snapshots, and so are a folder's without a record. */
static bool names_snapshots(const struct el_options *options)
{
    struct stat info;
    char record[EL_PATH_BYTES + 16];
    json_t *paths = NULL;
    snprintf(record, sizeof record, "%s/results.json", options->dir);
    if (options->other[0]) return true;
    if (stat(options->dir, &info) != 0) return false;
    if (!S_ISDIR(info.st_mode)) return true;
    bool any = access(record, F_OK) != 0 && list_snapshots(options, &paths) == EL_OK;
    json_decref(paths);
    return any;
}

static enum el_status from_snapshots(const struct el_options *options)
{
    json_t *paths, *document;
    EL_TRY(el_options_check_records_alone("imbalance", options));
    EL_TRY(list_snapshots(options, &paths));
    enum el_status status = el_snapshots_read(paths, &document);
    json_decref(paths);
    EL_TRY(status);
    if (options->json)
        status = el_print_json(document, stdout);
    else
        el_snapshots_print(document, stdout);
    json_decref(document);
    return status;
}

static enum el_status show_predicted(const json_t *run, const struct el_options *options)
{
    struct el_store store;
    if (options->out[0]) EL_TRY(el_store_create(options->out, "imbalance", &store));
    enum el_status status = show(run, options, NULL);
    if (status == EL_OK && options->out[0]) {
        if (!options->json) printf("\n");
        draw(run, store.dir, options->json);
    }
    if (options->out[0]) el_store_discard(&store);
    if (status == EL_OK) say_next(options);
    return status;
}

static const char *shares_of(struct el_options *options)
{
    const char *list = el_option_list(options, "shares");
    return list ? list : el_given_of_modes(options->of_modes, "shares");
}

static enum el_status add_shares(struct el_options *options, const char *shares)
{
    char list[EL_LIST_BYTES];
    const char *given = shares_of(options);
    snprintf(list, sizeof list, "%s%s%s", given, *given ? "/" : "", shares);
    return el_option_take(EL_CMD_IMBALANCE, el_option_of_command(EL_CMD_IMBALANCE, "shares"), list, options);
}

static bool has_shares(struct el_options *options, const char *shares)
{
    char list[EL_LIST_BYTES + 2], one[EL_MODE_TEXT_BYTES + 2];
    snprintf(list, sizeof list, "/%s/", shares_of(options));
    snprintf(one, sizeof one, "/%s/", shares);
    return strstr(list, one);
}

static enum el_status add_earlier(const struct el_options *options, struct el_options *grown)
{
    char path[EL_PATH_BYTES + 16];
    json_t *run;
    snprintf(path, sizeof path, "%s/results.json", options->out);
    if (!options->out[0] || !el_store_holds(options->out) || access(path, F_OK)) return EL_OK;
    EL_TRY(el_record_read(path, &run));
    enum el_status status = EL_OK;
    EL_EACH(trial, json_object_get(run, "trials")) {
        const char *shares = el_json_text(trial, "config.shares", "");
        if (*shares && status == EL_OK && !has_shares(grown, shares)) status = add_shares(grown, shares);
    }
    json_decref(run);
    return status;
}

/* The experts' own order, and the best one. */
static enum el_status begin_placement(const struct el_options *options, struct el_options *grown,
                                      struct el_placement *placement)
{
    struct el_trial_set set;
    char list[EL_LIST_BYTES];
    EL_TRY(el_trials_resolve(EL_CMD_IMBALANCE, options, &set));
    enum el_status status = el_placement_of(&set.trials[0], placement);
    el_trials_free(&set);
    EL_TRY(status);
    snprintf(list, sizeof list, "own%s%s", *placement->text ? "/" : "", placement->text);
    return el_option_take(EL_CMD_IMBALANCE, el_option_of_command(EL_CMD_IMBALANCE, "placement"), list, grown);
}

/* Equal ones, for memory also the best. */
static enum el_status begin_solution(const struct el_options *options, struct el_options *grown,
                                     struct el_solution *solution, struct el_placement *placement)
{
    struct el_trial_set set;
    bool found = false;
    *grown = *options;
    if (options->solve == EL_SOLVE_PLACEMENT) return begin_placement(options, grown, placement);
    *solution = (struct el_solution){.memory = options->solve == EL_SOLVE_MEMORY};
    if (options->solve == EL_SOLVE_NONE) return EL_OK;
    EL_TRY(add_shares(grown, "equal"));
    EL_TRY(el_trials_resolve(EL_CMD_IMBALANCE, grown, &set));
    enum el_status status = el_solution_check(&set.trials[0]);
    if (status == EL_OK && solution->memory) status = el_solution_next(solution, &set.trials[0], NULL, &found);
    if (status == EL_OK && found) status = add_shares(grown, solution->shares[0]);
    el_trials_free(&set);
    return status == EL_OK ? add_earlier(options, grown) : status;
}

static enum el_status solve(struct el_campaign *c, struct el_options *grown, struct el_solution *solution,
                            const struct el_placement *placement)
{
    if (grown->solve == EL_SOLVE_PLACEMENT) {
        el_json_put(c->run, "solution", el_placement_document(placement, json_object_get(c->run, "trials")));
        return el_store_save_run(&c->store, c->run);
    }
    for (bool found = true; found && !el_runner_interrupted();) {
        EL_TRY(el_solution_next(solution, &c->set.trials[0], json_object_get(c->run, "trials"), &found));
        if (!found || has_shares(grown, solution->shares[solution->n - 1])) continue;
        EL_TRY(add_shares(grown, solution->shares[solution->n - 1]));
        EL_TRY(el_campaign_extend(c, grown));
        EL_TRY(el_campaign_measure(c, false, NULL));
    }
    if (el_runner_interrupted()) return EL_OK;
    el_json_put(c->run, "solution", el_solution_document(solution, json_object_get(c->run, "trials")));
    return el_store_save_run(&c->store, c->run);
}

static enum el_status predict(const struct el_options *options)
{
    struct el_options grown;
    struct el_trial_set set;
    struct el_solution solution;
    struct el_placement placement;
    json_t *run = NULL;
    EL_TRY(begin_solution(options, &grown, &solution, &placement));
    EL_TRY(el_trials_resolve(EL_CMD_IMBALANCE, &grown, &set));
    enum el_status status = el_imbalance_predict(&set, &run);
    if (status == EL_OK && options->solve)
        el_json_put(run, "solution",
                    options->solve == EL_SOLVE_PLACEMENT
                        ? el_placement_document(&placement, json_object_get(run, "trials"))
                        : el_solution_document(&solution, json_object_get(run, "trials")));
    if (status == EL_OK) status = show_predicted(run, options);
    json_decref(run);
    el_trials_free(&set);
    return status;
}

static enum el_status show_campaign(struct el_campaign *c)
{
    return present(c->run, c->options, c->store.dir, true);
}

/* Before a folder is made; an existing one may be complete. */
static enum el_status check_fresh(const struct el_options *options)
{
    struct el_trial_set set;
    if (options->out[0] && el_store_holds(options->out)) return EL_OK;
    EL_TRY(el_trials_resolve(EL_CMD_IMBALANCE, options, &set));
    enum el_status status = el_imbalance_check_memory(&set);
    el_trials_free(&set);
    return status;
}

static enum el_status measure(const struct el_options *given, int *exit_status_p)
{
    struct el_campaign campaign;
    struct el_options grown, *options = &grown;
    struct el_solution solution;
    struct el_placement placement;
    enum el_status status = EL_OK;
    EL_TRY(begin_solution(given, &grown, &solution, &placement));
    EL_TRY(el_devices_check(options->devices, options->n_devices));
    el_runner_catch_signals();
    EL_TRY(check_fresh(options));
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_IMBALANCE, options));
    bool complete = true;
    for (int i = 0; i < campaign.set.n * options->repeats; i++) complete = complete && campaign.repeats[i];
    if (!complete) status = el_imbalance_check_memory(&campaign.set);
    if (status == EL_OK)
        status =
            el_campaign_measure(&campaign, false, complete ? NULL : el_dataset_info(campaign.set.dataset)->description);
    if (status == EL_OK && grown.solve && !el_runner_interrupted())
        status = solve(&campaign, &grown, &solution, &placement);
    return el_end_campaign(&campaign, status, "the same command and --out", show_campaign, exit_status_p);
}

/* Given options override the preset. */
static enum el_status read_over_preset(struct el_options *options)
{
    struct el_options preset = {.n_modes = 0};
    EL_TRY(el_imbalance_preset(options->preset, &preset));
    memset(preset.given, 0, sizeof preset.given);
    EL_TRY(el_options_parse(EL_CMD_IMBALANCE, options->argc, options->argv, &preset));
    *options = preset;
    return el_options_check_together(options);
}

/* One mode and batch: the mode for which shares matter most, the default's largest batch. */
static enum el_status prepare_solution(struct el_options *options)
{
    bool batch = el_option_given(options, "batch") || el_option_given(options, "batch-per-device");
    if (options->solve == EL_SOLVE_NONE) return EL_OK;
    if (options->solve == EL_SOLVE_PLACEMENT && el_option_given(options, "placement"))
        return el_fail(EL_ERR_INVALID, "--solve finds the placement: leave --routing placement out");
    if (options->solve != EL_SOLVE_PLACEMENT && el_option_given(options, "shares"))
        return el_fail(EL_ERR_INVALID, "--solve finds the shares: leave --shares out");
    if (options->dry_run && options->solve == EL_SOLVE_TIME)
        return el_fail(EL_ERR_INVALID, "--solve time needs a measurement: leave --dry-run out, or give --solve memory");
    if (!el_option_given(options, "modes"))
        snprintf(options->modes[0], sizeof options->modes[0], "%s",
                 options->solve == EL_SOLVE_PLACEMENT ? "ep"
                 : options->solve == EL_SOLVE_TIME    ? "ddp"
                                                      : "dp");
    if (!el_option_given(options, "modes")) options->n_modes = 1;
    if (!batch) options->batches[0] = options->batches[options->n_batches - 1];
    if (!batch) options->n_batches = 1;
    if (options->n_modes == 1 && options->n_batches == 1) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--solve takes one mode and one batch: give --modes %s --batch %lld",
                   options->modes[0], (long long)options->batches[0]);
}

enum el_status el_cmd_imbalance(struct el_options *options, int *exit_status_p)
{
    if (names_snapshots(options)) return from_snapshots(options);
    if (options->dir[0]) return from_records(options);
    if (options->preset[0]) EL_TRY(read_over_preset(options));
    EL_TRY(prepare_solution(options));
    EL_TRY(check_several(options));
    return options->dry_run ? predict(options) : measure(options, exit_status_p);
}
