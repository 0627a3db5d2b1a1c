/* Pure functions of arrays. The unit is a repeat, a fresh process: steps within one are correlated, so intervals are
 * always over repeats. Times and rates are skewed and positive, so intervals are Student's t on logarithms around the
 * geometric mean. Unknown values are NAN, or an interval that is not valid. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Fewer give no interval: at four the t quantile is wide and the coverage unsure. */
enum { EL_REPEATS_MIN = 5, EL_REPEATS_MAX = 1000 /* of --repeats; a record's further ones are not read */ };

/* Ascending, in place, without NaNs. */
void el_stats_sort(double *x, size_t n);
double el_stats_mean(const double *x, size_t n);
double el_stats_geometric_mean(const double *x, size_t n); /* NAN unless all are positive */
double el_stats_median(const double *x, size_t n);
/* Nearest rank: the smallest value that at least `q` of the values do not exceed. q in (0, 1]. */
double el_stats_quantile(const double *x, size_t n, double q);
double el_stats_stddev(const double *x, size_t n); /* sample's, by n - 1; NAN for n < 2 */

/* Student's t: P(T <= t), and the t of a probability (0 < p < 1). df > 0. */
double el_stats_t_cdf(double t, double df);
double el_stats_t_quantile(double p, double df);

/* a - b; 0 if the difference is only rounding. */
double el_stats_minus(double a, double b);

/* None for repeats that do not scatter (virtual time). */
struct el_interval {
    double centre; /* geometric mean, for differences the mean; always known */
    double low, high;
    bool valid;
    const char *reason; /* why not valid, else NULL; static text */
};

/* 95 % interval of the geometric mean of n repeats. */
struct el_interval el_stats_interval(const double *x, size_t n);
/* 95 % prediction interval of one more launch, from n draws made of `launches` launches (at least 2): t with launches -
 * 1 degrees of freedom on logarithms, with the scatter of the new launch and of the mean. `model_error`: standard
 * deviation of log(predicted / measured) that the draws lack, added in quadrature. */
struct el_interval el_stats_prediction(const double *x, size_t n, size_t launches, double model_error);
/* 95 % interval of a/b. Paired: a[i] and b[i] ran next to each other (round-robin), n of each. */
struct el_interval el_stats_ratio_paired(const double *a, const double *b, size_t n);
/* 95 % interval of the mean of n differences, one per repeat, in their unit. */
struct el_interval el_stats_difference(const double *x, size_t n);
/* 95 % interval of mean(b) - mean(a) of independent launches: Welch's t. */
struct el_interval el_stats_difference_unpaired(const double *a, size_t n_a, const double *b, size_t n_b);
/* Multiplies the half width, on logarithms; invalid intervals stay. A repeat of a study is expected within sqrt(2)
 * times. */
struct el_interval el_stats_interval_stretch(struct el_interval interval, double factor);
/* Change of step time within a repeat (drift.c explains the bounds). */
struct el_drift {
    double ratio;     /* geometric mean over repeats of second half over first; above 1: slower */
    double low, high; /* 99 % interval, on logarithms; NAN for fewer than 5 repeats */
    bool found;
};
/* Inputs: medians of each repeat's halves of measured steps, without an odd number's middle step. Found: the interval
 * excludes 1 and the ratio is more than 0.05 from 1; with fewer than 5 repeats: all on one side, and more than
 * 0.20/sqrt(n) from 1. False alarms: at most 1 % of trials with 10 or more independent steps per repeat that scatter by
 * up to 10 %; slowly wandering steps count as drift. */
struct el_drift el_stats_drift(const double *first_half_ms, const double *second_half_ms, size_t n_repeats);

/* Change over a trial's session. */
struct el_trend {
    double ratio; /* last over first by the Theil-Sen slope of the logarithms, which is robust */
    double tau;   /* Kendall's tau, -1 to 1; ties count as neither */
    double p;     /* of tau, two-sided: exact to 10 repeats, normal above. Too large with ties. */
    bool found;
};
/* `x`: one positive figure per repeat, in order of execution. Found: p < 0.01 and the ratio more than 0.10 from 1;
 * needs 6 repeats, as the smallest p of 5 is 2/5! = 0.017. */
struct el_trend el_stats_trend(const double *x, size_t n);

/* How unevenly x is shared (docs/metrics.md). */
struct el_imbalance {
    double max_over_mean_minus_1; /* 0: even */
    double imbalance_pct;         /* 0: even, 100: one has all */
    double lb;                    /* mean/max, 1: even */
    double cv;                    /* standard deviation (by n) over mean */
    double first_over_rest;       /* the first over the mean of the others */
};
/* false, nothing written, for n < 2; NAN for a measure of 0/0. */
bool el_stats_imbalance(const double *x, size_t n, struct el_imbalance *imbalance_p);

/* y = *at_zero_p + *slope_p x by least squares of relative errors, with positive y and *at_zero_p >= 0. false, nothing
 * written, for fewer than two x. */
bool el_stats_line(const double *x, const double *y, size_t n, double *at_zero_p, double *slope_p);

/* ---- signed ranks of pairs that ran next to each other in random order ----  If both sides are alike, only the order
 * within a pair decides a difference's sign, so the probabilities are exact for any noise, with ties and zeros. */

/* More differences give NAN: the time grows with the cube. */
enum { EL_SIGNED_RANK_MAX = 200 };

struct el_signed_rank {
    double sum;              /* ranks of positive differences; mid-ranks for ties, zeros ranked but left out (Pratt) */
    double p_above, p_below; /* one-sided: P(sum at least this large), P(at most) */
};
/* Wilcoxon's test. NAN: none, too many, or one not finite. */
struct el_signed_rank el_stats_signed_rank(const double *differences, size_t n);

/* Hodges and Lehmann: the median of the means of all pairs, each with itself too. Tolerates 29 % outliers and is nearly
 * as efficient as the mean. NAN for none. */
double el_stats_hodges_lehmann(const double *x, size_t n);
/* That shift with the test's interval: the smallest and largest shift not rejected. `confidence` is a lower bound; 0.95
 * needs 6 differences. */
struct el_interval el_stats_signed_rank_interval(const double *differences, size_t n, double confidence);

/* Holm's adjustment: rejecting adjusted p below a level bounds the family-wise error by it under any dependence. NAN
 * stays NAN and does not count. `adjusted` may be `p`. */
void el_stats_holm(const double *p, size_t n, double *adjusted);

/* ---- failures: any one unit of time; `checkpoint`: the time that writing one takes from the work ---- */

/* The optimal work between two checkpoints: Young's sqrt(2 C M) (CACM 17, 1974), to higher order by Daly (Future
 * Generation Computer Systems 22, 2006, eq. 37): sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + C / 18M) - C; M if C >= 2 M. */
double el_stats_checkpoint_interval(double checkpoint, double mtbf);
/* Useful part of the time for intervals T, with R from a failure to the first step: Daly's eq. 20, T / (M e^(R/M)
 * (e^((T + C)/M) - 1)), for failures at a constant rate. About 1 - C/T - (T/2 + R)/M for long M. */
double el_stats_goodput(double interval, double checkpoint, double recovery, double mtbf);
