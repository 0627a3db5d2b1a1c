/* Trials and their repeats, into results.json. */
#include "bench/campaign/campaign.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/machine/host.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/verdict/verdict.h"
#include "runtime/state/checkpoint.h"

enum { COMMAND_BYTES = 8192 };

json_t **el_campaign_repeat(const struct el_campaign *campaign, int trial, int repeat)
{
    return &campaign->repeats[trial * campaign->options->repeats + repeat];
}

static bool keeps(const struct el_campaign *c, const json_t *trial)
{
    if (json_array_size(json_object_get(trial, "repeats")) > (size_t)c->options->repeats) return false;
    for (int t = 0; t < c->set.n; t++)
        if (!strcmp(c->set.trials[t].id, el_json_text(trial, "id", ""))) return true;
    return false;
}

/* results.json keeps trials that another user or build measured. */
static enum el_status keep_others(struct el_campaign *c)
{
    char path[EL_PATH_BYTES];
    json_t *run;
    el_store_path(&c->store, path, "results.json");
    if (access(path, F_OK) != 0) return EL_OK;
    EL_TRY(el_record_read(path, &run));
    enum el_status status = EL_OK;
    EL_EACH(trial, json_object_get(run, "trials")) {
        if (status != EL_OK || keeps(c, trial)) continue;
        status = el_fail(
            EL_ERR_INVALID,
            "%s holds a trial (%s, batch %.0f) of other options, more repeats or another build, which this command "
            "would take out of its results.json: give another --out, or see what is there with 'evenload %s %s'",
            c->store.dir, el_json_text(trial, "mode", "?"), el_json_number(trial, "global_batch"),
            el_command_name(c->command), c->store.dir);
    }
    if (json_is_array(json_object_get(run, "gate"))) c->gate = json_incref(json_object_get(run, "gate"));
    json_decref(run);
    return status;
}

static enum el_status make_trial(const struct el_campaign *c, int t)
{
    json_t *repeats = json_array(), *trial = json_null();
    char command[COMMAND_BYTES];
    for (int r = 0; r < c->options->repeats; r++) {
        json_t *repeat = *el_campaign_repeat(c, t, r);
        el_record_learn(c->environment, repeat);
        if (repeat) json_array_append(repeats, repeat);
    }
    enum el_status status = el_trial_command(&c->set.trials[t], command, sizeof command);
    if (c->options->repeats > 1) el_text_append(command, sizeof command, " --repeats %d", c->options->repeats);
    if (status == EL_OK && json_array_size(repeats)) trial = el_record_trial(&c->set.trials[t], command, repeats);
    json_array_set_new(c->trials, (size_t)t, trial);
    json_decref(repeats);
    return status;
}

/* Of the same build and configuration; failures are measured again. */
static enum el_status load(struct el_campaign *c)
{
    for (int t = 0; t < c->set.n; t++) {
        for (int r = 0; r < c->options->repeats; r++) {
            json_t *repeat = el_store_load_repeat(&c->store, &c->set.trials[t], r);
            if (el_runner_may_pass(repeat))
                json_decref(repeat);
            else
                *el_campaign_repeat(c, t, r) = repeat;
        }
        EL_TRY(make_trial(c, t));
    }
    return EL_OK;
}

/* The job replaces the folder's checkpoints, so they may only be those it resumes from. */
static enum el_status check_checkpoints(const struct el_campaign *c)
{
    const char *dir = c->options->checkpoint, *resume = c->options->resume;
    const struct el_checkpoint *from = c->set.trials->from;
    const int64_t last = el_checkpoint_last(dir);
    if (last >= 0 && !el_checkpoint_is_in(dir, resume))
        return el_fail(EL_ERR_INVALID,
                       "--checkpoint %s has checkpoints already: give --resume %s to go on from the last one, or "
                       "another folder",
                       dir, dir);
    if (from && !strcmp(resume, el_checkpoint_path(from)) && last > el_checkpoint_step(from))
        return el_fail(EL_ERR_INVALID,
                       "--resume %s: --checkpoint %s has later ones, up to step-%" PRId64
                       ": give --resume %s, or another --checkpoint",
                       el_path_tail(resume), dir, last, dir);
    return EL_OK;
}

/* The lock lasts until the process ends: two jobs' files in one checkpoint would look like one's. */
static enum el_status take_checkpoints(const struct el_campaign *c, size_t *existing_p)
{
    const char *dir = c->options->checkpoint;
    const size_t existing = el_folder_existing(dir);
    if (!*dir) return EL_OK;
    EL_TRY(el_folder_make(dir, "give another --checkpoint"));
    const int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0 || access(dir, W_OK | X_OK) != 0)
        return el_fail_errno("--checkpoint %s: cannot write into it; give another folder", dir);
    if (flock(folder, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) {
        *existing_p = existing;
        return check_checkpoints(c);
    }
    close(folder);
    return el_fail(EL_ERR_INVALID,
                   "--checkpoint %s: another evenload writes into this folder: wait for it, or give another one", dir);
}

