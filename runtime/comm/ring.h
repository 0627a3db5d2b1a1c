/* The arithmetic of a ring, whatever carries its bytes: every rank passes on to the next one what it got from the one
 * before.
 *
 * All-reduce: data is cut into one chunk a rank. In step s of the first round rank r passes chunk r-s on to r+1 and
 * adds its own to what it gets, chunk r-s-1; so chunk c is summed from rank c upwards (its own first, then c+1's, ...:
 * the same order in every run) and is complete at rank c-1. The second round passes the complete chunks on: all members
 * get the same bits. Each rank sends 2(n-1)/n of the data, the least that an all-reduce of n ranks can do with
 * (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009).
 */
#ifndef EL_COMM_RING_H
#define EL_COMM_RING_H

#include "runtime/comm/rounds.h"

/* Any integer as a rank or a chunk's number. */
static inline int el_ring_wrap(int i, int size)
{
    return (i % size + size) % size;
}

/* How far a rank is behind the root. */
static inline int el_ring_place(int rank, int root, int size)
{
    return el_ring_wrap(rank - root, size);
}

/* What a ring's all-reduce and broadcast move, exactly. */
static inline struct el_comm_traffic el_ring_traffic(const struct el_comm_shape *shape)
{
    struct el_comm_shape ring = *shape;
    ring.algorithm = EL_COMM_RING;
    return el_comm_rounds_traffic(&ring);
}

#endif
