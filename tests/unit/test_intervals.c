/* Hand-made timelines with known answers: interval sets, what the recorder makes of a step, and a profile's table. */
#include "tests/test.h"

#include "profiles/intervals.h"
#include "profiles/op_table.h"
#include "profiles/recorder.h"
#include "tests/unit/near.h"

static struct el_intervals united(const int64_t (*spans)[2], size_t n)
{
    struct el_intervals t = {0};
    for (size_t i = 0; i < n; i++) el_intervals_add(&t, (struct el_span){spans[i][0], spans[i][1]});
    el_intervals_unite(&t);
    return t;
}

#define UNITED(...)                                                                                                    \
    united((const int64_t[][2]){__VA_ARGS__}, sizeof((const int64_t[][2]){__VA_ARGS__}) / sizeof(int64_t[2]))

static void check_union(struct el_intervals t, size_t n, int64_t measure)
{
    assert_int_equal(t.n, n);
    assert_int_equal(el_intervals_measure(&t), measure);
    el_intervals_unite(&t);
    assert_int_equal(t.n, n);
    el_intervals_free(&t);
}

static void test_union(void **state)
{
    check_union(UNITED({10, 40}, {20, 30}), 1, 30);                       /* nested */
    check_union(UNITED({20, 30}, {0, 10}, {10, 20}), 1, 30);              /* touching, out of order */
    check_union(UNITED({5, 5}, {7, 3}, {1, 2}), 1, 1);                    /* empty and reversed */
    check_union(UNITED({0, 10}, {5, 15}, {30, 40}), 2, 25);               /* overlapping, a gap */
    check_union(UNITED({3, 9}, {3, 9}, {3, 9}), 1, 6);                    /* the same three times */
    check_union(UNITED({0, 100}, {10, 20}, {30, 40}, {90, 110}), 1, 110); /* an early one that outlasts others */
    struct el_intervals empty = {0};
    check_union(empty, 0, 0);
}

static int64_t common(struct el_intervals a, struct el_intervals b)
{
    int64_t ab = el_intervals_common(&a, &b), ba = el_intervals_common(&b, &a);
    assert_int_equal(ab, ba);
    el_intervals_free(&a);
    el_intervals_free(&b);
    return ab;
}

static void test_common(void **state)
{
    assert_int_equal(common(UNITED({0, 10}), UNITED({10, 20})), 0); /* touching share nothing */
    assert_int_equal(common(UNITED({0, 100}), UNITED({10, 20}, {30, 40}, {95, 120})), 25);
    assert_int_equal(common(UNITED({0, 10}, {20, 30}), UNITED({5, 25})), 10);
    assert_int_equal(common(UNITED({0, 10}), UNITED({0, 10})), 10);
    assert_int_equal(common(UNITED({0, 10}), UNITED({3, 3})), 0);
}

/* Many intervals against a plain count of ticks. */
static void test_against_ticks(void **state)
{
    uint32_t seed = 7;
    for (int round = 0; round < 50; round++) {
        struct el_intervals t[2] = {{0}, {0}};
        unsigned char hit[2][512] = {{0}};
        for (int i = 0; i < 200; i++) {
            seed = seed * 1664525u + 1013904223u;
            int64_t begin = (seed >> 8) % 500, length = (seed >> 20) % 12;
            el_intervals_add(&t[i % 2], (struct el_span){begin, begin + length});
            for (int64_t k = begin; k < begin + length; k++) hit[i % 2][k] = 1;
        }
        int64_t count[2] = {0}, both = 0;
        for (int k = 0; k < 512; k++) {
            for (int s = 0; s < 2; s++) count[s] += hit[s][k];
            both += hit[0][k] && hit[1][k];
        }
        for (int s = 0; s < 2; s++) el_intervals_unite(&t[s]);
        for (int s = 0; s < 2; s++) assert_int_equal(el_intervals_measure(&t[s]), count[s]);
        assert_int_equal(el_intervals_common(&t[0], &t[1]), both);
        for (int s = 0; s < 2; s++) el_intervals_free(&t[s]);
    }
}

