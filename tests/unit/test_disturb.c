/* What `verify --disturb` finds in records made by hand: what was injected, in the right place; and what it must not
 * take for it. That the record tells the truth is tests/cli/injected.bats'; launching is tests/cli/disturb.bats'. */
#include "tests/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/campaign/progress.h"
#include "bench/options/options.h"
#include "bench/trial/trial.h"
#include "bench/verify/verify.h"

enum { STEPS = 50 };

static const struct el_disturbance *row_of(const char *name)
{
    for (const struct el_disturbance *row = el_disturbances(); row->name; row++)
        if (!strcmp(row->name, name)) return row;
    fail_msg("no disturbance '%s'", name);
    return NULL;
}

/* Looks, and lets go of the records. */
static json_t *look(const char *name, json_t *injected, json_t *clean)
{
    json_t *check = el_disturbance_look(row_of(name), injected, clean);
    json_decref(injected);
    json_decref(clean);
    return check;
}

static void assert_look(json_t *check, const char *state, const char *text)
{
    if (!el_json_is(check, "status", state) || !strstr(el_json_text(check, "text", ""), text))
        fail_msg("%s: '%s', not %s with '%s'", el_json_text(check, "status", "?"), el_json_text(check, "text", "?"),
                 state, text);
    json_decref(check);
}

static void assert_found(json_t *check, double value, const char *text)
{
    if (!(fabs(el_json_number(check, "found") - value) <= 1e-6 * value))
        fail_msg("%g, not %g", el_json_number(check, "found"), value);
    assert_look(check, "found", text);
}

static void assert_missed(json_t *check, const char *text)
{
    assert_look(check, "missed", text);
}

/* ---- delay: arrivals at the first of two collectives ---- */

static json_t *arrivals(double late_ms, double later_ms)
{
    return json_pack("{s:s, s:[{s:[f, f]}, {s:[f, f]}], s:[{s:s}, {s:s}]}", "status", "ok", "collectives", "late_ms",
                     -late_ms, late_ms, "late_ms", -later_ms, later_ms, "per_device", "device", "cpu:0", "device",
                     "cpu:1");
}

static void a_delay_is_the_lateness_beyond_the_twins(void **state)
{
    assert_found(look("delay", arrivals(20.5, 0.1), arrivals(0.5, 0)), 20, "cpu:1 late by 20.00 ms");
    assert_found(look("delay", arrivals(18.5, 0.1), arrivals(-0.5, 0)), 19, "cpu:1");
    assert_missed(look("delay", arrivals(17.9, 0), arrivals(0, 0)), "cpu:1 late by 17.90 ms");
    assert_missed(look("delay", arrivals(22.1, 0), arrivals(0, 0)), "cpu:1 late by 22.10 ms");
    assert_missed(look("delay", arrivals(22, 0), arrivals(-2, 0)), "24.00");
    assert_missed(look("delay", arrivals(-20, 20), arrivals(0, 0)), "cpu:0 late by 20.00 ms");
    assert_missed(look("delay", arrivals(0, 20), arrivals(0, 0)), "late by 0.00 ms");
    json_t *none = json_pack("{s:s, s:[], s:[]}", "status", "ok", "collectives", "per_device");
    assert_missed(look("delay", none, arrivals(0, 0)), "no arrivals were recorded");
}

/* ---- slow op: three ops that weigh, one that does not ---- */

static json_t *ops(double forward_ms, double backward_ms, double update_ms, double loss_ms)
{
    json_t *list = json_pack("[{s:s, s:s, s:f}, {s:s, s:s, s:f}, {s:s, s:s, s:f}, {s:s, s:s, s:f}]", "op",
                             "linear_forward hidden2", "phase", "forward", "median_ms", forward_ms, "op",
                             "linear_backward_data hidden2", "phase", "backward", "median_ms", backward_ms, "op",
                             "hidden2.weight", "phase", "optimizer", "median_ms", update_ms, "op", "cross_entropy",
                             "phase", "loss", "median_ms", loss_ms);
    return json_pack("{s:s, s:[{s:s, s:o}]}", "status", "ok", "per_device", "device", "cpu:0", "ops", list);
}

