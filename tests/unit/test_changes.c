/* Change points: series whose answer is known, and by simulation how often a change is told of an even history, how
 * often one is found, and how often the intervals hold. With -v, and EVENLOAD_LONG=1, it prints docs/regress.md's
 * table. */
#include "tests/test.h"

#include <stdlib.h>

#include "bench/regress/changes.h"
#include "bench/regress/store.h"
#include "tests/unit/near.h"
#include "tests/unit/test_random_common.h"

enum { MOST = 200 };

static struct el_changes changes_of(const double *values, size_t n)
{
    struct el_changes changes;
    assert_int_equal(el_changes_of(values, NULL, n, false, EL_LEVEL_FLOOR_RATIO, &changes), EL_OK);
    return changes;
}

/* Scatter of 1 % that is no noise: 0, +1, -1, 0, -1, +1 per cent. */
static double scatter(size_t i)
{
    static const double pct[] = {0, 1, -1, 0, -1, 1};
    return exp(pct[i % 6] / 100);
}

static void a_step_is_found_where_it_is(void **state)
{
    double values[40];
    for (size_t i = 0; i < 40; i++) values[i] = 20 * scatter(i) * (i < 24 ? 1 : 1.1);
    struct el_changes c = changes_of(values, 40);
    assert_int_equal(c.n_changes, 1);
    assert_int_equal(c.n_pieces, 2);
    assert_int_equal(c.n_cuts, 1);
    assert_int_equal(c.cuts[0], 24);
    const struct el_change *change = c.changes;
    assert_true(change->at == 24 && change->low == 24 && change->high == 24 && change->end == 40 && !change->accepted);
    near(change->ratio, 1.1, 0.003);
    assert_true(change->ratio_low < 1.1 && 1.1 < change->ratio_high && change->ratio_high - change->ratio_low < 0.02);
    near(exp(c.pieces[0].level), 20, 1e-9);
    near(el_piece_drift(&c.pieces[1]), 1, 0);
    /* Two of three differences are of 1 or 2 %, the median is 1 %. */
    near(c.sd, 1.4826 * 0.01 / sqrt(2), 1e-4);
    el_changes_free(&c);
    for (size_t i = 0; i < 40; i++) values[i] = 1e-9 / values[i]; /* the same in another unit, and the other way */
    c = changes_of(values, 40);
    assert_int_equal(c.n_changes, 1);
    near(c.changes[0].ratio, 1 / 1.1, 0.003);
    el_changes_free(&c);
}

/* Of 3 % where sessions scatter by 2 %. */
static void a_small_step_has_a_wide_interval(void **state)
{
    double values[60];
    for (size_t i = 0; i < 60; i++) values[i] = pow(scatter(i), 2) * (i < 30 ? 1 : 1.03);
    struct el_changes c = changes_of(values, 60);
    assert_int_equal(c.n_changes, 1);
    assert_true(c.changes[0].low < c.changes[0].high && c.changes[0].low <= 30 && 30 <= c.changes[0].high);
    el_changes_free(&c);
}

static void odd_sessions_are_no_change(void **state)
{
    double values[40];
    for (size_t i = 0; i < 40; i++) values[i] = 20 * scatter(i) * (i == 10 || i == 25 || i == 26 || i == 39 ? 1.8 : 1);
    struct el_changes c = changes_of(values, 40);
    assert_int_equal(c.n_cuts, 0);
    assert_int_equal(c.n_pieces, 1);
    assert_true(c.pieces[0].slope == 0);
    el_changes_free(&c);
}

static void below_the_floor_nothing_is_told(void **state)
{
    double values[60];
    for (size_t i = 0; i < 60; i++) values[i] = 20 * (1 + 0.0005 * (double)(i % 3)) * (i < 30 ? 1 : 1.015);
    struct el_changes c = changes_of(values, 60);
    assert_int_equal(c.n_cuts, 1); /* it is seen */
    assert_int_equal(c.n_changes, 0);
    assert_true(c.n_pieces == 1 && c.pieces[0].slope == 0); /* and is no creep */
    el_changes_free(&c);
    assert_int_equal(el_changes_of(values, NULL, 60, false, 1.01, &c), EL_OK);
    assert_int_equal(c.n_changes, 1);
    el_changes_free(&c);
}

