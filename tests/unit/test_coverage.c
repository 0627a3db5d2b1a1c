/* How often does the 95 % interval hold the truth? Whole trials are simulated, steps within repeats, of several kinds
 * of scatter; beside the interval in use (Student's t on the logarithms of the repeats' throughputs) stand two others
 * that were not chosen: all steps taken for independent, and a bootstrap over repeats and then over their steps.
 *
 * The truth is what the interval's centre tends to with the number of repeats: the geometric mean, over all repeats
 * that could be launched, of a repeat's throughput over its STEPS steps. It comes from a simulation of its own.
 *
 * With -v it prints the table that docs/metrics.md holds. */
#include "tests/test.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/stats/stats.h"
#include "tests/unit/test_random_common.h"

enum { TRIALS = 20000, OTHERS_TRIALS = 4000, RESAMPLES = 200, TRUTH_REPEATS = 100000, BATCH = 64 };
enum { STEPS = 20, REPEATS_MIN = 5, REPEATS_MAX = 20 };

static const size_t REPEATS[] = {REPEATS_MIN, 7, 10, REPEATS_MAX};
enum { SIZES = sizeof REPEATS / sizeof REPEATS[0] };

/* The step times of one repeat, the time of an undisturbed step being 1. */
typedef void repeat_fn(struct random *random, double step[STEPS]);

static void independent(struct random *random, double step[STEPS])
{
    double level = 1 + 0.05 * random_normal(random);
    for (int i = 0; i < STEPS; i++) step[i] = level * (1 + 0.1 * random_normal(random));
}

static void correlated(struct random *random, double step[STEPS])
{
    const double rho = 0.9;
    double level = 1 + 0.05 * random_normal(random), noise = 0.1 * random_normal(random);
    for (int i = 0; i < STEPS; i++) {
        step[i] = level * (1 + noise);
        noise = rho * noise + sqrt(1 - rho * rho) * 0.1 * random_normal(random);
    }
}

static void skewed_by(struct random *random, double level, double sigma, double step[STEPS])
{
    for (int i = 0; i < STEPS; i++) step[i] = level * exp(sigma * random_normal(random));
}

static void skewed(struct random *random, double step[STEPS])
{
    skewed_by(random, exp(0.2 * random_normal(random)), 0.5, step);
}

static void exponential(struct random *random, double step[STEPS])
{
    skewed_by(random, 1 - 0.2 * log(random_uniform(random)), 0.5, step);
}

static void exponential_alone(struct random *random, double step[STEPS])
{
    skewed_by(random, 1 - 0.2 * log(random_uniform(random)), 0.1, step);
}

static void drifting(struct random *random, double step[STEPS])
{
    double level = 1 + 0.05 * random_normal(random), slope = 0.15 * random_normal(random);
    for (int i = 0; i < STEPS; i++)
        step[i] = level * (1 + slope * i / (STEPS - 1.0)) * (1 + 0.05 * random_normal(random));
}

static void two_moded(struct random *random, double step[STEPS])
{
    double mode = random_uniform(random) < 0.25 ? 1.15 : 1, level = mode * (1 + 0.02 * random_normal(random));
    for (int i = 0; i < STEPS; i++) step[i] = level * (1 + 0.05 * random_normal(random));
}

/* With the coverage that is promised, in percent, for each of REPEATS; all at most 96. */
static const struct family {
    const char *name;
    repeat_fn *repeat;
    double low_pct[SIZES];
} FAMILIES[] = {
    {"independent normal steps", independent, {94, 94, 94, 94}},
    {"steps correlated, AR(1) with 0.9", correlated, {94, 94, 94, 94}},
    {"skewed: log-normal steps (0.5) and repeats (0.2)", skewed, {94, 94, 94, 94}},
    {"skewed: the same steps, exponential repeats (0.2 above the best)", exponential, {94, 94, 94, 94}},
    {"drifting: each repeat by a slope of its own", drifting, {94, 94, 94, 94}},
    {"exponential repeats (0.2), steps that hardly scatter (0.1)", exponential_alone, {89, 90, 91, 92}},
    {"two modes: a quarter of the repeats 15 % slower", two_moded, {81, 85, 91, 93}},
};
enum { FAMILIES_COUNT = sizeof FAMILIES / sizeof FAMILIES[0] };

struct trial {
    double step[REPEATS_MAX][STEPS];
    double samples_per_s[REPEATS_MAX];
};

static double throughput(const double step[STEPS])
{
    return BATCH / el_stats_mean(step, STEPS);
}

static void trial_draw(struct trial *trial, repeat_fn *repeat, struct random *random)
{
    for (int r = 0; r < REPEATS_MAX; r++) {
        repeat(random, trial->step[r]);
        trial->samples_per_s[r] = throughput(trial->step[r]);
    }
}

/* What each kind of interval is after, in the limit. */
struct truth {
    double samples_per_s; /* geometric mean of the repeats */
    double step;          /* geometric mean of all steps */
};

