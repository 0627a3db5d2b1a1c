/* Simulated devices that slow each other down: steps by hand whose times are known, from ops that were measured alone
 * and beside others; and products beside collectives that hold multiprocessors of their card. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/device/costs.h"
#include "runtime/device/machine.h"
#include "tests/test.h"
#include "tests/unit/sim_steps.h"

enum { US = 1000, OPS = 2 };

/* Alone and beside others, in microseconds. */
static const struct {
    const char *label;
    enum el_op_class op_class;
    double alone_us, beside_us;
} ops[] = {{"long", EL_CLASS_HOST, 100, 200},
           {"short", EL_CLASS_HOST, 50, 100},
           {"alike", EL_CLASS_HOST, 100, 100},
           {"sum", EL_CLASS_COMM, 100, 100}};

/* What each device does, one op after another: their numbers, -1 at the end; and until when that takes. */
static const struct {
    const char *what;
    int n_beside, ops[MEMBERS][OPS + 1], n_devices;
    bool in_turns; /* a device begins when the one before it has ended */
    double us[MEMBERS];
    double pace_ratio; /* of device 1 */
} cases[] = {
    {"alone", 1, {{0, -1}}, 1, false, {100}, 0},
    {"two at once", 1, {{0, -1}, {0, -1}}, 2, false, {200, 200}, 0},
    {"in turns", 1, {{0, -1}, {0, -1}}, 2, true, {100, 200}, 0},
    /* For 100 us at half its rate, then the other half of its work. */
    {"beside a shorter one", 1, {{0, -1}, {1, -1}}, 2, false, {150, 100}, 0},
    {"two of three", 2, {{0, -1}, {0, -1}}, 2, false, {400 / 3., 400 / 3.}, 0},
    {"three of three", 2, {{0, -1}, {0, -1}, {0, -1}}, 3, false, {200, 200, 200}, 0},
    {"more than were measured", 1, {{0, -1}, {0, -1}, {0, -1}}, 3, false, {200, 200, 200}, 0},
    {"beside communication", 1, {{0, -1}, {3, -1}}, 2, false, {100, 100}, 0},
    {"what does not mind", 1, {{0, -1}, {2, -1}}, 2, false, {150, 100}, 0},
    {"one after another", 1, {{0, 0, -1}, {1, 1, -1}}, 2, false, {300, 200}, 0},
    {"never measured beside others", 0, {{0, -1}, {0, -1}}, 2, false, {100, 100}, 0},
    {"beside a slower one", 1, {{2, -1}, {2, -1}}, 2, false, {100, 150}, 1.5},
    {"a slower one in its turn", 1, {{2, -1}, {2, -1}}, 2, true, {100, 250}, 1.5},
};

static struct el_costs *make_costs(int n_beside)
{
    struct el_costs *costs = calloc(1, sizeof *costs);
    assert_non_null(costs);
    costs->n_beside = n_beside;
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        for (int beside = 0; beside < (n_beside ? 2 : 1); beside++) {
            struct el_cost_op *op = &costs->ops[costs->n_ops++];
            *op = (struct el_cost_op){.phase = EL_PHASE_FORWARD, .beside = beside, .n = 1};
            snprintf(op->label, sizeof op->label, "%s", ops[i].label);
            op->points[0] = (struct el_cost_point){8, US * (beside ? ops[i].beside_us : ops[i].alone_us)};
        }
    }
    return costs;
}

static void check(size_t c)
{
    struct el_costs *costs = make_costs(cases[c].n_beside);
    costs->pace_ratio[1] = cases[c].pace_ratio;
    struct el_device *devices[MEMBERS];
    struct el_program *program;
    struct seen seen;
    int last[MEMBERS], id = -1;
    assert_int_equal(el_program_create(&program), EL_OK);
    for (int d = 0; d < cases[c].n_devices; d++) {
        struct el_device_spec spec = {.backend = "sim", .index = d, .position = d, .costs = costs};
        assert_int_equal(el_device_open(&spec, &devices[d]), EL_OK);
        if (cases[c].in_turns && d > 0) el_program_wait(program, devices[d], EL_STREAM_COMPUTE, id);
        for (const int *op = cases[c].ops[d]; *op >= 0; op++) {
            struct el_call_op call = {.head = {.label = ops[*op].label, .phase = EL_PHASE_FORWARD},
                                      .op_class = ops[*op].op_class,
                                      .run = never,
                                      .bytes = 8};
            assert_int_equal(el_program_call(program, devices[d], EL_STREAM_COMPUTE, &call, &id), EL_OK);
        }
        last[d] = id;
    }
    assert_int_equal(el_program_end(program), EL_OK);
    struct el_probe probe = {.context = &seen, .spans = true, .step = keep};
    for (uint64_t step = 0; step < 2; step++) {
        assert_int_equal(el_program_run(program, step, &probe), EL_OK);
        for (int d = 0; d < cases[c].n_devices; d++) {
            double us = (double)seen.spans[last[d]].end_ns / US, wanted = cases[c].us[d];
            if (!(us > wanted * 0.998 && us < wanted * 1.002))
                fail_msg("%s: device %d has ended after %g us, not %g", cases[c].what, d, us, wanted);
        }
    }
    el_program_destroy(program);
    close_devices(devices, cases[c].n_devices);
    free(costs);
}

