/* Records: a trial from hand-made repeats with known answers. Members: test_record_member.c; files:
 * test_record_files.c. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/report/report.h"
#include "tests/unit/record_checks.h"

static struct el_trial trial_of(const char *mode, int n_devices)
{
    struct el_trial trial = {.n_devices = n_devices, .procs = 1, .record = true};
    snprintf(trial.id, sizeof trial.id, "%s", "0123456789abcdef");
    snprintf(trial.train.mode, sizeof trial.train.mode, "%s", mode);
    snprintf(trial.train.model.name, sizeof trial.train.model.name, "textcnn");
    trial.train.global_batch = 64;
    for (int i = 0; i < n_devices; i++) {
        snprintf(trial.devices[i].backend, sizeof trial.devices[i].backend, "cpu");
        trial.devices[i].index = i;
    }
    return trial;
}

/* Device 0 holds 300 bytes and works 8 ms, device 1 holds 100 and works 6 ms, in a step of 10 ms times `stretch`. */
static json_t *member_of(int position, double stretch)
{
    struct el_ledger ledger = {.peak_bytes = position == 0 ? 300 : 100};
    ledger.at_peak_by_tag[EL_TAG_GRAD] = ledger.peak_bytes - 20;
    ledger.at_peak_by_tag[EL_TAG_INPUT] = 20;
    ledger.peak_by_tag[EL_TAG_GRAD] = 290;
    struct el_device_summary s = {.n_steps = 4, .step_s = 0.010 * stretch, .comm_total_s = 0.002, .comm_bytes = 1000};
    s.phase_s[EL_PHASE_FORWARD] = (position == 0 ? 0.008 : 0.006) * stretch;
    s.phase_s[EL_PHASE_COMM] = 0.002;
    s.busy_s = s.phase_s[EL_PHASE_FORWARD];
    s.comm_overlapped_s = 0.0005;
    s.comm_exposed_s = 0.0015;
    s.idle_s = 0.001;
    s.sent_bytes = position == 0 ? 3000 : 1000;
    s.arrivals_known = position == 0;
    s.wait_s = 0.0008;
    struct el_device_summary on = {.step_s = 0.012 * stretch, .compute_s = 0.007, .comm_exposed_s = 0.002};
    on.other_s = 0.001;
    on.idle_s = on.step_s - 0.010;
    struct el_device_summary off = {.step_s = 0.008, .compute_s = 0.006, .other_s = 0.0005, .idle_s = 0.0015};
    bool known = position == 0;
    return el_record_member(&(struct el_member_account){.device = position == 0 ? "cpu:0" : "cpu:1",
                                                        .host = "h",
                                                        .rank = position,
                                                        .pid = 7,
                                                        .ledger = &ledger,
                                                        .driver_bytes = known ? 340 : -1,
                                                        .grown_bytes = 8,
                                                        .driver_reason = "not reported",
                                                        .controlled = known,
                                                        .on = on,
                                                        .off = off,
                                                        .recorded = true,
                                                        .summary = s});
}

static json_t *repeat_of(int k, int n_devices, double step_ms, int n_steps)
{
    json_t *steps = json_array(), *members = json_array(), *loss = json_array();
    for (int i = 0; i < n_steps; i++) json_array_append_new(steps, json_real(step_ms + (i % 2 == 0 ? 0.5 : -0.5)));
    for (int i = 0; i < 3; i++) json_array_append_new(loss, json_real(0.7 - 0.1 * i));
    for (int i = 0; i < n_devices; i++) json_array_append_new(members, member_of(i, 1 + 0.1 * k));
    return json_pack("{s:i, s:i, s:i, s:s, s:n, s:o, s:o, s:o, s:[i,i], s:[], s:{s:f, s:f, s:f}}", "schema", 2,
                     "repeat", k, "order", 10 + k, "status", "ok", "reason", "step_ms", steps, "members", members,
                     "loss", loss, "batch_per_device", 32, 32, "warnings", "system", "window_s", 1.0, "others_pct", 1.0,
                     "steal_pct", 0.0);
}

static json_t *repeats_of(int n, int n_devices)
{
    json_t *repeats = json_array();
    for (int k = 0; k < n; k++) json_array_append_new(repeats, repeat_of(k, n_devices, 8.0, 32));
    return repeats;
}

static bool warned(const json_t *record, const char *words)
{
    const json_t *warnings = json_object_get(record, "warnings");
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        if (strstr(json_string_value(json_array_get(warnings, i)), words) != NULL) return true;
    }
    return false;
}

