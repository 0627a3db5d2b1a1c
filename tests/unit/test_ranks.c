/* Hand-made arrivals with known answers: who is late, who waits for whom, and what it is blamed on. */
#include "tests/test.h"

#include <math.h>

#include "profiles/ranks.h"
#include "tests/unit/near.h"

enum { MEMBERS = 3, STEPS = 2, OPS = 3, MS = 1000000 };

/* [member][step][operation]: begin and end in ms; the last operation is a message, which says nothing. In step 0 member
 * 1 is 20 ms late at the second operation; member 2, a root, leaves it after 2 ms. In step 1 members 1 and 2 come last
 * at the first one, together. */
static const int64_t ms[MEMBERS][STEPS][OPS][2] = {
    {{{0, 8}, {10, 35}, {50, 90}}, {{100, 116}, {140, 150}, {150, 199}}},
    {{{3, 8}, {30, 35}, {50, 90}}, {{112, 116}, {141, 150}, {180, 199}}},
    {{{0, 8}, {10, 12}, {50, 90}}, {{112, 116}, {140, 150}, {190, 199}}},
};

static void test_arrivals(void **state)
{
    static struct el_span spans[MEMBERS][STEPS * OPS];
    static struct el_collective ops[OPS] = {{.operation = 1}, {.operation = 2}, {.operation = 3, .link = EL_LINK_SEND}};
    struct el_collectives members[MEMBERS];
    struct el_rank_row rows[MEMBERS] = {{.last_pct = 7, .compute_s = 3}};
    for (int m = 0; m < MEMBERS; m++) {
        for (int i = 0; i < STEPS * OPS; i++)
            spans[m][i] = (struct el_span){ms[m][i / OPS][i % OPS][0] * MS, ms[m][i / OPS][i % OPS][1] * MS};
        members[m] = (struct el_collectives){.n_steps = STEPS, .n = OPS, .spans = spans[m], .ops = ops};
    }
    assert_int_equal(el_ranks_arrivals(members, MEMBERS, rows, NULL), EL_OK);
    near_ms(rows[0].late_s, (-10 - 12) / 2.0);
    near_ms(rows[1].late_s, (20 + 6) / 2.0);
    near_ms(rows[2].late_s, (-10 + 6) / 2.0);
    near_ms(rows[0].late_low_s, -12);
    near_ms(rows[1].late_low_s, 6);
    near_ms(rows[0].last_pct, 0);
    near_ms(rows[1].last_pct, (1 + 0.5) / 2 * 1e5);
    near_ms(rows[2].last_pct, 0.5 / 2 * 1e5);
    /* step 0: 3 + 3, and 20 + 2; step 1: 12, of both, and 1 + 1 */
    near_ms(rows[1].caused_s, (6 + 22 + 6 + 2) / 2.0);
    near_ms(rows[2].caused_s, 6 / 2.0);
    near_ms(rows[0].caused_s, 0);
    near_ms(rows[0].compute_s, 3e3);
}

/* Two groups of two: each has its own place in a step, and each collective is charged once. */
static void test_groups(void **state)
{
    enum { N = 4 };
    static struct el_collective ops[2] = {{.operation = 1}, {.operation = 2}};
    static struct el_span at[N] = {{0, 9 * MS}, {4 * MS, 9 * MS}, {50 * MS, 90 * MS}, {30 * MS, 90 * MS}};
    struct el_collectives members[N];
    struct el_rank_row rows[N];
    for (int m = 0; m < N; m++)
        members[m] = (struct el_collectives){.n_steps = 1, .n = 1, .spans = &at[m], .ops = &ops[m / 2]};
    assert_int_equal(el_ranks_arrivals(members, N, rows, NULL), EL_OK);
    near_ms(rows[0].late_s, -4);
    near_ms(rows[1].late_s, 4);
    near_ms(rows[2].late_s, 20);
    near_ms(rows[1].caused_s, 4);
    near_ms(rows[2].caused_s, 20);
    near_ms(rows[0].caused_s + rows[3].caused_s, 0);
    near_ms(rows[1].last_pct + rows[2].last_pct, 2e5);
}

/* Two collectives in flight at once, on streams of their own: the one peer waits 35 ms, not 35 + 30. */
static void waits_at_the_same_time_count_once(void **state)
{
    static struct el_collective ops[2] = {{.operation = 1}, {.operation = 2}};
    static struct el_span at[2][2] = {{{0, 40 * MS}, {5 * MS, 40 * MS}}, {{35 * MS, 40 * MS}, {35 * MS, 40 * MS}}};
    struct el_collectives members[2];
    struct el_rank_row rows[2];
    for (int m = 0; m < 2; m++) members[m] = (struct el_collectives){.n_steps = 1, .n = 2, .spans = at[m], .ops = ops};
    assert_int_equal(el_ranks_arrivals(members, 2, rows, NULL), EL_OK);
    near_ms(rows[1].caused_s, 35);
    near_ms(rows[0].caused_s, 0);
}