/* A ddp-like step of 100 ms on two devices; milliseconds below, nanoseconds in the spans. */
/* clang-format off */
#define OP(phase_, class_, ...) {.phase = EL_PHASE_##phase_, .op_class = EL_CLASS_##class_, __VA_ARGS__}
static const struct el_op_info ops[] = {
    OP(DATA, HOST, .peer = -1),
    OP(H2D, COPY, .peer = -1, .received_bytes = 64),
    OP(FORWARD, COMPUTE, .peer = -1, .flops = 100),
    OP(BACKWARD, COMPUTE, .peer = -1, .flops = 200),
    OP(COMM, COMM, .stream = 1, .peer = -1, .sent_bytes = 1000, .received_bytes = 1000),
    OP(COMM, COMM, .stream = 1, .peer = -1, .sent_bytes = 500, .received_bytes = 500),
    OP(OPTIMIZER, COMPUTE, .peer = -1),
    OP(REPLICATE, COPY, .device = 1, .peer = 0, .received_bytes = 4096),
    OP(FORWARD, COMPUTE, .device = 1, .stream = 2, .peer = -1),
};
/* clang-format on */
enum { N_OPS = sizeof ops / sizeof ops[0] };
static const int64_t step_ms[N_OPS][2] = {
    {0, 5},   {5, 10},  /* data, h2d */
    {10, 30}, {30, 60}, /* forward, backward */
    {40, 55}, {50, 70}, /* two collectives, overlapping each other; 10 ms beyond backward */
    {72, 80},           /* optimizer, after 2 ms of nothing; then 20 ms of nothing */
    {0, 20},  {10, 50}, /* device 1: a copy from device 0, and a kernel on another stream from 10 on */
};

static void tell(struct el_recorder *recorder, int64_t at_ms, double stretch, bool with_spans)
{
    struct el_span spans[N_OPS];
    for (int i = 0; i < N_OPS; i++) {
        spans[i].begin_ns = at_ms * 1000000 + (int64_t)((double)step_ms[i][0] * 1e6 * stretch);
        spans[i].end_ns = at_ms * 1000000 + (int64_t)((double)step_ms[i][1] * 1e6 * stretch);
    }
    struct el_step_event event = {.step = (uint64_t)at_ms,
                                  .whole = {at_ms * 1000000, at_ms * 1000000 + (int64_t)(100e6 * stretch)},
                                  .n_ops = N_OPS,
                                  .ops = ops,
                                  .spans = with_spans ? spans : NULL};
    struct el_probe probe = el_recorder_probe(recorder);
    assert_true(probe.spans);
    probe.step(probe.context, &event);
}

static void check_first(const struct el_device_summary *s, double by)
{
    near_ms(s->step_s, 100 * by);
    near_ms(s->phase_s[EL_PHASE_DATA], 5 * by);
    near_ms(s->phase_s[EL_PHASE_FORWARD], 20 * by);
    near_ms(s->phase_s[EL_PHASE_COMM], 30 * by); /* 40..70, the union */
    near_ms(s->comm_total_s, 30 * by);
    near_ms(s->compute_s, 58 * by); /* 10..60 and 72..80 */
    near_ms(s->comm_overlapped_s, 20 * by);
    near_ms(s->comm_exposed_s, 10 * by);
    near_ms(s->busy_s, 63 * by); /* h2d and kernels; loading is not the device's */
    near_ms(s->idle_s, 22 * by); /* 70..72 and 80..100 */
}

static void test_recorder_step(void **state)
{
    struct el_recorder *recorder = NULL;
    struct el_device_summary s;
    assert_int_equal(el_recorder_create(0, 2, &recorder), EL_OK);
    tell(recorder, 1000, 1, true);
    assert_int_equal(el_recorder_summarize(recorder, 0, 0, &s), EL_OK);
    assert_int_equal(s.n_steps, 1);
    check_first(&s, 1);
    /* 1500 by collectives, 4096 by the copy that runs on device 1 */
    assert_true(s.sent_bytes == 5596 && s.received_bytes == 1564 && s.comm_bytes == 5596 && s.flops == 300);
    assert_int_equal(el_recorder_summarize(recorder, 1, 0, &s), EL_OK);
    assert_true(s.sent_bytes == 0 && s.received_bytes == 4096);
    near_ms(s.comm_total_s, 20); /* dp's copies between devices are communication */
    near_ms(s.compute_s, 40);    /* on any stream */
    near_ms(s.comm_overlapped_s, 10);
    near_ms(s.busy_s, 20); /* stream 0 only */
    near_ms(s.idle_s, 50);
    near_ms(s.phase_s[EL_PHASE_REPLICATE], 20);
    el_recorder_destroy(recorder);
}

/* Step by step, of steps that take once and twice their time in turns. */
static void check_computed(const struct el_recorder *recorder)
{
    static const int64_t wanted_ms[2] = {58, 40};
    for (int position = 0; position < 2; position++) {
        for (size_t i = 0; i < 400; i++) {
            uint64_t step;
            assert_int_equal(el_recorder_computed_ns(recorder, position, i, &step),
                             wanted_ms[position] * 1000000 * (i % 2 == 0 ? 1 : 2));
            assert_int_equal(step, 2000 + 300 * i);
        }
    }
}

