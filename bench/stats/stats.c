/* Formulas: docs/metrics.md. Student's t by the incomplete beta function's continued fraction (Lentz), its quantile by
 * Newton's method. */
#include "bench/stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

double el_stats_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return n == 0 ? NAN : sum / (double)n;
}

double el_stats_geometric_mean(const double *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(x[i] > 0)) return NAN;
        sum += log(x[i]);
    }
    return n == 0 ? NAN : exp(sum / (double)n);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void el_stats_sort(double *x, size_t n)
{
    qsort(x, n, sizeof *x, ascending);
}

static double *sorted(const double *x, size_t n)
{
    double *copy = n == 0 ? NULL : malloc(n * sizeof *copy);
    if (copy == NULL) return NULL;
    memcpy(copy, x, n * sizeof *copy);
    el_stats_sort(copy, n);
    return copy;
}

double el_stats_median(const double *x, size_t n)
{
    double *s = sorted(x, n);
    if (s == NULL) return NAN;
    double median = n % 2 == 1 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
    free(s);
    return median;
}

double el_stats_quantile(const double *x, size_t n, double q)
{
    double *s = sorted(x, n);
    if (s == NULL) return NAN;
    /* The small amount keeps 0.95 * 20 at 19 despite rounding. */
    double rank = ceil(q * (double)n - 1e-9);
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    double value = s[index < n ? index : n - 1];
    free(s);
    return value;
}

static double sum_of_squares(const double *x, size_t n)
{
    double mean = el_stats_mean(x, n), sum = 0;
    for (size_t i = 0; i < n; i++) sum += pow(el_stats_minus(x[i], mean), 2);
    return sum;
}

double el_stats_stddev(const double *x, size_t n)
{
    return n < 2 ? NAN : sqrt(sum_of_squares(x, n) / (double)(n - 1));
}

/* For x < (a + 1) / (a + b + 2). */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double h = d;
    for (int m = 1; m <= 500; m++) {
        for (int half = 0; half < 2; half++) {
            double k = m, term = half == 0 ? k * (b - k) * x / ((a + 2 * k - 1) * (a + 2 * k))
                                           : -(a + k) * (a + b + k) * x / ((a + 2 * k) * (a + 2 * k + 1));
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            h *= d * c;
        }
        if (fabs(d * c - 1) < 1e-15) break;
    }
    return h;
}

/* I_x(a, b), the regularized incomplete beta function. */
static double beta_regularized(double a, double b, double x)
{
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double el_stats_t_cdf(double t, double df)
{
    /* Near 0 by the complement: df / (df + t*t) would round to 1. */
    if (t * t < df) return 0.5 + copysign(beta_regularized(0.5, df / 2, t * t / (df + t * t)) / 2, t);
    double tail = beta_regularized(df / 2, 0.5, df / (df + t * t)) / 2;
    return t > 0 ? 1 - tail : tail;
}

double el_stats_t_quantile(double p, double df)
{
    if (!(p > 0 && p < 1 && df > 0)) return NAN;
    if (p < 0.5) return -el_stats_t_quantile(1 - p, df);
    /* Right of 0 the distribution is concave, so Newton's steps from 0 never overshoot. */
    double peak = exp(lgamma((df + 1) / 2) - lgamma(df / 2)) / sqrt(df * acos(-1)), t = 0;
    for (int i = 0; i < 200; i++) {
        double density = peak * exp(-(df + 1) / 2 * log1p(t * t / df));
        double step = (p - el_stats_t_cdf(t, df)) / density;
        t += step;
        if (!(step > 1e-14 * t)) break;
    }
    return t;
}

bool el_stats_imbalance(const double *x, size_t n, struct el_imbalance *imbalance_p)
{
    if (n < 2) return false;
    double mean = el_stats_mean(x, n), max = x[0], count = (double)n;
    for (size_t i = 1; i < n; i++) max = x[i] > max ? x[i] : max;
    *imbalance_p = (struct el_imbalance){
        .max_over_mean_minus_1 = el_stats_minus(max / mean, 1),
        .imbalance_pct = el_stats_minus(max, mean) / max * count / (count - 1) * 100,
        .lb = mean / max,
        .cv = sqrt(sum_of_squares(x, n) / count) / mean,
        .first_over_rest = x[0] / el_stats_mean(x + 1, n - 1),
    };
    return true;
}

/* Normal equations with weights 1 / y^2. */
bool el_stats_line(const double *x, const double *y, size_t n, double *at_zero_p, double *slope_p)
{
    double w = 0, wx = 0, wxx = 0, wy = 0, wxy = 0;
    for (size_t i = 0; i < n; i++) {
        double weight = 1 / (y[i] * y[i]);
        w += weight, wx += weight * x[i], wxx += weight * x[i] * x[i], wy += weight * y[i], wxy += weight * x[i] * y[i];
    }
    double determinant = w * wxx - wx * wx;
    if (n < 2 || !(determinant > 0)) return false;
    double at_zero = (wy * wxx - wx * wxy) / determinant, slope = (w * wxy - wx * wy) / determinant;
    *at_zero_p = at_zero < 0 ? 0 : at_zero;
    *slope_p = at_zero < 0 ? wxy / wxx : slope;
    return true;
}
