/* Which units stand out of their peers. */
#include "bench/stats/peers.h"

#include <math.h>
#include <stdlib.h>

#include "bench/stats/stats.h"

#define SELF_CONFIDENCE  0.99
#define DETECTION        1.645 /* the normal distribution's 95 % */
#define SAME_TO_ROUNDING 1e-9

double el_peers_slower(double deviation)
{
    return 1 - exp(deviation);
}

/* Rosner's lambda for the largest of n deviations, one-sided: fast units are no alarm. */
static double critical(size_t n, double alpha)
{
    double df = (double)n - 2, t = el_stats_t_quantile(1 - alpha / (double)n, df);
    return ((double)n - 1) * t / sqrt((df + t * t) * (double)n);
}

struct sample {
    double *x;             /* the logarithms less their middle, ascending */
    double *sums, *powers; /* of those before this one: x, x * x */
    double middle;
    size_t low, high;
};

static void sum_up(struct sample *sample)
{
    el_stats_sort(sample->x, sample->high);
    sample->middle = sample->x[sample->high / 2];
    for (size_t i = 0; i < sample->high; i++) {
        double x = sample->x[i] -= sample->middle;
        sample->sums[i + 1] = sample->sums[i] + x;
        sample->powers[i + 1] = sample->powers[i] + x * x;
    }
}

static void moments(const struct sample *sample, double *mean_p, double *sd_p)
{
    double n = (double)(sample->high - sample->low);
    *mean_p = (sample->sums[sample->high] - sample->sums[sample->low]) / n;
    double rest = sample->powers[sample->high] - sample->powers[sample->low] - n * *mean_p * *mean_p;
    *sd_p = n > 1 ? sqrt(fmax(rest, 0) / (n - 1)) : NAN;
}

/* Takes away the most extreme one, on either side; returns its Studentized deviate. */
static double take_extreme(struct sample *sample)
{
    double mean, sd;
    moments(sample, &mean, &sd);
    double below = mean - sample->x[sample->low], above = sample->x[sample->high - 1] - mean;
    if (below >= above)
        sample->low++;
    else
        sample->high--;
    double most = fmax(below, above);
    return most > SAME_TO_ROUNDING ? most / sd : 0;
}

/* Leaves those that do not stand out. */
static struct sample without_outliers(struct sample all, double alpha)
{
    struct sample rest = all, kept = all;
    size_t most = (all.high - all.low) / 3;
    for (size_t i = 0; i < most; i++) {
        size_t n = rest.high - rest.low;
        if (take_extreme(&rest) > critical(n, alpha)) kept = rest;
    }
    return kept;
}

/* The noncentral t distribution's quantile, nearly. */
static double detected(double sd, size_t n, double alpha, double floor)
{
    double df = (double)n - 2, t = el_stats_t_quantile(1 - alpha / (double)n, df);
    double away = sd * sqrt((double)n / ((double)n - 1)) * (t + DETECTION * sqrt(1 + t * t / (2 * df)));
    return el_peers_slower(-fmax(away, -log(1 - floor) + DETECTION * sd));
}

static bool beyond_own_scatter(const struct el_peer *unit)
{
    double *logs = calloc(unit->n + 1, sizeof *logs), sd = 0;
    for (size_t i = 0; i < unit->n && logs; i++) logs[i] = log(unit->rates[i]);
    if (logs && unit->n > 1) sd = el_stats_stddev(logs, unit->n);
    free(logs);
    if (unit->n < 3) return true;
    double t = el_stats_t_quantile(SELF_CONFIDENCE, (double)unit->n - 1);
    return -unit->deviation > t * sd / sqrt((double)unit->n);
}

static void mark(struct el_peer *unit, double centre, double floor)
{
    unit->deviation = log(unit->median) - centre;
    unit->bad = el_peers_slower(unit->deviation) > floor && beyond_own_scatter(unit);
}

/* Each against the median. */
static void judge_few(struct el_peer *units, size_t n, double *x, struct el_peers *peers)
{
    double centre = el_stats_median(x, peers->n), worst = 0;
    for (size_t i = 0; i < n; i++) {
        if (isnan(units[i].median)) continue;
        mark(&units[i], centre, EL_PEERS_FEW_FLOOR);
        units[i].bad &= peers->n > 2;
        if (!units[i].bad) worst = fmax(worst, fabs(units[i].deviation));
    }
    peers->centre = exp(centre);
    peers->sd = NAN;
    peers->detects = peers->n > 2 ? fmax(EL_PEERS_FEW_FLOOR, el_peers_slower(-2 * worst)) : NAN;
}

void el_peers_judge(struct el_peer *units, size_t n, const struct el_peers_rule *rule, struct el_peers *peers_p)
{
    struct sample all = {.x = calloc(3 * n + 3, sizeof(double))};
    struct el_peers peers = {.centre = NAN, .sd = NAN, .detects = NAN};
    for (size_t i = 0; i < n; i++) {
        units[i].bad = units[i].fast = false;
        units[i].deviation = NAN;
        units[i].median = units[i].n ? el_stats_median(units[i].rates, units[i].n) : NAN;
        if (all.x && units[i].median > 0) all.x[all.high++] = log(units[i].median);
    }
    peers.n = all.high;
    peers.few = peers.n < EL_PEERS_MIN;
    if (peers.few && peers.n > 0) judge_few(units, n, all.x, &peers);
    if (!peers.few) {
        all.sums = all.x + n + 1;
        all.powers = all.sums + n + 1;
        sum_up(&all);
        struct sample kept = without_outliers(all, rule->alpha);
        double mean;
        moments(&kept, &mean, &peers.sd);
        peers.centre = exp(mean + all.middle);
        peers.detects = detected(peers.sd, kept.high - kept.low, rule->alpha, rule->floor);
        for (size_t i = 0; i < n; i++) {
            double x = log(units[i].median) - all.middle;
            if (isnan(units[i].median)) continue;
            units[i].deviation = x - mean;
            if (x < kept.x[kept.low]) mark(&units[i], mean + all.middle, rule->floor);
            units[i].fast = x > kept.x[kept.high - 1] && -el_peers_slower(units[i].deviation) > rule->floor;
        }
    }
    free(all.x);
    *peers_p = peers;
}
