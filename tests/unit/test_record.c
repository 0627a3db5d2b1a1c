/* Records: a trial from hand-made repeats with known answers. Members: test_record_member.c; files:
 * test_record_files.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/base/text.h"
#include "bench/plot/plot.h"
#include "bench/record/record.h"
#include "bench/regress/session.h"
#include "bench/report/report.h"
#include "tests/test.h"
#include "tests/unit/record_checks.h"
#include "tests/unit/record_trials.h"

/* The record of a trial in this mode; takes the repeats. */
static json_t *record_of(const char *mode, int n_devices, json_t *repeats)
{
    struct el_trial trial = trial_of(mode, n_devices);
    json_t *record = el_record_trial(&trial, "evenload run", repeats);
    json_decref(repeats);
    return record;
}

static void is_text(const json_t *record, const char *path, const char *wanted)
{
    assert_string_equal(el_json_text(record, path, ""), wanted);
}

static bool warned(const json_t *record, const char *words)
{
    EL_EACH(warning, json_object_get(record, "warnings"))
        if (strstr(json_string_value(warning), words)) return true;
    return false;
}

static void test_trial(void **state)
{
    json_t *t = record_of("ddp", 2, repeats_of(5, 2));
    is_text(t, "status", "ok");
    is_text(t, "verdict", "valid");
    near(t, "throughput.samples_per_s", 8000);
    assert_true(is_null(t, "throughput.ci95")); /* its repeats are alike */
    is_text(t, "throughput.ci_reason", "repeats do not scatter, as in virtual time");
    FIGURES(t, {"step_ms.median", 8}, {"step_ms.p95", 8.5}, {"order", 10}, {"devices", 2}, {"slowest_member", 0},
            {"phases_ms.forward", 9.6}, /* the median repeat is stretched by 1.2 */
            {"phases_ms.comm", 2}, {"idle_ms", 1}, {"comm.bytes", 2000}, {"comm.exposed_ms", 1.5},
            {"comm.overlap_pct", 25}, {"comm.wait_ms", 0.8}, {"comm.transfer_ms", 1.2},
            {"per_device.1.comm.wait_ms", NAN}, {"per_device.1.memory.peak_bytes", 100},
            {"per_device.1.busy_ms.forward", 7.2}, {"per_device.0.utilization.busy_pct", 80},
            {"per_device.0.memory.unattributed_bytes", 40}, {"per_device.0.memory.grown_bytes", 8},
            {"per_device.1.memory.driver_bytes", NAN}, {"per_device.1.memory.unattributed_bytes", NAN});
    is_text(t, "per_device.1.memory.driver_reason", "not reported");
    FIGURES(t, {"per_device.0.uuid", NAN}, {"imbalance.memory.first_over_rest", 3},
            {"imbalance.memory.max_over_mean_minus_1", 0.5}, {"imbalance.bytes.imbalance_pct", 200.0 / 3},
            {"imbalance.busy.lb", 7.0 / 8}, {"repeats.4.order", 14}, {"repeats.4.step_ms.0", 8.5}, {"loss.2", 0.5});
    json_decref(t);
}

/* A launch's two collectives, of which 4 MB and 2 MB cross the slowest link, and something that is none. */
static void put_collectives(json_t *repeat, double transfer_ms)
{
    json_object_set_new(repeat, "collectives",
                        json_pack("[{s:s, s:f, s:f}, {s:s, s:f, s:f}, {s:s, s:f, s:f}]", "phase", "comm", "bus_bytes",
                                  4e6, "transfer_ms", transfer_ms, "phase", "replicate", "bus_bytes", 1e9,
                                  "transfer_ms", 1.0, "phase", "comm", "bus_bytes", 2e6, "transfer_ms", transfer_ms));
}

/* In 2 ms each: 1.5 GB/s. The first launch was ten times slower, which a median passes over. */
static void test_bus_bandwidth(void **state)
{
    json_t *repeats = repeats_of(5, 2), *without = record_of("ddp", 2, json_incref(repeats));
    for (size_t i = 0; i < 5; i++) put_collectives(json_array_get(repeats, i), i == 0 ? 20 : 2);
    json_t *t = record_of("ddp", 2, repeats);
    assert_true(is_null(without, "comm.busbw_gb_per_s"));
    near(t, "comm.busbw_gb_per_s", 1.5);
    json_decref(without);
    json_decref(t);
}

