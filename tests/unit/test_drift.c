/* Drift within repeats and over them: numbers worked out by hand, p values from tables, and how often a drift is found
 * where there is none. */
#include "tests/test.h"

#include <stdlib.h>

#include "bench/stats/stats.h"
#include "tests/unit/near.h"
#include "tests/unit/test_random_common.h"

static void test_drift_with_interval(void **state)
{
    /* Logarithms of the ratios: 0.06 .. 0.14, mean 0.1, standard error 0.0316228/sqrt(5). */
    const double first[] = {10, 20, 5, 40, 10}, logs[] = {0.06, 0.08, 0.1, 0.12, 0.14};
    double second[5];
    for (int i = 0; i < 5; i++) second[i] = first[i] * exp(logs[i]);
    struct el_drift d = el_stats_drift(first, second, 5);
    near(log(d.ratio), 0.1, 1e-13);
    near(log(d.low), 0.1 - 4.604094871415897 * sqrt(0.001 / 5), 1e-9);
    near(log(d.high), 0.1 + 4.604094871415897 * sqrt(0.001 / 5), 1e-9);
    assert_true(d.found);
    d = el_stats_drift(second, first, 5); /* getting faster is drift too */
    near(log(d.ratio), -0.1, 1e-13);
    assert_true(d.found);
    for (int i = 0; i < 5; i++) second[i] = first[i] * exp(0.04 + 0.01 * logs[i]); /* told from 1, but small */
    d = el_stats_drift(first, second, 5);
    assert_true(d.low > 1 && !d.found);
    for (int i = 0; i < 5; i++) second[i] = first[i] * exp(10 * logs[i] - 0.8); /* large, but not significant */
    d = el_stats_drift(first, second, 5);
    assert_true(d.ratio > 1.2 && d.low < 1 && !d.found);
}

static void test_drift_of_few(void **state)
{
    const double first[] = {10, 10, 10, 10};
    struct el_drift d = el_stats_drift(first, (double[]){11.5, 12, 11, 12}, 4);
    assert_true(d.found && isnan(d.low) && isnan(d.high));
    near(d.ratio, pow(11.5 * 12 * 11 * 12 / 1e4, 0.25), 1e-13);
    assert_true(el_stats_drift(first, (double[]){8.5, 8, 9, 8}, 4).found);
    assert_false(el_stats_drift(first, (double[]){9.99, 14, 14, 14}, 4).found); /* one disagrees */
    assert_false(el_stats_drift(first, (double[]){10, 14, 14, 14}, 4).found);   /* one says nothing */
    for (size_t n = 1; n <= 4; n++) { /* the bound is 0.20, 0.141, 0.115, 0.10 */
        double below = 10 + 1.98 / sqrt((double)n), above = 10 + 2.02 / sqrt((double)n);
        assert_false(el_stats_drift(first, (double[]){below, below, below, below}, n).found);
        assert_true(el_stats_drift(first, (double[]){above, above, above, above}, n).found);
    }
    assert_false(el_stats_drift(first, (double[]){NAN, 12, 12, 12}, 4).found);
    assert_false(el_stats_drift((double[]){1, 1, 1, 1, 0}, (double[]){2, 2, 2, 2, 2}, 5).found);
    assert_true(isnan(el_stats_drift(first, first, 0).ratio) && !el_stats_drift(first, first, 0).found);
}

static void test_trend_known(void **state)
{
    /* A factor 1.1 a repeat, one of them hit by a neighbour: the slope stays. */
    double x[11] = {1};
    for (int i = 1; i < 11; i++) x[i] = x[i - 1] * 1.1;
    x[3] = 50;
    struct el_trend t = el_stats_trend(x, 6);
    near(log(t.ratio), 5 * log(1.1), 1e-12);
    near(t.tau, (15 - 2 * 2) / 15.0, 1e-15); /* it is above the two after it */
    t = el_stats_trend((double[]){1, 2, 4, 8, 16, 32}, 6);
    near(t.ratio, 32, 1e-12);
    near(t.tau, 1, 0);
    near(t.p, 2 / 720.0, 1e-15);
    assert_true(t.found);
    t = el_stats_trend((double[]){32, 16, 8, 4, 2}, 5);
    near(t.ratio, 1 / 16.0, 1e-14);
    near(t.tau, -1, 0);
    near(t.p, 2 / 120.0, 1e-15);
    assert_false(t.found);                                                    /* five can never show it */
    t = el_stats_trend((double[]){1, 1.01, 1.02, 1.03, 1.04, 1.05, 1.06}, 7); /* told, but small */
    assert_true(t.p < 0.001 && !t.found);
    t = el_stats_trend((double[]){3, 3, 3, 3, 3, 3, 3}, 7); /* simulated: all alike */
    near(t.ratio, 1, 0);
    near(t.tau, 0, 0);
    near(t.p, 1, 0);
    assert_true(isnan(el_stats_trend(x, 1).ratio) && isnan(el_stats_trend((double[]){1, 0, 1}, 3).ratio));
    assert_false(el_stats_trend((double[]){1, 0, 2, 3, 4, 5, 6}, 7).found);
}

