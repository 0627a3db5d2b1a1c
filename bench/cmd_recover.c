/* `evenload recover`: a job undisturbed and with checkpoints in turns, then with killed or stopped ranks and
 * restarts. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/base/io.h"
#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/commands.h"
#include "bench/page/page.h"
#include "bench/recover/recover.h"
#include "bench/report/report.h"
#include "bench/stats/stats.h"
#include "runtime/state/checkpoint.h"

/* A job; its document is `trials.0` of a record of `run`. */
struct job {
    const char *kind;
    int number;
    bool checkpoints;
    const char *falls; /* of --inject; NULL: none */
};

struct recover {
    const struct el_options *options;
    struct el_store store;
    char falls[EL_PATH_BYTES]; /* "kill=1:50,stop=0:80" */
    int n_falls, n_jobs, n_done;
};

/* "1@50%,0@80": rank and step, or part of all steps. */
static enum el_status read_falls(const char *option, const char *list, int64_t n_steps, struct recover *recover)
{
    for (const char *at = list; *at;) {
        char *end;
        const long rank = strtol(at, &end, 10);
        double step = *end == '@' ? strtod(end + 1, &end) : NAN;
        if (*end == '%') step = floor(step / 100 * (double)n_steps), end++;
        if (!(step >= 1 && step < (double)n_steps) || rank < 0 || (*end && *end != ','))
            return el_fail(EL_ERR_INVALID,
                           "--%s %.60s: give RANK@STEP or RANK@PERCENT, like 1@50%%, with steps from 1 to %" PRId64,
                           option, list, n_steps - 1);
        el_text_append(recover->falls, sizeof recover->falls, "%s%s=%ld:%.0f", *recover->falls ? "," : "", option, rank,
                       step);
        recover->n_falls++;
        at = *end ? end + 1 : end;
    }
    return EL_OK;
}

static void job_options(const struct recover *recover, const struct job *job, struct el_options *run)
{
    *run = *recover->options;
    run->repeats = 1;
    run->quiet = true;
    run->json = false;
    el_store_path(&recover->store, run->out, "%s-%d", job->kind, job->number);
    if (!job->checkpoints) return;
    el_store_path(&recover->store, run->checkpoint, "%s-%d-checkpoints", job->kind, job->number);
    if (!job->falls) return;
    el_text_append(run->inject, sizeof run->inject, "%s%s", *run->inject ? "," : "", job->falls);
    run->max_restarts = recover->n_falls;
}

static enum el_status run_job(struct recover *recover, const struct job *job, json_t **trial_p)
{
    struct el_options run;
    struct el_campaign campaign;
    job_options(recover, job, &run);
    *trial_p = NULL;
    recover->n_done++;
    if (!recover->options->quiet)
        fprintf(stderr, "[%d/%d] %s\n", recover->n_done, recover->n_jobs,
                job->falls         ? "with lost ranks"
                : job->checkpoints ? "with checkpoints"
                                   : "undisturbed");
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_RUN, &run));
    enum el_status status = el_campaign_measure(&campaign, false, NULL);
    if (status == EL_OK && !el_runner_interrupted()) {
        *trial_p = json_deep_copy(el_json_at(campaign.run, "trials.0"));
        if (!el_report_is_ok(*trial_p))
            status = el_fail(EL_ERR_PEER, "recover: %s: %s", job->kind, el_json_text(*trial_p, "reason", "failed"));
    }
    if (campaign.run)
        el_campaign_end(&campaign);
    else
        el_campaign_undo(&campaign);
    return status;
}

static double steps_between(const json_t *trial)
{
    const double every = el_json_number(trial, "checkpoints.every");
    if (every > 0) return every;
    return (double)json_array_size(json_object_get(trial, "loss")) / el_json_number(trial, "checkpoints.n");
}