/* On: steps of 12, 13.2, 14.4, 15.6, 16.8 ms (a mean of 14.4) with 7 of compute, 2 exposed, 1 other, the rest idle.
 * Off: 8 ms with 6 of compute. So 6.4 ms by which communication lengthens the step: 1 + 2 + 3.4. */
static void test_breakdown(void **state)
{
    json_t *t = record_of("ddp", 2, repeats_of(5, 2));
    FIGURES(t, {"breakdown.step_ms", 14.4}, {"breakdown.compute_alone_ms", 6}, {"breakdown.contention_ms", 1},
            {"breakdown.exposed_ms", 2}, {"breakdown.other_ms", 1}, {"breakdown.idle_ms", 4.4},
            {"breakdown.exposed_step_ms", 6.4}, {"breakdown.idle_change_ms", 3.4}, {"comm.exposed_step_ms", 6.4},
            {"breakdown.contention_ci95", NAN}, /* it is the same in each repeat */
            {"comm.contention_ms", 1});
    /* 6.4 -+ t(0.975, 4) * 1.2 * sqrt(2.5) / sqrt(5) */
    double half = 2.7764451051977987 * 1.2 / sqrt(2);
    near(t, "breakdown.exposed_step_ci95.0", 6.4 - half);
    near(t, "breakdown.exposed_step_ci95.1", 6.4 + half);
    json_decref(t);
    t = record_of("ddp", 2, repeats_of(3, 2));
    assert_true(is_null(t, "breakdown.exposed_step_ci95"));
    is_text(t, "breakdown.ci_reason", "fewer than 5 repeats");
    json_decref(t);
}

