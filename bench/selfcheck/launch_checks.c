/* Self-check: launching. Each check is a trial of `run`, or a pair with its clean twin, through runner and store as any
 * run; a check that fails is tried once more, since a busy moment of the machine is no fault of what measures, and the
 * record is of the last try (the repeats' files are of all). */
#include <math.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/campaign/progress.h"
#include "bench/campaign/runner.h"
#include "bench/explain/explain.h"
#include "bench/machine/host.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/selfcheck/selfcheck.h"
#include "bench/trial/trial.h"
#include "runtime/base/clock.h"

enum { COMMAND_BYTES = 8192, TIMEOUT_S = 60 };
/* The plain C kernels take 10 to 50 times as long as a library's. With so much less of the batch their steps are as
 * short, and a busy machine's time slices of some milliseconds fall between them, not into each. */
enum { PLAIN_SHARE = 16 };

enum launch { CLEAN, INJECTED };

struct run {
    struct el_store store;
    struct el_runner runner;
    struct el_progress progress;
    struct el_cores cores;
    struct el_selfcheck *check;
    json_t *records[EL_SELFCHECK_ROWS][2]; /* by launch, of the last try; NULL: none */
    int order;
};

/* The row's trial, as the command line says it. */
static enum el_status resolve(const struct el_selfcheck_row *row, enum launch which, struct el_options *options,
                              struct el_trial_set *set_p)
{
    char *arguments[EL_SELFCHECK_ARGUMENTS + 1] = {NULL};
    unsigned command = row->explained ? EL_CMD_EXPLAIN : EL_CMD_RUN;
    int n = 0;
    for (; row->arguments[n]; n++) arguments[n] = (char *)(uintptr_t)row->arguments[n];
    el_options_defaults(command, options);
    EL_TRY(el_options_parse(command, n, arguments, options));
    options->timeout_s = TIMEOUT_S;
    options->repeats = 1;
    options->quiet = true;
    if (el_kernels_cpu_missing()) options->batches[0] /= PLAIN_SHARE;
    snprintf(options->inject, sizeof options->inject, "%s", which == INJECTED ? row->inject : "");
    return row->explained ? el_explain_resolve(options, set_p) : el_trials_resolve(command, options, set_p);
}

/* What `explain` finds in one launch, or why there is nothing; *record_p stays where it was interrupted. */
static enum el_status explain(struct run *run, const struct el_options *options, const struct el_trial_set *set,
                              json_t **record_p)
{
    json_t *samples = NULL, *document;
    enum el_status status = el_explain_measure(options, set, &run->store, &samples);
    if (status == EL_OK && !samples) return EL_OK;
    if (status == EL_OK) {
        document = el_explain_document(set->trials, samples);
        el_json_put_text(document, "status", "ok");
    } else {
        document = json_pack("{s:s, s:s}", "status", "failed", "reason", el_error_message());
    }
    json_decref(samples);
    json_decref(*record_p);
    *record_p = document;
    return document ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for a record");
}

/* One launch, and its record; *record_p stays where it was interrupted. */
static enum el_status measure(struct run *run, const struct el_trial *trial, const char *name, int try,
                              json_t **record_p)
{
    char command[COMMAND_BYTES];
    json_t *document;
    EL_TRY(el_trial_command(trial, command, sizeof command));
    el_progress_begin(&run->progress, trial, try);
    snprintf(run->progress.now, sizeof run->progress.now, "%s%s%s", name, trial->inject[0] ? "" : ", clean twin",
             try ? ", once more" : "");
    el_progress_tick(&run->progress, 0);
    EL_TRY(el_runner_measure(&run->runner, trial, try, run->order++, &document));
    el_progress_end(&run->progress, document);
    if (!document) return EL_OK;
    run->check->others_pct = fmax(run->check->others_pct, /* of a number and NAN: the number */
                                  el_json_number(document, "system.others_pct"));
    json_t *repeats = json_pack("[o]", document);
    json_decref(*record_p);
    *record_p = el_record_trial(trial, command, repeats);
    json_decref(repeats);
    return *record_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for a record");
}