/* Mean time per step including the time between steps. */
static double whole_step_ms(const json_t *trial)
{
    const double exposed = el_json_number(trial, "checkpoints.copy_ms") + el_json_number(trial, "checkpoints.wait_ms"),
                 every = steps_between(trial);
    return 1e3 * el_json_number(trial, "global_batch") / el_json_number(trial, el_at_samples_per_s_wall) +
           (isnan(exposed) ? 0 : exposed / every);
}

/* Bit for bit. */
static bool same_losses(const json_t *whole, const json_t *rest)
{
    const json_t *a = json_object_get(whole, "loss"), *b = json_object_get(rest, "loss");
    const size_t n = json_array_size(a), m = json_array_size(b);
    bool same = m > 0 && m <= n;
    for (size_t i = 0; i < m && same; i++) same = json_equal(json_array_get(a, n - m + i), json_array_get(b, i));
    return same;
}

static json_t *intervals(double mtbf_s, double checkpoint_s, double recovery_s, double step_s)
{
    static const double usual[] = {3600, 86400, 604800};
    json_t *rows = json_array();
    for (int i = 0; i < (mtbf_s > 0 ? 1 : 3); i++) {
        const double m = mtbf_s > 0 ? mtbf_s : usual[i], t = el_stats_checkpoint_interval(checkpoint_s, m);
        json_array_append_new(
            rows, el_json_of(EL_KEY("mtbf_s", m), EL_KEY("interval_s", t),
                             EL_KEY("interval_steps", fmax(1, round(t / step_s))),
                             EL_KEY("lost_pct", 100 * (1 - el_stats_goodput(t, checkpoint_s, recovery_s, m)))));
    }
    return rows;
}

/* From halves of all intervals; invalid if writing a checkpoint takes longer than half. */
static struct el_interval cost_in_jobs(const struct recover *recover, json_t *const *checkpoints, double step_ms,
                                       size_t *n_p)
{
    char path[EL_PATH_BYTES];
    const double every = el_json_number(checkpoints[0], "checkpoints.every"); /* NAN: by time */
    const double written_ms =
        el_json_number(checkpoints[0], "checkpoints.copy_ms") + el_json_number(checkpoints[0], "checkpoints.write_ms");
    struct el_interval cost = {.valid = false};
    json_t *costs = json_array(), *events;
    for (int i = 1; i <= recover->options->repeats && written_ms < step_ms * every / 2; i++) {
        el_store_path(&recover->store, path, "checkpoints-%d-checkpoints/events.csv", i);
        if (el_recovery_events(path, &events) != EL_OK) continue;
        el_recovery_costs(events, (int64_t)every, costs);
        json_decref(events);
    }
    const size_t n = *n_p = json_array_size(costs);
    double *values = calloc(n + 1, sizeof *values);
    for (size_t i = 0; values && i < n; i++) values[i] = json_real_value(json_array_get(costs, i));
    if (values) cost = el_stats_signed_rank_interval(values, n, 0.95);
    free(values);
    json_decref(costs);
    return cost;
}

static json_t *last_index(const struct recover *recover, const char *kind)
{
    char dir[EL_PATH_BYTES], folder[EL_PATH_BYTES], path[EL_PATH_BYTES + 16];
    json_t *whole = NULL;
    el_store_path(&recover->store, dir, "%s-1-checkpoints", kind);
    el_checkpoint_folder(dir, el_checkpoint_last(dir), true, folder);
    snprintf(path, sizeof path, "%s/index.json", folder);
    if (el_read_json(path, &whole) != EL_OK) return NULL;
    json_t *index = json_incref(json_object_get(whole, "checkpoint"));
    json_decref(whole);
    return index;
}

