/* Time and bytes of devices beside one another, from records made by hand: each cause planted, sentences word for word,
 * and the data of both figures. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/plot/plot.h"
#include "tests/unit/figure_data.h"
#include "tests/unit/imbalance_cards.h"
#include "tests/unit/printed.h"

/* Of a step of 100 ms, two devices; arrivals: of b, a's are their opposite. */
struct figures {
    double compute[2], optimizer[2], loading[2], flops[2], samples[2];
    double last, late, late_low, caused[2], transfer;
    bool no_arrivals, stages, by_batch;
};

static json_t *device_of(const struct figures *f, int i)
{
    static const char *const names[] = {"a", "b"};
    const double sign = i ? 1 : -1, wait = f->caused[1 - i];
    json_t *device =
        json_pack("{s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:{s:f}, s:{s:i, s:i}}", "device", names[i], "step_ms", 100.0,
                  "compute_ms", f->compute[i], "idle_ms", 100 - f->compute[i] - wait - f->transfer, "flops",
                  f->flops[i], "sent_bytes", 1e6, "received_bytes", 1e6, "loading", "exposed_ms", f->loading[i],
                  "layout", "data_rank", f->stages ? 0 : i, "stage", f->stages ? i : 0);
    el_json_put(device, "comm",
                json_pack("{s:f, s:f, s:f, s:f, s:f}", "wait_ms", wait, "wait_exposed_ms", wait, "transfer_ms",
                          f->transfer, "exposed_ms", wait + f->transfer, "overlapped_ms", 0.0));
    el_json_put(device, "busy_ms",
                json_pack("{s:f, s:f, s:f, s:f, s:f}", "forward", f->compute[i] - f->optimizer[i], "optimizer",
                          f->optimizer[i], "loss", 0.0, "reduce", 0.0, "comm", f->transfer));
    el_json_put(device, "arrivals",
                f->no_arrivals
                    ? json_null()
                    : json_pack("{s:f, s:f, s:f, s:f}", "last_pct", i ? f->last : 100 - f->last, "late_ms",
                                sign * f->late, "late_low_ms", i ? f->late_low : -f->late, "caused_ms", f->caused[i]));
    return device;
}

static json_t *record_of(const struct figures *f)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:[f, f], s:{s:s}, s:s, s:[o, o]}", "mode", "ddp", "status", "ok",
                     "verdict", "valid", "devices", 2, "global_batch", 64, "batch_per_device", f->samples[0],
                     f->samples[1], "config", "length_by", f->by_batch ? "batch" : "model", "comm_algorithms", "ring",
                     "per_device", device_of(f, 0), device_of(f, 1));
}

/* b computes 90 ms, a 30, which waits for it. */
#define THREE_TIMES                                                                                                    \
    .compute = {30, 90}, .last = 100, .late = 60, .late_low = 58, .caused = {0, 60}, .optimizer = {3, 9}, .transfer = 2
#define LONGER "b computes 3.00 times as long as a; a waits 60.0 of 100 ms for it"
#define LATE                                                                                                           \
    .compute = {40, 40}, .last = 90, .late = 50, .late_low = 45, .caused = {0, 50}, .flops = {9, 9}, .samples = {32, 32}

