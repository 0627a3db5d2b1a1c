/* Hand-made timelines with known answers: collectives, the split of a recorder's spans by them, and ops by name. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "profiles/collectives.h"
#include "profiles/recorder.h"
#include "tests/unit/near.h"

enum { MEMBERS = 3, STEPS = 3, OPS = 2, MS = 1000000 };

/* [member][step][operation]: begin and end in ms. In step 0 member 1 is 20 ms late at the first operation, which takes
 * 5 ms then; member 2, a root, leaves it before the last has come. In step 2 everybody is held up for 500 ms. */
static const int64_t ms[MEMBERS][STEPS][OPS][2] = {
    {{{10, 35}, {40, 50}}, {{110, 116}, {140, 150}}, {{200, 706}, {740, 750}}},
    {{{30, 35}, {40, 50}}, {{111, 116}, {142, 150}}, {{701, 706}, {740, 750}}},
    {{{10, 12}, {44, 50}}, {{109, 116}, {140, 150}}, {{200, 706}, {740, 750}}},
};

static struct el_span spans[MEMBERS][STEPS * OPS];
static struct el_collective collectives[OPS] = {{.operation = UINT64_C(0xffffffffffffff01)}, {.operation = 7}};
static struct el_collectives members[MEMBERS];

static void fill(void)
{
    for (int m = 0; m < MEMBERS; m++) {
        for (int i = 0; i < STEPS * OPS; i++) {
            const int64_t *span = ms[m][i / OPS][i % OPS];
            spans[m][i] = (struct el_span){span[0] * MS, span[1] * MS};
        }
        members[m] = (struct el_collectives){.n_steps = STEPS, .n = OPS, .spans = spans[m], .ops = collectives};
    }
}

static void test_latest(void **state)
{
    static const int64_t wanted[STEPS * OPS] = {30, 44, 111, 142, 701, 740};
    int64_t latest[STEPS * OPS];
    fill();
    for (int m = 0; m < MEMBERS; m++) {
        int *matches = el_collectives_match(members, MEMBERS, m);
        assert_non_null(matches);
        el_collectives_latest(members, MEMBERS, m, matches, latest);
        for (int i = 0; i < STEPS * OPS; i++) assert_int_equal(latest[i], wanted[i] * MS);
        free(matches);
    }
}

static void test_figures(void **state)
{
    struct el_collective_figures f;
    double late_s[MEMBERS];
    static const int first[MEMBERS], of_two[MEMBERS] = {1, 1, -1}, alone[MEMBERS] = {-1, 1, -1};
    fill();
    assert_int_equal(el_collectives_figures(members, MEMBERS, first, &f, late_s), EL_OK);
    near_ms(f.skew_s, (20 + 2 + 501) / 3.0);
    near_ms(f.skew_median_s, 20);
    near_ms(f.transfer_s, 5);
    near_ms(late_s[0], -10); /* of -10, 0, -250.5 */
    near_ms(late_s[1], 20);  /* of 20, 1.5, 501 */
    near_ms(late_s[2], -10); /* of -10, -1.5, -250.5 */
    assert_int_equal(el_collectives_figures(members, MEMBERS, of_two, &f, late_s), EL_OK);
    near_ms(f.skew_s, 2 / 3.0);
    near_ms(late_s[1], 0);
    assert_int_equal(el_collectives_figures(members, MEMBERS, alone, &f, late_s), EL_OK);
    near_ms(f.skew_s, 0);
    near_ms(late_s[1], 0);
}

/* clang-format off */
#define OP(number, link_) {.operation = (number), .link = EL_LINK_##link_}
/* clang-format on */

/* Members of different groups and messages between two: who has a part in what goes by its number, not by its place.
 * Who sends has not waited for anybody. */
static void test_match(void **state)
{
    enum { ALL = 5, A_TO_B = 90, B_TO_A = 91, OF_B_AND_C = 1 };
    static struct el_collective of[MEMBERS][4] = {
        {OP(A_TO_B, SEND), OP(ALL, NONE), OP(B_TO_A, RECEIVE)},
        {OP(OF_B_AND_C, NONE), OP(A_TO_B, RECEIVE), OP(B_TO_A, SEND), OP(ALL, NONE)},
        {OP(ALL, NONE), OP(OF_B_AND_C, NONE)}};
    static struct el_span at[MEMBERS][4] = {
        {{10, 20}, {30, 99}, {40, 70}}, {{1, 9}, {5, 25}, {60, 65}, {70, 99}}, {{50, 99}, {3, 9}}};
    static const size_t n[MEMBERS] = {3, 4, 2};
    static const int wanted[3][MEMBERS] = {{0, 1, -1}, {1, 3, 0}, {2, 2, -1}};
    static const int64_t latest_of_a[] = {10, 70, 60}, latest_of_b[] = {3, 10, 60, 70};
    struct el_collectives list[MEMBERS];
    int64_t latest[4];
    for (int m = 0; m < MEMBERS; m++)
        list[m] = (struct el_collectives){.n_steps = 1, .n = n[m], .spans = at[m], .ops = of[m]};
    int *a = el_collectives_match(list, MEMBERS, 0), *b = el_collectives_match(list, MEMBERS, 1);
    assert_memory_equal(a, wanted, sizeof wanted);
    el_collectives_latest(list, MEMBERS, 0, a, latest);
    assert_memory_equal(latest, latest_of_a, sizeof latest_of_a);
    el_collectives_latest(list, MEMBERS, 1, b, latest);
    assert_memory_equal(latest, latest_of_b, sizeof latest_of_b);
    free(a);
    free(b);
}

