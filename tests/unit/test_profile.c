/* Which steps a profile holds, and its table by op, against answers worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profiles/op_table.h"

static void assert_steps(const char *text, const char *cycles)
{
    struct el_profile_schedule schedule;
    char found[64] = "";
    assert_int_equal(el_profile_schedule_read(text, &schedule), EL_OK);
    for (int s = 0; cycles[s]; s++) {
        int64_t cycle = el_profile_cycle(&schedule, s);
        found[s] = cycle < 0 ? '.' : (char)('0' + cycle);
    }
    assert_string_equal(found, cycles);
}

static void test_schedule(void **state)
{
    struct el_profile_schedule schedule;
    assert_steps("wait=1,warmup=1,active=2,repeat=1", "..00........");
    assert_steps("wait=1,warmup=1,active=2,repeat=2", "..00..11....");
    assert_steps("wait=1,warmup=1,active=2", "..00..11..22..33");
    assert_steps("active=1", "012345");
    assert_steps("skip_first=3,wait=2,active=1,repeat=2", ".....0..1....");
    assert_int_equal(el_profile_schedule_read("skip_first=3,wait=2,active=1,repeat=2", &schedule), EL_OK);
    assert_int_equal(el_profile_schedule_steps(&schedule), 9);
    assert_int_equal(el_profile_schedule_read("wait=1,warmup=1,active=2", &schedule), EL_OK);
    assert_int_equal(el_profile_schedule_steps(&schedule), 4);
}

static void test_no_schedule(void **state)
{
    static const char *const texts[] = {"",          "wait=1",         "active=0",        "active",
                                        "active=1,", ",active=1",      "active=1,rest=2", "active=1;repeat=2",
                                        "active=-1", "active=1000001", "active=1,,wait=1"};
    struct el_profile_schedule schedule;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (el_profile_schedule_read(texts[i], &schedule) != EL_ERR_INVALID) fail_msg("'%s' was taken", texts[i]);
}

/* One device. Step of 100: load 0-5, forward 10-20 and 25-40, a collective on stream 1 from 35 to 60, forward's
 * third op at 60-70, the optimizer 80-90. */
enum { N_OPS = 6 };
static const struct el_op_info ops[N_OPS] = {
    {.label = "load", .phase = EL_PHASE_DATA, .op_class = EL_CLASS_HOST, .peer = -1},
    {.label = "linear_forward a",
     .phase = EL_PHASE_FORWARD,
     .kernel = {.name = "linear_forward"},
     .flops = 5,
     .peer = -1},
    {.label = "dropout", .phase = EL_PHASE_FORWARD, .kernel = {.name = "dropout"}, .bytes = 7, .peer = -1},
    {.label = "sum of all",
     .phase = EL_PHASE_COMM,
     .op_class = EL_CLASS_COMM,
     .stream = 1,
     .messages = {.verb = "all_reduce"},
     .peer = -1},
    {.label = "linear_forward b",
     .phase = EL_PHASE_FORWARD,
     .kernel = {.name = "linear_forward"},
     .flops = 6,
     .peer = -1},
    {.label = "w", .phase = EL_PHASE_OPTIMIZER, .kernel = {.name = "sgd"}, .peer = -1}};
static const struct el_span spans[N_OPS] = {{0, 5}, {10, 20}, {25, 40}, {35, 60}, {60, 70}, {80, 90}};
/* 100 bytes for the first linear, freed after the dropout; 30 for the second one, which live on. The collective lies
 * between in the order of issue and has no part in it. */
static const struct el_mark marks[] = {
    {1, 0, EL_TAG_ACTIVATION, 100}, {3, 0, EL_TAG_ACTIVATION, -100}, {3, 0, EL_TAG_OUTPUT, 30}};

static void assert_row(const struct el_op_table *table, const char *name, int64_t calls, int64_t self, int64_t total,
                       int64_t memory)
{
    for (size_t i = 0; i < table->n; i++) {
        const struct el_op_row *row = &table->rows[i];
        if (strcmp(row->name, name) != 0) continue;
        assert_int_equal(row->calls, calls);
        assert_int_equal(row->self_ns, self);
        assert_int_equal(row->total_ns, total);
        assert_int_equal(row->memory_bytes, memory);
        return;
    }
    fail_msg("no row %s", name);
}

static void test_table(void **state)
{
    struct el_recorder *recorder;
    struct el_profile_schedule schedule;
    struct el_op_table table;
    assert_int_equal(el_recorder_create(0, 1, &recorder), EL_OK);
    struct el_probe probe = el_recorder_probe(recorder);
    el_recorder_begin(recorder);
    for (int64_t s = 0; s < 6; s++) {
        struct el_span shifted[N_OPS];
        for (int i = 0; i < N_OPS; i++)
            shifted[i] = (struct el_span){spans[i].begin_ns + 1000 * s, spans[i].end_ns + 1000 * s};
        struct el_step_event event = {.step = (uint64_t)s,
                                      .whole = {1000 * s, 1000 * s + 100},
                                      .n_ops = N_OPS,
                                      .ops = ops,
                                      .spans = shifted,
                                      .n_marks = 3,
                                      .marks = marks};
        probe.step(probe.context, &event);
    }
    assert_int_equal(el_profile_schedule_read("wait=1,warmup=1,active=2,repeat=1", &schedule), EL_OK);
    assert_int_equal(el_op_table_make(recorder, 0, &schedule, &table), EL_OK);
    assert_int_equal(table.n_steps, 2);
    assert_string_equal(table.rows[0].name, "ProfilerStep*");
    /* Of a step no phase has 5-10, 70-80 and 90-100: 35-60 is the collective's alone from 40 on, but forward's run goes
     * on until 70. */
    assert_row(&table, "ProfilerStep*", 2, 2 * 25, 2 * 100, 2 * 30);
    assert_row(&table, "forward", 2, 2 * 25, 2 * 60, 2 * 30);
    assert_row(&table, "comm", 2, 0, 2 * 25, 0);
    assert_row(&table, "linear_forward", 4, 2 * 20, 2 * 20, 2 * 130);
    assert_row(&table, "dropout", 2, 2 * 15, 2 * 15, 2 * -100);
    assert_row(&table, "all_reduce", 2, 2 * 25, 2 * 25, 0);
    assert_row(&table, "sgd", 2, 2 * 10, 2 * 10, 0);
    assert_row(&table, "load", 2, 2 * 5, 2 * 5, 0);
    assert_true(table.rows[0].flops == 22 && table.rows[0].bytes == 14);
    el_op_table_free(&table);
    assert_int_equal(el_op_table_make(recorder, 1, &schedule, &table), EL_ERR_INVALID);
    el_recorder_destroy(recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedule),
        cmocka_unit_test(test_no_schedule),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