static void what_was_accepted_is_marked(void **state)
{
    double values[60];
    bool accepted[60] = {false};
    struct el_changes c;
    for (size_t i = 0; i < 60; i++) values[i] = scatter(i) * (i < 20 || i >= 40 ? 1 : 1.2);
    accepted[22] = true; /* two sessions later: it is the level that was accepted */
    assert_int_equal(el_changes_of(values, accepted, 60, false, EL_LEVEL_FLOOR_RATIO, &c), EL_OK);
    assert_int_equal(c.n_changes, 2);
    assert_true(c.changes[0].accepted && !c.changes[1].accepted);
    el_changes_free(&c);
}

static void any_other_exact_figure_is_a_change(void **state)
{
    const double values[] = {4096, 4096, 4100, 4100, 4096};
    const bool accepted[] = {false, false, true, false, false};
    struct el_changes c;
    assert_int_equal(el_changes_of(values, accepted, 5, true, EL_LEVEL_FLOOR_RATIO, &c), EL_OK);
    assert_int_equal(c.n_changes, 2);
    assert_true(c.changes[0].at == 2 && c.changes[0].low == 2 && c.changes[0].high == 2 && c.changes[0].accepted);
    assert_true(c.changes[1].at == 4 && !c.changes[1].accepted && isnan(c.changes[1].ratio_low) && isnan(c.sd));
    near(c.changes[0].ratio, 4100.0 / 4096, 0);
    el_changes_free(&c);
}

/* First and last session, and the whole drift. */
static void check_creep(const struct el_piece *piece, size_t first, size_t tolerance, size_t n, double drift,
                        double within)
{
    assert_true(piece->slope != 0 && piece->p < 0.001);
    assert_in_range(piece->first, first - tolerance, first + tolerance);
    assert_int_equal(piece->first + piece->n, n);
    near(el_piece_drift(piece), drift, within);
}

