/* Sets of time intervals: union, intersection, measure.
 *
 *     struct el_timeline t = {0};
 *     el_timeline_add(&t, span); ...          in any order; nested, touching and empty ones are legal
 *     el_timeline_unite(&t);                  sorted, disjoint
 *     el_timeline_measure(&t); el_timeline_common(&a, &b);
 *     el_timeline_clear(&t);                  for the next step: keeps the memory
 *     el_timeline_free(&t);
 *
 * Pure arithmetic: it knows no device, phase or clock. Units: nanoseconds.
 */
#ifndef EL_PROFILES_TIMELINE_H
#define EL_PROFILES_TIMELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/probe.h"

struct el_timeline {
    struct el_span *spans;
    size_t n, capacity;
    bool failed; /* out of memory: what was added since is lost */
};

void el_timeline_add(struct el_timeline *timeline, struct el_span span);
/* Sorts and merges in place. Idempotent. */
void el_timeline_unite(struct el_timeline *timeline);
/* Total length. United only. */
int64_t el_timeline_measure(const struct el_timeline *timeline);
/* Length of what two united sets have in common. */
int64_t el_timeline_common(const struct el_timeline *a, const struct el_timeline *b);
void el_timeline_clear(struct el_timeline *timeline);
void el_timeline_free(struct el_timeline *timeline);

#endif
