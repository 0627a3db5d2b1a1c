/* Signed ranks: pairs that ran next to each other in random order, and what differs between their two sides.
 *
 * Under the hypothesis that the sides are alike, the order within a pair decides each difference's sign and nothing
 * else does. So every pattern of signs is as likely as another, whatever the noise is: normal or not, drifting,
 * correlated from pair to pair, rounded. The probabilities here are exact in that sense, ties and zeros included.
 * Errors: none; an unknown result is NAN, or an interval that is not valid.
 */
#ifndef EL_BENCH_SIGNED_RANK_H
#define EL_BENCH_SIGNED_RANK_H

#include "bench/stats/stats.h"

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

#endif
