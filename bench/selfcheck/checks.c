/* What is injected, and how each is looked for. Pure functions of records: nothing is launched or printed here.
 *
 * Devices are real ones. A null device has no kernels, so that its figures come out within a hundredth; but what is to
 * be shown is that this machine, with its kernels, clocks and scheduler, tells the truth. All figures that are looked
 * at are medians over steps (memory: exact), since a neighbour's burst moves a mean of half a second by a tenth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/campaign/progress.h"
#include "bench/campaign/runner.h"
#include "bench/explain/explain.h"
#include "bench/machine/host.h"
#include "bench/options/options.h"
#include "bench/record/record.h"
#include "bench/selfcheck/selfcheck.h"
#include "bench/stats/stats.h"
#include "bench/trial/trial.h"
#include "runtime/base/clock.h"

/* Self-check: launching. Each check is a trial of `run`, or a pair with its clean twin, through runner and store as any
 * run; a check that fails is tried once more, since a busy moment of the machine is no fault of what measures, and the
 * record is of the last try (the repeats' files are of all). */

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

enum { MEMBERS = 2, SECOND = 1 /* the position that is disturbed */ };

/* Ops shorter than this part of the step's are left out where ops are compared: of a microsecond, half is the clock. */
#define WEIGHTY_RATIO 0.03
/* What the other device may seem to lose, of what the disturbed one loses. */
#define SPILL_RATIO   0.01
/* The part of a straggler's lead in compute that the other must at least be seen to wait. */
#define WAIT_RATIO    0.5
#define BYTES_PER_MIB 1048576.0

/* What other causes may seem to cost, of what the disturbed one does. */
#define CAUSE_SPILL_RATIO 0.25

static const char slow_cause[] = "replicas";
static const char slow_op[] = "linear_forward hidden2";

static const json_t *device_at(const json_t *trial, size_t position)
{
    return json_array_get(json_object_get(trial, "per_device"), position);
}

static const char *device_name(const json_t *trial, int position)
{
    return el_json_text(device_at(trial, (size_t)position), "device", "no device");
}

static bool is_within(const struct el_selfcheck_row *row, double value)
{
    return fabs(value - row->injected) <= row->within_pct / 100 * row->injected;
}

/* How much later than in the twin a device arrives at the first collective of a step. */
static void look_delay(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                       struct el_selfcheck_finding *finding)
{
    int latest = -1;
    for (int p = 0; p < MEMBERS; p++) {
        char path[64];
        snprintf(path, sizeof path, "collectives.0.late_ms.%d", p);
        double ms = el_json_number(injected, path) - el_json_number(clean, path);
        if (isnan(ms) || (latest >= 0 && ms <= finding->value)) continue;
        finding->value = ms;
        latest = p;
    }
    finding->ok = latest == SECOND && is_within(row, finding->value);
    if (latest < 0)
        snprintf(finding->text, sizeof finding->text, "no arrivals were recorded");
    else
        snprintf(finding->text, sizeof finding->text, "%s late by %.2f ms", device_name(injected, latest),
                 finding->value);
}

/* Milliseconds of the op of this name and phase, a step; NAN where there is none. */
static double op_ms(const json_t *device, const json_t *like)
{
    const json_t *ops = json_object_get(device, "ops");
    EL_EACH(op, ops) {
        if (!strcmp(el_json_text(op, "op", ""), el_json_text(like, "op", "-")) &&
            !strcmp(el_json_text(op, "phase", ""), el_json_text(like, "phase", "-")))
            return el_json_number(op, "median_ms");
    }
    return NAN;
}

/* Of the ops of these phases (between blanks), one after the other; NULL: of all. */
static double sum_ms(const json_t *device, const char *phases)
{
    const json_t *ops = json_object_get(device, "ops");
    double ms = 0;
    EL_EACH(op, ops) {
        char phase[32];
        snprintf(phase, sizeof phase, " %s ", el_json_text(op, "phase", ""));
        if (!phases || strstr(phases, phase)) ms += el_json_number(op, "median_ms");
    }
    return ms;
}

/* What the ops of the injected trial took of their twins' time, the median of those that weigh: above 1 where the
 * machine was slower then. */
static double common_ratio(const json_t *injected, const json_t *clean)
{
    const json_t *ops = json_object_get(clean, "ops");
    size_t n = 0;
    double *ratios = calloc(json_array_size(ops) + 1, sizeof *ratios), least_ms = WEIGHTY_RATIO * sum_ms(clean, NULL);
    for (size_t i = 0; ratios && i < json_array_size(ops); i++) {
        const json_t *op = json_array_get(ops, i);
        double clean_ms = el_json_number(op, "median_ms"), ratio = op_ms(injected, op) / clean_ms;
        if (clean_ms >= least_ms && isfinite(ratio)) ratios[n++] = ratio;
    }
    double common = el_stats_quantile(ratios, n, 0.5); /* the lower middle: a ratio that was seen */
    free(ratios);
    return common;
}