static void a_creep_is_no_staircase(void **state)
{
    double values[100];
    for (size_t i = 0; i < 100; i++) values[i] = 20 * scatter(i) * exp(0.003 * (double)i);
    struct el_changes c = changes_of(values, 100);
    assert_true(c.n_cuts >= 2 && c.n_pieces == 1 && c.n_changes == 0);
    check_creep(&c.pieces[0], 0, 0, 100, exp(0.003 * 99), 0.01);
    near(c.pieces[0].slope, 0.003, 1e-4);
    el_changes_free(&c);
    /* One that begins after 50 even sessions. */
    for (size_t i = 0; i < 100; i++) values[i] = 20 * scatter(i) * exp(-0.004 * (i > 50 ? (double)i - 50 : 0));
    c = changes_of(values, 100);
    assert_true(c.n_pieces == 2 && c.n_changes == 0 && c.pieces[0].slope == 0);
    check_creep(&c.pieces[1], 50, 8, 100, exp(-0.2), 0.02);
    el_changes_free(&c);
    /* One that begins with a step. */
    for (size_t i = 0; i < 100; i++) values[i] = 20 * scatter(i) * exp(i < 40 ? 0 : 0.1 + 0.004 * (double)(i - 40));
    c = changes_of(values, 100);
    assert_true(c.n_pieces == 2 && c.n_changes == 1 && c.changes[0].low <= 40 && 40 <= c.changes[0].high);
    near(c.changes[0].ratio, exp(0.1), 0.01);
    check_creep(&c.pieces[1], 40, 1, 100, exp(0.004 * 59), 0.02);
    el_changes_free(&c);
    /* A slow one, below any step: 3 % over 100. */
    for (size_t i = 0; i < 100; i++) values[i] = 20 * scatter(i) * exp(0.0003 * (double)i);
    c = changes_of(values, 100);
    assert_int_equal(c.n_changes, 0);
    check_creep(&c.pieces[c.n_pieces - 1], 0, 0, 100, exp(0.0003 * 99), 0.01);
    el_changes_free(&c);
    /* Three steps one way, between long levels, are steps. */
    for (size_t i = 0; i < 100; i++) values[i] = 20 * scatter(i) * exp(0.08 * floor((double)i / 25));
    c = changes_of(values, 100);
    assert_int_equal(c.n_changes, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(c.changes[i].at, 25 * (i + 1));
    el_changes_free(&c);
}

static void short_and_long_histories(void **state)
{
    double *values = calloc(EL_HISTORY_MAX + 1, sizeof *values);
    for (size_t i = 0; i <= EL_HISTORY_MAX; i++) values[i] = scatter(i) * (i < EL_HISTORY_MAX / 2 ? 1 : 1.1);
    struct el_changes c = changes_of(values, 0);
    assert_true(c.n_pieces == 0 && c.n_changes == 0);
    el_changes_free(&c);
    for (size_t n = 1; n < 12; n++) {
        c = changes_of(values, n);
        assert_true(c.n_pieces == 1 && c.n_changes == 0 && c.pieces[0].n == n);
        el_changes_free(&c);
    }
    c = changes_of(values, EL_HISTORY_MAX);
    assert_int_equal(c.n_changes, 1);
    assert_int_equal(c.changes[0].at, EL_HISTORY_MAX / 2);
    el_changes_free(&c);
    assert_int_equal(el_changes_of(values, NULL, EL_HISTORY_MAX + 1, false, 1.02, &c), EL_ERR_INVALID);
    for (size_t i = 0; i < 50; i++) values[i] = 7; /* a timer that always ticks alike */
    c = changes_of(values, 50);
    assert_int_equal(c.n_cuts, 0);
    near(c.sd, EL_CHANGES_SD_MIN, 0);
    el_changes_free(&c);
    free(values);
}

/* ---- by simulation ---- */

/* Sessions with a standard deviation of 1. */
enum kind { NORMAL, HEAVY /* t with 4 degrees of freedom */, NEAR_03, NEAR_05 /* AR(1) */, KINDS };
static const char *const kind_words[] = {"normal", "t, 4 df", "AR(1) 0.3", "AR(1) 0.5"};

static void draw(struct random *random, enum kind kind, double sd, double *x, int n)
{
    double r = kind == NEAR_03 ? 0.3 : kind == NEAR_05 ? 0.5 : 0, level = random_normal(random);
    for (int i = 0; i < n; i++) {
        double squares = 0, e = random_normal(random);
        for (int k = 0; k < 4 && kind == HEAVY; k++) squares += pow(random_normal(random), 2);
        if (kind == HEAVY) e /= sqrt(squares / 4) * sqrt(2);
        level = i ? r * level + sqrt(1 - r * r) * e : e;
        x[i] = 20 * exp(sd * level);
    }
}

static int rounds(int quick, int thorough)
{
    return getenv("EVENLOAD_LONG") ? thorough : getenv("EVENLOAD_SANITIZER") ? quick / 4 : quick;
}

/* Of even histories that scatter by 5 %, so that no floor hides what is found. */
static void even_histories(void **state)
{
    static const int lengths[] = {10, 20, 30, 50, 100, MOST};
    static const double most[KINDS] = {0.01, 0.01, 0.05, 0.13};
    int n_rounds = rounds(100, 20000);
    struct random random = random_seeded(11);
    for (enum kind kind = 0; kind < KINDS; kind++)
        for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
            int changes = 0, creeps = 0;
            for (int round = 0; round < n_rounds; round++) {
                double values[MOST];
                draw(&random, kind, 0.05, values, lengths[k]);
                struct el_changes c = changes_of(values, (size_t)lengths[k]);
                changes += c.n_changes > 0;
                creeps += c.n_changes == 0 && c.pieces[c.n_pieces - 1].slope != 0;
                el_changes_free(&c);
            }
            print_message("even, %-9s %3d sessions: changes %.2f %%, creeps %.2f %%\n", kind_words[kind], lengths[k],
                          100.0 * changes / n_rounds, 100.0 * creeps / n_rounds);
            double bound = most[kind] + 3 * sqrt(most[kind] * (1 - most[kind]) / n_rounds);
            if (changes + creeps > bound * n_rounds) fail_msg("%d of %d", changes + creeps, n_rounds);
        }
}

struct found {
    double found, others, creeps, place, size, off; /* rates; off: mean distance, in sessions */
};

/* A step at session `at` of `n`. Found: a change within 10 sessions. */
static struct found find_steps(struct random *random, double step, double sd, int at, int n, int n_rounds)
{
    struct found f = {0};
    for (int round = 0; round < n_rounds; round++) {
        double values[MOST];
        bool found = false, creeps = false;
        draw(random, NORMAL, sd, values, n);
        for (int i = at; i < n; i++) values[i] *= 1 + step;
        struct el_changes c = changes_of(values, (size_t)n);
        for (size_t i = 0; i < c.n_pieces; i++) creeps |= c.pieces[i].slope != 0;
        for (size_t i = 0; i < c.n_changes; i++) {
            const struct el_change *change = &c.changes[i];
            int off = abs((int)change->at - at);
            bool its = off <= 10 && !found;
            found |= its;
            f.others += !its;
            f.off += its ? off : 0;
            f.place += its && (int)change->low <= at && at <= (int)change->high;
            f.size += its && change->ratio_low <= 1 + step && 1 + step <= change->ratio_high;
        }
        f.found += found;
        f.creeps += creeps && !found;
        el_changes_free(&c);
    }
    f.off /= f.found, f.place /= f.found, f.size /= f.found;
    f.found /= n_rounds, f.others /= n_rounds, f.creeps /= n_rounds;
    return f;
}

