/* What recording costs: events counted on a hand-made list and held against the readings that a real step makes; the
 * shift of paired blocks; what a trial's record says of both. No time is looked at. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "profiles/cost.h"
#include "runtime/comm/bootstrap.h"
#include "runtime/device/program.h"
#include "runtime/train/train.h"
#include "tests/test.h"
#include "tests/unit/record_checks.h"

/* A list on two streams of one device and one of another: 7 ops, 3 streams, 2 waits, a copy and a collective. */
static void counts_a_list(void **state)
{
    const struct el_op_info ops[] = {
        {.op_class = EL_CLASS_HOST},
        {.op_class = EL_CLASS_COPY},
        {.op_class = EL_CLASS_COMPUTE},
        {.op_class = EL_CLASS_COMM, .stream = 1, .waits = true},
        {.op_class = EL_CLASS_COMPUTE, .device = 1},
        {.op_class = EL_CLASS_COMPUTE, .waits = true},
        {.op_class = EL_CLASS_COMPUTE, .device = 1},
    };
    struct el_cost_events events;
    el_cost_count(ops, 7, false, &events);
    assert_int_equal(events.clock_reads, 7 + 3 + 2);
    assert_int_equal(events.cpu_clock_reads, 4);
    assert_int_equal(events.kept_bytes, 7 * 16);
    const struct el_cost_prices prices = {.clock_read_ns = 20, .cpu_clock_read_ns = 400, .kept_byte_ns = 0.5};
    assert_true(el_cost_ns(&events, &prices) == 12 * 20 + 4 * 400 + 56);
    el_cost_count(ops, 0, false, &events);
    assert_true(events.clock_reads == 0 && events.cpu_clock_reads == 0 && events.kept_bytes == 0);
    /* A GPU's streams: an end for each op, a begin for those that follow none directly. */
    el_cost_count(ops, 7, true, &events);
    assert_int_equal(events.clock_reads, 2);
    assert_int_equal(events.cpu_clock_reads, 0);
    assert_int_equal(events.event_records, 6 + 4);
    const struct el_cost_prices of_events = {.clock_read_ns = 20, .cpu_clock_read_ns = 400, .event_record_ns = 1000};
    assert_true(el_cost_ns(&events, &of_events) == 2 * 20 + 10 * 1000);
}

/* The readings of threads that are not this one: a stream's. Sanitizers put a clock_gettime of their own in its place.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void counts_what_a_step_reads(void **state)
{
    skip();
}
#else
static _Thread_local bool is_host;
static _Atomic int n_clock, n_cpu_clock;

int clock_gettime(clockid_t id, struct timespec *t)
{
    if (!is_host && id == CLOCK_MONOTONIC) n_clock++;
    if (!is_host && id == CLOCK_THREAD_CPUTIME_ID) n_cpu_clock++;
    return (int)syscall(SYS_clock_gettime, id, t);
}

static enum el_status do_nothing(const struct el_call_args *args)
{
    (void)args;
    return EL_OK;
}

static void run_and_compare(struct el_program *program, const struct el_probe *probe)
{
    struct el_cost_events events = {0};
    if (probe) el_cost_count(el_program_ops(program), el_program_op_count(program), false, &events);
    n_clock = n_cpu_clock = 0;
    assert_int_equal(el_program_run(program, 1, probe), EL_OK);
    assert_int_equal(n_clock, events.clock_reads);
    assert_int_equal(n_cpu_clock, events.cpu_clock_reads);
}

/* One stream, so that no wait spins by the clock. Without the recorder there is no reading at all. */
static void counts_what_a_step_reads(void **state)
{
    enum { OPS = 9 };
    struct el_device *device;
    struct el_program *program;
    struct el_buffer *buffer;
    char host[64] = "";
    const struct el_op_head head = {.label = "copy", .phase = EL_PHASE_H2D};
    struct el_call_op call = {.head = {.label = "call", .phase = EL_PHASE_DATA}, .run = do_nothing};
    is_host = true;
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    assert_int_equal(el_program_alloc(program, device, EL_TAG_INPUT, sizeof host, "x", &buffer), EL_OK);
    for (int i = 0; i < OPS; i++) {
        call.op_class = i % 3 == 1 ? EL_CLASS_COMM : EL_CLASS_HOST;
        el_program_call(program, device, 0, &call, NULL);
    }
    el_program_copy(program, device, 0, &head, el_view_of(buffer, 0), el_view_host(host), sizeof host, NULL);
    assert_int_equal(el_program_end(program), EL_OK);
    run_and_compare(program, &(struct el_probe){.spans = true});
    assert_int_equal(n_clock, OPS + 2);
    assert_int_equal(n_cpu_clock, 8);
    run_and_compare(program, NULL);
    el_program_destroy(program);
    el_device_close(device);
}
#endif