/* The op that rose most, in milliseconds, beyond what all rose. */
static void look_op(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                    struct el_selfcheck_finding *finding)
{
    const json_t *after = device_at(injected, 0), *before = device_at(clean, 0), *ops = json_object_get(before, "ops");
    double common = common_ratio(after, before), most_ms = 0;
    const char *name = NULL;
    EL_EACH(op, ops) {
        double usual_ms = common * el_json_number(op, "median_ms"), ms = op_ms(after, op);
        if (!(ms - usual_ms > most_ms)) continue;
        most_ms = ms - usual_ms;
        finding->value = ms / usual_ms;
        name = el_json_text(op, "op", "");
    }
    finding->ok = name && !strcmp(name, slow_op) && is_within(row, finding->value);
    if (name)
        snprintf(finding->text, sizeof finding->text, "%s at %.2f times", name, finding->value);
    else
        snprintf(finding->text, sizeof finding->text, "no op took longer");
}

static void look_leak(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                      struct el_selfcheck_finding *finding)
{
    (void)clean;
    double steps = (double)(json_array_size(el_json_at(injected, "repeats.0.step_ms")) +
                            json_array_size(el_json_at(injected, "repeats.0.recorded_step_ms")));
    double grown[MEMBERS];
    for (int p = 0; p < MEMBERS; p++) grown[p] = el_json_number(device_at(injected, (size_t)p), "memory.grown_bytes");
    if (steps < 1 || isnan(grown[0]) || isnan(grown[SECOND])) {
        snprintf(finding->text, sizeof finding->text, "the system does not tell a device's memory: %s",
                 el_json_text(device_at(injected, SECOND), "memory.driver_reason", "no reason is known"));
        return;
    }
    int most = grown[SECOND] > grown[0] ? SECOND : 0;
    finding->value = grown[most] / steps;
    finding->ok = most == SECOND && is_within(row, finding->value) && fabs(grown[0]) <= SPILL_RATIO * grown[SECOND];
    snprintf(finding->text, sizeof finding->text, "%s loses %.3f MiB, %s %.3f", device_name(injected, most),
             finding->value / BYTES_PER_MIB, device_name(injected, SECOND - most),
             grown[SECOND - most] / steps / BYTES_PER_MIB);
}

/* What a device computes, whoever it waits for. */
static const char kernels[] = " forward loss backward reduce optimizer ";

/* The twin takes out that one core may be faster than the other. */
static void look_straggler(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                           struct el_selfcheck_finding *finding)
{
    double ms[MEMBERS], wait_ms[MEMBERS], usual[MEMBERS];
    for (int p = 0; p < MEMBERS; p++) {
        ms[p] = sum_ms(device_at(injected, (size_t)p), kernels);
        usual[p] = sum_ms(device_at(clean, (size_t)p), kernels);
        wait_ms[p] = el_json_number(device_at(injected, (size_t)p), "comm.wait_ms");
    }
    double ratio = ms[SECOND] / ms[0] / (usual[SECOND] / usual[0]);
    if (!isfinite(ratio) || isnan(wait_ms[0]) || isnan(wait_ms[SECOND])) {
        snprintf(finding->text, sizeof finding->text, "no compute times or waits were recorded");
        return;
    }
    int slow = ratio > 1 ? SECOND : 0, other = SECOND - slow;
    finding->value = slow == SECOND ? ratio : 1 / ratio;
    finding->ok = slow == SECOND && is_within(row, finding->value) && wait_ms[other] > wait_ms[slow] &&
                  wait_ms[other] >= WAIT_RATIO * (ms[slow] - ms[other]);
    snprintf(finding->text, sizeof finding->text, "%s at %.2f times; %s waits %.2f ms", device_name(injected, slow),
             finding->value, device_name(injected, other), wait_ms[other]);
}

