/* `verify --disturb`: disturbances of known size, injected on this machine, and what the record says of them. Looking
 * is a function of the trials' records alone; launching is a `run` in a folder of its own. Figures are medians over
 * steps (memory: exact): a neighbour's burst moves a mean of half a second by a tenth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/base/jvalue.h"
#include "bench/base/table.h"
#include "bench/base/text.h"
#include "bench/campaign/campaign.h"
#include "bench/machine/host.h"
#include "bench/options/options.h"
#include "bench/record/metrics.h"
#include "bench/stats/stats.h"
#include "bench/verify/verify.h"
#include "kernels/kernels.h"

enum { MEMBERS = 2, SECOND = 1 /* the position that is disturbed */ };

/* Ops shorter than this part of the step's are left out where ops are compared: of a microsecond, half is the clock. */
#define WEIGHTY_RATIO 0.03
/* What the other device may seem to lose, of what the disturbed one loses. */
#define SPILL_RATIO   0.01
/* The part of a straggler's lead in compute that the other must at least be seen to wait. */
#define WAIT_RATIO    0.5
#define BYTES_PER_MIB 1048576.0

static const char slow_op[] = "linear_forward hidden2";

static const json_t *device_at(const json_t *trial, size_t position)
{
    return json_array_get(json_object_get(trial, "per_device"), position);
}

static const char *device_name(const json_t *trial, int position)
{
    return el_json_text(device_at(trial, (size_t)position), "device", "no device");
}

static bool is_within(const struct el_disturbance *row, double value)
{
    return fabs(value - row->injected) <= row->within_pct / 100 * row->injected;
}

/* How much later than in the twin a device arrives at the first collective of a step. */
static void look_delay(const struct el_disturbance *row, const json_t *injected, const json_t *clean,
                       struct el_finding *finding)
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
static void look_op(const struct el_disturbance *row, const json_t *injected, const json_t *clean,
                    struct el_finding *finding)
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