static void test_trial(void **state)
{
    (void)state;
    struct el_trial trial = trial_of("ddp", 2);
    json_t *repeats = repeats_of(5, 2), *t = el_record_trial(&trial, "evenload run --mode ddp", repeats);
    assert_string_equal(el_json_text(t, "status", ""), "ok");
    assert_string_equal(el_json_text(t, "verdict", ""), "valid");
    near(t, "throughput.samples_per_s", 8000);
    near(t, "throughput.ci95.0", 8000);
    assert_true(is_null(t, "throughput.ci_reason"));
    near(t, "step_ms.median", 8);
    near(t, "step_ms.p95", 8.5);
    near(t, "order", 10);
    near(t, "devices", 2);
    near(t, "slowest_member", 0);
    near(t, "phases_ms.forward", 9.6); /* the median repeat is stretched by 1.2 */
    near(t, "phases_ms.comm", 2);
    near(t, "idle_ms", 1);
    near(t, "comm.bytes", 2000);
    near(t, "comm.exposed_ms", 1.5);
    near(t, "comm.overlap_pct", 25);
    near(t, "comm.wait_ms", 0.8);
    near(t, "comm.transfer_ms", 1.2);
    assert_true(is_null(t, "per_device.1.comm.wait_ms"));
    near(t, "per_device.1.memory.peak_bytes", 100);
    near(t, "per_device.1.busy_ms.forward", 7.2);
    near(t, "per_device.0.utilization.busy_pct", 80);
    near(t, "per_device.0.memory.unattributed_bytes", 40);
    near(t, "per_device.0.memory.grown_bytes", 8);
    assert_true(is_null(t, "per_device.1.memory.driver_bytes") && is_null(t, "per_device.1.memory.unattributed_bytes"));
    assert_string_equal(el_json_text(t, "per_device.1.memory.driver_reason", ""), "not reported");
    assert_true(is_null(t, "per_device.0.uuid"));
    near(t, "imbalance.memory.first_over_rest", 3);
    near(t, "imbalance.memory.max_over_mean_minus_1", 0.5);
    near(t, "imbalance.bytes.imbalance_pct", 200.0 / 3);
    near(t, "imbalance.busy.lb", 7.0 / 8);
    near(t, "repeats.4.order", 14);
    near(t, "repeats.4.step_ms.0", 8.5);
    near(t, "loss.2", 0.5);
    json_decref(t);
    json_decref(repeats);
}

/* On: steps of 12, 13.2, 14.4, 15.6, 16.8 ms (a mean of 14.4) with 7 of compute, 2 exposed, 1 other, the rest idle.
 * Off: 8 ms with 6 of compute. So 6.4 ms by which communication lengthens the step: 1 + 2 + 3.4. */
static void test_breakdown(void **state)
{
    (void)state;
    struct el_trial trial = trial_of("ddp", 2);
    json_t *repeats = repeats_of(5, 2), *t = el_record_trial(&trial, "", repeats);
    near(t, "breakdown.step_ms", 14.4);
    near(t, "breakdown.compute_alone_ms", 6);
    near(t, "breakdown.contention_ms", 1);
    near(t, "breakdown.exposed_ms", 2);
    near(t, "breakdown.other_ms", 1);
    near(t, "breakdown.idle_ms", 4.4);
    near(t, "breakdown.exposed_step_ms", 6.4);
    near(t, "breakdown.idle_change_ms", 3.4);
    near(t, "comm.exposed_step_ms", 6.4);
    near(t, "comm.contention_ms", 1);
    near(t, "breakdown.contention_ci95.0", 1);
    /* 6.4 -+ t(0.975, 4) * 1.2 * sqrt(2.5) / sqrt(5) */
    double half = 2.7764451051977987 * 1.2 / sqrt(2);
    near(t, "breakdown.exposed_step_ci95.0", 6.4 - half);
    near(t, "breakdown.exposed_step_ci95.1", 6.4 + half);
    json_decref(t);
    json_decref(repeats);
    repeats = repeats_of(3, 2);
    t = el_record_trial(&trial, "", repeats);
    assert_true(is_null(t, "breakdown.exposed_step_ci95"));
    assert_string_equal(el_json_text(t, "breakdown.ci_reason", ""), "fewer than 5 repeats");
    json_decref(t);
    json_decref(repeats);
}

