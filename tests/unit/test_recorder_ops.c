/* Ops by name, from steps made by hand: means and medians over the measured steps, sums of what one step has several
 * times, and nothing of another device or of warm-up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profiles/recorder.h"

static const struct el_op_info ops[] = {
    {.label = "copy to bucket", .phase = EL_PHASE_REDUCE, .op_class = EL_CLASS_COMPUTE, .peer = -1, .how = "one"},
    {.label = "linear", .phase = EL_PHASE_FORWARD, .op_class = EL_CLASS_COMPUTE, .peer = -1, .how = "a product"},
    {.label = "copy to bucket", .phase = EL_PHASE_REDUCE, .op_class = EL_CLASS_COMPUTE, .peer = -1, .how = "other"},
    {.label = "linear", .phase = EL_PHASE_BACKWARD, .op_class = EL_CLASS_COMPUTE, .peer = -1},
    {.label = "linear", .phase = EL_PHASE_FORWARD, .op_class = EL_CLASS_COMPUTE, .device = 1, .peer = -1},
};
enum { N_OPS = sizeof ops / sizeof ops[0] };

/* A step in which every op takes `ns` times its place, counted from 1. */
static void tell(struct el_recorder *recorder, int64_t ns)
{
    struct el_span spans[N_OPS];
    for (int i = 0; i < N_OPS; i++)
        spans[i] = (struct el_span){.begin_ns = 1000 * i, .end_ns = 1000 * i + ns * (i + 1)};
    struct el_step_event event = {.whole = {0, 1000000}, .n_ops = N_OPS, .ops = ops, .spans = spans};
    struct el_probe probe = el_recorder_probe(recorder);
    assert_true(probe.spans);
    probe.step(probe.context, &event);
}

static void near(double got_s, double wanted_ns)
{
    if (!(got_s * 1e9 > wanted_ns - 1e-3 && got_s * 1e9 < wanted_ns + 1e-3))
        fail_msg("%.6f ns, not %.6f", got_s * 1e9, wanted_ns);
}

static void check_medians(const int64_t *ns, size_t n, double mean_ns, double median_ns)
{
    struct el_recorder *recorder = NULL;
    struct el_op_figures *figures;
    size_t n_figures;
    assert_int_equal(el_recorder_create(0, 2, &recorder), EL_OK);
    tell(recorder, 5000); /* warm-up */
    el_recorder_begin(recorder);
    for (size_t i = 0; i < n; i++) tell(recorder, ns[i]);
    assert_int_equal(el_recorder_ops(recorder, 0, &figures, &n_figures), EL_OK);
    assert_int_equal(n_figures, 3);
    const struct el_op_figures *copy = &figures[0], *forward = &figures[1], *backward = &figures[2];
    assert_string_equal(copy->label, "copy to bucket");
    assert_true(forward->phase == EL_PHASE_FORWARD && backward->phase == EL_PHASE_BACKWARD);
    assert_true(copy->count == 2 && forward->count == 1);
    assert_string_equal(forward->how, "a product");
    assert_string_equal(copy->how, "not the same in all of them");
    assert_null(backward->how);
    near(copy->mean_s, mean_ns * 4); /* the first and the third of a step, together */
    near(copy->median_s, median_ns * 4);
    near(forward->mean_s, mean_ns * 2);
    near(forward->median_s, median_ns * 2);
    near(backward->median_s, median_ns * 4);
    free(figures);
    el_recorder_destroy(recorder);
}

static void a_burst_moves_the_mean_and_not_the_median(void **state)
{
    check_medians((const int64_t[]){12, 10, 900, 11, 7}, 5, 188, 11);
    check_medians((const int64_t[]){13, 10, 900, 11}, 4, 233.5, 12);
    check_medians((const int64_t[]){10}, 1, 10, 10);
}

static void without_measured_steps_there_are_no_ops(void **state)
{
    struct el_recorder *recorder = NULL;
    struct el_op_figures *figures;
    size_t n = 1;
    assert_int_equal(el_recorder_create(0, 2, &recorder), EL_OK);
    tell(recorder, 10);
    el_recorder_begin(recorder);
    assert_int_equal(el_recorder_ops(recorder, 0, &figures, &n), EL_OK);
    assert_int_equal(n, 0);
    free(figures);
    el_recorder_destroy(recorder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_moves_the_mean_and_not_the_median),
        cmocka_unit_test(without_measured_steps_there_are_no_ops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