static const struct {
    struct figures figures;
    const char *kind; /* NULL: it is not waited for, and computes longest */
    const char *sentence, *cause, *why;
} cases[] = {
    {{THREE_TIMES, .flops = {9, 9}, .samples = {32, 32}},
     "stays",
     LONGER,
     "speed",
     "speed: 2.81 ms of computing a sample, a 0.94"},
    {{THREE_TIMES, .flops = {9, 27}, .samples = {16, 48}},
     "stays",
     LONGER,
     "share",
     "share: 48 samples per step, a 16"},
    {{THREE_TIMES, .flops = {9, 27}, .samples = {32, 32}},
     "stays",
     LONGER,
     "length",
     "length: 3.00 times the arithmetic a sample of a"},
    /* most of it by share, some by speed */
    {{THREE_TIMES, .flops = {9, 18}, .samples = {20, 40}},
     "stays",
     LONGER,
     "share",
     "share: 40 samples per step, a 20"},
    {{THREE_TIMES, .samples = {32, 32}}, "stays", LONGER, NULL, NULL}, /* an older record knows no arithmetic */
    {{LATE, .loading = {1, 49}},
     "stays",
     "b comes 50.0 ms late, though it computes no longer; a waits 50.0 of 100 ms for it",
     "loading",
     "loading: its batches take 48.0 ms more"},
    {{LATE}, "stays", "b comes 50.0 ms late, though it computes no longer; a waits 50.0 of 100 ms for it", NULL, NULL},
    {{.compute = {40, 42}, .last = 55, .late = 5, .late_low = -3, .caused = {1, 30}, .samples = {32, 32}},
     "at times",
     "b is late at times, and causes 97 % of all waits; a waits 30.0 of 100 ms for it",
     NULL,
     NULL},
    {{.compute = {60, 60}, .last = 45, .late = 1, .late_low = -20, .caused = {11, 9}},
     "wanders",
     "no single device is always last (a in 55 % of steps, b in 45 %); on average a device waits 10.0 ms of each 100 "
     "ms "
     "step",
     NULL,
     NULL},
    {{.compute = {60, 60}, .last = 45, .late = 1, .late_low = -20, .caused = {11, 9}, .by_batch = true},
     "wanders",
     "no single device is always last (a in 55 % of steps, b in 45 %); on average a device waits 10.0 ms of each 100 "
     "ms "
     "step",
     "length",
     "length: each batch is as long as its longest sentence"},
    {{.compute = {60, 60}, .caused = {2, 2}, .transfer = 30},
     "wire",
     "the network is the limit, not a rank: exposed transfers take 30.0 of 100 ms, waits 2.00",
     NULL,
     NULL},
    {{.compute = {90, 91}, .caused = {2, 2}, .transfer = 3},
     "even",
     "no rank is late by what is worth speaking of: of 100 ms waits take 2.00, transfers 3.00",
     NULL,
     NULL},
    {{.compute = {70, 30}, .optimizer = {39, 0}, .flops = {9, 9}, .samples = {32, 32}, .no_arrivals = true},
     NULL,
     "a computes 2.33 times as long as b, which is idle or waits for 70.0 ms of each 100 ms step",
     "algorithm",
     "algorithm: it alone does optimizer, 39.0 ms"},
    {{.compute = {60, 30}, .flops = {20, 9}, .samples = {64, 64}, .no_arrivals = true, .stages = true},
     NULL,
     "a computes 2.00 times as long as b, which is idle or waits for 70.0 ms of each 100 ms step",
     "cut",
     "cut: its stage does 2.22 times the arithmetic of b"},
};

static void same(const char *got, const char *wanted, size_t i)
{
    if (got != wanted && (!got || !wanted || strcmp(got, wanted) != 0))
        fail_msg("case %zu: '%s' is not '%s'", i, got ? got : "null", wanted ? wanted : "null");
}

static void each_cause_is_named(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        json_t *trial = record_of(&cases[i].figures), *time = el_imbalance_time(trial);
        const json_t *told = json_object_get(time, cases[i].kind == NULL ? "longest" : "blame");
        same(el_json_text(time, "blame.kind", NULL), cases[i].kind, i);
        same(el_json_text(told, "sentence", NULL), cases[i].sentence, i);
        same(el_json_text(told, "cause.cause", NULL), cases[i].cause, i);
        same(el_json_text(told, "cause.sentence", NULL), cases[i].why, i);
        assert_int_equal(json_is_null(json_object_get(time, "longest")), cases[i].kind != NULL);
        json_decref(time);
        json_decref(trial);
    }
}