/* What is not known is a dash in every cell, and never what another row had there. */
static void test_steps_table(void **state)
{
    (void)state;
    struct el_trial trial = trial_of("ddp", 2);
    json_t *repeats = repeats_of(5, 2), *whole = el_record_trial(&trial, "", repeats);
    json_t *bare = json_deep_copy(whole);
    json_object_set_new(bare, "breakdown", json_null());
    json_object_set_new(json_object_get(json_array_get(json_object_get(bare, "per_device"), 1), "comm"), "cpu_ms",
                        json_null());
    json_t *run = json_pack("{s:[o, o]}", "trials", whole, bare);
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    el_report_steps(run, memory, false);
    fclose(memory);
    assert_non_null(strstr(text, "14.4      6.00         1.00      2.00     5.40            6.40"));
    assert_non_null(strstr(text, "-         -            -         -        -               -          none"));
    assert_non_null(strstr(text, "  cpu:1"));
    for (size_t i = 0; i < bytes; i++) assert_true(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
    free(text);
    json_decref(run);
    json_decref(repeats);
}

static void test_one_device_few_repeats(void **state)
{
    (void)state;
    struct el_trial trial = trial_of("single", 1);
    json_t *repeats = repeats_of(3, 1), *t = el_record_trial(&trial, "", repeats);
    assert_true(is_null(t, "imbalance") && is_null(t, "throughput.ci95"));
    assert_string_equal(el_json_text(t, "throughput.ci_reason", ""), "fewer than 5 repeats");
    assert_string_equal(el_json_text(t, "verdict", ""), "suspect");
    assert_true(warned(t, "fewer than 5 repeats"));
    json_decref(t);
    json_decref(repeats);
}

static void test_warnings(void **state)
{
    (void)state;
    struct el_trial trial = trial_of("dp", 2);
    json_t *repeats = repeats_of(5, 2);
    json_t *third = json_array_get(repeats, 2);
    json_array_set_new(json_object_get(third, "loss"), 1, json_real(nextafter(0.6, 1)));
    json_object_set_new(el_json_at(third, "members.1.memory"), "peak_bytes", json_integer(101));
    json_object_set_new(third, "warnings", json_pack("[s]", "devices share a core"));
    json_array_append_new(repeats, repeat_of(5, 2, 8, 3));
    json_t *t = el_record_trial(&trial, "", repeats);
    assert_true(warned(t, "not deterministic") && warned(t, "memory differs") && warned(t, "share a core"));
    assert_true(warned(t, "too few samples"));
    assert_string_equal(el_json_text(t, "verdict", ""), "suspect");
    json_decref(t);
    json_decref(repeats);
}

static char *file_of(const char *dir, const char *name)
{
    char path[256], *text = calloc(1, 65536);
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *file = fopen(path, "r");
    assert_true(text && file && fread(text, 1, 65535, file) > 0);
    fclose(file);
    unlink(path);
    return text;
}

/* The cell of that column in the first row. */
static const char *cell_of(const char *csv, const char *column)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, ",%s,", column);
    const char *head = strstr(csv, wanted), *cell = strchr(csv, '\n');
    assert_non_null(head);
    for (const char *c = csv; c <= head; c++)
        if (*c == ',') cell = strchr(cell + 1, ',');
    return cell + 1;
}

static void near_text(const char *text, double wanted)
{
    double got = strtod(text, NULL);
    if (!(fabs(got - wanted) < 1e-9 * wanted)) fail_msg("%.40s, not %.12g", text, wanted);
}

/* The record's integers end at 2^63 - 1: above it a seed is a text, in JSON and CSV the same digits. */
static void a_seed_is_recorded_as_itself(void **state)
{
    (void)state;
    char dir[] = "/tmp/el-record-XXXXXX";
    struct el_trial trial = trial_of("dp", 2);
    trial.train.seed = UINT64_MAX;
    json_t *repeats = repeats_of(1, 2), *t = el_record_trial(&trial, "", repeats),
           *run = json_pack("{s:[O]}", "trials", t);
    assert_string_equal(el_json_text(t, "seed", ""), "18446744073709551615");
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_write_csv(run, dir), EL_OK);
    char *csv = file_of(dir, "trials.csv");
    assert_int_equal(strncmp(cell_of(csv, "seed"), "18446744073709551615,", 21), 0);
    free(csv);
    free(file_of(dir, "devices.csv"));
    free(file_of(dir, "steps.csv"));
    assert_int_equal(rmdir(dir), 0);
    json_decref(run);
    json_decref(t);
    trial.train.seed = 7;
    t = el_record_trial(&trial, "", repeats);
    assert_true(json_integer_value(json_object_get(t, "seed")) == 7);
    json_decref(t);
    json_decref(repeats);
}

