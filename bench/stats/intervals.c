/* Intervals over steps promise a false precision, because steps are correlated; a bootstrap of five repeats covers too
 * rarely (docs/metrics.md, tests/unit/test_coverage.c). */
#include <math.h>
#include <stdlib.h>

#include "bench/stats/stats.h"

static const char TOO_FEW[] = "fewer than 5 repeats";
static const char NOT_POSITIVE[] = "a repeat has no positive figure";
static const char NOT_FINITE[] = "a repeat has no figure";
static const char NO_SCATTER[] = "repeats do not scatter, as in virtual time";
static const double ROUNDING = 1e-9; /* of a figure: less is rounding */

static struct el_interval none(double centre, const char *reason)
{
    return (struct el_interval){.centre = centre, .low = NAN, .high = NAN, .reason = reason};
}

double el_stats_minus(double a, double b)
{
    return fabs(a - b) <= ROUNDING * fmax(fabs(a), fabs(b)) ? 0 : a - b;
}

static struct el_interval around(double m, double standard_error, double df)
{
    double half = el_stats_t_quantile(0.975, df) * standard_error;
    return (struct el_interval){.centre = exp(m), .low = exp(m - half), .high = exp(m + half), .valid = true};
}

/* Of x, or of x over `base`; *variance_p: of the mean. */
static void log_moments(const double *x, const double *base, size_t n, double *mean_p, double *variance_p)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) sum += log(base ? x[i] / base[i] : x[i]);
    double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++) squares += pow(log(base ? x[i] / base[i] : x[i]) - mean, 2);
    *mean_p = mean;
    *variance_p = n < 2 ? NAN : squares / (double)(n - 1) / (double)n;
}

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

/* Draws with replacement from n launches have (n - 1) / n of their variance. The model's error is independent. */
struct el_interval el_stats_prediction(const double *x, size_t n, size_t launches, double model_error)
{
    double mean, variance, centre = el_stats_geometric_mean(x, n), of = (double)launches;
    if (launches < 2 || n < 2) return none(centre, "fewer than 2 launches");
    if (isnan(centre)) return none(centre, NOT_POSITIVE);
    log_moments(x, NULL, n, &mean, &variance);
    const double z = 1.959964; /* 97.5 % of the normal distribution */
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

/* Exact: the normal approximation is wrong by a factor at a gate's small probabilities. The distribution is built rank
 * by rank, on doubled ranks so that mid-ranks are whole, as probabilities so that nothing overflows. */

struct ranked {
    double size; /* absolute */
    int sign, doubled_rank;
};

static int by_size(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->size, y = ((const struct ranked *)b)->size;
    return (x > y) - (x < y);
}

/* For positions i + 1 to j the mid-rank is (i + 1 + j) / 2. */
static void rank(const double *differences, size_t n, struct ranked *ranked)
{
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){.size = fabs(differences[i]), .sign = (differences[i] > 0) - (differences[i] < 0)};
    qsort(ranked, n, sizeof *ranked, by_size);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i; j < n && ranked[j].size <= ranked[i].size;) j++;
        for (size_t k = i; k < j; k++) ranked[k].doubled_rank = (int)(i + 1 + j);
    }
}

/* Of each sum of the n ranks, 0 to *last_p; to be freed. Ranks of 0 are left out. */
static double *distribution(const int *ranks, size_t n, size_t *last_p)
{
    size_t total = 0, sums = 1;
    for (size_t i = 0; i < n; i++) total += (size_t)ranks[i];
    double *two = calloc(2 * (total + 1), sizeof *two), *now = two;
    if (two == NULL) return NULL;
    double *next = two + total + 1;
    now[0] = 1;
    for (size_t i = 0; i < n; i++) {
        size_t grows = (size_t)ranks[i]; /* with half the probability */
        if (grows == 0) continue;
        for (size_t s = 0; s < sums + grows; s++) next[s] = s < sums ? 0.5 * now[s] : 0;
        for (size_t s = 0; s < sums; s++) next[s + grows] += 0.5 * now[s];
        sums += grows;
        double *other = now;
        now = next;
        next = other;
    }
    for (size_t s = 0; s <= total; s++) two[s] = now[s];
    *last_p = total;
    return two;
}

