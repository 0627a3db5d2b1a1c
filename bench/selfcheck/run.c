/* Self-check: launching. Each check is a trial of `run`, or a pair with its clean twin, through runner and store as any
 * run; a check that fails is tried once more, since a busy moment of the machine is no fault of what measures. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/campaign/progress.h"
#include "bench/campaign/runner.h"
#include "bench/machine/cores.h"
#include "bench/machine/environment.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/selfcheck/selfcheck.h"
#include "bench/trial/trial.h"
#include "runtime/base/clock.h"

enum { COMMAND_BYTES = 8192, TIMEOUT_S = 60 };
/* The plain C kernels take 10 to 50 times as long as a library's. With so much less of the batch their steps are as
 * short, and a busy machine's time slices of some milliseconds fall between them, not into each. */
enum { PLAIN_SHARE = 16 };

struct run {
    struct el_store store;
    struct el_runner runner;
    struct el_progress progress;
    struct el_cores cores;
    struct el_selfcheck *check;
    json_t *trials; /* of the run's document */
    int order;
};

/* A trial and what its launches came to. */
struct subject {
    struct el_trial_set set;
    json_t *repeats;
};

static enum el_status open_subject(const struct el_selfcheck_row *row, const char *inject, struct subject *subject_p)
{
    struct subject subject = {.repeats = NULL};
    char *arguments[EL_SELFCHECK_ARGUMENTS + 1] = {NULL};
    struct el_options *options = calloc(1, sizeof *options);
    int n = 0;
    if (!options) return el_fail_errno("options");
    for (; row->arguments[n]; n++) arguments[n] = (char *)(uintptr_t)row->arguments[n];
    el_options_defaults(EL_CMD_RUN, options);
    enum el_status status = el_options_parse(EL_CMD_RUN, n, arguments, options);
    options->timeout_s = TIMEOUT_S;
    if (el_kernels_cpu_lack()) options->batches[0] /= PLAIN_SHARE;
    snprintf(options->inject, sizeof options->inject, "%s", inject);
    if (status == EL_OK) status = el_trials_resolve(EL_CMD_RUN, options, &subject.set);
    free(options);
    if (status != EL_OK) return status;
    subject.repeats = json_array();
    *subject_p = subject;
    return EL_OK;
}

static enum el_status record_of(const struct subject *subject, json_t *repeats, json_t **record_p)
{
    char command[COMMAND_BYTES];
    EL_TRY(el_trial_command(subject->set.trials, command, sizeof command));
    *record_p = el_record_trial(subject->set.trials, command, repeats);
    return *record_p ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "no memory for a record");
}

/* Into the run's document, with all its tries. */
static enum el_status close_subject(struct run *run, struct subject *subject)
{
    json_t *record = NULL;
    enum el_status status = EL_OK;
    if (json_array_size(subject->repeats)) status = record_of(subject, subject->repeats, &record);
    if (record) json_array_append_new(run->trials, record);
    json_decref(subject->repeats);
    el_trials_free(&subject->set);
    return status;
}

/* One launch; its record alone, NULL where it was interrupted. */
static enum el_status launch(struct run *run, const char *name, struct subject *subject, int try, json_t **record_p)
{
    const struct el_trial *trial = subject->set.trials;
    json_t *document, *alone = json_array();
    *record_p = NULL;
    el_progress_begin(&run->progress, trial, try);
    snprintf(run->progress.now, sizeof run->progress.now, "%s%s%s", name, trial->inject[0] ? "" : ", clean twin",
             try ? ", once more" : "");
    el_progress_tick(&run->progress, 0);
    enum el_status status = el_runner_measure(&run->runner, trial, try, run->order++, &document);
    el_progress_end(&run->progress, document);
    if (status == EL_OK && document) {
        double others_pct = el_json_number(document, "system.others_pct");
        run->check->others_pct = fmax(run->check->others_pct, others_pct); /* of a number and NAN: the number */
        json_array_append(alone, document);
        json_array_append_new(subject->repeats, document);
        status = record_of(subject, alone, record_p);
    }
    json_decref(alone);
    return status;
}

