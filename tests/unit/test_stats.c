/* Statistics against values from tables and from other programs. How often intervals are right: test_coverage.c. */
#include "tests/test.h"

#include <math.h>

#include "bench/stats/stats.h"
#include "runtime/base/rng.h"
#include "tests/unit/near.h"
#include "tests/unit/test_random_common.h"

static void test_moments(void **state)
{
    const double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
    near(el_stats_mean(x, 8), 5, 1e-15);
    near(el_stats_stddev(x, 8), 2.138089935299395, 1e-14);
    near(el_stats_median(x, 8), 4.5, 0);
    near(el_stats_median((double[]){3, 1, 2}, 3), 2, 0);
    near(el_stats_geometric_mean((double[]){1, 10, 100}, 3), 10, 1e-13);
    assert_true(isnan(el_stats_mean(x, 0)) && isnan(el_stats_median(x, 0)) && isnan(el_stats_stddev(x, 1)));
    assert_true(isnan(el_stats_geometric_mean((double[]){1, 0}, 2)));
}

static void test_nearest_rank(void **state)
{
    double x[100];
    for (int i = 0; i < 100; i++) x[i] = 100 - i;
    near(el_stats_quantile(x, 100, 0.95), 95, 0);
    near(el_stats_quantile(x, 20, 0.95), 99, 0); /* of 81..100: the 19th */
    near(el_stats_quantile(x, 3, 0.95), 100, 0);
    near(el_stats_quantile((double[]){15, 20, 35, 40, 50}, 5, 0.3), 20, 0);
    near(el_stats_quantile((double[]){15, 20, 35, 40, 50}, 5, 1), 50, 0);
}

static void test_student(void **state)
{
    static const struct {
        double p, df, t;
    } table[] = {
        {0.975, 1, 12.706204736432095},  {0.975, 2, 4.302652729911275},
        {0.975, 4, 2.7764451051977987},  {0.975, 9, 2.2621571627409915},
        {0.975, 30, 2.0422724563012373}, {0.95, 5, 2.0150483733330233},
        {0.995, 10, 3.169272672616873},  {0.5, 7, 0},
        {0.025, 4, -2.7764451051977987},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        near(el_stats_t_quantile(table[i].p, table[i].df), table[i].t, 1e-9);
        near(el_stats_t_cdf(table[i].t, table[i].df), table[i].p, 1e-11);
    }
    near(el_stats_t_quantile(0.975, 1e7), 1.959964, 1e-5);
}

static void test_intervals(void **state)
{
    /* logs -2..2: mean 0, standard error sqrt(2.5/5), times t(4) */
    const double x[] = {exp(-2), exp(-1), 1, exp(1), exp(2)};
    struct el_interval i = el_stats_interval(x, 5);
    assert_true(i.valid);
    near(i.centre, 1, 1e-14);
    near(log(i.high), 2.7764451051977987 * sqrt(0.5), 1e-9);
    near(log(i.low), -2.7764451051977987 * sqrt(0.5), 1e-9);
    i = el_stats_interval(x, 4);
    assert_false(i.valid);
    assert_string_equal(i.reason, "fewer than 5 repeats");
    near(i.centre, exp(-0.5), 1e-14);
    i = el_stats_interval((double[]){3, 3, 3, 3, 3}, 5); /* a simulation: no scatter */
    assert_false(i.valid);
    near(i.centre, 3, 1e-14);
    assert_string_equal(i.reason, "repeats do not scatter, as in virtual time");
}

static void test_ratios(void **state)
{
    /* Drift of a factor 4 over the run that both share, and a true ratio of 1.1: only pairs can tell. */
    const double b[] = {1, 1.5, 2, 3, 4}, noise[] = {1.01, 0.99, 1, 1.02, 0.98};
    double a[5];
    for (int i = 0; i < 5; i++) a[i] = 1.1 * b[i] * noise[i];
    struct el_interval paired = el_stats_ratio_paired(a, b, 5);
    assert_true(paired.valid && paired.low > 1.07 && paired.high < 1.13);
    assert_false(el_stats_ratio_paired(a, b, 4).valid);
}