static struct truth truth_of(repeat_fn *repeat)
{
    struct random random = random_seeded(1);
    double step[STEPS], log_rate = 0, log_step = 0;
    for (int r = 0; r < TRUTH_REPEATS; r++) {
        repeat(&random, step);
        log_rate += log(throughput(step));
        for (int i = 0; i < STEPS; i++) log_step += log(step[i]);
    }
    return (struct truth){exp(log_rate / TRUTH_REPEATS), exp(log_step / TRUTH_REPEATS / STEPS)};
}

/* Repeats are drawn with replacement, then each one's steps. */
static double resampled(const struct trial *trial, struct random *random)
{
    double log_rate = 0;
    for (int r = 0; r < REPEATS_MIN; r++) {
        const double *step = trial->step[(random_u64(random) >> 32) * REPEATS_MIN >> 32];
        double sum = 0;
        for (int i = 0; i < STEPS; i += 2) {
            uint64_t two = random_u64(random);
            sum += step[(two >> 32) * STEPS >> 32] + step[(two & 0xFFFFFFFFu) * STEPS >> 32];
        }
        log_rate += log(BATCH * STEPS / sum);
    }
    return log_rate / REPEATS_MIN;
}

/* The percentile interval ends at the 2.5 % lowest and the 2.5 % highest of the resampled figures: it holds the truth
 * if more than that many lie on each side. */
static bool bootstrap_holds(const struct trial *trial, struct random *random, double truth)
{
    int below = 0;
    for (int i = 0; i < RESAMPLES; i++) below += resampled(trial, random) < log(truth);
    return below > RESAMPLES / 40 && RESAMPLES - below > RESAMPLES / 40;
}

static bool holds(struct el_interval interval, double truth)
{
    assert_true(interval.valid);
    return interval.low <= truth && truth <= interval.high;
}

/* In percent. The last two with the fewest repeats. */
struct coverage {
    double t_pct[SIZES], bootstrap_pct, all_steps_pct;
};

static struct coverage measure(repeat_fn *repeat)
{
    struct truth truth = truth_of(repeat);
    struct random random = random_seeded(2), resampling = random_seeded(3);
    int t[SIZES] = {0}, bootstrap = 0, all_steps = 0;
    for (int i = 0; i < TRIALS; i++) {
        struct trial trial;
        trial_draw(&trial, repeat, &random);
        for (int s = 0; s < SIZES; s++)
            t[s] += holds(el_stats_interval(trial.samples_per_s, REPEATS[s]), truth.samples_per_s);
        if (i >= OTHERS_TRIALS) continue;
        all_steps += holds(el_stats_interval(trial.step[0], (size_t)REPEATS_MIN * STEPS), truth.step);
        bootstrap += bootstrap_holds(&trial, &resampling, truth.samples_per_s);
    }
    struct coverage coverage = {
        .bootstrap_pct = 100.0 * bootstrap / OTHERS_TRIALS,
        .all_steps_pct = 100.0 * all_steps / OTHERS_TRIALS,
    };
    for (int s = 0; s < SIZES; s++) coverage.t_pct[s] = 100.0 * t[s] / TRIALS;
    return coverage;
}

static void test_families(void **state)
{
    const struct coverage *measured = *state;
    for (int f = 0; f < FAMILIES_COUNT; f++) {
        for (int s = 0; s < SIZES; s++) {
            double got = measured[f].t_pct[s];
            if (!(FAMILIES[f].low_pct[s] <= got && got <= 96))
                fail_msg("%s, %zu repeats: covers %.2f %%, %g to 96 promised", FAMILIES[f].name, REPEATS[s], got,
                         FAMILIES[f].low_pct[s]);
        }
    }
}

/* The reason for the choice: what was not chosen is worse in every family. */
static void test_others_are_worse(void **state)
{
    const struct coverage *measured = *state;
    for (int f = 0; f < FAMILIES_COUNT; f++) {
        assert_true(measured[f].bootstrap_pct < measured[f].t_pct[0] - 1);
        assert_true(measured[f].all_steps_pct < measured[f].t_pct[0] - 10);
    }
}

static void print_table(const struct coverage *measured)
{
    puts("| scatter | t, 5 repeats | 7 | 10 | 20 | bootstrap, 5 | all steps, 5 |");
    puts("| --- | --- | --- | --- | --- | --- | --- |");
    for (int f = 0; f < FAMILIES_COUNT; f++) {
        printf("| %s |", FAMILIES[f].name);
        for (int s = 0; s < SIZES; s++) printf(" %.1f |", measured[f].t_pct[s]);
        printf(" %.0f | %.0f |\n", measured[f].bootstrap_pct, measured[f].all_steps_pct);
    }
}

int main(int argc, char **argv)
{
    struct coverage measured[FAMILIES_COUNT];
    if (getenv("EVENLOAD_SANITIZER"))
        return puts("1..0 # SKIP arithmetic on arrays, which test_stats goes through too"), 0;
    for (int f = 0; f < FAMILIES_COUNT; f++) measured[f] = measure(FAMILIES[f].repeat);
    if (argc > 1 && strcmp(argv[1], "-v") == 0) print_table(measured);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_families, measured),
        cmocka_unit_test_prestate(test_others_are_worse, measured),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