/* A device that computes from 0 to 30 ms, is in a collective from 20 to 60, and goes on from 60 to 70. The last member
 * arrives at 45: it waits 25 ms, 10 of them beside its own kernel, and the transfer takes 15. */
static void test_split(void **state)
{
    static const struct el_op_info ops[] = {
        {.label = "k", .phase = EL_PHASE_BACKWARD, .op_class = EL_CLASS_COMPUTE, .peer = -1},
        {.label = "c",
         .phase = EL_PHASE_COMM,
         .op_class = EL_CLASS_COMM,
         .stream = 1,
         .peer = -1,
         .bytes = 8,
         .communicator = "tensor"},
        {.label = "o", .phase = EL_PHASE_OPTIMIZER, .op_class = EL_CLASS_COMPUTE, .peer = -1},
        {.label = "l", .phase = EL_PHASE_DATA, .op_class = EL_CLASS_HOST, .peer = -1}};
    const struct el_span at[] = {{0, 30 * MS}, {20 * MS, 60 * MS}, {60 * MS, 70 * MS}, {70 * MS, 75 * MS}};
    const int64_t cpu_ns[] = {0, 3 * MS, 0, 0}, latest[] = {45 * MS};
    struct el_step_event event = {
        .whole = {0, 80 * MS}, .n_ops = 4, .ops = ops, .spans = at, .cpu_ns = cpu_ns, .n_marks = 0};
    struct el_recorder *recorder;
    struct el_device_summary s;
    assert_int_equal(el_recorder_create(0, 1, &recorder), EL_OK);
    struct el_probe probe = el_recorder_probe(recorder);
    el_recorder_begin(recorder);
    probe.step(probe.context, &event);
    el_recorder_segment(recorder, 1); /* a control block: no part of what was measured */
    probe.step(probe.context, &event);
    probe.step(probe.context, &event);
    el_recorder_segment(recorder, -1);
    probe.step(probe.context, &event);
    assert_int_equal(el_recorder_kept(recorder, EL_RECORDER_MEASURED), 1);
    assert_int_equal(el_recorder_kept(recorder, 1), 2);
    assert_int_equal(el_recorder_summarize(recorder, 0, EL_RECORDER_MEASURED, &s), EL_OK);
    assert_false(s.arrivals_known);
    near_ms(s.phase_s[EL_PHASE_COMM], 40);
    assert_int_equal(el_recorder_tell(recorder, 0, EL_RECORDER_MEASURED, latest, 1, NULL, 0), EL_OK);
    assert_int_equal(el_recorder_summarize(recorder, 0, EL_RECORDER_MEASURED, &s), EL_OK);
    assert_true(s.arrivals_known && !s.bubble_known && s.n_steps == 1);
    near_ms(s.comm_total_s, 40);
    near_ms(s.comm_exposed_s, 30);
    near_ms(s.wait_s, 25);
    near_ms(s.wait_exposed_s, 15);
    near_ms(s.phase_s[EL_PHASE_COMM], 15);
    assert_true(s.n_groups == 1 && !strcmp(s.groups[0].name, "tensor"));
    near_ms(s.groups[0].total_s, 40);
    near_ms(s.groups[0].wait_s, 25);
    near_ms(s.groups[0].exposed_s, 30);
    near_ms(s.comm_cpu_s, 3);
    near_ms(s.compute_s, 40);
    near_ms(s.other_s, 5);
    near_ms(s.idle_s, 5);
    /* the breakdown's identity */
    near_ms(s.compute_s + s.comm_exposed_s + s.other_s + s.idle_s, 80);
    assert_int_equal(el_recorder_summarize(recorder, 0, 1, &s), EL_OK);
    assert_true(!s.arrivals_known && s.n_steps == 2);
    near_ms(s.comm_cpu_s, 3);
    assert_int_equal(el_recorder_summarize(recorder, 0, 2, &s), EL_ERR_INVALID);
    el_recorder_destroy(recorder);
}

/* ---- ops by name: means and medians over the measured steps, sums of what one step has several times, and nothing of
 * another device or of warm-up ---- */

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
    struct el_span at[N_OPS];
    for (int i = 0; i < N_OPS; i++) at[i] = (struct el_span){.begin_ns = 1000 * i, .end_ns = 1000 * i + ns * (i + 1)};
    struct el_step_event event = {.whole = {0, 1000000}, .n_ops = N_OPS, .ops = ops, .spans = at};
    struct el_probe probe = el_recorder_probe(recorder);
    assert_true(probe.spans);
    probe.step(probe.context, &event);
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
    near_ms(copy->mean_s, 1e-6 * mean_ns * 4); /* the first and the third of a step, together */
    near_ms(copy->median_s, 1e-6 * median_ns * 4);
    near_ms(forward->mean_s, 1e-6 * mean_ns * 2);
    near_ms(forward->median_s, 1e-6 * median_ns * 2);
    near_ms(backward->median_s, 1e-6 * median_ns * 4);
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

RUN_TESTS(NULL, NULL, test_latest, test_figures, test_match, test_split, a_burst_moves_the_mean_and_not_the_median,
          without_measured_steps_there_are_no_ops)