static void devices_of_several_hosts_have_their_ranks_and_hosts(void **state)
{
    json_t *trial = record_of(&cases[0].figures);
    EL_EACH(device, json_object_get(trial, "per_device")) {
        el_json_put(device, "rank", json_integer((json_int_t)device_at.i));
        el_json_put_text(device, "host", device_at.i ? "node-b" : "node-a");
        el_json_put_real(device, "sent_bytes", 1e6 * (1.0 + (double)device_at.i));
    }
    json_t *time = el_imbalance_time(trial), *bytes = el_imbalance_bytes(trial);
    same(el_json_text(time, "blame.rank", NULL), "rank 1 (node-b)", 0);
    same(el_json_text(time, "ranks.0.rank", NULL), "rank 0 (node-a)", 0);
    same(el_json_text(bytes, "rank", NULL), "rank 1 (node-b)", 0);
    same(el_json_text(trial, "per_device.0.device", NULL), "a", 0);
    json_decref(time);
    json_decref(bytes);
    json_decref(trial);
}

static void what_was_not_recorded_is_null(void **state)
{
    json_t *trial = record_of(&cases[0].figures);
    EL_EACH(device, json_object_get(trial, "per_device")) {
        el_json_put(device, "compute_ms", json_null());
        el_json_put(device, "sent_bytes", json_null());
    }
    json_t *time = el_imbalance_time(trial), *bytes = el_imbalance_bytes(trial);
    assert_true(json_is_null(time) && json_is_null(bytes));
    json_decref(trial);
}

/* [sent of each device], and what is said of it. */
static void who_sends_most_is_named(void **state)
{
    json_t *trial =
        trial_of("ddp", 8,
                 json_pack("[o, o, o, o]", card_of("a", "param", 1, 0, 0, 0, 0), card_of("b", "param", 1, 0, 0, 0, 0),
                           card_of("c", "param", 1, 0, 0, 0, 0), card_of("d", "param", 1, 0, 0, 0, 0)));
    json_t *bytes = el_imbalance_bytes(trial), *third = json_array_get(json_object_get(trial, "per_device"), 2);
    assert_true(json_is_null(json_object_get(bytes, "rank")));
    assert_near(el_json_number(bytes, "sent_ratio"), 1);
    json_decref(bytes);
    el_json_put_real(third, "sent_bytes", 9.0 * MIB);
    el_json_put_text(trial, "comm_algorithms", "ps");
    bytes = el_imbalance_bytes(trial);
    same(el_json_text(bytes, "sentence", NULL),
         "c sends 3.00 times what the others do on average, 9.0 MiB per step against 3.0", 0);
    same(el_json_text(bytes, "cause.sentence", NULL), "algorithm: ps", 0);
    json_decref(bytes);
    el_json_put(third, "comm", json_pack("{s:{s:{s:f}}}", "by_group", "local", "sent_bytes", 9.0));
    bytes = el_imbalance_bytes(trial);
    same(el_json_text(bytes, "cause.sentence", NULL),
         "algorithm: ddp, whose first device holds the model and sends it to the others", 1);
    json_decref(bytes);
    json_decref(trial);
}

static void both_figures_are_drawn(void **state)
{
    json_t *run = json_pack("{s:[o]}", "trials", record_of(&cases[0].figures));
    DRAWS(&el_figure_device_steps, run, "\tforward\n", "\twait\n", "\tidle\n", "0\t27\tforward\n", "\toptimizer\n");
    DRAWS(&el_figure_device_bytes, run, "\tsent\n", "\treceived\n", "0\t0.953674\tsent\n",
          "0.953674\t1.90735\treceived");
    json_decref(run);
}

RUN_TESTS(NULL, NULL, each_cause_is_named, devices_of_several_hosts_have_their_ranks_and_hosts,
          what_was_not_recorded_is_null, who_sends_most_is_named, both_figures_are_drawn)