static void a_slow_op_is_the_one_that_rose_most(void **state)
{
    assert_found(look("slow-op", ops(0.6, 0.3, 0.1, 0.003), ops(0.2, 0.3, 0.1, 0.003)), 3, "linear_forward hidden2");
    assert_found(look("slow-op", ops(0.46, 0.3, 0.1, 0.003), ops(0.2, 0.3, 0.1, 0.003)), 2.3, "2.30 times");
    assert_missed(look("slow-op", ops(0.44, 0.3, 0.1, 0.003), ops(0.2, 0.3, 0.1, 0.003)), "2.20 times");
    assert_missed(look("slow-op", ops(0.76, 0.3, 0.1, 0.003), ops(0.2, 0.3, 0.1, 0.003)), "3.80 times");
    assert_missed(look("slow-op", ops(0.2, 0.9, 0.1, 0.003), ops(0.2, 0.3, 0.1, 0.003)),
                  "linear_backward_data hidden2 at 3.00 times");
    assert_missed(look("slow-op", ops(0.2, 0.3, 0.1, 0.003), ops(0.2, 0.3, 0.1, 0.003)), "no op took longer");
}

/* The machine at half its speed while the injected trial ran; and a small op whose ratio is the clock's. */
static void a_slower_machine_is_no_slow_op(void **state)
{
    assert_found(look("slow-op", ops(1.2, 0.6, 0.2, 0.006), ops(0.2, 0.3, 0.1, 0.003)), 3, "linear_forward hidden2");
    assert_missed(look("slow-op", ops(0.4, 0.6, 0.2, 0.006), ops(0.2, 0.3, 0.1, 0.003)), "no op took longer");
    assert_found(look("slow-op", ops(0.6, 0.3, 0.1, 0.03), ops(0.2, 0.3, 0.1, 0.003)), 3, "linear_forward hidden2");
    json_t *none = json_pack("{s:s, s:[{s:s, s:[]}]}", "status", "ok", "per_device", "device", "cpu:0", "ops");
    assert_missed(look("slow-op", json_deep_copy(none), none), "no op took longer");
}

/* ---- leak: growth of two devices over 50 steps ---- */

static json_t *growth(int64_t first_bytes, int64_t second_bytes)
{
    json_t *steps = json_array();
    for (int i = 0; i < STEPS; i++) json_array_append_new(steps, json_real(2));
    return json_pack("{s:s, s:[{s:o}], s:[{s:s, s:{s:I}}, {s:s, s:{s:I}}]}", "status", "ok", "repeats", "step_ms",
                     steps, "per_device", "device", "cpu:0", "memory", "grown_bytes", (json_int_t)first_bytes, "device",
                     "cpu:1", "memory", "grown_bytes", (json_int_t)second_bytes);
}

static void a_leak_is_growth_a_step_on_its_device_alone(void **state)
{
    const int64_t mib = 1 << 20;
    assert_found(look("leak", growth(0, STEPS * mib), NULL), (double)mib, "cpu:1 loses 1.000 MiB, cpu:0 0.000");
    assert_found(look("leak", growth(4096, STEPS * mib), NULL), (double)mib, "cpu:1");
    assert_missed(look("leak", growth(mib, STEPS * mib), NULL), "cpu:0 0.020");
    assert_missed(look("leak", growth(STEPS * mib, 0), NULL), "cpu:0 loses 1.000 MiB");
    assert_missed(look("leak", growth(0, STEPS * mib * 94 / 100), NULL), "0.940");
    assert_missed(look("leak", growth(0, STEPS * mib * 106 / 100), NULL), "1.060");
    assert_missed(look("leak", growth(0, 0), NULL), "loses 0.000 MiB");
    json_t *trial = growth(0, 0), *memory = el_json_at(trial, "per_device.1.memory");
    json_object_set_new(memory, "grown_bytes", json_null());
    json_object_set_new(memory, "driver_reason", json_string("no smaps here"));
    assert_missed(look("leak", trial, NULL), "no smaps here");
}