static int launches_of(const struct el_selfcheck_row *row)
{
    return row->twin ? 2 : 1;
}

static enum el_status try_once(struct run *run, const struct el_selfcheck_row *row, struct subject *injected,
                               struct subject *clean, struct el_selfcheck_result *result)
{
    json_t *usual = NULL, *disturbed = NULL;
    enum el_status status = EL_OK;
    if (result->tries) run->progress.n += launches_of(row);
    if (row->twin) status = launch(run, row->name, clean, result->tries, &usual);
    if (status == EL_OK && !el_runner_interrupted())
        status = launch(run, row->name, injected, result->tries, &disturbed);
    if (status == EL_OK && disturbed) {
        el_selfcheck_look(row, disturbed, usual, &result->finding);
        result->state = result->finding.ok ? EL_SELFCHECK_FOUND : EL_SELFCHECK_MISSED;
        result->tries++;
    }
    json_decref(usual);
    json_decref(disturbed);
    return status;
}

static enum el_status check_row(struct run *run, const struct el_selfcheck_row *row, struct el_selfcheck_result *result)
{
    struct subject injected = {.repeats = NULL}, clean = {.repeats = NULL};
    if (run->cores.n < row->n_cores) {
        result->state = EL_SELFCHECK_SKIPPED;
        snprintf(result->finding.text, sizeof result->finding.text, "%s", row->skipped);
        return EL_OK;
    }
    enum el_status status = open_subject(row, row->inject, &injected);
    if (status == EL_OK && row->twin) status = open_subject(row, "", &clean);
    while (status == EL_OK && result->tries < EL_SELFCHECK_TRIES && result->state != EL_SELFCHECK_FOUND &&
           !el_runner_interrupted())
        status = try_once(run, row, &injected, &clean, result);
    enum el_status clean_closed = close_subject(run, &clean), injected_closed = close_subject(run, &injected);
    return status != EL_OK ? status : clean_closed != EL_OK ? clean_closed : injected_closed;
}

static enum el_status write_run(struct run *run)
{
    json_t *document = el_record_run(el_environment(), json_incref(run->trials));
    if (!document) return el_fail(EL_ERR_HOST_MEMORY, "no memory for the run's document");
    json_object_set_new(document, "selfcheck", el_selfcheck_json(run->check));
    enum el_status status = el_store_save_run(&run->store, document);
    json_decref(document);
    return status;
}

static int count_launches(const struct run *run)
{
    int n = 0;
    for (int i = 0; i < EL_SELFCHECK_ROWS; i++) {
        const struct el_selfcheck_row *row = &el_selfcheck_rows()[i];
        if (run->cores.n >= row->n_cores) n += launches_of(row);
    }
    return n;
}

static enum el_status check_all(struct run *run, bool quiet)
{
    EL_TRY(el_runner_init(&run->runner, &run->store));
    el_runner_catch_signals();
    el_progress_init(&run->progress, count_launches(run), quiet);
    run->runner.tick = el_progress_tick;
    run->runner.context = &run->progress;
    for (int i = 0; i < EL_SELFCHECK_ROWS && !el_runner_interrupted(); i++)
        EL_TRY(check_row(run, &el_selfcheck_rows()[i], &run->check->results[i]));
    return EL_OK;
}

static bool has_mpi(void)
{
    struct el_error error;
    enum el_status status = el_runner_check_mpi();
    if (status != EL_OK) el_error_take(status, &error);
    return status == EL_OK;
}

enum el_status el_selfcheck_run(const struct el_options *options, struct el_selfcheck *check_p)
{
    struct el_selfcheck check = {.others_pct = NAN, .by_mpi = has_mpi()};
    struct run run = {.check = &check, .trials = json_array()};
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
    json_decref(run.trials);
    if (status == EL_OK) *check_p = check;
    return status;
}
