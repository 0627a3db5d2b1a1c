/* The simulated backend: virtual time from constant costs, the same every time, along the longest path. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/device/program.h"

static enum el_status never(const struct el_call_args *args)
{
    (void)args;
    fail_msg("a simulated device ran a call");
    return EL_OK;
}

static int call(struct el_program *program, struct el_device *device, int stream, uint64_t group)
{
    int id;
    struct el_call_op op = {
        .head = {.label = "collective", .phase = EL_PHASE_COMM, .sent_bytes = 2000, .received_bytes = 2000},
        .op_class = EL_CLASS_COMM,
        .run = never,
        .group = {.of = program, .number = group}};
    assert_int_equal(el_program_call(program, device, stream, &op, &id), EL_OK);
    return id;
}

static int work(struct el_program *program, struct el_device *device, int64_t n)
{
    int id;
    struct el_kernel_op op = {.op = EL_OP_ADD, .dtype = EL_F32, .args.d = {n}};
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, &id), EL_OK);
    return id;
}

static struct el_span spans[16];

static void keep(void *context, const struct el_step_event *event)
{
    (void)context;
    assert_true(event->simulated);
    for (int i = 0; i < event->n_ops; i++) spans[i] = event->spans[i];
}

static void open_two(struct el_device **devices)
{
    for (int i = 0; i < 2; i++) {
        struct el_device_spec spec = {.backend = "sim", .index = i, .position = i};
        assert_int_equal(el_device_open(&spec, &devices[i]), EL_OK);
    }
}

static void ops_follow_waits_and_groups(void **state)
{
    (void)state;
    struct el_device *devices[2];
    struct el_program *program;
    open_two(devices);
    assert_int_equal(el_program_create(&program), EL_OK);
    int a = work(program, devices[0], 1000000), b = work(program, devices[1], 10);
    el_program_wait(program, devices[0], EL_STREAM_COMM, a);
    int first = call(program, devices[0], EL_STREAM_COMM, 1);
    el_program_wait(program, devices[1], EL_STREAM_COMM, b);
    int second = call(program, devices[1], EL_STREAM_COMM, 1);
    int beside = work(program, devices[1], 10);
    assert_int_equal(el_program_end(program), EL_OK);
    struct el_probe probe = {.spans = true, .step = keep};
    assert_int_equal(el_program_run(program, 0, &probe), EL_OK);
    assert_int_equal(spans[a].begin_ns, 0);
    assert_int_equal(spans[first].begin_ns, spans[a].end_ns);
    assert_int_equal(spans[second].begin_ns, spans[a].end_ns); /* together with the later one */
    assert_int_equal(spans[first].end_ns - spans[first].begin_ns, 20000 + 2000 / 20);
    assert_int_equal(spans[beside].begin_ns, spans[b].end_ns); /* another stream does not wait */
    int64_t elapsed = el_program_elapsed_ns(program);
    assert_int_equal(elapsed, spans[second].end_ns);
    assert_int_equal(el_program_run(program, 1, &probe), EL_OK);
    assert_int_equal(el_program_elapsed_ns(program), elapsed);
    el_program_destroy(program);
    for (int i = 0; i < 2; i++) el_device_close(devices[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ops_follow_waits_and_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
