/* A trace of devices that work by themselves, on fake cards: what the host queued, and arrows from there to what its
 * devices did. What is written of CPU devices is tests/cli/traces.bats's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "profiles/trace.h"
#include "tests/cards/cards_cases.h"

enum { N = 16, STEPS = 4 };

static json_t *find(const json_t *events, const char *ph, const char *cat, size_t place)
{
    size_t i;
    json_t *event;
    json_array_foreach(events, i, event)
    {
        const char *own = json_string_value(json_object_get(event, "cat"));
        if (strcmp(json_string_value(json_object_get(event, "ph")), ph) != 0 || !own || strcmp(own, cat) != 0) continue;
        if (place-- == 0) return event;
    }
    return NULL;
}

static double number(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

/* x doubled twice on device 0, in four steps of which two are written. */
static struct el_recorder *record(void)
{
    struct el_device *device = open_card(0);
    struct el_buffer *x;
    struct el_program *program;
    struct el_recorder *recorder;
    struct el_watch watch;
    float values[N] = {1};
    assert_int_equal(el_device_alloc(device, EL_TAG_PARAM, sizeof values, "x", &x), EL_OK);
    assert_int_equal(el_device_write(el_view_of(x, 0), values, sizeof values), EL_OK);
    assert_int_equal(el_program_create(&program), EL_OK);
    struct el_kernel_op op = {.op = EL_OP_SCALE,
                              .dtype = EL_F32,
                              .head = {.label = "scale x", .phase = EL_PHASE_FORWARD},
                              .views = {el_view_of(x, 0), el_view_of(x, 0)},
                              .args = {.d = {N}, .s = {2}}};
    for (int i = 0; i < 2; i++) assert_int_equal(el_program_kernel(program, device, 0, &op, NULL), EL_OK);
    assert_int_equal(el_program_end(program), EL_OK);
    assert_int_equal(el_recorder_create(0, 1, &recorder), EL_OK);
    struct el_probe probe = el_recorder_probe(recorder);
    el_recorder_watch_launches(recorder, &watch);
    probe.watch = &watch;
    for (uint64_t s = 0; s < STEPS; s++) assert_int_equal(el_program_run(program, s, &probe), EL_OK);
    el_program_destroy(program);
    el_device_close(device);
    return recorder;
}

static const size_t resident[EL_TAG_COUNT] = {[EL_TAG_PARAM] = N * sizeof(float)};
static const struct el_layout layout = {.n_devices = 1, .n_processes = 1, .n_workers = 1, .n = {1, 1, 1, 1}};
static const struct el_trace_device device = {"cuda:0", resident};

static struct el_trace_rank rank_of(const struct el_recorder *recorder)
{
    return (struct el_trace_rank){.layout = &layout,
                                  .recorder = recorder,
                                  .devices = &device,
                                  .begin.shared = true,
                                  .end.shared = true,
                                  .schedule = {.wait = 1, .active = 2, .repeat = 1}};
}

/* Makes an empty file of that name. */
static void make_file(char *path)
{
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
}

static void launches_lead_to_kernels(void **state)
{
    struct el_recorder *recorder = record();
    char path[] = "/tmp/el-test-trace-XXXXXX";
    const struct el_trace_rank rank = rank_of(recorder);
    make_file(path);
    assert_int_equal(el_trace_cycles(&rank), 1);
    assert_int_equal(el_trace_write(&rank, 0, path), EL_OK);
    json_t *trace = json_load_file(path, 0, NULL), *events = json_object_get(trace, "traceEvents");
    assert_non_null(events);
    double before_us = 0;
    for (size_t i = 0; i < 4; i++) {
        const json_t *launch = find(events, "X", "cuda_runtime", i), *kernel = find(events, "X", "kernel", i),
                     *op = find(events, "X", "cpu_op", i), *from = find(events, "s", "ac2g", i),
                     *to = find(events, "f", "ac2g", i);
        assert_true(launch && kernel && op && from && to);
        json_int_t id = json_integer_value(json_object_get(json_object_get(kernel, "args"), "correlation"));
        assert_int_equal(json_integer_value(json_object_get(json_object_get(launch, "args"), "correlation")), id);
        assert_null(json_object_get(json_object_get(op, "args"), "correlation"));
        assert_int_equal(json_integer_value(json_object_get(from, "id")), id);
        assert_int_equal(json_integer_value(json_object_get(to, "id")), id);
        assert_true(number(from, "ts") == number(launch, "ts") && number(to, "ts") == number(kernel, "ts"));
        assert_true(number(launch, "ts") > before_us && number(launch, "dur") >= 0);
        assert_true(number(launch, "tid") == number(launch, "pid") && number(kernel, "pid") == 0);
        before_us = number(launch, "ts");
    }
    assert_null(find(events, "X", "cuda_runtime", 4));
    json_decref(trace);
    remove(path);
    el_recorder_destroy(recorder);
}

int main(void)
{
    set_up_cards();
    const struct CMUnitTest tests[] = {cmocka_unit_test(launches_lead_to_kernels)};
    return cmocka_run_group_tests_name("traces of fake cards", tests, NULL, NULL);
}