static void look_leak(const struct el_disturbance *row, const json_t *injected, const json_t *clean,
                      struct el_finding *finding)
{
    (void)clean;
    double steps = (double)(json_array_size(el_json_at(injected, "repeats.0.step_ms")) +
                            json_array_size(el_json_at(injected, "repeats.0.recorded_step_ms")));
    double grown[MEMBERS];
    for (int p = 0; p < MEMBERS; p++)
        grown[p] = el_json_number(device_at(injected, (size_t)p), el_at_device_grown_bytes);
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
static void look_straggler(const struct el_disturbance *row, const json_t *injected, const json_t *clean,
                           struct el_finding *finding)
{
    double ms[MEMBERS], wait_ms[MEMBERS], usual[MEMBERS];
    for (int p = 0; p < MEMBERS; p++) {
        ms[p] = sum_ms(device_at(injected, (size_t)p), kernels);
        usual[p] = sum_ms(device_at(clean, (size_t)p), kernels);
        wait_ms[p] = el_json_number(device_at(injected, (size_t)p), el_at_device_comm_wait_ms);
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

/* Sizes. A delay is told best where nothing else takes time. Where kernels are compared a library takes tenths of a
 * millisecond for each, so that neither clock nor scheduler weighs, and there are hundreds of steps for a median; where
 * there is none, the run takes less of the batch. */
#define TRIAL    "run", "--model", "mlp", "--data", "dummy", "--control", "none"
#define SMALL    "--features", "64", "--hidden", "64,64", "--batch", "32"
#define WEIGHTY  "--features", "512", "--hidden", "512,512", "--batch", "128"
#define MIN_TIME "--min-time", "0.8"

static const char two_cores[] = "two devices would share one core, and each would seem to be late or slow in turn";

static const struct el_disturbance rows[] = {
    {.name = "delay",
     .what = "cpu:1 begins 20 ms late",
     .inject = "delay=1:20",
     .injected = 20,
     .within_pct = 10,
     .twin = true,
     .n_cores = 2,
     .arguments = {TRIAL, SMALL, MIN_TIME, "--mode", "ddp", "--devices", "2", NULL},
     .look = look_delay},
    {.name = "slow-op",
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
     .arguments = {TRIAL, WEIGHTY, "--min-time", "1.5", "--mode", "ddp", "--devices", "2", "--overlap", "off", NULL},
     .look = look_straggler},
    {.name = NULL},
};

const struct el_disturbance *el_disturbances(void)
{
    return rows;
}

static bool ended_well(const json_t *trial, struct el_finding *finding)
{
    const char *status = el_json_text(trial, "status", "failed");
    if (!strcmp(status, "ok")) return true;
    snprintf(finding->text, sizeof finding->text, "its trial: %s: %s", status,
             el_json_text(trial, "reason", "no reason was given"));
    return false;
}

json_t *el_disturbance_look(const struct el_disturbance *row, const json_t *injected, const json_t *clean)
{
    struct el_finding f = {.value = NAN};
    if (ended_well(injected, &f) && (!row->twin || ended_well(clean, &f))) row->look(row, injected, clean, &f);
    return el_json_of(EL_KEY("check", row->name), EL_KEY("status", f.ok ? "found" : "missed"),
                      EL_KEY("what", row->what), EL_KEY("inject", row->inject), EL_KEY("injected", row->injected),
                      EL_KEY("found", f.value), EL_KEY("off_pct", 100 * (f.value / row->injected - 1)),
                      EL_KEY("within_pct", row->within_pct), EL_KEY("text", f.text));
}

/* ---- launching ---- */

/* The plain C kernels take 10 to 50 times as long as a library's. With so much less of the batch their steps are as
 * short, and a busy machine's time slices of some milliseconds fall between them, not into each. */
enum { PLAIN_SHARE = 16 };

/* *record_p: NULL where it was interrupted. */
static enum el_status launch(const struct el_options *given, const char *dir, const struct el_disturbance *row,
                             bool disturbed, json_t **record_p)
{
    struct el_options options;
    struct el_campaign campaign;
    char *arguments[EL_DISTURBANCE_ARGUMENTS + 1] = {NULL};
    int n = 0;
    for (; row->arguments[n]; n++) arguments[n] = (char *)(uintptr_t)row->arguments[n];
    el_options_defaults(EL_CMD_RUN, &options);
    EL_TRY(el_options_parse(EL_CMD_RUN, n, arguments, &options));
    options.timeout_s = given->timeout_s;
    options.launcher = given->launcher;
    options.repeats = 1;
    options.quiet = true;
    if (el_kernels_cpu_missing()) options.batches[0] /= PLAIN_SHARE;
    snprintf(options.inject, sizeof options.inject, "%s", disturbed ? row->inject : "");
    snprintf(options.out, sizeof options.out, "%s/%s%s", dir, row->name, disturbed ? "" : "-clean");
    if (!given->quiet) el_text_line(stderr, "%s%s", row->name, disturbed ? "" : ", without the disturbance");
    EL_TRY(el_campaign_begin(&campaign, EL_CMD_RUN, &options));
    enum el_status status = el_campaign_measure(&campaign, false, NULL);
    if (status == EL_OK && !el_runner_interrupted()) *record_p = json_incref(json_array_get(campaign.trials, 0));
    el_campaign_end(&campaign);
    return status;
}

static enum el_status check(const struct el_options *options, const char *dir, const struct el_disturbance *row,
                            json_t *checks)
{
    static const char others_at[] = "repeats.0.system.others_pct";
    json_t *injected = NULL, *clean = NULL;
    enum el_status status = row->twin ? launch(options, dir, row, false, &clean) : EL_OK;
    if (status == EL_OK && !el_runner_interrupted()) status = launch(options, dir, row, true, &injected);
    if (status == EL_OK && injected) {
        json_t *found = el_disturbance_look(row, injected, clean);
        el_json_put_real(found, "others_pct",
                         fmax(el_json_number(injected, others_at), el_json_number(clean, others_at)));
        json_array_append_new(checks, found);
    }
    json_decref(injected);
    json_decref(clean);
    return status;
}

enum el_status el_verify_disturb(const struct el_options *options, const char *dir, json_t *checks)
{
    struct el_cores cores;
    el_cores_find("", &cores);
    for (const struct el_disturbance *row = rows; row->name && !el_runner_interrupted(); row++) {
        if (cores.n >= row->n_cores)
            EL_TRY(check(options, dir, row, checks));
        else
            json_array_append_new(checks, el_json_of(EL_KEY("check", row->name), EL_KEY("status", "skipped"),
                                                     EL_KEY("what", row->what), EL_KEY("within_pct", row->within_pct),
                                                     EL_KEY("text", two_cores)));
    }
    return EL_OK;
}

/* ---- what is printed ---- */

/* From here on others' work is what the verdict calls a reason for doubt. */
#define BUSY_PCT 5.0

static const struct el_column columns[] = EL_COLUMNS(
    EL_TEXT("disturbed", -10, "check"), EL_TEXT("injected", -25, "what"), EL_TEXT("found", -41, "text"),
    EL_CHANGE("off", 8, "off_pct"), EL_PERCENT("within %", 9, "within_pct"), EL_TEXT("", -1, "status", .gap = 2));

void el_disturbances_print(const json_t *checks, FILE *out)
{
    const struct el_table table = {.columns = columns, .out = out};
    double others_pct = NAN;
    bool missed = false;
    el_table_heads(&table, EL_TABLE_BOLD);
    EL_EACH(one, checks) {
        const bool told = !isnan(el_json_number(one, "off_pct"));
        json_t *row = json_copy((json_t *)(uintptr_t)one);
        if (!told) el_json_put_text(row, "text", "-");
        el_table_row(&table, EL_TABLE_PLAIN, row);
        if (!told) el_text_say("          ", "          ", out, "%s", el_json_text(one, "text", ""));
        missed |= el_json_is(one, "status", "missed");
        others_pct = fmax(others_pct, el_json_number(one, "others_pct")); /* of a number and NAN: the number */
        json_decref(row);
    }
    fputc('\n', out);
    if (missed && others_pct > BUSY_PCT)
        el_text_say("", "", out,
                    "Other processes took up to %.0f %% of the cores, which can hide what was injected: stop them and "
                    "try again.",
                    others_pct);
    else if (missed)
        el_text_say("", "", out,
                    "No other process is known to have taken part of the cores, so figures of this kind are off on "
                    "this machine. The usual cause is a hypervisor that takes cores away: steal_pct in the records.");
}