static void test_failed(void **state)
{
    (void)state;
    struct el_trial trial = trial_of("dp", 2);
    json_t *repeats = repeats_of(4, 2);
    json_array_append_new(repeats, el_record_failed_repeat(&trial, 4, 14, "oom", "cpu:0 refused grad"));
    json_t *t = el_record_trial(&trial, "", repeats);
    assert_string_equal(el_json_text(t, "status", ""), "oom");
    assert_string_equal(el_json_text(t, "reason", ""), "cpu:0 refused grad");
    near(t, "throughput.samples_per_s", 8000);
    json_array_append_new(repeats, el_record_failed_repeat(&trial, 5, 15, "failed", "signal 9"));
    json_t *worse = el_record_trial(&trial, "", repeats);
    assert_string_equal(el_json_text(worse, "status", ""), "failed");
    json_array_clear(repeats);
    json_array_append_new(repeats, el_record_failed_repeat(&trial, 0, 0, "timeout", NULL));
    json_t *nothing = el_record_trial(&trial, "", repeats);
    assert_string_equal(el_json_text(nothing, "status", ""), "timeout");
    assert_true(is_null(nothing, "throughput.samples_per_s") && is_null(nothing, "phases_ms.comm"));
    assert_true(is_null(nothing, "comm.bytes") && is_null(nothing, "slowest_member"));
    json_decref(t);
    json_decref(worse);
    json_decref(nothing);
    json_decref(repeats);
}

/* The first repeat's window was too short for the system's figure, the others' were not. */
static void test_system_reason(void **state)
{
    (void)state;
    struct el_trial trial = trial_of("dp", 2);
    json_t *repeats = repeats_of(3, 2);
    for (size_t k = 0; k < 3; k++) {
        json_t *utilization = el_json_at(json_array_get(repeats, k), "members.0.utilization");
        json_object_set_new(utilization, "system_pct", k == 0 ? json_null() : json_real(60 + 10 * (double)k));
        json_object_set_new(utilization, "system_reason", k == 0 ? json_string("too short") : json_null());
    }
    json_t *t = el_record_trial(&trial, "", repeats);
    near(t, "per_device.0.utilization.system_pct", 75);
    assert_true(is_null(t, "per_device.0.utilization.system_reason"));
    assert_true(is_null(t, "per_device.1.utilization.system_pct"));
    assert_string_equal(el_json_text(t, "per_device.1.utilization.system_reason", ""), "not measured");
    json_decref(t);
    json_decref(repeats);
}

/* Busy for 8 and 8, 8 and 4, 2 and 8 ms: imbalances 0, 1/3 and 0.6, whose median is 1/3. Of the medians, 8 and 8 ms, it
 * would be 0. */
static void imbalance_is_a_median_over_launches(void **state)
{
    (void)state;
    static const double busy_ms[3][2] = {{8, 8}, {8, 4}, {2, 8}};
    struct el_trial trial = trial_of("dp", 2);
    json_t *repeats = repeats_of(3, 2);
    for (size_t k = 0; k < 3; k++) {
        json_t *members = json_object_get(json_array_get(repeats, k), "members");
        for (size_t d = 0; d < 2; d++) {
            json_t *member = json_array_get(members, d);
            json_object_set_new(member, "step_ms", json_real(10));
            json_object_set_new(json_object_get(member, "utilization"), "busy_pct", json_real(10 * busy_ms[k][d]));
        }
    }
    json_t *t = el_record_trial(&trial, "", repeats);
    near(t, "imbalance.busy.max_over_mean_minus_1", 1.0 / 3);
    near(t, "imbalance.busy.first_over_rest", 1);
    json_decref(t);
    json_decref(repeats);
}

/* Launches as --min-time makes them: the faster, the more steps. Each step lasts its launch's mean, 1 ms more or less.
 */
static json_t *uneven_launches(void)
{
    static const int steps[] = {11, 28, 10, 11, 46};
    static const double mean_ms[] = {60, 26, 65, 61, 15};
    json_t *repeats = repeats_of(5, 2);
    for (size_t k = 0; k < 5; k++) {
        json_t *repeat = json_array_get(repeats, k), *step_ms = json_array();
        for (int i = 0; i < steps[k]; i++) json_array_append_new(step_ms, json_real(mean_ms[k]));
        json_object_set_new(repeat, "step_ms", step_ms);
    }
    return repeats;
}

