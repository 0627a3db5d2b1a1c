/* The messages of a collective, whatever carries them: pure arithmetic, for whoever moves them, counts their bytes,
 * prints them or says what they cost.
 *
 *     el_comm_copy_own(&sides, &shape)                            within the member's own memory, first
 *     for (int i = 0; i < el_comm_rounds(&shape); i++)
 *         round = el_comm_round(&shape, i);                       at most one message out, and one in
 *
 * A round's messages go at the same time, and no place is written and sent in one round; what one sends has come in a
 * round before. The peer's round has the other half: what rank a sends to b in round i, b receives from a in round i,
 * as many elements. A message may be empty. In place or not is not asked: data and result may be one place, as comm.h
 * says, and where they are not, `data` is never written.
 * Units: elements. Threads: any; nothing is allocated but scratch. Errors: none but its.
 *
 * direct: each rank's part goes straight to who needs it; of an all-reduce each rank combines its own chunk
 *     (el_comm_chunk) over all, its own first, then by rank downwards and round, and gives it to the others.
 * ring: each rank sends to the next one only. All-reduce: 2 (n - 1) rounds of a chunk, the least that n ranks can do
 *     with (Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of workstations, 2009); chunk c is
 *     combined from rank c upwards. Broadcast and reduce are chains, from the root on and towards it, cut into segments
 *     that follow one another.
 * ps: all to rank 0, which combines by rank, and back to all.
 */
#pragma once

#include "runtime/comm/comm_ops.h"

enum el_comm_side { EL_SIDE_NONE, EL_SIDE_DATA, EL_SIDE_RESULT, EL_SIDE_SCRATCH };

/* A place in a member's memory. */
struct el_comm_slice {
    enum el_comm_side side;
    size_t begin;
};

/* Where a member's memory of an operation lies. */
struct el_comm_sides {
    char *data, *result, *scratch;
    size_t width; /* bytes of an element */
};

struct el_comm_message {
    int peer; /* rank; -1: none, and nothing else of it means anything */
    int part; /* number of the part, chunk or segment in its member's memory; 0 where there is but one */
    size_t count;
    struct el_comm_slice at;  /* what leaves; where what comes goes */
    struct el_comm_slice own; /* incoming: what it is combined with, as the first operand; NONE: it overwrites */
    bool last;                /* incoming: now all are combined: an average is divided */
};

struct el_comm_round {
    struct el_comm_message send, receive;
};

struct el_comm_copy {
    struct el_comm_slice from, to;
    size_t count; /* 0: nothing is to be copied */
};

/* NULL for no place. */
static inline char *el_comm_address(const struct el_comm_sides *sides, struct el_comm_slice slice)
{
    char *const begins[] = {NULL, sides->data, sides->result, sides->scratch};
    return slice.side == EL_SIDE_NONE ? NULL : begins[slice.side] + slice.begin * sides->width;
}

/* Any integer as a rank or a chunk's number. */
static inline int el_comm_wrap(int i, int size)
{
    return (i % size + size) % size;
}

/* Whether there is such an algorithm for the verb; where not, EL_COMM_DIRECT serves. */
bool el_comm_has_algorithm(enum el_comm_verb verb, enum el_comm_algorithm algorithm);
/* What the member copies within its own memory before the first round, where the two are not one place. Also of a group
 * of one. */
struct el_comm_copy el_comm_own_copy(const struct el_comm_shape *shape);
/* Does it. */
void el_comm_copy_own(const struct el_comm_sides *sides, const struct el_comm_shape *shape);
/* How many rounds: the same for all ranks. 0 for links, barriers, a count of 0 and a group of one. */
int el_comm_rounds(const struct el_comm_shape *shape);
struct el_comm_round el_comm_round(const struct el_comm_shape *shape, int round);
/* What a rank needs beside data and result. */
size_t el_comm_scratch(const struct el_comm_shape *shape);
/* Memory for that, which only grows; the caller frees it. Between steps. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_comm_reserve_scratch(const char *backend, const struct el_comm_shape *shape, char **scratch_p,
                                       size_t *bytes_p);
/* The same as an op's, which is to be known before it runs: a link's is one message. */
struct el_op_messages el_comm_messages(const struct el_comm_shape *shape);
/* Bytes of all its messages; of a link's one. */
struct el_comm_traffic el_comm_rounds_traffic(const struct el_comm_shape *shape);