/* What is not known is a dash in every cell, and never what another row had there. */
static void test_steps_table(void **state)
{
    json_t *whole = record_of("ddp", 2, repeats_of(5, 2)), *bare = json_deep_copy(whole);
    json_object_set_new(bare, "breakdown", json_null());
    json_object_set_new(el_json_at(bare, "per_device.1.comm"), "cpu_ms", json_null());
    json_t *run = json_pack("{s:[o, o]}", "trials", whole, bare);
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    el_report_steps(run, memory);
    fclose(memory);
    /* The slowest device's exposed time is the trial's, once; the blocks' 14.4 ms stand in their own table, with why.
     */
    assert_non_null(strstr(text, "  cpu:0*"));
    assert_non_null(strstr(text, "  cpu:1 "));
    assert_non_null(strstr(text, "      1.50"));
    assert_non_null(strstr(text, "14.4        8.00      6.40"));
    assert_null(strstr(strstr(text, "14.4        8.00"), "-          -")); /* a trial without blocks has no row there */
    assert_non_null(strstr(text, "steps of the blocks took 14.4 ms, the measured ones 8.00: the machine changed"));
    for (size_t i = 0; i < bytes; i++) assert_true(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
    free(text);
    json_decref(run);
}

static void test_one_device_few_repeats(void **state)
{
    json_t *t = record_of("single", 1, repeats_of(3, 1));
    assert_true(is_null(t, "imbalance") && is_null(t, "throughput.ci95"));
    is_text(t, "throughput.ci_reason", "fewer than 5 repeats");
    is_text(t, "verdict", "valid");
    assert_true(warned(t, "fewer than 5 repeats"));
    json_decref(t);
}

static void test_warnings(void **state)
{
    json_t *repeats = repeats_of(5, 2), *third = json_array_get(repeats, 2);
    json_array_set_new(json_object_get(third, "loss"), 1, json_real(nextafter(0.6, 1)));
    json_object_set_new(el_json_at(third, "members.1.memory"), "peak_bytes", json_integer(101));
    json_object_set_new(third, "warnings", json_pack("[s]", "devices share a core"));
    json_array_append_new(repeats, repeat_of(5, 2, 8, 3));
    json_t *t = record_of("dp", 2, repeats);
    assert_true(warned(t, "not deterministic") && warned(t, "memory differs") && warned(t, "share a core"));
    assert_true(warned(t, "too few samples"));
    is_text(t, "verdict", "suspect");
    json_decref(t);
}

static void test_failed(void **state)
{
    struct el_trial trial = trial_of("dp", 2);
    json_t *repeats = repeats_of(4, 2);
    json_array_append_new(repeats, el_record_failed_repeat(&trial, 4, 14, "oom", "cpu:0 refused grad"));
    json_t *t = record_of("dp", 2, json_incref(repeats));
    is_text(t, "status", "oom");
    is_text(t, "reason", "cpu:0 refused grad");
    near(t, "throughput.samples_per_s", 8000);
    json_array_append_new(repeats, el_record_failed_repeat(&trial, 5, 15, "failed", "signal 9"));
    json_t *worse = record_of("dp", 2, repeats);
    is_text(worse, "status", "failed");
    json_t *nothing = record_of("dp", 2, json_pack("[o]", el_record_failed_repeat(&trial, 0, 0, "timeout", NULL)));
    is_text(nothing, "status", "timeout");
    assert_true(is_null(nothing, "throughput.samples_per_s") && is_null(nothing, "phases_ms.comm"));
    assert_true(is_null(nothing, "comm.bytes") && is_null(nothing, "slowest_member"));
    json_decref(t);
    json_decref(worse);
    json_decref(nothing);
}

/* The first repeat's window was too short for the system's figure, the others' were not. */
static void test_system_reason(void **state)
{
    json_t *repeats = repeats_of(3, 2);
    for (size_t k = 0; k < 3; k++) {
        json_t *utilization = el_json_at(json_array_get(repeats, k), "members.0.utilization");
        json_object_set_new(utilization, "system_pct", k == 0 ? json_null() : json_real(60 + 10 * (double)k));
        json_object_set_new(utilization, "system_reason", k == 0 ? json_string("too short") : json_null());
    }
    json_t *t = record_of("dp", 2, repeats);
    FIGURES(t, {"per_device.0.utilization.system_pct", 75}, {"per_device.0.utilization.system_reason", NAN},
            {"per_device.1.utilization.system_pct", NAN});
    is_text(t, "per_device.1.utilization.system_reason", "not measured");
    json_decref(t);
}

/* Busy for 8 and 8, 8 and 4, 2 and 8 ms: imbalances 0, 1/3 and 0.6, whose median is 1/3. Of the medians, 8 and 8 ms, it
 * would be 0. */
static void imbalance_is_a_median_over_launches(void **state)
{
    static const double busy_ms[3][2] = {{8, 8}, {8, 4}, {2, 8}};
    json_t *repeats = repeats_of(3, 2);
    for (size_t k = 0; k < 3; k++) {
        EL_EACH(member, json_object_get(json_array_get(repeats, k), "members")) {
            json_object_set_new(member, "step_ms", json_real(10));
            json_object_set_new(json_object_get(member, "utilization"), "busy_pct",
                                json_real(10 * busy_ms[k][member_at.i]));
        }
    }
    json_t *t = record_of("dp", 2, repeats);
    near(t, "imbalance.busy.max_over_mean_minus_1", 1.0 / 3);
    near(t, "imbalance.busy.first_over_rest", 1);
    json_decref(t);
}

/* Five launches of which the last but one is the slowest: the timeline is that of the median one, not of the first. */
static void test_median_timeline(void **state)
{
    static const double step_ms[] = {5, 9, 7, 12, 6};
    json_t *repeats = json_array();
    for (int k = 0; k < 5; k++) {
        json_t *repeat = repeat_of(k, 2, step_ms[k], 32);
        json_object_set_new(el_json_at(repeat, "members.1.memory"), "timeline", json_pack("{s:[f]}", "ms", step_ms[k]));
        json_object_set_new(el_json_at(repeat, "members.1.utilization"), "busy_pct", json_real(88 + step_ms[k]));
        json_array_append_new(repeats, repeat);
    }
    json_t *t = record_of("dp", 2, repeats);
    FIGURES(t, {"per_device.0.memory.timeline", NAN}, /* it had none */
            {"per_device.1.memory.timeline.ms.0", 7}, {"per_device.1.memory.timeline.repeat", 2},
            {"per_device.1.utilization.busy_pct", 95});
    double low = el_json_number(t, "per_device.1.utilization.busy_ci95.0"),
           high = el_json_number(t, "per_device.1.utilization.busy_ci95.1");
    assert_true(low > 92 && low < 94 && high > 98 && high < 100); /* Student's t over five: 95.8, 92.4 to 99.2 */
    json_decref(t);
}

/* A step of 8 ms in which one launch of five took a tenth more or less than the next. */
static json_t *repeats_of_tokens(void)
{
    json_t *repeats = json_array();
    for (int k = 0; k < 5; k++) {
        json_t *repeat = repeat_of(k, 2, 8 * pow(1.1, k - 2), 32);
        json_t *machine = json_pack("{s:f, s:f, s:s}", "f32_tflop_per_s", 0.05, "f64_tflop_per_s", 0.01, "source",
                                    "measured here: in detail");
        el_json_put_all(repeat, EL_KEY("flops_per_step", 1.6e8), EL_KEY("param_bytes", 4000.0),
                        EL_KEY("machine", machine));
        json_array_append_new(repeats, repeat);
    }
    return repeats;
}

static void says(const json_t *run, void (*report)(const json_t *run, FILE *out), const char *words)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *memory = open_memstream(&text, &bytes);
    report(run, memory);
    fclose(memory);
    if (!strstr(text, words)) fail_msg("no '%s' in:\n%s", words, text);
    free(text);
}