/* ---- straggler: compute and waits of two devices ---- */

static json_t *device(const char *name, double compute_ms, double wait_ms)
{
    return json_pack("{s:s, s:{s:f}, s:[{s:s, s:s, s:f}, {s:s, s:s, s:f}, {s:s, s:s, s:f}]}", "device", name, "comm",
                     "wait_ms", wait_ms, "ops", "op", "linear_forward", "phase", "forward", "median_ms", compute_ms / 4,
                     "op", "linear_backward", "phase", "backward", "median_ms", compute_ms * 3 / 4, "op",
                     "all_reduce bucket 0", "phase", "comm", "median_ms", 7.0);
}

static json_t *pair(double first_ms, double second_ms, double first_wait_ms, double second_wait_ms)
{
    return json_pack("{s:s, s:[o, o]}", "status", "ok", "per_device", device("cpu:0", first_ms, first_wait_ms),
                     device("cpu:1", second_ms, second_wait_ms));
}

static void a_straggler_computes_longer_and_the_other_waits(void **state)
{
    assert_found(look("straggler", pair(2, 3, 1, 0.1), pair(2, 2, 0, 0)), 1.5, "cpu:1 at 1.50 times; cpu:0 waits 1.00");
    assert_found(look("straggler", pair(2, 3.5, 1.5, 0), pair(2, 2, 0, 0)), 1.75, "1.75");
    assert_missed(look("straggler", pair(2, 3.7, 1.7, 0), pair(2, 2, 0, 0)), "1.85");
    assert_missed(look("straggler", pair(2, 2.3, 0.3, 0), pair(2, 2, 0, 0)), "1.15");
    assert_missed(look("straggler", pair(3, 2, 0, 1), pair(2, 2, 0, 0)), "cpu:0 at 1.50 times");
    assert_missed(look("straggler", pair(2, 3, 0.1, 1), pair(2, 2, 0, 0)), "cpu:1 at 1.50 times; cpu:0 waits 0.10");
    assert_missed(look("straggler", pair(2, 3, 0.4, 0), pair(2, 2, 0, 0)), "cpu:0 waits 0.40");
}

/* One core is 1.2 times slower than the other: the twin takes it out. */
static void unlike_cores_are_no_straggler(void **state)
{
    assert_found(look("straggler", pair(2, 3.6, 1.6, 0), pair(2, 2.4, 0.4, 0)), 1.5, "cpu:1 at 1.50");
    assert_missed(look("straggler", pair(2, 3, 1, 0), pair(2, 3, 1, 0)), "at 1.00 times");
    json_t *trial = pair(2, 3, 1, 0);
    json_object_set_new(el_json_at(trial, "per_device.0.comm"), "wait_ms", json_null());
    assert_missed(look("straggler", trial, pair(2, 2, 0, 0)), "no compute times or waits were recorded");
}

/* ---- all of them ---- */

static void a_trial_that_failed_is_missed_with_its_reason(void **state)
{
    for (const struct el_disturbance *row = el_disturbances(); row->name; row++) {
        json_t *failed = json_pack("{s:s, s:s}", "status", "timeout", "reason", "took more than 60 s");
        json_t *empty = json_pack("{s:s}", "status", "ok");
        assert_missed(look(row->name, json_incref(failed), json_incref(empty)), "timeout: took more than 60 s");
        if (row->twin) assert_missed(look(row->name, json_incref(empty), json_incref(failed)), "took more than 60 s");
        assert_missed(look(row->name, empty, row->twin ? json_pack("{s:s}", "status", "ok") : NULL), "");
        json_decref(failed);
    }
}

static double injected_in(const struct el_disturbance *row, const struct el_inject *inject)
{
    if (!strcmp(row->name, "delay")) return inject->delay_ms;
    if (!strcmp(row->name, "slow-op")) return inject->op_stretch;
    return !strcmp(row->name, "leak") ? (double)inject->leak_bytes : inject->stretch;
}

