/* Simulated devices that slow each other down: steps by hand whose times are known, from ops that were measured alone
 * and beside others. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/device/costs.h"
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

RUN_TESTS(NULL, NULL, busy_devices_slow_each_other_down)
