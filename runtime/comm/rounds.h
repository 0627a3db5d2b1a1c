/* The messages of a collective, as pure arithmetic for transports, byte counts, printing and cost models.
 *
 *     el_comm_copy_own(&sides, &shape)                            within the member's own memory, first
 *     for (int i = 0; i < el_comm_rounds(&shape); i++)
 *         round = el_comm_round(&shape, i);                       at most one message out, and one in
 *
 * A round's two messages are concurrent; it writes no place that it sends, and sends only what earlier rounds
 * received. If rank a sends n elements to b in round i, b receives n (possibly 0) from a in round i. Works in place
 * and not; `data` is never written unless it is also the result. Units: elements. Threads: any. An all-to-all's
 * messages have what is used of each part, which may be nothing.
 *
 * direct: each part goes straight to its receiver. All-reduce: each rank combines its own chunk (el_comm_chunk), first
 *     its own, then by descending rank with wrap-around, and sends it to the others.
 * ring: each rank sends to the next. All-reduce: 2 (n - 1) rounds of a chunk, bandwidth-optimal (Patarasuk and Yuan,
 *     Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009); chunk c is combined from rank c
 *     upwards. Broadcast and reduce are chains from and to the root, pipelined in segments.
 * ps: all send to rank 0, which combines by rank and sends the result back. */
#pragma once

#include "runtime/comm/comm_ops.h"

enum el_comm_side { EL_SIDE_NONE, EL_SIDE_DATA, EL_SIDE_RESULT, EL_SIDE_SCRATCH };

struct el_comm_slice {
    enum el_comm_side side;
    size_t begin;
};

struct el_comm_sides {
    char *data, *result, *scratch;
    size_t width; /* bytes per element */
};

struct el_comm_message {
    int peer; /* rank; -1: no message */
    int part; /* index of the part, chunk or segment */
    size_t count;
    struct el_comm_slice at;  /* source of a sent, destination of a received message */
    struct el_comm_slice own; /* incoming: the first operand to combine with; NONE: it overwrites */
    bool last;                /* incoming: all are combined, an average is divided now */
};

struct el_comm_round {
    struct el_comm_message send, receive;
};

struct el_comm_copy {
    struct el_comm_slice from, to;
    size_t count; /* 0: none */
};

static inline char *el_comm_address(const struct el_comm_sides *sides, struct el_comm_slice slice)
{
    char *const begins[] = {NULL, sides->data, sides->result, sides->scratch};
    return slice.side == EL_SIDE_NONE ? NULL : begins[slice.side] + slice.begin * sides->width;
}

static inline int el_comm_wrap(int i, int size)
{
    return (i % size + size) % size;
}

/* How many of `count` elements from element `begin` on are used of the part that goes to `peer`, or comes from it. */
size_t el_comm_used(const struct el_comm_used *used, int peer, bool comes, size_t begin, size_t count);
/* False: EL_COMM_DIRECT is used. */
bool el_comm_has_algorithm(enum el_comm_verb verb, enum el_comm_algorithm algorithm);
/* The copy before the first round, unless in place; also for a group of one. */
struct el_comm_copy el_comm_own_copy(const struct el_comm_shape *shape);
void el_comm_copy_own(const struct el_comm_sides *sides, const struct el_comm_shape *shape);
/* The same on all ranks. 0 for links, barriers, a count of 0 and a group of one. */
int el_comm_rounds(const struct el_comm_shape *shape);
struct el_comm_round el_comm_round(const struct el_comm_shape *shape, int round);
/* Workspace. */
size_t el_comm_scratch(const struct el_comm_shape *shape);
/* Grows the workspace; the caller frees it. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_comm_reserve_scratch(const char *backend, const struct el_comm_shape *shape, char **scratch_p,
                                       size_t *bytes_p);
struct el_op_messages el_comm_messages(const struct el_comm_shape *shape);
struct el_comm_traffic el_comm_rounds_traffic(const struct el_comm_shape *shape);
