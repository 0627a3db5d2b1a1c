/* Sets of time intervals: union, intersection, measure; and the median of what single steps say (one that was
 * disturbed does not count; bench/stats has what is asked of trials).
 *
 *     struct el_intervals t = {0};
 *     el_intervals_add(&t, span); ...          in any order; nested, touching and empty ones are legal
 *     el_intervals_unite(&t);                  sorted, disjoint
 *     el_intervals_measure(&t); el_intervals_common(&a, &b);
 *     el_intervals_clear(&t);                  for the next step: keeps the memory
 *     el_intervals_free(&t);
 *
 * Pure arithmetic: it knows no device, phase or clock. Units: nanoseconds. Ownership: a set of zeros is empty; what was
 * added to is freed by el_intervals_free. Threads: a set is used by one at a time.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/probe.h"

struct el_intervals {
    struct el_span *spans;
    size_t n, room;
    bool failed; /* out of memory: what was added since is lost */
};

void el_intervals_add(struct el_intervals *set, struct el_span span);
/* Sorts and merges in place. Idempotent. */
void el_intervals_unite(struct el_intervals *set);
/* Total length. United only. */
int64_t el_intervals_measure(const struct el_intervals *set);
/* Length of what two united sets have in common. */
int64_t el_intervals_common(const struct el_intervals *a, const struct el_intervals *b);
/* Adds to an empty set what of united `a` is not in united `b`. */
void el_intervals_less(const struct el_intervals *a, const struct el_intervals *b, struct el_intervals *rest);
void el_intervals_clear(struct el_intervals *set);
void el_intervals_free(struct el_intervals *set);

/* Sorts `values`; the mean of the middle two of an even number. n > 0. */
double el_median(double *values, size_t n);
