/* Statistics: pure functions of arrays. They know nothing of records, steps or printing.
 *
 * The unit is a repeat, a fresh process: steps within one are correlated, so an interval is always over repeats. Times
 * and rates are skewed and positive, so intervals are by t on logarithms, and the middle they belong to is the
 * geometric mean. Errors: none; what is not known is NAN, or an interval that is not valid.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fewer repeats give no interval: at four the t quantile is so wide and the coverage so unsure that it misleads. */
enum { EL_REPEATS_MIN = 5, EL_REPEATS_MAX = 1000 /* of --repeats; more of a record are not read */ };

/* In ascending order, in place. NaNs have no place in one. */
void el_stats_sort(double *x, size_t n);
double el_stats_mean(const double *x, size_t n);
double el_stats_geometric_mean(const double *x, size_t n); /* NAN unless all are positive */
double el_stats_median(const double *x, size_t n);
/* Nearest rank: the smallest value that at least `q` of the values do not exceed. q in (0, 1]. */
double el_stats_quantile(const double *x, size_t n, double q);
double el_stats_stddev(const double *x, size_t n); /* of the sample, by n - 1; NAN for n < 2 */

/* Student's t: probability that T <= t, and the t of a probability (0 < p < 1). df > 0. */
double el_stats_t_cdf(double t, double df);
double el_stats_t_quantile(double p, double df);

/* a - b, and 0 where that is no more than what rounding leaves of the two. */
double el_stats_minus(double a, double b);

/* Of repeats that do not scatter (virtual time) there is none. */
struct el_interval {
    double centre; /* geometric mean, of a difference the mean; known even where the interval is not */
    double low, high;
    bool valid;
    const char *reason; /* why not valid; NULL if it is. Static text. */
};

/* The 95 % interval of the geometric mean of n repeats. */
struct el_interval el_stats_interval(const double *x, size_t n);
/* The 95 % prediction interval of one more launch, from n draws that have each the scatter of a launch and were made of
 * `launches` launches (at least 2): t with launches - 1 degrees of freedom on the logarithms, with the scatter of the
 * new launch and that of the mean of so many. `model_error`: the standard deviation of the logarithm of predicted over
 * measured that the draws do not have; it is added in quadrature. */
struct el_interval el_stats_prediction(const double *x, size_t n, size_t launches, double model_error);
/* The 95 % interval of the ratio a/b. Paired: a[i] and b[i] ran next to each other (round-robin), n of each. */
struct el_interval el_stats_ratio_paired(const double *a, const double *b, size_t n);
/* The 95 % interval of the mean of n differences, one per repeat, in their own unit. They may be negative or 0. */
struct el_interval el_stats_difference(const double *x, size_t n);
/* The 95 % interval of mean(b) - mean(a), of launches that have nothing to do with each other: Welch's t. */
struct el_interval el_stats_difference_unpaired(const double *a, size_t n_a, const double *b, size_t n_b);
/* The same centre with the half width, on logarithms, times `factor`. Of an interval that is not valid: itself.
 * A whole repeat of a study, with as many repeats, is to be expected within sqrt(2) times: both have been measured. */
struct el_interval el_stats_interval_stretch(struct el_interval interval, double factor);
/* Do steps get slower (or faster) within a repeat? drift.c says what the bounds are for. */
struct el_drift {
    double ratio;     /* geometric mean over repeats of second half over first; above 1: it got slower */
    double low, high; /* its 99 % interval, on logarithms; NAN for fewer than 5 repeats */
    bool found;
};
/* Of each repeat the median of the first half and of the second half of its measured steps (with an odd number the
 * middle one belongs to neither). Found: the interval excludes 1 and the ratio is more than 0.05 away from it. With
 * fewer than 5 repeats: all of them on the same side, and the ratio more than 0.20/sqrt(n) away from 1.
 * Without drift found in at most 1 % of trials whose independent steps scatter by up to 10 %, 10 or more a repeat;
 * steps that wander slowly count as drift. */
struct el_drift el_stats_drift(const double *first_half_ms, const double *second_half_ms, size_t n_repeats);

