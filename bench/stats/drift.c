/* Found only if significant and large enough to matter: with many repeats every machine drifts a little significantly,
 * with few a large ratio is easily chance. Both tests are at 1 %, as a false alarm costs a good trial its verdict. Over
 * repeats ranks decide, so that one slow repeat makes no trend. */
#include <math.h>
#include <stdlib.h>

#include "bench/stats/stats.h"

static const double HALVES_MIN = 0.05, TREND_MIN = 0.10;
static const double TREND_P_MAX = 0.01;

enum { EXACT_MAX = 10, INVERSIONS_MAX = EXACT_MAX * (EXACT_MAX - 1) / 2 };

/* From 95 % to 99 %, on logarithms. */
static double widened(double end, double centre, size_t n)
{
    double df = (double)(n - 1);
    return centre * pow(end / centre, el_stats_t_quantile(0.995, df) / el_stats_t_quantile(0.975, df));
}

struct el_drift el_stats_drift(const double *first_half_ms, const double *second_half_ms, size_t n_repeats)
{
    struct el_interval i = el_stats_ratio_paired(second_half_ms, first_half_ms, n_repeats);
    struct el_drift drift = {.ratio = i.centre, .low = NAN, .high = NAN};
    double size = fabs(i.centre - 1); /* NAN: not found */
    if (i.valid) {
        drift.low = widened(i.low, i.centre, n_repeats);
        drift.high = widened(i.high, i.centre, n_repeats);
        drift.found = size > HALVES_MIN && (drift.low > 1 || drift.high < 1);
    } else {
        /* 2.6 standard errors for steps that scatter by 10 %, 10 per repeat, the worst without a warning: 0.10 at four
         * repeats, 0.20 at one. */
        size_t up = 0, down = 0;
        for (size_t k = 0; k < n_repeats; k++) {
            up += second_half_ms[k] > first_half_ms[k];
            down += second_half_ms[k] < first_half_ms[k];
        }
        drift.found = size > 0.20 / sqrt((double)n_repeats) && (up == n_repeats || down == n_repeats);
    }
    return drift;
}

/* *score_p, Kendall's: rising minus falling pairs. */
static double median_slope(const double *x, size_t n, long *score_p)
{
    size_t pairs = 0;
    double *slopes = malloc(n * (n - 1) / 2 * sizeof *slopes);
    *score_p = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = i + 1; j < n; j++) {
            *score_p += (x[j] > x[i]) - (x[j] < x[i]);
            if (slopes != NULL) slopes[pairs++] = log(x[j] / x[i]) / (double)(j - i);
        }
    }
    double median = slopes != NULL ? el_stats_median(slopes, pairs) : NAN;
    free(slopes);
    return median;
}

/* All n! orders are equally likely. Counted by inversions: the k-th value adds 0 to k - 1; a score of s has (pairs - s)
 * / 2. */
static double exact_p(size_t n, long score)
{
    double count[INVERSIONS_MAX + 1] = {1}, orders = 1, tail = 0;
    long pairs = (long)(n * (n - 1) / 2);
    for (size_t k = 2; k <= n; k++) {
        for (long m = pairs; m >= 0; m--) {
            for (long back = 1; back < (long)k && back <= m; back++) count[m] += count[m - back];
        }
        orders *= (double)k;
    }
    for (long m = 0; m <= (pairs - score) / 2; m++) tail += count[m];
    return fmin(1, 2 * tail / orders);
}

/* Normal approximation without ties, with continuity correction. */
static double normal_p(size_t n, long score)
{
    double count = (double)n, variance = count * (count - 1) * (2 * count + 5) / 18;
    return score == 0 ? 1 : erfc((double)(score - 1) / sqrt(2 * variance));
}

struct el_trend el_stats_trend(const double *x, size_t n)
{
    if (n < 2 || isnan(el_stats_geometric_mean(x, n))) return (struct el_trend){.ratio = NAN, .tau = NAN, .p = NAN};
    long score;
    double slope = median_slope(x, n, &score), pairs = (double)n * (double)(n - 1) / 2;
    struct el_trend trend = {
        .ratio = exp(slope * (double)(n - 1)),
        .tau = (double)score / pairs,
        .p = n <= EXACT_MAX ? exact_p(n, labs(score)) : normal_p(n, labs(score)),
    };
    trend.found = trend.p < TREND_P_MAX && fabs(trend.ratio - 1) > TREND_MIN;
    return trend;
}