/* "job_bytes" of all workers' files, and equal bits by the files' hashes; null without a common step. */
static void put_last(const struct recover *recover, json_t *own, json_t **same_p)
{
    json_t *fallen = last_index(recover, "fallen"), *whole = last_index(recover, "checkpoints"),
           *files = json_object_get(fallen, "files");
    const bool both = files && el_json_whole(fallen, "step") == el_json_whole(whole, "step");
    int64_t bytes = 0;
    EL_EACH(file, files) bytes += el_json_whole(file, "bytes");
    el_json_put(own, "job_bytes", files ? json_integer(bytes) : json_null());
    *same_p = both ? json_boolean(json_equal(files, json_object_get(whole, "files"))) : json_null();
    json_decref(fallen);
    json_decref(whole);
}

static enum el_status make_document(const struct recover *recover, json_t *const *undisturbed,
                                    json_t *const *checkpoints, const json_t *fallen, json_t **document_p)
{
    const int n = recover->options->repeats;
    double *without = calloc(2 * (size_t)n, sizeof *without), *with = without + n, exposed_ms = 0;
    char path[EL_PATH_BYTES];
    json_t *events;
    if (!without) return el_fail_errno("recover");
    for (int i = 0; i < n; i++) {
        without[i] = whole_step_ms(undisturbed[i]);
        with[i] = whole_step_ms(checkpoints[i]);
        exposed_ms += (el_json_number(checkpoints[i], "checkpoints.copy_ms") +
                       el_json_number(checkpoints[i], "checkpoints.wait_ms")) /
                      n;
    }
    const struct el_interval ratio = el_stats_ratio_paired(with, without, (size_t)n);
    const double step_ms = el_stats_median(without, (size_t)n);
    free(without);
    size_t n_costs;
    const struct el_interval in_jobs = cost_in_jobs(recover, checkpoints, step_ms, &n_costs);
    const struct el_interval cost = in_jobs.valid ? in_jobs
                                                  : (struct el_interval){.centre = 100 * (ratio.centre - 1),
                                                                         .low = 100 * (ratio.low - 1),
                                                                         .high = 100 * (ratio.high - 1)};
    const double cost_ms = fmax(exposed_ms, cost.centre / 100 * step_ms * steps_between(checkpoints[0]));
    el_store_path(&recover->store, path, "fallen-1-checkpoints/events.csv");
    EL_TRY(el_recovery_events(path, &events));
    json_t *falls = el_recovery_falls(events), *last = json_array_get(falls, json_array_size(falls) - 1);
    const double recovery_s =
        el_json_number(last, "detect_s") + el_json_number(last, "restart_s") + el_json_number(last, "load_s");
    json_t *own = json_deep_copy(json_object_get(checkpoints[0], "checkpoints"));
    json_object_del(own, "dir");
    json_t *same_weights;
    put_last(recover, own, &same_weights);
    el_json_put(own, "every", el_json_rounded(steps_between(checkpoints[0])));
    *document_p = el_json_of(
        EL_KEY("schema", 1), EL_KEY("command", "recover"), EL_KEY("dir", (const char *)recover->store.dir),
        EL_KEY("mode", el_json_text(fallen, "mode", "?")), EL_KEY("model", el_json_text(fallen, "model", "?")),
        EL_KEY("devices", json_incref(json_object_get(fallen, "devices"))),
        EL_KEY("environment", json_incref(json_object_get(fallen, "environment"))),
        EL_KEY("steps", (int64_t)json_array_size(json_object_get(undisturbed[0], "loss"))), EL_KEY("step_ms", step_ms),
        EL_KEY("checkpoints", own), EL_KEY("exposed_ms", exposed_ms), EL_KEY("cost_ms", cost_ms), EL_KEY("repeats", n),
        EL_KEY("cost_pct", cost.centre), EL_KEY("cost_pct_ci95", el_json_interval(cost.low, cost.high)),
        EL_KEY("cost_of", in_jobs.valid ? "checkpoints" : "pairs of jobs"),
        EL_KEY("cost_n", in_jobs.valid ? (int64_t)n_costs : (int64_t)n), EL_KEY("falls", falls),
        EL_KEY("recovery_s", recovery_s), EL_KEY("goodput", el_recovery_goodput(events, step_ms / 1e3)),
        EL_KEY("same_losses", same_losses(undisturbed[0], fallen)), EL_KEY("same_weights", same_weights),
        EL_KEY("intervals", intervals(recover->options->mtbf_s, cost_ms / 1e3, recovery_s, step_ms / 1e3)),
        EL_KEY("events", events));
    return EL_OK;
}