/* What is found has its interval in 95 of 100 cases; small steps that are found look larger than they are. */
static void steps_are_found(void **state)
{
    static const double steps[] = {0.02, 0.03, 0.05, 0.10}, sds[] = {0.01, 0.02, 0.05};
    /* [50 sessions ago, 10][sd][step], in per cent, at least */
    static const double least[2][3][4] = {{{35, 97, 99, 99}, {35, 95, 99, 99}, {0, 10, 75, 99}},
                                          {{35, 97, 99, 99}, {3, 40, 97, 99}, {0, 0, 3, 80}}};
    int n_rounds = rounds(60, 5000);
    struct random random = random_seeded(12);
    for (int recent = 0; recent < 2; recent++)
        for (int d = 0; d < 3; d++)
            for (int k = 0; k < 4; k++) {
                struct found f = find_steps(&random, steps[k], sds[d], recent ? 190 : 150, MOST, n_rounds);
                print_message(
                    "+%2.0f %%, sd %.0f %%, %d sessions ago: found %.1f %%, as a creep %.1f %%, others %.2f %%; off "
                    "by %.2f; place %.1f %%, size %.1f %%\n",
                    100 * steps[k], 100 * sds[d], recent ? 10 : 50, 100 * f.found, 100 * f.creeps, 100 * f.others,
                    f.off, 100 * f.place, 100 * f.size);
                double p = least[recent][d][k] / 100, tolerance = 3 * sqrt(p * (1 - p) / n_rounds);
                if (f.found < p - tolerance) fail_msg("found in %.3f", f.found);
                if (f.found > 0.9 && (f.place < 0.93 - tolerance || f.size < 0.92 - 3 * sqrt(0.05 / n_rounds)))
                    fail_msg("intervals hold in %.3f and %.3f", f.place, f.size);
            }
}

/* Creeps over the last 60 of 100: named as one, without a change. */
static void creeps_are_found(void **state)
{
    static const struct {
        double drift, sd, least;
    } rows[] = {{0.06, 0.01, 0.75}, {0.12, 0.01, 0.9}, {0.12, 0.02, 0.7}, {0.24, 0.02, 0.75}};
    int n_rounds = rounds(40, 2000);
    struct random random = random_seeded(13);
    for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
        int creeps = 0, both = 0;
        for (int round = 0; round < n_rounds; round++) {
            double values[100];
            draw(&random, NORMAL, rows[k].sd, values, 100);
            for (int i = 40; i < 100; i++) values[i] *= exp(log(1 + rows[k].drift) * (i - 40) / 59);
            struct el_changes c = changes_of(values, 100);
            bool creep = c.pieces[c.n_pieces - 1].slope != 0;
            creeps += creep && c.n_changes == 0;
            both += creep && c.n_changes > 0;
            el_changes_free(&c);
        }
        print_message("creep of %.0f %% over 60 of 100, sd %.0f %%: named so in %.1f %%, beside a change in %.1f %%\n",
                      100 * rows[k].drift, 100 * rows[k].sd, 100.0 * creeps / n_rounds, 100.0 * both / n_rounds);
        if (creeps < (rows[k].least - 3 * sqrt(0.2 / n_rounds)) * n_rounds) fail_msg("%d of %d", creeps, n_rounds);
    }
}

int main(void)
{
    if (!getenv("EVENLOAD_LONG")) puts("# long: rates of change points by 200 times as many histories");
    return RUN(NULL, NULL, a_step_is_found_where_it_is, a_small_step_has_a_wide_interval, odd_sessions_are_no_change,
               below_the_floor_nothing_is_told, what_was_accepted_is_marked, any_other_exact_figure_is_a_change,
               a_creep_is_no_staircase, short_and_long_histories, even_histories, steps_are_found, creeps_are_found);
}
