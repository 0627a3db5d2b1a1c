/* What recording costs: the readings of clocks that a step makes; the shift of paired blocks, and what a trial's record
 * says of it. No time is looked at. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "bench/base/jvalue.h"
#include "bench/record/record.h"
#include "bench/stats/stats.h"
#include "runtime/comm/bootstrap.h"
#include "runtime/device/program.h"
#include "runtime/train/train.h"
#include "tests/test.h"
#include "tests/unit/record_checks.h"

/* The readings of threads that are not this one: a stream's. Sanitizers put a clock_gettime of their own in its place.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static void what_a_step_reads(void **state)
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

static void run_and_count(struct el_program *program, const struct el_probe *probe, int clock, int cpu_clock)
{
    n_clock = n_cpu_clock = 0;
    assert_int_equal(el_program_run(program, 1, probe), EL_OK);
    assert_int_equal(n_clock, clock);
    assert_int_equal(n_cpu_clock, cpu_clock);
}

/* One stream, so that no wait spins by the clock: a reading an op and one before the first, two of the CPU clock for
 * each collective and copy. Without the recorder there is no reading at all. */
static void what_a_step_reads(void **state)
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
    run_and_count(program, &(struct el_probe){.spans = true}, OPS + 2, 8);
    run_and_count(program, NULL, 0, 0);
    el_program_destroy(program);
    el_device_close(device);
}
#endif

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
    return json_pack("{s:s, s:{s:s, s:[f,f,f,f,f], s:[f,f,f,f,f]}}", "status", "ok", "control", "kind", kind, "on_ms",
                     20 + 0.1 * k, 21 + 0.1 * k, 20 + 0.1 * k, 90.0, 20 + 0.1 * k, "off_ms", 20.0, 21.0, 20.0, 20.0,
                     20.0);
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
static void what_a_trial_says(void **state)
{
    json_t *recorder = recorder_of(5, "record");
    double half_us = 2.7764451051977987 * 1e5 * sqrt(2.5) / sqrt(5) * 1e-3;
    FIGURES(recorder, {"toggled_us", 200}, {"toggled_us_ci95.0", 200 - half_us}, {"toggled_pct", 1},
            {"toggled_pct_ci95.1", 1 + half_us / 200});
    json_decref(recorder);
    recorder = recorder_of(5, "comm"); /* blocks without communication say nothing of the recorder */
    assert_true(json_is_null(recorder));
    json_decref(recorder);
    recorder = recorder_of(3, "record");
    assert_string_equal(el_json_text(recorder, "ci_reason", ""), "fewer than 5 repeats");
    json_decref(recorder);
}

RUN_TESTS(NULL, NULL, what_a_step_reads, blocks_switch_the_recorder, shift_of_pairs, what_a_trial_says)