static enum el_status show(const struct recover *recover, const json_t *document)
{
    EL_TRY(el_printed_show("recover", recover->options, recover->store.dir, document));
    if (!recover->options->json)
        printf("\nNext: %s run --mode %s --checkpoint ck,every=%.0f,restarts=3\n", el_program_word(),
               el_json_text(document, "mode", "?"), el_json_number(document, "intervals.0.interval_steps"));
    return EL_OK;
}

static enum el_status run_jobs(struct recover *recover, json_t **undisturbed, json_t **checkpoints, json_t **fallen_p)
{
    for (int i = 0; i < recover->options->repeats; i++) {
        const struct job plain = {"undisturbed", i + 1, false, NULL}, saved = {"checkpoints", i + 1, true, NULL};
        const bool first = i % 2 == 0; /* in turns */
        EL_TRY(run_job(recover, first ? &plain : &saved, first ? &undisturbed[i] : &checkpoints[i]));
        if (el_runner_interrupted()) return EL_OK;
        EL_TRY(run_job(recover, first ? &saved : &plain, first ? &checkpoints[i] : &undisturbed[i]));
        if (el_runner_interrupted()) return EL_OK;
    }
    return run_job(recover, &(struct job){"fallen", 1, true, recover->falls}, fallen_p);
}

/* Before anything runs. */
static enum el_status check(const struct recover *recover)
{
    struct el_options run = *recover->options;
    struct el_trial_set set;
    if (*run.checkpoint)
        return el_fail(EL_ERR_INVALID,
                       "--checkpoint %.60s: recover keeps its checkpoints in --out: leave the folder out",
                       run.checkpoint);
    snprintf(run.checkpoint, sizeof run.checkpoint, "checkpoints"); /* any: nothing is written here */
    run.repeats = 1;
    el_text_append(run.inject, sizeof run.inject, "%s%s", *run.inject ? "," : "", recover->falls);
    EL_TRY(el_trials_resolve(EL_CMD_RUN, &run, &set));
    el_trials_free(&set);
    return EL_OK;
}

enum el_status el_cmd_recover(struct el_options *options, int *exit_status_p)
{
    struct recover recover = {.options = options, .n_jobs = 2 * options->repeats + 1};
    const int64_t n_steps = options->train.warmup + options->train.steps;
    if (!*options->kill && !*options->stop) snprintf(options->kill, sizeof options->kill, "1@50%%");
    EL_TRY(read_falls("kill", options->kill, n_steps, &recover));
    EL_TRY(read_falls("stop", options->stop, n_steps, &recover));
    EL_TRY(check(&recover));
    el_runner_catch_signals();
    EL_TRY(el_store_create(options->out, "recover", &recover.store));
    json_t **trials = calloc(2 * (size_t)options->repeats + 1, sizeof *trials), **saved = trials + options->repeats,
           *document = NULL;
    if (!trials) return el_fail_errno("recover");
    enum el_status status = run_jobs(&recover, trials, saved, &trials[2 * options->repeats]);
    const bool interrupted = el_runner_interrupted();
    if (status == EL_OK && !interrupted)
        status = make_document(&recover, trials, saved, trials[2 * options->repeats], &document);
    if (document) status = show(&recover, document);
    if (interrupted) *exit_status_p = el_exit_interrupted();
    for (int i = 0; i <= 2 * options->repeats; i++) json_decref(trials[i]);
    free(trials);
    json_decref(document);
    if (status != EL_OK) el_store_forget(&recover.store);
    return status;
}