/* ---- blame: rows of 100 ms steps ---- */

#define LATE_ROW(last, late, low, caused, exposed, wait)                                                               \
    .last_pct = (last), .late_s = (late)*1e-3, .late_low_s = (low)*1e-3, .caused_s = (caused)*1e-3,                    \
    .exposed_s = (exposed)*1e-3, .wait_exposed_s = (wait)*1e-3, .wait_s = (wait)*1e-3
#define ROW(...)                                                                                                       \
    {                                                                                                                  \
        LATE_ROW(__VA_ARGS__)                                                                                          \
    }

static const struct {
    const char *what;
    struct el_rank_row rows[MEMBERS];
    int n;
    enum el_blame_kind kind;
    int who, n_late;
    double caused_pct, wait_ms, transfer_ms;
} blames[] = {
    {"noise of 4 %", {ROW(60, 1, -2, 3, 3, 2), ROW(40, -1, -3, 2, 4, 2)}, 2, EL_BLAME_EVEN, -1, 0, 0, 2, 1.5},
    {"one of three, half of it hidden",
     {ROW(0, -15, -15, 0, 12, 10), ROW(100, 30, 28, 40, 2, 0), ROW(0, -15, -16, 0, 12, 10)},
     3,
     EL_BLAME_STAYS,
     1,
     1,
     100,
     10,
     2},
    {"two of three",
     {ROW(0, -30, -31, 0, 30, 30), ROW(40, 14, 13, 14, 2, 2), ROW(60, 15, 14, 18, 0, 0)},
     3,
     EL_BLAME_STAYS,
     2,
     2,
     100,
     30,
     0},
    {"one, and one step held up all",
     {ROW(10, -86, -41, 1, 90, 90), ROW(90, 86, 39, 86, 3, 1)},
     2,
     EL_BLAME_STAYS,
     1,
     1,
     100 * 86 / 87.0,
     86,
     1},
    {"one in few steps",
     {ROW(45, -20, -1, 2, 20, 20), ROW(55, 20, -1, 20, 2, 2)},
     2,
     EL_BLAME_AT_TIMES,
     1,
     0,
     100 * 20 / 22.0,
     20,
     0},
    {"in one step alone, of ten",
     {ROW(0, -20, -1, 1, 20, 20), {LATE_ROW(10, 20, 0, 20, 1, 1), .most_s = 0.195, .most_at = 3, .n_steps = 10}},
     2,
     EL_BLAME_ONCE,
     1,
     0,
     100 * 20 / 21.0,
     195,
     0},
    {"now one, now the other",
     {ROW(55, 1, -20, 11, 9, 9), ROW(45, -1, -21, 9, 11, 11)},
     2,
     EL_BLAME_WANDERS,
     0,
     0,
     55,
     10,
     0},
    {"the wire", {ROW(50, 0, 0, 0, 30, 0), ROW(50, 0, 0, 0, 30, 0)}, 2, EL_BLAME_WIRE, -1, 0, 0, 0, 30},
    {"the wire, and one that it makes late",
     {ROW(0, -20, -19, 0, 50, 20), ROW(100, 20, 19, 20, 30, 0)},
     2,
     EL_BLAME_WIRE,
     -1,
     0,
     0,
     10,
     30},
    {"the wire, and one that computes longer",
     {ROW(0, -20, -19, 0, 50, 20), {.compute_s = 15e-3, LATE_ROW(100, 20, 19, 20, 30, 0)}},
     2,
     EL_BLAME_WIRE,
     1,
     1,
     100,
     10,
     30},
    {"the wire, and one that computes longer and is early on average",
     {ROW(25, 0.1, -2, 10, 40, 10), {.compute_s = 15e-3, LATE_ROW(75, -0.1, 2, 12, 40, 10)}},
     2,
     EL_BLAME_WIRE,
     -1,
     0,
     0,
     10,
     30},
    {"alone", {ROW(0, 0, 0, 0, 50, 50)}, 1, EL_BLAME_EVEN, -1, 0, 0, 0, 0},
};

static void test_blame(void **state)
{
    struct el_ranks_blame blame;
    for (size_t i = 0; i < sizeof blames / sizeof blames[0]; i++) {
        el_ranks_blame(blames[i].rows, blames[i].n, 0.1, &blame);
        if (blame.kind != blames[i].kind || blame.who != blames[i].who || blame.n_late != blames[i].n_late)
            fail_msg("%s: %s, who %d, %d late", blames[i].what, el_blame_name(blame.kind), blame.who, blame.n_late);
        near_ms(blame.caused_pct, blames[i].caused_pct * 1e3);
        near_ms(blame.wait_s, blames[i].wait_ms);
        near_ms(blame.transfer_s, blames[i].transfer_ms);
    }
    el_ranks_blame(blames[1].rows, MEMBERS, 0, &blame);
    assert_int_equal(blame.kind, EL_BLAME_EVEN);
}

RUN_TESTS(NULL, NULL, test_arrivals, test_groups, waits_at_the_same_time_count_once, test_blame)
