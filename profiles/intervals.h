/* Sets of time intervals, and a robust median over steps.
 *
 *     struct el_intervals t = {0};
 *     el_intervals_add(&t, span); ...          any order; nested, touching and empty ones are legal
 *     el_intervals_unite(&t);                  sorted, disjoint
 *     el_intervals_measure(&t); el_intervals_common(&a, &b);
 *     el_intervals_clear(&t);                  keeps the memory
 *     el_intervals_free(&t);
 *
 * Units: nanoseconds. Ownership: all zeros is empty; otherwise free it. Threads: one at a time per set. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/probe.h"

struct el_intervals {
    struct el_span *spans;
    size_t n, room;
    bool failed; /* out of memory: later additions are lost */
};

void el_intervals_add(struct el_intervals *set, struct el_span span);
/* Sorts and merges in place. Idempotent. */
void el_intervals_unite(struct el_intervals *set);
/* Total length of a united set. */
int64_t el_intervals_measure(const struct el_intervals *set);
/* Common length of two united sets. */
int64_t el_intervals_common(const struct el_intervals *a, const struct el_intervals *b);
/* Adds to the empty set `rest` united `a` minus united `b`. */
void el_intervals_less(const struct el_intervals *a, const struct el_intervals *b, struct el_intervals *rest);
/* Of a united set, the first that ends after `ns`; n: none. */
size_t el_intervals_after(const struct el_intervals *set, int64_t ns);
void el_intervals_clear(struct el_intervals *set);
void el_intervals_free(struct el_intervals *set);

/* Sorts `values`; the mean of the middle two for even n. n > 0. */
double el_median(double *values, size_t n);
