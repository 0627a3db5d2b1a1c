/* Hand-made timelines with known answers: interval sets, and what the recorder makes of a step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "profiles/intervals.h"
#include "profiles/recorder.h"

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
static const struct el_op_info ops[] = {
    {.phase = EL_PHASE_DATA, .op_class = EL_CLASS_HOST, .device = 0, .stream = 0, .peer = -1},
    {.phase = EL_PHASE_H2D, .op_class = EL_CLASS_COPY, .device = 0, .stream = 0, .peer = -1, .received_bytes = 64},
    {.phase = EL_PHASE_FORWARD, .op_class = EL_CLASS_COMPUTE, .device = 0, .stream = 0, .peer = -1, .flops = 100},
    {.phase = EL_PHASE_BACKWARD, .op_class = EL_CLASS_COMPUTE, .device = 0, .stream = 0, .peer = -1, .flops = 200},
    {.phase = EL_PHASE_COMM,
     .op_class = EL_CLASS_COMM,
     .device = 0,
     .stream = 1,
     .peer = -1,
     .sent_bytes = 1000,
     .received_bytes = 1000},
    {.phase = EL_PHASE_COMM,
     .op_class = EL_CLASS_COMM,
     .device = 0,
     .stream = 1,
     .peer = -1,
     .sent_bytes = 500,
     .received_bytes = 500},
    {.phase = EL_PHASE_OPTIMIZER, .op_class = EL_CLASS_COMPUTE, .device = 0, .stream = 0, .peer = -1},
    {.phase = EL_PHASE_REPLICATE,
     .op_class = EL_CLASS_COPY,
     .device = 1,
     .stream = 0,
     .peer = 0,
     .received_bytes = 4096},
    {.phase = EL_PHASE_FORWARD, .op_class = EL_CLASS_COMPUTE, .device = 1, .stream = 2, .peer = -1},
};
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
    struct el_step_event event = {.whole = {at_ms * 1000000, at_ms * 1000000 + (int64_t)(100e6 * stretch)},
                                  .n_ops = N_OPS,
                                  .ops = ops,
                                  .spans = with_spans ? spans : NULL};
    struct el_probe probe = el_recorder_probe(recorder);
    assert_true(probe.spans);
    probe.step(probe.context, &event);
}

static void near(double got_s, double wanted_ms)
{
    assert_true(got_s * 1e3 > wanted_ms - 1e-9 && got_s * 1e3 < wanted_ms + 1e-9);
}

static void check_first(const struct el_device_summary *s, double by)
{
    near(s->step_s, 100 * by);
    near(s->phase_s[EL_PHASE_DATA], 5 * by);
    near(s->phase_s[EL_PHASE_FORWARD], 20 * by);
    near(s->phase_s[EL_PHASE_COMM], 30 * by); /* 40..70, the union */
    near(s->comm_total_s, 30 * by);
    near(s->compute_s, 58 * by); /* 10..60 and 72..80 */
    near(s->comm_overlapped_s, 20 * by);
    near(s->comm_exposed_s, 10 * by);
    near(s->busy_s, 63 * by); /* h2d and kernels; loading is not the device's */
    near(s->idle_s, 22 * by); /* 70..72 and 80..100 */
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
    near(s.comm_total_s, 20); /* dp's copies between devices are communication */
    near(s.compute_s, 40);    /* on any stream */
    near(s.comm_overlapped_s, 10);
    near(s.busy_s, 20); /* stream 0 only */
    near(s.idle_s, 50);
    near(s.phase_s[EL_PHASE_REPLICATE], 20);
    el_recorder_destroy(recorder);
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
    el_recorder_destroy(recorder);
    el_recorder_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_union),
        cmocka_unit_test(test_common),
        cmocka_unit_test(test_against_ticks),
        cmocka_unit_test(test_recorder_step),
        cmocka_unit_test(test_recorder_mean_and_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
