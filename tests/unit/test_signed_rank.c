/* Signed ranks: against tables, against all patterns of signs counted one by one, and by hand where there are ties. */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>

#include "bench/stats/stats.h"
#include "tests/unit/near.h"
#include "tests/unit/test_random_common.h"

/* Differences 1 to n of which the first `negative` values are turned round. */
static double p_of_sum(int n, int sum)
{
    double x[EL_SIGNED_RANK_MAX];
    for (int i = n; i > 0; i--) {
        bool positive = sum >= i;
        x[i - 1] = positive ? i : -i;
        sum -= positive ? i : 0;
    }
    assert_int_equal(sum, 0);
    return el_stats_signed_rank(x, (size_t)n).p_above;
}

/* Largest sums of the smaller side at one-sided 0.025 and 0.005: the table of every book (Wilcoxon and Wilcox, 1964).
 */
static void test_published_table(void **state)
{
    static const struct {
        int n, at_025, at_005;
    } table[] = {{6, 0, -1},   {7, 2, -1},   {8, 3, 0},    {9, 5, 1},    {10, 8, 3},     {12, 13, 7},
                 {14, 21, 12}, {16, 29, 19}, {20, 52, 37}, {25, 89, 68}, {30, 137, 109}, {40, 264, 220}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int n = table[i].n, total = n * (n + 1) / 2;
        assert_true(p_of_sum(n, total - table[i].at_025) <= 0.025);
        assert_true(p_of_sum(n, total - table[i].at_025 - 1) > 0.025);
        if (table[i].at_005 >= 0) assert_true(p_of_sum(n, total - table[i].at_005) <= 0.005);
        assert_true(p_of_sum(n, total - table[i].at_005 - 1) > 0.005);
    }
    near(p_of_sum(8, 36), 1 / 256.0, 1e-15);
    near(p_of_sum(14, 105), ldexp(1, -14), 1e-18);
    near(p_of_sum(200, 20100), ldexp(1, -200), 1e-70);
}

/* All 2^n patterns of signs on the very sizes that are there, zeros left without. */
static void brute_force(const double *x, int n, double *above, double *below)
{
    double rank[16], sum = 0;
    int hits_above = 0, hits_below = 0;
    for (int i = 0; i < n; i++) {
        double lower = 0, alike = 0;
        for (int j = 0; j < n; j++) {
            lower += fabs(x[j]) < fabs(x[i]);
            alike += fabs(x[j]) == fabs(x[i]);
        }
        rank[i] = x[i] == 0 ? 0 : lower + (alike + 1) / 2;
        sum += x[i] > 0 ? rank[i] : 0;
    }
    for (int signs = 0; signs < 1 << n; signs++) {
        double other = 0;
        for (int i = 0; i < n; i++) other += signs >> i & 1 ? rank[i] : 0;
        hits_above += other >= sum;
        hits_below += other <= sum;
    }
    *above = ldexp(hits_above, -n);
    *below = ldexp(hits_below, -n);
}

static void test_brute_force(void **state)
{
    struct random random = random_seeded(5);
    for (int t = 0; t < 200; t++) {
        double x[11], above, below;
        int n = 1 + t % 11;
        /* Every other one rounded, so that there are ties and zeros. */
        for (int i = 0; i < n; i++) x[i] = t % 2 ? random_normal(&random) : round(1.5 * random_normal(&random) + 0.5);
        brute_force(x, n, &above, &below);
        struct el_signed_rank test = el_stats_signed_rank(x, (size_t)n);
        near(test.p_above, above, 1e-13);
        near(test.p_below, below, 1e-13);
    }
}

static void test_ties_by_hand(void **state)
{
    /* Sizes 0, 1, 1, 2: ranks 1, 2.5, 2.5, 4, the zero's dropped. Sums of signs: 9, 6.5, 6.5, 5, 4, 2.5, 2.5, 0. */
    struct el_signed_rank test = el_stats_signed_rank((double[]){0, 1, -1, 2}, 4);
    near(test.sum, 6.5, 0);
    near(test.p_above, 3 / 8.0, 1e-15);
    near(test.p_below, 7 / 8.0, 1e-15);
    test = el_stats_signed_rank((double[]){0, 0, 0}, 3);
    near(test.p_above, 1, 0);
    near(test.p_below, 1, 0);
    assert_true(isnan(el_stats_signed_rank((double[]){1, NAN}, 2).p_above));
    assert_true(isnan(el_stats_signed_rank((double[]){1, INFINITY}, 2).p_above));
    assert_true(isnan(el_stats_signed_rank(NULL, 0).p_above));
    double many[EL_SIGNED_RANK_MAX + 1] = {0};
    assert_true(isnan(el_stats_signed_rank(many, EL_SIGNED_RANK_MAX + 1).p_above));
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The interval's ends are Walsh averages; which ones, by the table: 3 of 36 sums are refused at n = 8, so the 4th. */
static void test_interval(void **state)
{
    static const struct {
        size_t n, end;
    } ends[] = {{6, 1}, {8, 4}, {10, 9}, {14, 22}, {24, 82}, {40, 265}};
    struct random random = random_seeded(6);
    for (size_t e = 0; e < sizeof ends / sizeof ends[0]; e++) {
        double x[40], walsh[820];
        size_t n = ends[e].n, m = 0;
        for (size_t i = 0; i < n; i++) x[i] = random_normal(&random);
        for (size_t i = 0; i < n; i++)
            for (size_t j = i; j < n; j++) walsh[m++] = (x[i] + x[j]) / 2;
        qsort(walsh, m, sizeof *walsh, ascending);
        struct el_interval interval = el_stats_signed_rank_interval(x, n, 0.95);
        assert_true(interval.valid);
        near(interval.low, walsh[ends[e].end - 1], 0);
        near(interval.high, walsh[m - ends[e].end], 0);
        near(interval.centre, el_stats_hodges_lehmann(x, n), 1e-15);
    }
    struct el_interval few = el_stats_signed_rank_interval((double[]){1, 2, 3, 4, 5}, 5, 0.95);
    assert_true(!few.valid && few.reason != NULL && few.centre == 3);
    assert_true(isnan(el_stats_signed_rank_interval(NULL, 0, 0.95).centre));
}

/* The promise of 95 %, by simulation: the truth is 0. */
static void test_interval_holds(void **state)
{
    struct random random = random_seeded(7);
    int holds = 0;
    for (int t = 0; t < 4000; t++) {
        double x[14];
        for (int i = 0; i < 14; i++) x[i] = random_normal(&random) * exp(random_normal(&random));
        struct el_interval interval = el_stats_signed_rank_interval(x, 14, 0.95);
        holds += interval.low <= 0 && 0 <= interval.high;
    }
    assert_in_range(holds, 3760, 3860);
}

static void test_holm(void **state)
{
    double p[] = {0.01, NAN, 0.04, 0.03, 0.005, 0.9}, adjusted[6];
    const double wanted[] = {0.04, NAN, 0.09, 0.09, 0.025, 0.9};
    el_stats_holm(p, 6, adjusted);
    for (int i = 0; i < 6; i++) {
        if (i == 1)
            assert_true(isnan(adjusted[i]));
        else
            near(adjusted[i], wanted[i], 1e-15);
    }
    el_stats_holm(p, 6, p); /* in place */
    near(p[2], 0.09, 1e-15);
    el_stats_holm(p, 0, p);
}

RUN_TESTS(NULL, NULL, test_published_table, test_brute_force, test_ties_by_hand, test_interval, test_interval_holds,
          test_holm)
