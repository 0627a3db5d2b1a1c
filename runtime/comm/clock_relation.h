/* Maps each rank's clock to rank 0's, the common one.
 *
 *     el_clock_relate(bootstrap, &begin);   ... train ...   el_clock_relate(bootstrap, &end);
 *     common_ns = el_clock_common(&begin, &end, own_ns);
 *
 * Ranks under one boot and one time namespace share a clock: offset 0, error its resolution. Others exchange times: in
 * each round rank 0 reads its clock, all answer with theirs, rank 0 reads again, which bounds the offset from both
 * sides (Cristian, Probabilistic clock synchronization, 1989). The offset is the middle of the intersected bounds, the
 * error half their width. Two anchors correct for drift. Units: nanoseconds. Collective. Errors: the bootstrap's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "runtime/comm/bootstrap.h"

struct el_clock_anchor {
    bool shared;
    int64_t at_ns;
    int64_t offset_ns; /* this rank's clock minus rank 0's */
    int64_t error_ns;  /* +- around the offset */
    int64_t worst_ns;  /* over all ranks */
};

enum el_status el_clock_relate(struct el_bootstrap *bootstrap, struct el_clock_anchor *anchor_p);
/* Even where the clock is shared; for tests. */
enum el_status el_clock_exchange(struct el_bootstrap *bootstrap, struct el_clock_anchor *anchor_p);

/* From this rank's clock to rank 0's. */
int64_t el_clock_common(const struct el_clock_anchor *begin, const struct el_clock_anchor *end, int64_t own_ns);
int64_t el_clock_own(const struct el_clock_anchor *begin, const struct el_clock_anchor *end, int64_t common_ns);