static void busy_devices_slow_each_other_down(void **state)
{
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) check(c);
}

/* A kernel of so many microseconds: 2,000 FLOPs a nanosecond; bytes cost nothing. */
static int kernel(struct el_program *program, struct el_device *device, bool product, int64_t us)
{
    int id;
    struct el_kernel_op op = {.op = EL_OP_ADD, .dtype = EL_F32, .args.d = {2000 * us * US}};
    if (product) op = (struct el_kernel_op){.op = EL_OP_LINEAR_FORWARD, .dtype = EL_F32, .args.d = {100, 10000, us}};
    assert_int_equal(el_program_kernel(program, device, EL_STREAM_COMPUTE, &op, &id), EL_OK);
    return id;
}

/* A collective of 50 us holds a fifth of the card, from the step's begin or after the first kernel. */
static void products_have_what_collectives_leave(void **state)
{
    static const struct {
        const char *what;
        bool product, after_first;
        int64_t us[2];
        int multiprocessors;
        double ends_us[2];
    } steps[] = {
        {"longer than the collective", true, false, {100, 0}, 10, {110, 110}}, /* 40 us of its work in the first 50 */
        {"shorter", true, false, {20, 0}, 10, {25, 50}},
        {"one after another", true, false, {20, 60}, 10, {25, 90}}, /* the second: 20 us of its work in 25, then 40 */
        {"behind it", true, true, {20, 60}, 10, {20, 90}},
        {"what moves memory", false, false, {100, 0}, 10, {100, 100}},
        {"a card that does not say", true, false, {100, 0}, 0, {100, 100}},
    };
    for (size_t c = 0; c < sizeof steps / sizeof steps[0]; c++) {
        const struct el_machine card = {.f32_flops_per_s = 2e12,
                                        .memory_bytes_per_s = 1e18,
                                        .link_bytes_per_s = 1e18,
                                        .collective_launch_ns = 50 * US,
                                        .multiprocessors = steps[c].multiprocessors,
                                        .collective_multiprocessors = 2};
        struct el_device_spec spec = {.backend = "sim", .machine = &card};
        struct el_device *device;
        struct el_program *program;
        struct seen seen;
        int ids[2];
        assert_int_equal(el_device_open(&spec, &device), EL_OK);
        assert_int_equal(el_program_create(&program), EL_OK);
        ids[0] = kernel(program, device, steps[c].product, steps[c].us[0]);
        if (steps[c].after_first) el_program_wait(program, device, EL_STREAM_COMM, ids[0]);
        ids[1] = collective(program, device, program, 1, 1);
        if (steps[c].us[1]) ids[1] = kernel(program, device, steps[c].product, steps[c].us[1]);
        assert_int_equal(el_program_end(program), EL_OK);
        struct el_probe probe = {.context = &seen, .spans = true, .step = keep};
        for (uint64_t step = 0; step < 2; step++) {
            assert_int_equal(el_program_run(program, step, &probe), EL_OK);
            const double first = (double)seen.spans[ids[0]].end_ns / US, end = (double)seen.whole.end_ns / US;
            if (fabs(first / steps[c].ends_us[0] - 1) > 3e-3 || fabs(end / steps[c].ends_us[1] - 1) > 3e-3)
                fail_msg("%s: the first kernel ends after %g us and the step after %g", steps[c].what, first, end);
        }
        el_program_destroy(program);
        el_device_close(device);
    }
}

RUN_TESTS(NULL, NULL, busy_devices_slow_each_other_down, products_have_what_collectives_leave)