/* The end of the highest bar in plots/step.dat: the last column of any row of numbers. */
static double highest(const char *data)
{
    double most = 0, x[5];
    for (const char *line = data; *line; line += strcspn(line, "\n") + 1)
        if (sscanf(line, "%lf %lf %lf %lf %lf", &x[0], &x[1], &x[2], &x[3], &x[4]) == 5) most = fmax(most, x[4]);
    return most;
}

/* The geometric mean of the launches' mean steps is 39.2 ms; over all 106 steps as one it would be 32.1, their
 * median 26. */
static void all_outputs_give_the_same_step(void **state)
{
    (void)state;
    char dir[] = "/tmp/el-record-XXXXXX", wanted[64], figure[EL_FIGURE_BYTES], *table = NULL;
    size_t bytes;
    const double step = pow(60.0 * 26 * 65 * 61 * 15, 0.2), rate = 64e3 / step;
    struct el_trial trial = trial_of("ddp", 2);
    json_t *repeats = uneven_launches(), *t = el_record_trial(&trial, "", repeats);
    json_t *run = el_record_run(json_object(), json_pack("[O]", t));
    near(t, "step_ms.mean", step);
    near(t, "step_ms.median", step);
    near(t, "step_ms.p95", step);
    near(t, "throughput.samples_per_s", rate);
    json_t *session = el_session_of(run, t, "here");
    near(session, "figures.step_mean_ms.value", step);
    near(session, "figures.step_median_ms.value", step);
    near(session, "figures.samples_per_s.value", rate);
    FILE *out = open_memstream(&table, &bytes);
    el_report_table(run, out, false);
    fclose(out);
    for (int i = 0; i < 2; i++) {
        snprintf(wanted, sizeof wanted, " %s ", el_text_figure(i ? step : rate, figure)); /* 1,632 samples/s; 39.2 ms */
        if (!strstr(table, wanted)) fail_msg("no%sin:\n%s", wanted, table);
    }
    assert_non_null(mkdtemp(dir));
    assert_int_equal(el_write_csv(run, dir), EL_OK);
    char *csv = file_of(dir, "trials.csv"), *lines = file_of(dir, "steps.csv");
    near_text(cell_of(csv, "step_mean_ms"), step);
    near_text(cell_of(csv, "step_median_ms"), step);
    near_text(cell_of(csv, "samples_per_s"), rate);
    assert_non_null(strstr(lines, "t-0123456789abcdef,4,45,15\n"));
    free(file_of(dir, "devices.csv"));
    free(csv);
    free(lines);
    assert_int_equal(el_plot_data(run, dir, NULL), EL_OK);
    char *data = file_of(dir, "step.dat");
    assert_true(fabs(highest(data) - step) < 1e-4 * step);
    static const char *const rest[] = {"memory.dat", "throughput.dat", "utilization.dat"};
    for (size_t i = 0; i < 3; i++) free(file_of(dir, rest[i]));
    assert_int_equal(rmdir(dir), 0);
    free(data);
    free(table);
    json_decref(session);
    json_decref(run);
    json_decref(t);
    json_decref(repeats);
}

/* Five launches of which the last but one is the slowest: the timeline is that of the median one, not of the first. */
static void test_median_timeline(void **state)
{
    (void)state;
    static const double step_ms[] = {5, 9, 7, 12, 6};
    struct el_trial trial = trial_of("dp", 2);
    json_t *repeats = json_array();
    for (int k = 0; k < 5; k++) {
        json_t *repeat = repeat_of(k, 2, step_ms[k], 32);
        json_object_set_new(el_json_at(repeat, "members.1.memory"), "timeline", json_pack("{s:[f]}", "ms", step_ms[k]));
        json_array_append_new(repeats, repeat);
    }
    json_t *t = el_record_trial(&trial, "", repeats);
    near(t, "per_device.1.memory.timeline.ms.0", 7);
    near(t, "per_device.1.memory.timeline.repeat", 2);
    assert_true(is_null(t, "per_device.0.memory.timeline")); /* it had none */
    json_decref(t);
    json_decref(repeats);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median_timeline),
        cmocka_unit_test(test_trial),
        cmocka_unit_test(test_breakdown),
        cmocka_unit_test(test_steps_table),
        cmocka_unit_test(test_one_device_few_repeats),
        cmocka_unit_test(test_warnings),
        cmocka_unit_test(test_failed),
        cmocka_unit_test(test_system_reason),
        cmocka_unit_test(imbalance_is_a_median_over_launches),
        cmocka_unit_test(all_outputs_give_the_same_step),
        cmocka_unit_test(a_seed_is_recorded_as_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
