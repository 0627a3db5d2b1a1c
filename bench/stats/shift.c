/* By how much one of two things done in turns is slower, when single steps may be disturbed by far more than that. */
#include <math.h>
#include <stdlib.h>

#include "bench/stats/stats.h"

double el_stats_hodges_lehmann(const double *x, size_t n)
{
    size_t pairs = n * (n + 1) / 2, k = 0;
    double *means = n > 0 ? malloc(pairs * sizeof *means) : NULL;
    if (means == NULL) return NAN;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) means[k++] = 0.5 * (x[i] + x[j]);
    double shift = el_stats_median(means, pairs);
    free(means);
    return shift;
}
