/* The median of what single steps say: one that was disturbed does not count. bench/stats has what is asked of trials.
 */
#ifndef EL_PROFILES_MEDIAN_H
#define EL_PROFILES_MEDIAN_H

#include <stddef.h>

/* Sorts `values`; the mean of the middle two of an even number. n > 0. */
double el_median(double *values, size_t n);

#endif