static enum el_status prepare(struct el_campaign *c, bool again)
{
    EL_TRY(el_trials_resolve(c->command, c->options, &c->set));
    if (c->set.drawn[0] && !c->options->quiet) fprintf(stderr, "evenload: --load: %s\n", c->set.drawn);
    if (again) EL_TRY(keep_others(c));
    if (!strcmp(c->options->data, "synthetic")) EL_TRY(el_data_files_write(c->options, &c->files));
    c->repeats = calloc((size_t)(c->set.n * c->options->repeats), sizeof *c->repeats);
    c->environment = el_environment();
    c->trials = json_array();
    for (int t = 0; t < c->set.n; t++) json_array_append_new(c->trials, json_null());
    if (!c->repeats || !c->environment || json_array_size(c->trials) < (size_t)c->set.n)
        return el_fail(EL_ERR_HOST_MEMORY, "no memory for %d trials", c->set.n);
    EL_TRY(take_checkpoints(c, &c->checkpoint_existing));
    if (again) return load(c);
    return el_store_save_command(&c->store, c->command, c->options);
}

enum el_status el_campaign_begin(struct el_campaign *campaign, unsigned command, const struct el_options *options)
{
    struct el_campaign c = {.command = command, .options = options, .checkpoint_existing = EL_PATH_BYTES};
    bool goes_on = command & (EL_CMD_COMPARE | EL_CMD_SCALE | EL_CMD_IMBALANCE);
    bool again = goes_on && options->out[0] && el_store_holds(options->out);
    EL_TRY(again ? el_store_open(options->out, &c.store)
                 : el_store_create(options->out, el_command_name(command), &c.store));
    enum el_status status = el_store_lock(&c.store);
    if (status == EL_OK) status = prepare(&c, again);
    if (status != EL_OK) {
        struct el_error error;
        el_error_take(status, &error);
        el_campaign_end(&c);
        el_data_files_take_back(&c.files);
        el_folder_unmake(options->checkpoint, c.checkpoint_existing);
        el_store_discard(&c.store);
        return el_error_give(&error);
    }
    *campaign = c;
    return EL_OK;
}

enum el_status el_campaign_extend(struct el_campaign *campaign, const struct el_options *options)
{
    struct el_campaign next = {
        .command = campaign->command, .options = options, .store = campaign->store, .files = campaign->files};
    el_campaign_end(campaign);
    *campaign = next;
    return prepare(campaign, true);
}

void el_campaign_end(struct el_campaign *campaign)
{
    int n = campaign->repeats ? campaign->set.n * campaign->options->repeats : 0;
    for (int i = 0; i < n; i++) json_decref(campaign->repeats[i]);
    free(campaign->repeats);
    campaign->repeats = NULL;
    json_decref(campaign->trials);
    json_decref(campaign->environment);
    json_decref(campaign->gate);
    json_decref(campaign->run);
    el_trials_free(&campaign->set);
}

void el_campaign_undo(struct el_campaign *campaign)
{
    el_campaign_end(campaign);
    el_data_files_take_back(&campaign->files);
    el_folder_unmake(campaign->options->checkpoint, campaign->checkpoint_existing);
    el_store_forget(&campaign->store);
}

static json_t *command_of(const struct el_campaign *c)
{
    struct el_options *options = malloc(sizeof *options);
    char command[COMMAND_BYTES];
    enum el_status status = EL_ERR_HOST_MEMORY;
    if (options) {
        *options = c->asked ? *c->asked : *c->options;
        options->out[0] = '\0';
        options->quiet = options->json = options->strict = false;
        status = el_options_command_line(c->command, options, command, sizeof command);
    }
    free(options);
    return status == EL_OK ? el_json_string(command) : json_null();
}

enum el_status el_campaign_write(struct el_campaign *c)
{
    json_t *trials = json_array();
    EL_EACH(trial, c->trials)
        if (!json_is_null(trial)) json_array_append(trials, trial);
    json_t *run = el_record_run(json_incref(c->environment), trials);
    if (!run) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the run's document");
    json_object_set_new(run, "command", command_of(c));
    json_object_set_new(run, "options", el_options_echo(c->command, c->options));
    if (c->gate) json_object_set(run, "gate", c->gate);
    json_decref(c->run);
    c->run = run;
    return el_store_save_run(&c->store, run);
}

enum el_status el_campaign_take(struct el_campaign *campaign, int trial, int repeat, json_t *document)
{
    json_t **place = el_campaign_repeat(campaign, trial, repeat);
    json_decref(*place);
    *place = document;
    EL_TRY(make_trial(campaign, trial));
    return el_campaign_write(campaign);
}

int el_campaign_exit_status(const struct el_campaign *campaign)
{
    char line[512];
    int worst = 0;
    EL_EACH(trial, json_object_get(campaign->run, "trials")) {
        const char *status = el_json_text(trial, "status", "failed");
        const double n = el_json_number(trial, "checkpoints.n"), failed = el_json_number(trial, "checkpoints.failed");
        if (failed > 0)
            el_text_line(stderr, "evenload: %.0f of %.0f checkpoints could not be written: %s", failed, n,
                         el_json_text(trial, "checkpoints.reason", "the logs say why"));
        if (failed > 0 && failed == n) worst = EL_EXIT_TRIAL;
        if (!strcmp(status, "absent"))
            worst = EL_EXIT_USE;
        else if (strcmp(status, "ok") && worst == 0)
            worst = EL_EXIT_TRIAL;
    }
    if (!campaign->options->strict || el_verdict_doubtful(campaign->run, line, sizeof line) == 0) return worst;
    el_text_line(stderr, "evenload: --strict: %s", line);
    return worst ? worst : EL_EXIT_TRIAL;
}