/* Does a trial get faster or slower over its session? */
struct el_trend {
    double ratio; /* last over first by the Theil-Sen slope of the logarithms: no single repeat bends it */
    double tau;   /* Kendall's, -1 to 1; pairs that are alike count as neither rising nor falling */
    double p;     /* of tau, two-sided: exact to 10 repeats, by the normal distribution above. Too large with ties. */
    bool found;
};
/* One positive figure a repeat, in order of execution. Found: p < 0.01 and the ratio more than 0.10 away from 1.
 * Fewer than 6 repeats can never be found, as the smallest p that 5 can have is 2/5! = 0.017. */
struct el_trend el_stats_trend(const double *x, size_t n);

/* How unevenly x is shared. The five say the same in the words of different trades; docs/metrics.md has them. */
struct el_imbalance {
    double max_over_mean_minus_1; /* 0: even */
    double imbalance_pct;         /* 0: even, 100: one device has all */
    double lb;                    /* mean/max, 1: even */
    double cv;                    /* standard deviation (by n) over mean */
    double first_over_rest;       /* the first over the mean of the others */
};
/* false (and nothing written) for n < 2; NAN where a measure is 0/0. */
bool el_stats_imbalance(const double *x, size_t n, struct el_imbalance *imbalance_p);

/* The line y = *at_zero_p + *slope_p x through points with positive y: least squares of the relative errors, so that
 * small values weigh as much as large ones; never below 0 at 0. false (and nothing written) for fewer than two x. */
bool el_stats_line(const double *x, const double *y, size_t n, double *at_zero_p, double *slope_p);

/* ---- signed ranks: pairs that ran next to each other in random order, and what differs between their two sides ----
 *
 * Under the hypothesis that the sides are alike, the order within a pair decides each difference's sign and nothing
 * else does. So every pattern of signs is as likely as another, whatever the noise is: normal or not, drifting,
 * correlated from pair to pair, rounded. The probabilities here are exact in that sense, ties and zeros included. */

/* More differences than that are refused (NAN): the time rises with the cube. */
enum { EL_SIGNED_RANK_MAX = 200 };

struct el_signed_rank {
    double sum; /* of the ranks of positive differences; mid-ranks for ties, zeros ranked but left out (Pratt) */
    double p_above, p_below; /* one-sided: of a sum at least, and at most, so large */
};
/* Wilcoxon's test of n differences. NAN: none, too many, or one that is not finite. */
struct el_signed_rank el_stats_signed_rank(const double *differences, size_t n);

/* The median of the means of all pairs of differences (Hodges and Lehmann), each taken with itself too. A few that are
 * far off, up to 29 in 100, do not move it much, and it needs nearly as few differences as the mean where none is: the
 * median alone needs half as many again. NAN for none. */
double el_stats_hodges_lehmann(const double *x, size_t n);
/* That shift with the interval that belongs to the test: the smallest and the largest shift that it would not refuse.
 * `confidence` 0.95: at least that; not valid for fewer differences than can give it (6). */
struct el_interval el_stats_signed_rank_interval(const double *differences, size_t n, double confidence);

/* Holm's adjustment: below a level, adjusted, stands only what is wrong in fewer than that share of families by
 * chance, however the tests hang together. NAN stays NAN and does not count. `adjusted` may be `p`. */
void el_stats_holm(const double *p, size_t n, double *adjusted);

/* ---- failures: any unit of time, the same for all; `checkpoint`: what writing one takes from the work ---- */

/* The work between two checkpoints that loses least: Young's sqrt(2 C M) (CACM 17, 1974) of C for a checkpoint and M
 * between failures, to higher order by Daly (Future Generation Computer Systems 22, 2006, eq. 37):
 * sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18M) - C; M where C is 2 M or more. */
double el_stats_checkpoint_interval(double checkpoint, double mtbf);
/* The part of all time that is work which counts, of intervals T, and R from a failure to the first step: Daly's eq.
 * 20, T / (M e^(R/M) (e^((T + C)/M) - 1)). Failures come at any time with the same rate, in checkpoints and recoveries
 * too. About 1 - C/T - (T/2 + R)/M where M is long. */
double el_stats_goodput(double interval, double checkpoint, double recovery, double mtbf);