static void test_difference(void **state)
{
    const double x[] = {-3, -1, 0, 1, 5.5, 7}; /* the first five: mean 0.5, variance 10 */
    struct el_interval i = el_stats_difference(x, 5);
    assert_true(i.valid && i.reason == NULL);
    near(i.centre, 0.5, 1e-15);
    near(i.low, 0.5 - 2.7764451051977987 * sqrt(10 / 5.0), 1e-9);
    near(i.high, 0.5 + 2.7764451051977987 * sqrt(10 / 5.0), 1e-9);
    i = el_stats_difference(x, 4);
    assert_false(i.valid);
    assert_string_equal(i.reason, "fewer than 5 repeats");
    near(i.centre, -0.75, 1e-15);
    assert_true(isnan(i.low) && isnan(i.high));
    i = el_stats_difference((double[]){-2, -2, -2, -2, -2}, 5); /* no scatter */
    assert_true(!i.valid && i.centre == -2 && isnan(i.low));
    i = el_stats_difference_unpaired((double[]){1, 1, 1, 1, 1}, 5, (double[]){3, 3, 3, 3, 3}, 5);
    assert_true(!i.valid && i.centre == 2 && isnan(i.low));
    i = el_stats_difference((double[]){1, 2, NAN, 3, 4}, 5);
    assert_false(i.valid);
    assert_string_equal(i.reason, "a repeat has no figure");
    assert_true(isnan(el_stats_difference(x, 0).centre));
}

/* What rounding leaves is no difference. */
static void test_rounding(void **state)
{
    struct el_imbalance m;
    assert_true(el_stats_minus(0.1 + 0.2, 0.3) == 0 && el_stats_minus(-0.3, -0.1 - 0.2) == 0);
    assert_true(el_stats_minus(5, 3) == 2 && el_stats_minus(1e-9, 0) == 1e-9 && el_stats_minus(0, 0) == 0);
    assert_true(isnan(el_stats_minus(NAN, 1)));
    assert_true(el_stats_imbalance((double[]){0.1, 0.1, 0.1}, 3, &m)); /* whose mean is not 0.1 */
    assert_true(m.max_over_mean_minus_1 == 0 && m.imbalance_pct == 0 && m.cv == 0);
}

static void test_imbalance(void **state)
{
    struct el_imbalance m;
    assert_true(el_stats_imbalance((double[]){2, 1, 1, 1}, 4, &m)); /* dp on four devices: the same fact five times */
    near(m.max_over_mean_minus_1, 0.6, 1e-14);
    near(m.imbalance_pct, 50, 1e-12);
    near(m.lb, 0.625, 1e-15);
    near(m.cv, sqrt(0.1875) / 1.25, 1e-14);
    near(m.first_over_rest, 2, 1e-15);
    assert_true(el_stats_imbalance((double[]){5, 5}, 2, &m));
    near(m.max_over_mean_minus_1, 0, 0);
    near(m.imbalance_pct, 0, 0);
    assert_true(el_stats_imbalance((double[]){7, 0}, 2, &m)); /* one has all */
    near(m.imbalance_pct, 100, 1e-12);
    assert_true(isinf(m.first_over_rest));
    assert_false(el_stats_imbalance((double[]){1}, 1, &m));
}

