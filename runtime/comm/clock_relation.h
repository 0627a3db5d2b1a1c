/* How the clocks of a job's ranks relate: rank 0's is the common one.
 *
 *     el_clock_relate(bootstrap, &begin);   ... train ...   el_clock_relate(bootstrap, &end);
 *     common_ns = el_clock_common(&begin, &end, own_ns);
 *
 * Ranks of one boot of one kernel (and one time namespace) read the same clock: the offset is 0, and the error is what
 * reading it costs. Others exchange times: rank 0 reads its clock, every rank answers with its own, rank 0 reads again.
 * A rank's answer lies between the two readings, so its offset lies between two bounds (Cristian, Probabilistic clock
 * synchronization, 1989); of many rounds the bounds are cut. Their middle is the offset, half their distance the error:
 * no assumption on the network is made. Two anchors, at both ends of what is measured, take a drift of the clocks into
 * account. Units: nanoseconds. Collective. Errors: the bootstrap's.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/bootstrap.h"

struct el_clock_anchor {
    bool shared;       /* all ranks read one clock */
    int64_t at_ns;     /* on this rank's clock */
    int64_t offset_ns; /* this rank's clock minus rank 0's */
    int64_t error_ns;  /* the offset is known to this, either way */
    int64_t worst_ns;  /* the largest error of all ranks: the same on each */
};

enum el_status el_clock_relate(struct el_bootstrap *bootstrap, struct el_clock_anchor *anchor_p);
/* By exchange, even where the clock is one: what tests hold against the truth. */
enum el_status el_clock_exchange(struct el_bootstrap *bootstrap, struct el_clock_anchor *anchor_p);

/* A time of this rank's clock on rank 0's. */
int64_t el_clock_common(const struct el_clock_anchor *begin, const struct el_clock_anchor *end, int64_t own_ns);
/* And back. */
int64_t el_clock_own(const struct el_clock_anchor *begin, const struct el_clock_anchor *end, int64_t common_ns);
