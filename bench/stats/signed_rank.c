/* Wilcoxon's signed ranks, exact. The distribution of the sum is built one rank at a time, on ranks doubled so that
 * mid-ranks are whole numbers; as probabilities, so that nothing overflows.
 *
 * Not here: the normal approximation, which is wrong by a factor at the small probabilities a gate works with. */
#include "bench/stats/signed_rank.h"

#include <math.h>
#include <stdlib.h>

struct ranked {
    double size; /* without its sign */
    int sign, doubled_rank;
};

static int by_size(const void *a, const void *b)
{
    double x = ((const struct ranked *)a)->size, y = ((const struct ranked *)b)->size;
    return (x > y) - (x < y);
}

/* Mid-ranks, doubled: of those that stand at i + 1 to j the rank is (i + 1 + j) / 2. */
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

static bool without_halves(const struct ranked *ranked, size_t n)
{
    int odd = 0;
    for (size_t i = 0; i < n; i++) odd |= ranked[i].doubled_rank & 1;
    return odd == 0;
}

/* Puts one more rank in: with half the probability the sum grows by it. `sums` is how many sums there were. */
static void put_rank(double *restrict next, const double *restrict now, size_t sums, size_t grows)
{
    for (size_t s = 0; s < sums + grows; s++) next[s] = s < sums ? 0.5 * now[s] : 0;
    for (size_t s = 0; s < sums; s++) next[s + grows] += 0.5 * now[s];
}

/* The probability of each sum of the n ranks, 0 to *last_p; to be freed. Ranks of 0 are left out. NULL: no memory. */
static double *distribution(const int *ranks, size_t n, size_t *last_p)
{
    size_t total = 0, sums = 1;
    for (size_t i = 0; i < n; i++) total += (size_t)ranks[i];
    double *two = calloc(2 * (total + 1), sizeof *two), *now = two;
    if (two == NULL) return NULL;
    double *next = two + total + 1;
    now[0] = 1;
    for (size_t i = 0; i < n; i++) {
        if (ranks[i] == 0) continue;
        put_rank(next, now, sums, (size_t)ranks[i]);
        sums += (size_t)ranks[i];
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
    int unit = without_halves(ranked, n) ? 2 : 1; /* then there is no need to double them */
    for (size_t i = 0; i < n; i++) {
        ranks[i] = ranked[i].sign == 0 ? 0 : ranked[i].doubled_rank / unit;
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
    test.sum = (double)sum * unit / 2;
    return test;
}

/* Which Walsh average from below ends the interval, counted from 1: the sum of ranks is smaller than that with at most
 * `tail`. 0: with so few differences there is none. */
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

/* The k-th smallest of x, from 0, which is put partly in order by it (Hoare). */
static double select_kth(double *x, size_t n, size_t k)
{
    size_t low = 0, high = n - 1;
    while (high > low + 8) {
        double pivot = x[low + (high - low) / 2];
        size_t i = low, j = high;
        for (;; i++, j--) {
            while (x[i] < pivot) i++;
            while (x[j] > pivot) j--;
            if (i >= j) break;
            double other = x[i];
            x[i] = x[j];
            x[j] = other;
        }
        if (k <= j)
            high = j;
        else
            low = j + 1;
    }
    el_stats_sort(x + low, high - low + 1);
    return x[k];
}

struct el_interval el_stats_signed_rank_interval(const double *differences, size_t n, double confidence)
{
    struct el_interval interval = {.centre = NAN, .low = NAN, .high = NAN, .reason = "no figures"};
    size_t pairs = n * (n + 1) / 2, k = 0;
    double *means = can_be_told(differences, n) ? malloc(pairs * sizeof *means) : NULL;
    if (means == NULL) return interval;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) means[k++] = 0.5 * (differences[i] + differences[j]);
    interval.centre = 0.5 * (select_kth(means, pairs, (pairs - 1) / 2) + select_kth(means, pairs, pairs / 2));
    size_t end = end_of_interval(n, (1 - confidence) / 2);
    interval.reason = "too few pairs for an interval";
    if (end > 0) {
        interval.low = select_kth(means, pairs, end - 1);
        interval.high = select_kth(means, pairs, pairs - end);
        interval.valid = true;
        interval.reason = NULL;
    }
    free(means);
    return interval;
}

/* Holm: the smallest p times how many there are, the next times one fewer, never below the one before. */
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