/* One more launch lies in the interval of draws, with replacement, from so few launches. */
static void test_prediction(void **state)
{
    enum { TRIALS = 4000, DRAWS = 20 };
    static const size_t launches[] = {3, 5, 10};
    struct random random = {.state = 7};
    for (size_t k = 0; k < 3; k++) {
        int covered = 0;
        for (int t = 0; t < TRIALS; t++) {
            double launch[10], draw[DRAWS];
            for (size_t i = 0; i < launches[k]; i++) launch[i] = exp(0.1 * random_normal(&random));
            for (int d = 0; d < DRAWS; d++) draw[d] = launch[(size_t)(random_uniform(&random) * (double)launches[k])];
            struct el_interval interval = el_stats_prediction(draw, DRAWS, launches[k], 0);
            double next = exp(0.1 * random_normal(&random));
            covered += interval.low <= next && next <= interval.high;
        }
        double pct = 100.0 * covered / TRIALS;
        print_message("# %zu launches: %.1f %% of new ones are covered\n", launches[k], pct);
        if (!(pct > 92 && pct < 97)) fail_msg("%zu launches: %.1f %%", launches[k], pct);
    }
    assert_false(el_stats_prediction((double[]){1, 2}, 2, 1, 0).valid);
    struct el_interval alike = el_stats_prediction((double[]){4, 4, 4}, 3, 5, 0.08);
    near(log(alike.high / 4), 1.959964 * 0.08, 1e-6);
    near(log(alike.low / 4), -1.959964 * 0.08, 1e-6);
}

static void test_line(void **state)
{
    double at_zero = -1, slope = -1;
    assert_true(el_stats_line((double[]){1, 10, 100}, (double[]){7, 25, 205}, 3, &at_zero, &slope));
    near(at_zero, 5, 1e-9);
    near(slope, 2, 1e-9);
    assert_true(el_stats_line((double[]){1, 2}, (double[]){1, 3}, 2, &at_zero, &slope)); /* never below 0 */
    near(at_zero, 0, 0);
    assert_false(el_stats_line((double[]){4, 4}, (double[]){1, 3}, 2, &at_zero, &slope));
    double x[24], y[24];
    for (int i = 0; i < 24; i++) x[i] = 8.0 * (1 << i), y[i] = 5e-6 + x[i] * 1e-10;
    y[23] *= 1.3; /* one that is off: relative errors keep it from deciding over the small ones */
    assert_true(el_stats_line(x, y, 24, &at_zero, &slope));
    assert_true(fabs(at_zero - 5e-6) < 0.2e-6 && slope > 1e-10 && slope < 1.25e-10);
}

/* A job that fails at random with a rate of 1/mtbf, whatever it does: the part of its time that is work which counts.
 */
static double simulate_failures(double interval, double checkpoint, double recovery, double mtbf)
{
    const struct el_rng_key key = {.seed = 7, .use = EL_RNG_INIT};
    double now = 0, work = 0, fails = 0;
    for (uint64_t n = 0; n < 200000; n++) {
        while (n > 0 && now + interval + checkpoint <= fails) now += interval + checkpoint, work += interval;
        if (n > 0) now = fails;
        fails = now - mtbf * log1p(-el_rng_uniform(&key, 0, n));
        if (now + recovery > fails) continue; /* a recovery may fail too */
        now += recovery;
    }
    return work / now;
}

/* Daly's own terms; his interval is near the one that loses least, found by trying. */
static void test_failures(void **state)
{
    assert_true(fabs(el_stats_checkpoint_interval(2, 10000) - (200 * (1 + 0.01 / 3 + 2.0 / 180000) - 2)) < 1e-9);
    assert_true(el_stats_checkpoint_interval(5, 2) == 2);
    const double best = el_stats_checkpoint_interval(1, 3600), most = el_stats_goodput(best, 1, 10, 3600);
    for (int t = 1; t < 3600; t++) assert_true(el_stats_goodput(t, 1, 10, 3600) < most + 1e-5);
    assert_true(fabs(el_stats_goodput(100, 2, 10, 1e6) - (1 - 2.0 / 102 - 61e-6)) < 2e-6); /* failures are rare */
    assert_true(fabs(simulate_failures(100, 5, 30, 1000) - el_stats_goodput(100, 5, 30, 1000)) < 0.003);
    assert_true(fabs(simulate_failures(100, 5, 30, 60) - el_stats_goodput(100, 5, 30, 60)) < 0.003);
}

RUN_TESTS(NULL, NULL, test_moments, test_nearest_rank, test_student, test_intervals, test_ratios, test_rounding,
          test_imbalance, test_difference, test_prediction, test_line, test_failures)
