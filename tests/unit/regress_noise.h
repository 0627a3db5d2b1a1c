/* What a machine does to launches of one program, of several kinds; each with a standard deviation of 1 (drift and
 * rounding come on top), to be scaled by the coefficient of variation. And the bounds of Clopper and Pearson on a rate.
 */
#pragma once

#include "tests/unit/test_random_common.h"

/* `n` launches one after the other. */
typedef void noise_fn(struct random *random, double *x, int n);

static inline void noise_normal(struct random *random, double *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = random_normal(random);
}

static inline void noise_log_normal(struct random *random, double *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = (exp(random_normal(random)) - exp(0.5)) / sqrt(exp(1) * (exp(1) - 1));
}

/* One of ten scatters five times as much. */
static inline void noise_heavy(struct random *random, double *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = random_normal(random) * (random_uniform(random) < 0.1 ? 5 : 1) / sqrt(0.9 + 0.1 * 25);
}

/* A quarter is slower by four times the scatter. */
static inline void noise_two_modes(struct random *random, double *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = (random_normal(random) + (random_uniform(random) < 0.25 ? 4 : 0)) / 2;
}

/* AR(1) with 0.8 from launch to launch. */
static inline void noise_autocorrelated(struct random *random, double *x, int n)
{
    double level = random_normal(random);
    for (int i = 0; i < n; i++) {
        x[i] = level;
        level = 0.8 * level + 0.6 * random_normal(random);
    }
}

/* By ten times the scatter over the session, up or down. */
static inline void noise_drifting(struct random *random, double *x, int n)
{
    double slope = random_uniform(random) < 0.5 ? 10 : -10;
    for (int i = 0; i < n; i++) x[i] = random_normal(random) + slope * i / n;
}

/* A timer whose ticks are as long as the scatter: ties and zeros. */
static inline void noise_quantised(struct random *random, double *x, int n)
{
    for (int i = 0; i < n; i++) x[i] = round(random_normal(random));
}

/* A neighbour wakes up in one of twenty. */
static inline void noise_bursts(struct random *random, double *x, int n)
{
    for (int i = 0; i < n; i++) {
        double burst = random_uniform(random) < 0.05 ? -4 * log(random_uniform(random)) : 0;
        x[i] = (random_normal(random) + burst) / sqrt(1 + 0.05 * 2 * 16 - 0.04);
    }
}

static const struct noise {
    const char *name;
    noise_fn *draw;
} NOISES[] = {
    {"normal", noise_normal},
    {"log-normal", noise_log_normal},
    {"heavy tails", noise_heavy},
    {"two modes", noise_two_modes},
    {"autocorrelated", noise_autocorrelated},
    {"drifting", noise_drifting},
    {"quantised", noise_quantised},
    {"bursts", noise_bursts},
};
enum { NOISES_COUNT = sizeof NOISES / sizeof NOISES[0] };

/* P(X <= k) of n tries. */
static inline double binomial_cdf(int k, int n, double rate)
{
    double sum = 0;
    for (int i = 0; i <= k; i++)
        sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0) + i * log(rate) + (n - i) * log1p(-rate));
    return sum;
}

/* The rate above which so few hits would be seen in fewer than 1 of 100. */
static inline double rate_at_most(int hits, int n)
{
    double low = 0, high = 1;
    for (int i = 0; i < 60 && hits < n; i++) {
        double middle = (low + high) / 2;
        *(binomial_cdf(hits, n, middle) > 0.01 ? &low : &high) = middle;
    }
    return high;
}

/* The rate below which so many hits would be. */
static inline double rate_at_least(int hits, int n)
{
    return 1 - rate_at_most(n - hits, n);
}