/* Rising values, of which as many neighbours are swapped as the score needs: each takes 2 from it. */
static double p_of_score(size_t n, long score)
{
    double x[20];
    for (size_t i = 0; i < n; i++) x[i] = (double)(i + 1);
    long swaps = ((long)(n * (n - 1) / 2) - score) / 2;
    for (size_t end = n; end > 1; end--) {
        for (size_t i = 0; i + 1 < end && swaps > 0; i++, swaps--) {
            double left = x[i];
            x[i] = x[i + 1];
            x[i + 1] = left;
        }
    }
    struct el_trend t = el_stats_trend(x, n);
    near(t.tau, 2 * (double)score / (double)(n * (n - 1)), 1e-14);
    return t.p;
}

/* Kaarsemaker and van Wijngaarden's table of P(S >= s), three digits, doubled. */
static void test_kendall_table(void **state)
{
    static const struct {
        size_t n;
        long score;
        double tail;
    } table[] = {{4, 2, 0.375},  {4, 6, 0.042},  {5, 6, 0.117},  {6, 9, 0.068},   {7, 13, 0.035},
                 {8, 16, 0.031}, {8, 20, 0.007}, {9, 20, 0.022}, {10, 21, 0.036}, {10, 29, 0.0046}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        near(p_of_score(table[i].n, table[i].score), 2 * table[i].tail, 0.001001);
    }
    near(p_of_score(10, 1), 1, 0);
    /* Where the normal distribution takes over, the two are alike: the exact p of 31 at 11 is 0.01654. */
    near(p_of_score(11, 31), 0.01654, 0.0035);
    near(p_of_score(20, 190), 0, 1e-8);
}

#ifdef __SANITIZE_ADDRESS__ /* the same code, less often: how often there is an alarm is the plain build's to say */
enum { ROUNDS = 150 };
#else
enum { ROUNDS = 3000 };
#endif
enum { STEPS = 10, REPEATS_MAX = 20 };

/* A trial: repeats that scatter as much as their steps do, and grow by these factors within a repeat and over all. */
struct trial {
    double cv, within, over;
    int n;
};

struct found {
    int drifts, trends; /* of ROUNDS */
};

static struct found simulate(struct random *random, const struct trial *trial)
{
    struct found found = {0, 0};
    size_t n = (size_t)trial->n;
    for (int round = 0; round < ROUNDS; round++) {
        double first[REPEATS_MAX], second[REPEATS_MAX], mean[REPEATS_MAX], step_ms[STEPS];
        for (int r = 0; r < trial->n; r++) {
            double level = 20 * exp(trial->cv * random_normal(random)) * pow(trial->over, (double)r / trial->n);
            for (int i = 0; i < STEPS; i++) {
                double grown = i < STEPS / 2 ? level : level * trial->within;
                step_ms[i] = grown * exp(trial->cv * random_normal(random));
            }
            first[r] = el_stats_median(step_ms, STEPS / 2);
            second[r] = el_stats_median(step_ms + STEPS / 2, STEPS / 2);
            mean[r] = el_stats_mean(step_ms, STEPS);
        }
        found.drifts += el_stats_drift(first, second, n).found;
        found.trends += el_stats_trend(mean, n).found;
    }
    return found;
}

/* As few steps as pass without a warning. At most 1 %, and three standard errors of this simulation. */
static void test_false_alarms(void **state)
{
    static const int repeats[] = {1, 3, 5, 7, 10, 20};
    static const double cvs[] = {0.01, 0.05, 0.1};
    const double alarms_max = ROUNDS * 0.01 + 3 * sqrt(ROUNDS * 0.01 * 0.99);
    struct random random = random_seeded(1);
    for (size_t i = 0; i < sizeof repeats / sizeof repeats[0]; i++) {
        for (size_t c = 0; c < sizeof cvs / sizeof cvs[0]; c++) {
            struct found found = simulate(&random, &(struct trial){cvs[c], 1, 1, repeats[i]});
            if (found.drifts > alarms_max || found.trends > alarms_max)
                fail_msg("scatter %g, %d repeats: %d drifts and %d trends in %d trials without any", cvs[c], repeats[i],
                         found.drifts, found.trends, ROUNDS);
        }
    }
}

static void test_real_drift_is_found(void **state)
{
    struct random random = random_seeded(2);
    assert_true(simulate(&random, &(struct trial){0.02, 1.15, 1, 5}).drifts > 0.95 * ROUNDS);
    assert_true(simulate(&random, &(struct trial){0.02, 0.8, 1, 3}).drifts > 0.95 * ROUNDS);
    assert_true(simulate(&random, &(struct trial){0.03, 1, 1.4, 10}).trends > 0.95 * ROUNDS);
    assert_true(simulate(&random, &(struct trial){0.03, 1, 0.7, 20}).trends > 0.95 * ROUNDS);
}

RUN_TESTS(NULL, NULL, test_drift_with_interval, test_drift_of_few, test_trend_known, test_kendall_table,
          test_false_alarms, test_real_drift_is_found)