/* An op that waits says so: its begin is a reading more. */
static void an_op_that_waits_says_so(void **state)
{
    struct el_device *device;
    struct el_program *program;
    const struct el_op_head head = {.label = "copy", .phase = EL_PHASE_H2D};
    char from[8] = "", to[8];
    int id;
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int i = 0; i < 3; i++) {
        el_program_copy(program, device, i % 2, &head, el_view_host(to), el_view_host(from), sizeof from, &id);
        if (i == 0) el_program_wait(program, device, 1, id);
    }
    assert_int_equal(el_program_end(program), EL_OK);
    const struct el_op_info *ops = el_program_ops(program);
    assert_true(!ops[0].waits && ops[1].waits && !ops[2].waits);
    el_program_destroy(program);
    el_device_close(device);
}

/* How many steps the probe was told of, in each segment, and how often each segment began. */
struct told {
    enum el_segment segment;
    int steps[EL_SEGMENT_COUNT], begins[EL_SEGMENT_COUNT];
};

static void take_step(void *context, const struct el_step_event *event)
{
    struct told *told = context;
    assert_non_null(event->spans);
    told->steps[told->segment]++;
}

static void take_segment(void *context, int member, enum el_segment segment)
{
    struct told *told = context;
    (void)member;
    told->segment = segment;
    told->begins[segment]++;
}

static void train_with_blocks(struct el_train_config *config, struct told *told, struct el_train_result *result_p)
{
    struct el_device *device;
    struct el_bootstrap *self;
    struct el_dataset *dataset;
    struct el_probe probe = {.context = told, .spans = true, .step = take_step};
    const struct el_train_hooks hooks = {.probes = &probe, .context = told, .segment = take_segment};
    assert_int_equal(el_train_check(config), EL_OK);
    assert_int_equal(el_dataset_open(&(struct el_dataset_spec){.source = "dummy", .classes = 5, .seed = 1}, &dataset),
                     EL_OK);
    assert_int_equal(el_bootstrap_open("self", &self), EL_OK);
    assert_int_equal(el_device_open(&(struct el_device_spec){.backend = "null"}, &device), EL_OK);
    const struct el_train_place place = {.devices = &device, .n_devices = 1, .bootstrap = self, .dataset = dataset};
    if (el_train(config, &place, &hooks, result_p) != EL_OK) fail_msg("%s", el_error_message());
    el_device_close(device);
    el_bootstrap_close(self);
    el_dataset_close(dataset);
}

/* In blocks without the recorder no step is told of; in those with it every one, and none is left out. */
static void blocks_switch_the_recorder(void **state)
{
    enum { PAIRS = 5 };
    struct el_train_config config = {.mode = "single", .model = {.name = "toy"}, .capture = true};
    config.global_batch = 4, config.n_devices = 1, config.warmup = 1, config.steps = 2, config.min_time_s = 1e-4;
    config.control = EL_CONTROL_RECORD, config.control_pairs = PAIRS;
    struct told told = {0};
    struct el_train_result result;
    assert_int_equal(el_model_resolve(&config.model), EL_OK);
    train_with_blocks(&config, &told, &result);
    assert_int_equal(result.n_control_pairs, PAIRS);
    assert_true(told.begins[EL_SEGMENT_ON] == PAIRS && told.begins[EL_SEGMENT_OFF] == PAIRS);
    assert_int_equal(told.steps[EL_SEGMENT_ON], PAIRS * result.control_steps);
    assert_int_equal(told.steps[EL_SEGMENT_OFF], 0);
    for (int p = 0; p < PAIRS; p++) assert_true(result.control_on_ns[p] > 0 && result.control_off_ns[p] > 0);
    el_train_result_free(&result);
}