/* The cause that costs most, and what the next one does. */
static void look_cause(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                       struct el_selfcheck_finding *finding)
{
    (void)clean;
    const json_t *causes = json_object_get(injected, "causes"), *most = NULL, *next = NULL;
    EL_EACH(cause, causes) {
        double ms = fabs(el_json_number(cause, "ms"));
        bool above = !most || ms > fabs(el_json_number(most, "ms"));
        if (above || !next || ms > fabs(el_json_number(next, "ms"))) next = above ? most : cause;
        if (above) most = cause;
    }
    finding->value = el_json_number(most, "ms");
    finding->ok = el_json_is(most, "cause", slow_cause) && is_within(row, finding->value) &&
                  fabs(el_json_number(next, "ms")) <= CAUSE_SPILL_RATIO * finding->value;
    snprintf(finding->text, sizeof finding->text, "%s costs %.2f ms, then %s %.2f",
             el_json_text(most, "cause", "nothing"), finding->value, el_json_text(next, "cause", "nothing"),
             el_json_number(next, "ms"));
}

/* Sizes. A delay is told best where nothing else takes time. Where kernels are compared a library takes tenths of a
 * millisecond for each, so that neither clock nor scheduler weighs, and there are hundreds of steps for a median; where
 * there is none, the run takes less of the batch. */
#define TRIAL    "run", "--model", "mlp", "--data", "dummy", "--control", "none"
#define SMALL    "--features", "64", "--hidden", "64,64", "--batch", "32"
#define WEIGHTY  "--features", "512", "--hidden", "512,512", "--batch", "128"
#define MIN_TIME "--min-time", "0.8"

static const char two_cores[] = "two devices would share one core, and each would seem to be late or slow in turn";

static const struct el_selfcheck_row rows[EL_SELFCHECK_ROWS] = {
    {.name = "delay",
     .what = "cpu:1 begins 20 ms late",
     .inject = "delay=1:20",
     .injected = 20,
     .within_pct = 10,
     .twin = true,
     .n_cores = 2,
     .skipped = two_cores,
     .arguments = {TRIAL, SMALL, MIN_TIME, "--mode", "ddp", "--devices", "2", NULL},
     .look = look_delay},
    {.name = "slow op",
     .what = "hidden2 at 3 times",
     .inject = "op=linear_forward hidden2:3",
     .injected = 3,
     .within_pct = 25,
     .twin = true,
     .n_cores = 1,
     .arguments = {TRIAL, WEIGHTY, MIN_TIME, "--mode", "single", "--devices", "1", NULL},
     .look = look_op},
    /* Exact from the first step on; a minimum time would take a fast machine's memory. */
    {.name = "leak",
     .what = "cpu:1 loses 1 MiB/step",
     .inject = "leak=1:1MiB",
     .injected = BYTES_PER_MIB,
     .within_pct = 5,
     .n_cores = 1,
     .arguments = {TRIAL, SMALL, "--min-time", "0", "--steps", "50", "--mode", "dp", "--devices", "2", NULL},
     .look = look_leak},
    /* Without overlap: with it the straggler's own all-reduce takes its core in backward, and it comes to 1.63 times.
     * For longer: of all figures this one, a ratio of two cores' ratios, minds most who else is on them. */
    {.name = "straggler",
     .what = "cpu:1 at 1.5 times",
     .inject = "straggler=1:1.5",
     .injected = 1.5,
     .within_pct = 20,
     .twin = true,
     .n_cores = 2,
     .skipped = two_cores,
     .arguments = {TRIAL, WEIGHTY, "--min-time", "1.5", "--mode", "ddp", "--devices", "2", "--overlap", "off", NULL},
     .look = look_straggler},
    /* Its own twins are in it: the schedules that do not send the model. */
    {.name = "cause",
     .what = "dp copies 20 ms late",
     .inject = "pause=broadcast parameters:20",
     .injected = 20,
     .within_pct = 20,
     .explained = true,
     .n_cores = 1,
     .arguments = {"explain", "--model", "mlp", "--data", "dummy", SMALL, "--min-time", "0.2", "--devices", "2", NULL},
     .look = look_cause},
};

const struct el_selfcheck_row *el_selfcheck_rows(void)
{
    return rows;
}

static bool ended_well(const json_t *trial, struct el_selfcheck_finding *finding)
{
    const char *status = el_json_text(trial, "status", "failed");
    if (!strcmp(status, "ok")) return true;
    snprintf(finding->text, sizeof finding->text, "its trial: %s: %s", status,
             el_json_text(trial, "reason", "no reason was given"));
    return false;
}

void el_selfcheck_look(const struct el_selfcheck_row *row, const json_t *injected, const json_t *clean,
                       struct el_selfcheck_finding *finding_p)
{
    struct el_selfcheck_finding finding = {.value = NAN};
    if (ended_well(injected, &finding) && (!row->twin || ended_well(clean, &finding)))
        row->look(row, injected, clean, &finding);
    *finding_p = finding;
}