static bool can_be_told(const double *differences, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(differences[i])) return false;
    return n > 0 && n <= EL_SIGNED_RANK_MAX;
}

struct el_signed_rank el_stats_signed_rank(const double *differences, size_t n)
{
    struct el_signed_rank none = {NAN, NAN, NAN}, test = {0};
    struct ranked ranked[EL_SIGNED_RANK_MAX];
    int ranks[EL_SIGNED_RANK_MAX];
    size_t sum = 0, last;
    if (!can_be_told(differences, n)) return none;
    rank(differences, n, ranked);
    for (size_t i = 0; i < n; i++) {
        ranks[i] = ranked[i].sign == 0 ? 0 : ranked[i].doubled_rank;
        sum += ranked[i].sign > 0 ? (size_t)ranks[i] : 0;
    }
    double *probability = distribution(ranks, n, &last);
    if (probability == NULL) return none;
    for (size_t s = 0; s <= last; s++) {
        test.p_above += s >= sum ? probability[s] : 0;
        test.p_below += s <= sum ? probability[s] : 0;
    }
    free(probability);
    test.p_above = fmin(test.p_above, 1);
    test.p_below = fmin(test.p_below, 1);
    test.sum = (double)sum / 2;
    return test;
}

/* Number, from 1, of the lowest Walsh average in the interval; smaller sums have at most `tail`. 0: too few
 * differences. */
static size_t end_of_interval(size_t n, double tail)
{
    int ranks[EL_SIGNED_RANK_MAX];
    size_t last, at = 0;
    for (size_t i = 0; i < n; i++) ranks[i] = (int)i + 1;
    double *probability = distribution(ranks, n, &last);
    if (probability == NULL) return 0;
    for (double sum = probability[0]; at <= last && sum <= tail;) sum += probability[++at];
    free(probability);
    return at;
}

/* Ascending; to be freed. */
static double *walsh_averages(const double *x, size_t n, size_t *pairs_p)
{
    size_t pairs = n * (n + 1) / 2, k = 0;
    double *means = n > 0 ? malloc(pairs * sizeof *means) : NULL;
    if (means == NULL) return NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) means[k++] = 0.5 * (x[i] + x[j]);
    el_stats_sort(means, pairs);
    *pairs_p = pairs;
    return means;
}

double el_stats_hodges_lehmann(const double *x, size_t n)
{
    size_t pairs = 0;
    double *means = walsh_averages(x, n, &pairs);
    double shift = means == NULL ? NAN : 0.5 * (means[(pairs - 1) / 2] + means[pairs / 2]);
    free(means);
    return shift;
}

struct el_interval el_stats_signed_rank_interval(const double *differences, size_t n, double confidence)
{
    struct el_interval interval = {.centre = NAN, .low = NAN, .high = NAN, .reason = "no figures"};
    size_t pairs = 0;
    double *means = can_be_told(differences, n) ? walsh_averages(differences, n, &pairs) : NULL;
    if (means == NULL) return interval;
    interval.centre = 0.5 * (means[(pairs - 1) / 2] + means[pairs / 2]);
    size_t end = end_of_interval(n, (1 - confidence) / 2);
    interval.reason = "too few pairs for an interval";
    if (end > 0)
        interval = (struct el_interval){
            .centre = interval.centre, .low = means[end - 1], .high = means[pairs - end], .valid = true};
    free(means);
    return interval;
}

void el_stats_holm(const double *p, size_t n, double *adjusted)
{
    size_t told = 0, *order = malloc((n + 1) * sizeof *order);
    for (size_t i = 0; i < n && order != NULL; i++) {
        if (isnan(p[i])) continue;
        size_t at = told++;
        for (; at > 0 && p[order[at - 1]] > p[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
    double before = 0;
    for (size_t i = 0; i < n; i++)
        if (order == NULL || isnan(p[i])) adjusted[i] = NAN;
    for (size_t k = 0; k < told; k++) {
        before = fmax(before, fmin(1, p[order[k]] * (double)(told - k)));
        adjusted[order[k]] = before;
    }
    free(order);
}