/* 64 samples of 5 tokens in 8 ms: 40,000 tokens per second. 1.6e8 FLOPs in it on two devices: 10 GFLOP/s each, a fifth
 * of
 * 50. By the formula: 1000 parameters, 5 x 10 of positions, 3 layers: 6 x 950 + 12 x 3 x 10 x 5 = 7500 a token. */
static void test_tokens(void **state)
{
    static const int64_t seq = 5, width = 10, layers = 3;
    struct el_trial trial = trial_of("ddp", 2);
    json_t *repeats = repeats_of_tokens();
    snprintf(trial.train.model.name, sizeof trial.train.model.name, "gpt");
    el_model_set(&trial.train.model, "seq", &seq, 1);
    el_model_set(&trial.train.model, "embed", &width, 1);
    el_model_set(&trial.train.model, "layers", &layers, 1);
    json_t *t = el_record_trial(&trial, "evenload run", repeats);
    FIGURES(t, {"tokens_per_sample", 5}, {"throughput.samples_per_s", 8000}, {"throughput.tokens_per_s", 40000},
            {"throughput.tokens_ci95.0", 5 * el_json_number(t, "throughput.ci95.0")},
            {"throughput.tokens_ci95.1", 5 * el_json_number(t, "throughput.ci95.1")},
            {"arithmetic.flop_per_s_per_device", 1e10}, {"arithmetic.formula_flops_per_step", 7500.0 * 5 * 64},
            {"arithmetic.gemm_flop_per_s", 5e10}, {"arithmetic.gemm_pct", 20});
    /* 12 samples of 5 tokens are 60 answers, and none of them a repeat. */
    json_object_set_new(t, "evaluation",
                        json_pack("{s:i, s:i, s:f, s:f, s:f, s:f, s:[{s:f}, {s:f}]}", "samples", 12, "counted", 60,
                                  "accuracy", 0.25, "loss", 2.0, "perplexity", exp(2), "bits_per_byte", 2 / log(2),
                                  "ranks", "accuracy", 0.2, "accuracy", 0.3));
    json_object_set_new(t, "epochs", json_pack("[{s:f, s:f}]", "seconds", 1.0, "held_out_accuracy", 0.5));
    json_t *run = json_pack("{s:[O]}", "trials", t);
    says(run, el_report_table, "    tokens/s     95 % interval");
    says(run, el_report_table, "  40,000 ");
    says(run, el_report_arithmetic, "GEMM: 50.0 GFLOP/s (f32), measured here\n");
    says(run, el_report_arithmetic, "0.16     0.0024              10.0       20.0\n");
    says(run, el_report_epochs, "2.00       7.39      2.89\n");
    says(run, el_report_evaluations, "part of the 12 samples; together 25.0 %.\n");
    json_decref(run);
    json_decref(t);
    t = record_of("ddp", 2, json_incref(repeats)); /* of a model that is of no tokens */
    FIGURES(t, {"tokens_per_sample", NAN}, {"throughput.tokens_per_s", NAN}, {"throughput.tokens_ci95", NAN},
            {"arithmetic.formula_flops_per_step", NAN}, {"arithmetic.gemm_pct", 20});
    json_decref(t);
    json_decref(repeats);
}

RUN_TESTS(NULL, NULL, test_median_timeline, test_trial, test_bus_bandwidth, test_breakdown, test_steps_table,
          test_one_device_few_repeats, test_warnings, test_failed, test_system_reason,
          imbalance_is_a_median_over_launches, test_tokens)