/* That progress counts: `explain` has a launch of its own. */
static int launches(const struct el_selfcheck_row *row)
{
    return row->explained ? 0 : 1 + row->twin;
}

static enum el_status try_once(struct run *run, int i, struct el_selfcheck_result *result)
{
    const struct el_selfcheck_row *row = &el_selfcheck_rows()[i];
    json_t **records = run->records[i];
    if (result->tries) run->progress.n += launches(row);
    for (enum launch which = row->twin ? CLEAN : INJECTED; which <= INJECTED; which++) {
        struct el_trial_set set;
        struct el_options options;
        EL_TRY(resolve(row, which, &options, &set));
        enum el_status status = row->explained ? explain(run, &options, &set, &records[which])
                                               : measure(run, set.trials, row->name, result->tries, &records[which]);
        el_trials_free(&set);
        if (status != EL_OK || el_runner_interrupted()) return status;
    }
    el_selfcheck_look(row, records[INJECTED], records[CLEAN], &result->finding);
    result->state = result->finding.ok ? EL_SELFCHECK_FOUND : EL_SELFCHECK_MISSED;
    result->tries++;
    return EL_OK;
}

static enum el_status check_row(struct run *run, int i)
{
    const struct el_selfcheck_row *row = &el_selfcheck_rows()[i];
    struct el_selfcheck_result *result = &run->check->results[i];
    if (run->cores.n < row->n_cores) {
        result->state = EL_SELFCHECK_SKIPPED;
        snprintf(result->finding.text, sizeof result->finding.text, "%s", row->skipped);
        return EL_OK;
    }
    while (result->tries < EL_SELFCHECK_TRIES && result->state != EL_SELFCHECK_FOUND && !el_runner_interrupted())
        EL_TRY(try_once(run, i, result));
    return EL_OK;
}

static enum el_status write_run(struct run *run)
{
    json_t *trials = json_array();
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++)
        for (enum launch which = CLEAN; which <= INJECTED; which++)
            if (run->records[i][which] && !el_selfcheck_rows()[i].explained)
                json_array_append(trials, run->records[i][which]);
    json_t *document = el_record_run(el_environment(), trials);
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the run's document");
    json_object_set_new(document, "selfcheck", el_selfcheck_json(run->check));
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++)
        if (el_selfcheck_rows()[i].explained && run->records[i][INJECTED])
            json_object_set(document, "explain", run->records[i][INJECTED]);
    enum el_status status = el_store_save_run(&run->store, document);
    json_decref(document);
    return status;
}

static enum el_status check_all(struct run *run, bool quiet)
{
    const struct el_selfcheck_row *rows = el_selfcheck_rows();
    int n = 0;
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++)
        if (run->cores.n >= rows[i].n_cores) n += launches(&rows[i]);
    EL_TRY(el_runner_init(&run->runner, &run->store));
    el_runner_catch_signals();
    el_progress_init(&run->progress, n, quiet);
    run->runner.tick = el_progress_tick;
    run->runner.context = &run->progress;
    for (int i = 0; i < EL_SELFCHECK_ROWS && !el_runner_interrupted(); i++) EL_TRY(check_row(run, i));
    return EL_OK;
}

enum el_status el_selfcheck_run(const struct el_options *options, struct el_selfcheck *check_p)
{
    struct el_selfcheck check = {.others_pct = NAN, .by_mpi = el_runner_check_mpi() == EL_OK};
    struct run run = {.check = &check};
    int64_t begin_ns = el_clock_ns();
    el_cores_find("", &run.cores);
    el_runner_catch_signals();
    enum el_status status = el_store_create(options->out, "selfcheck", &run.store);
    if (status == EL_OK) {
        memcpy(check.dir, run.store.dir, sizeof check.dir);
        status = check_all(&run, options->quiet);
        check.seconds = (double)(el_clock_ns() - begin_ns) * 1e-9;
        if (status == EL_OK && !el_runner_interrupted()) status = write_run(&run);
    }
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++)
        for (enum launch which = CLEAN; which <= INJECTED; which++) json_decref(run.records[i][which]);
    if (status == EL_OK) *check_p = check;
    return status;
}