static void prices_are_measured(void **state)
{
    const struct el_op_info ops[] = {{.label = "a"}, {.label = "b"}};
    const struct el_span spans[2] = {{0, 1}, {1, 2}};
    const struct el_step_event event = {.n_ops = 2, .ops = ops, .spans = spans, .whole = {0, 2}};
    struct el_cost_prices prices;
    struct el_recorder *recorder;
    assert_int_equal(el_recorder_create(0, 1, &recorder), EL_OK);
    assert_int_equal(el_cost_measure(recorder, &prices), EL_ERR_INVALID);
    const struct el_probe probe = el_recorder_probe(recorder);
    probe.step(probe.context, &event);
    assert_int_equal(el_cost_measure(recorder, &prices), EL_OK);
    assert_true(prices.clock_read_ns > 0 && prices.cpu_clock_read_ns > 0 && prices.kept_byte_ns > 0);
    assert_int_equal(el_recorder_step_count(recorder), 1); /* what is replayed is not this recorder's */
    el_recorder_destroy(recorder);
}

static void shift_of_pairs(void **state)
{
    const double three[] = {1, 2, 9}; /* means 1, 1.5, 5, 2, 5.5, 9 */
    assert_true(fabs(el_stats_hodges_lehmann(three, 3) - 3.5) < 1e-12);
    double shifted[40];
    for (int i = 0; i < 40; i++) shifted[i] = 5 + 0.1 * (i % 2 ? i : -i - 1);
    double clean = el_stats_hodges_lehmann(shifted, 40);
    assert_true(fabs(clean - 5) < 0.1);
    for (int i = 0; i < 4; i++) shifted[i * 9] = 1e6; /* steps in which somebody else had the core */
    assert_true(fabs(el_stats_hodges_lehmann(shifted, 40) - clean) < 0.5);
    assert_true(isnan(el_stats_hodges_lehmann(three, 0)));
}

/* Steps of 20 ms; four pairs of blocks whose differences are 0.1 * k ms but for one that was disturbed. */
static json_t *repeat_of(int k, const char *kind)
{
    return json_pack(
        "{s:s, s:[f, f], s:{s:{s:i, s:i, s:i}, s:{s:f, s:f, s:f}, s:f}, s:{s:s, s:[f,f,f,f,f], s:[f,f,f,f,f]}}",
        "status", "ok", "step_ms", 19.0, 21.0, "recorder_cost", "events", "clock_reads", 45, "cpu_clock_reads", 4,
        "kept_bytes", 704, "cost_ns", "clock_read", 20.0, "cpu_clock_read", 400.0, "kept_byte", 0.5, "counted_us",
        2.0 + k, "control", "kind", kind, "on_ms", 20 + 0.1 * k, 21 + 0.1 * k, 20 + 0.1 * k, 90.0, 20 + 0.1 * k,
        "off_ms", 20.0, 21.0, 20.0, 20.0, 20.0);
}

static json_t *recorder_of(int n, const char *kind)
{
    json_t *ok = json_array();
    for (int k = 0; k < n; k++) json_array_append_new(ok, repeat_of(k, kind));
    json_t *recorder = el_trial_recorder(ok);
    json_decref(ok);
    return recorder;
}

/* Shifts of 0, 0.1 .. 0.4 ms in 20: 200 us or 1 %, and 2.776 * 158 / sqrt(5) us to either side. */
static void a_trial_says_both(void **state)
{
    json_t *recorder = recorder_of(5, "record");
    double half_us = 2.7764451051977987 * 1e5 * sqrt(2.5) / sqrt(5) * 1e-3;
    FIGURES(recorder, {"events.cpu_clock_reads", 4}, {"cost_ns.kept_byte", 0.5}, {"counted_us", 4},
            {"counted_pct", 0.02}, {"toggled_us", 200}, {"toggled_us_ci95.0", 200 - half_us}, {"toggled_pct", 1},
            {"toggled_pct_ci95.1", 1 + half_us / 200});
    json_decref(recorder);
    recorder = recorder_of(5, "comm"); /* blocks without communication say nothing of the recorder */
    near(recorder, "counted_us", 4);
    assert_true(json_is_null(el_json_at(recorder, "toggled_us")) &&
                json_is_null(el_json_at(recorder, "toggled_us_ci95")));
    json_decref(recorder);
    recorder = recorder_of(3, "record");
    assert_string_equal(el_json_text(recorder, "ci_reason", ""), "fewer than 5 repeats");
    json_decref(recorder);
    json_t *none = json_pack("[{s:s, s:n}]", "status", "ok", "recorder_cost");
    recorder = el_trial_recorder(none);
    assert_true(json_is_null(recorder));
    json_decref(none);
    json_decref(recorder);
}

RUN_TESTS(NULL, NULL, counts_a_list, counts_what_a_step_reads, an_op_that_waits_says_so, blocks_switch_the_recorder,
          prices_are_measured, shift_of_pairs, a_trial_says_both)