/* The value that is looked for is the one that --inject plants, and `run` takes the trial's words. */
static void a_row_plants_what_it_looks_for(void **state)
{
    for (const struct el_disturbance *row = el_disturbances(); row->name; row++) {
        struct el_inject injects[2];
        struct el_options options;
        char *arguments[EL_DISTURBANCE_ARGUMENTS + 1] = {NULL};
        int n = 0, disturbed = strcmp(row->name, "slow-op") != 0; /* an op is on all devices */
        assert_int_equal(el_inject_parse(row->inject, 2, injects), EL_OK);
        assert_true(injected_in(row, &injects[disturbed]) == row->injected);
        assert_true(disturbed == 0 || injected_in(row, &injects[0]) == 0);
        for (; row->arguments[n]; n++) arguments[n] = (char *)(uintptr_t)row->arguments[n];
        el_options_defaults(EL_CMD_RUN, &options);
        assert_int_equal(el_options_parse(EL_CMD_RUN, n, arguments, &options), EL_OK);
    }
}

/* ---- what is printed ---- */

static void assert_printed(json_t *checks, const char *words, const char *never)
{
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    el_disturbances_print(checks, out);
    fclose(out);
    if (!strstr(text, words) || strstr(text, never)) fail_msg("no '%s', or '%s', in:\n%s", words, never, text);
    free(text);
}

static void the_table_tells_found_missed_and_skipped(void **state)
{
    const double nothing = NAN;
    json_t *checks = json_array(),
           *missed = el_json_of(EL_KEY("check", "slow-op"), EL_KEY("status", "missed"), EL_KEY("off_pct", nothing),
                                EL_KEY("text", "no op took longer"));
    json_array_append_new(checks,
                          el_json_of(EL_KEY("check", "delay"), EL_KEY("status", "found"), EL_KEY("off_pct", 1.0),
                                     EL_KEY("within_pct", 10.0), EL_KEY("text", "cpu:1 late by 20.20 ms")));
    assert_printed(checks, "cpu:1 late by 20.20 ms                     +1.0 %", "steal_pct");
    json_array_append_new(checks, missed);
    assert_printed(checks, "missed\n          no op took longer\n", "Other processes took");
    assert_printed(checks, "steal_pct", "Other processes took");
    el_json_put_real(missed, "others_pct", 34);
    assert_printed(checks, "took up to 34 % of the cores", "steal_pct");
    json_decref(checks);
}

/* Launches without a phase before them, as here, once had hours left: the machine's whole life was counted. */
static void time_left_is_counted_from_the_first_launch(void **state)
{
    char text[256] = "";
    struct el_progress progress;
    FILE *said = tmpfile();
    json_t *document = json_pack("{s:s}", "status", "failed");
    assert_non_null(said);
    int stderr_before = dup(STDERR_FILENO);
    dup2(fileno(said), STDERR_FILENO);
    el_progress_init(&progress, 4, false);
    for (int i = 0; i < 2; i++) el_progress_end(&progress, document);
    dup2(stderr_before, STDERR_FILENO);
    close(stderr_before);
    rewind(said);
    size_t bytes = fread(text, 1, sizeof text - 1, said);
    fclose(said);
    json_decref(document);
    assert_true(bytes > 0);
    assert_non_null(strstr(text, "[2/4] : failed, about 0 s left"));
}

RUN_TESTS(NULL, NULL, a_delay_is_the_lateness_beyond_the_twins, a_slow_op_is_the_one_that_rose_most,
          a_slower_machine_is_no_slow_op, a_leak_is_growth_a_step_on_its_device_alone,
          a_straggler_computes_longer_and_the_other_waits, unlike_cores_are_no_straggler,
          a_trial_that_failed_is_missed_with_its_reason, a_row_plants_what_it_looks_for,
          the_table_tells_found_missed_and_skipped, time_left_is_counted_from_the_first_launch)