static void test_recorder_mean_and_begin(void **state)
{
    struct el_recorder *recorder = NULL;
    struct el_device_summary s;
    assert_int_equal(el_recorder_create(0, 2, &recorder), EL_OK);
    tell(recorder, 0, 9, true); /* warm-up */
    el_recorder_begin(recorder);
    assert_int_equal(el_recorder_summarize(recorder, 0, 0, &s), EL_ERR_INVALID);
    for (int i = 0; i < 400; i++) tell(recorder, 2000 + 300 * i, i % 2 == 0 ? 1 : 2, true);
    tell(recorder, 0, 9, false); /* spans off: not kept */
    assert_int_equal(el_recorder_summarize(recorder, 0, 0, &s), EL_OK);
    assert_int_equal(s.n_steps, 400);
    check_first(&s, 1.5);
    assert_true(s.sent_bytes == 5596);
    assert_int_equal(el_recorder_summarize(recorder, 2, 0, &s), EL_ERR_INVALID);
    check_computed(recorder);
    el_recorder_destroy(recorder);
    el_recorder_destroy(NULL);
}

/* ---- which steps a profile holds, and its table by op ---- */

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
enum { N_PROFILED = 6 };
/* clang-format off */
static const struct el_op_info profiled[N_PROFILED] = {
    OP(DATA, HOST, .label = "load", .peer = -1),
    OP(FORWARD, COMPUTE, .label = "linear_forward a", .kernel = {.name = "linear_forward"}, .flops = 5, .peer = -1),
    OP(FORWARD, COMPUTE, .label = "dropout", .kernel = {.name = "dropout"}, .bytes = 7, .peer = -1),
    OP(COMM, COMM, .label = "sum of all", .stream = 1, .messages = {.verb = "all_reduce"}, .peer = -1),
    OP(FORWARD, COMPUTE, .label = "linear_forward b", .kernel = {.name = "linear_forward"}, .flops = 6, .peer = -1),
    OP(OPTIMIZER, COMPUTE, .label = "w", .kernel = {.name = "sgd"}, .peer = -1)};
/* clang-format on */
static const struct el_span profiled_spans[N_PROFILED] = {{0, 5}, {10, 20}, {25, 40}, {35, 60}, {60, 70}, {80, 90}};
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

static void assert_part(const struct el_op_table *table, enum el_op_part_kind part, int64_t self, double limit)
{
    assert_int_equal(table->parts[part].self_ns, self);
    assert_true(fabs(table->parts[part].limit_ns - limit) < 1e-9);
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
        struct el_span shifted[N_PROFILED];
        for (int i = 0; i < N_PROFILED; i++)
            shifted[i] = (struct el_span){profiled_spans[i].begin_ns + 1000 * s, profiled_spans[i].end_ns + 1000 * s};
        struct el_step_event event = {.step = (uint64_t)s,
                                      .whole = {1000 * s, 1000 * s + 100},
                                      .n_ops = N_PROFILED,
                                      .ops = profiled,
                                      .spans = shifted,
                                      .n_marks = 3,
                                      .marks = marks};
        probe.step(probe.context, &event);
    }
    assert_int_equal(el_profile_schedule_read("wait=1,warmup=1,active=2,repeat=1", &schedule), EL_OK);
    assert_int_equal(el_op_table_make(recorder, 0, &schedule, &el_machine_default, &table), EL_OK);
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
    assert_part(&table, EL_OP_PART_PRODUCTS, 2 * 20, 2 * 11 / 1e3);      /* FLOPs at 1e12 a second */
    assert_part(&table, EL_OP_PART_ELEMENT_WISE, 2 * 15, 2 * 7 / 500.0); /* bytes at 500e9 */
    assert_part(&table, EL_OP_PART_COMM, 2 * 25, 0);
    assert_part(&table, EL_OP_PART_OPTIMIZER, 2 * 10, 0);
    assert_part(&table, EL_OP_PART_HOST, 2 * 5, 0);
    assert_part(&table, EL_OP_PART_NONE, 2 * (25 + 25), 0); /* of the step, and between forward's ops */
    el_op_table_free(&table);
    assert_int_equal(el_op_table_make(recorder, 1, &schedule, NULL, &table), EL_ERR_INVALID);
    el_recorder_destroy(recorder);
}

RUN_TESTS(NULL, NULL, test_union, test_common, test_against_ticks, test_recorder_step, test_recorder_mean_and_begin,
          test_schedule, test_no_schedule, test_table)
