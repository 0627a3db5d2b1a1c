/* Intervals over repeats, of one configuration and of the ratio of two: Student's t on logarithms; of a difference,
 * which has no logarithm: Student's t.
 *
 * Not here: intervals over steps, or bootstraps. Steps within a repeat are correlated, so their number promises a
 * precision that is not there; and of five repeats a bootstrap holds the truth too rarely. docs/metrics.md has the
 * figures, tests/unit/test_coverage.c is where they come from. */
#include <math.h>

#include "bench/stats/stats.h"

static const char TOO_FEW[] = "fewer than 5 repeats";
static const char NOT_POSITIVE[] = "a repeat has no positive figure";
static const char NOT_FINITE[] = "a repeat has no figure";
static const char NO_SCATTER[] = "repeats do not scatter, as in virtual time";
static const double ROUNDING = 1e-9; /* what is less, of a figure, is rounding's */

static struct el_interval none(double centre, const char *reason)
{
    return (struct el_interval){.centre = centre, .low = NAN, .high = NAN, .reason = reason};
}

double el_stats_minus(double a, double b)
{
    return fabs(a - b) <= ROUNDING * fmax(fabs(a), fabs(b)) ? 0 : a - b;
}

/* The interval of exp(m), where m has the standard error and the degrees of freedom. */
static struct el_interval around(double m, double standard_error, double df)
{
    double half = el_stats_t_quantile(0.975, df) * standard_error;
    return (struct el_interval){.centre = exp(m), .low = exp(m - half), .high = exp(m + half), .valid = true};
}

/* Mean of the logarithms of x, or with `base` of x over base, and the variance of that mean. */
static void log_moments(const double *x, const double *base, size_t n, double *mean_p, double *variance_p)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += log(base ? x[i] / base[i] : x[i]);
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += pow(log(base ? x[i] / base[i] : x[i]) - mean, 2);
    *mean_p = mean;
    *variance_p = n < 2 ? NAN : squares / (double)(n - 1) / (double)n;
}

/* `b` NULL: of a itself. */
static struct el_interval of_pairs(const double *a, const double *b, size_t n)
{
    double mean, variance, centre = el_stats_geometric_mean(a, n) / (b ? el_stats_geometric_mean(b, n) : 1);
    if (n < EL_REPEATS_MIN) return none(centre, TOO_FEW);
    if (isnan(centre)) return none(centre, NOT_POSITIVE);
    log_moments(a, b, n, &mean, &variance);
    if (!(sqrt(variance) > ROUNDING)) return none(centre, NO_SCATTER);
    return around(mean, sqrt(variance), (double)(n - 1));
}

struct el_interval el_stats_interval(const double *x, size_t n)
{
    return of_pairs(x, NULL, n);
}

struct el_interval el_stats_ratio_paired(const double *a, const double *b, size_t n)
{
    return of_pairs(a, b, n);
}

static bool scatter(const double *x, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (el_stats_minus(x[i], x[0]) != 0) return true;
    return false;
}

struct el_interval el_stats_difference(const double *x, size_t n)
{
    double mean = el_stats_mean(x, n);
    if (n < EL_REPEATS_MIN) return none(mean, TOO_FEW);
    if (!isfinite(mean)) return none(NAN, NOT_FINITE);
    if (!scatter(x, n)) return none(mean, NO_SCATTER);
    double half = el_stats_t_quantile(0.975, (double)(n - 1)) * el_stats_stddev(x, n) / sqrt((double)n);
    return (struct el_interval){.centre = mean, .low = mean - half, .high = mean + half, .valid = true};
}

struct el_interval el_stats_difference_unpaired(const double *a, size_t n_a, const double *b, size_t n_b)
{
    double mean = el_stats_minus(el_stats_mean(b, n_b), el_stats_mean(a, n_a));
    if (n_a < EL_REPEATS_MIN || n_b < EL_REPEATS_MIN) return none(mean, TOO_FEW);
    if (!isfinite(mean)) return none(NAN, NOT_FINITE);
    if (!scatter(a, n_a) && !scatter(b, n_b)) return none(mean, NO_SCATTER);
    double v_a = pow(el_stats_stddev(a, n_a), 2) / (double)n_a, v_b = pow(el_stats_stddev(b, n_b), 2) / (double)n_b;
    double df = pow(v_a + v_b, 2) / (v_a * v_a / (double)(n_a - 1) + v_b * v_b / (double)(n_b - 1));
    double half = el_stats_t_quantile(0.975, df) * sqrt(v_a + v_b);
    return (struct el_interval){.centre = mean, .low = mean - half, .high = mean + half, .valid = true};
}

/* Draws with replacement from n launches have (n - 1) / n of their variance. The model's error is independent of them.
 */
struct el_interval el_stats_prediction(const double *x, size_t n, size_t launches, double model_error)
{
    double mean, variance, centre = el_stats_geometric_mean(x, n), of = (double)launches;
    if (launches < 2 || n < 2) return none(centre, "fewer than 2 launches");
    if (isnan(centre)) return none(centre, NOT_POSITIVE);
    log_moments(x, NULL, n, &mean, &variance);
    const double z = 1.959964; /* the normal distribution's 97.5 % */
    double t = el_stats_t_quantile(0.975, of - 1);
    double of_launches = t * sqrt(variance * (double)n * of / (of - 1) * (1 + 1 / of));
    double half = hypot(of_launches, z * model_error);
    return (struct el_interval){.centre = centre, .low = exp(mean - half), .high = exp(mean + half), .valid = true};
}

struct el_interval el_stats_interval_stretch(struct el_interval interval, double factor)
{
    if (!interval.valid) return interval;
    interval.low = interval.centre * pow(interval.low / interval.centre, factor);
    interval.high = interval.centre * pow(interval.high / interval.centre, factor);
    return interval;
}
