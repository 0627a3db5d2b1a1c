/* Each verb and algorithm is a function from (rank, round) to the two messages; round i has distance i on every rank,
 * so both halves of a message fall into one round. */
#include "runtime/comm/rounds.h"

#include <stdlib.h>
#include <string.h>

/* Long enough to amortize a message's own cost. */
enum { SEGMENT_BYTES = 128 * 1024, SEGMENTS_MAX = 64, LINE = 16 };

static const struct el_comm_message nothing = {.peer = -1};

static struct el_comm_slice data_at(size_t begin)
{
    return (struct el_comm_slice){EL_SIDE_DATA, begin};
}

static struct el_comm_slice result_at(size_t begin)
{
    return (struct el_comm_slice){EL_SIDE_RESULT, begin};
}

/* The first operand: the member's own data, later the partial result. */
static struct el_comm_slice so_far(bool first, size_t data, size_t result)
{
    return first ? data_at(data) : result_at(result);
}

static struct el_comm_message chunk_message(const struct el_comm_shape *s, int peer, int chunk, enum el_comm_side side)
{
    size_t begin = el_comm_chunk(s->count, s->size, chunk);
    return (struct el_comm_message){
        .peer = peer, .part = chunk, .count = el_comm_chunk(s->count, s->size, chunk + 1) - begin, .at = {side, begin}};
}

/* `all_parts`: the side has one part per member. */
static struct el_comm_message part_message(const struct el_comm_shape *s, int peer, int part, enum el_comm_side side,
                                           bool all_parts)
{
    return (struct el_comm_message){
        .peer = peer, .part = part, .count = s->count, .at = {side, all_parts ? (size_t)part * s->count : 0}};
}

static int n_segments(const struct el_comm_shape *s)
{
    size_t n = (s->count * s->element_bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
    return n > SEGMENTS_MAX ? SEGMENTS_MAX : n > 1 ? (int)n : 1;
}

static size_t segment_most(const struct el_comm_shape *s)
{
    size_t n = (size_t)n_segments(s), even = (s->count + n - 1) / n;
    return (even + LINE - 1) / LINE * LINE;
}

static struct el_comm_message segment_message(const struct el_comm_shape *s, int peer, int segment,
                                              enum el_comm_side side)
{
    int n = n_segments(s);
    if (segment < 0 || segment >= n) return nothing;
    size_t begin = el_comm_chunk(s->count, n, segment);
    size_t at = side == EL_SIDE_SCRATCH ? (size_t)(segment % 2) * segment_most(s) : begin;
    return (struct el_comm_message){
        .peer = peer, .part = segment, .count = el_comm_chunk(s->count, n, segment + 1) - begin, .at = {side, at}};
}

size_t el_comm_used(const struct el_comm_used *used, int peer, bool comes, size_t begin, size_t count)
{
    if (!used->counts) return count;
    const int32_t *counts = used->counts + (size_t)((comes != used->back) * used->size + peer) * (size_t)used->each;
    int64_t n = 0;
    for (int32_t i = 0; i < used->each; i++) n += counts[i];
    n = n * used->unit - (int64_t)begin;
    return n <= 0 ? 0 : (size_t)n < count ? (size_t)n : count;
}

static int rank_at(const struct el_comm_shape *s, int distance)
{
    return el_comm_wrap(s->rank + distance, s->size);
}

/* Distance from the root. */
static int place_of(const struct el_comm_shape *s)
{
    return el_comm_wrap(s->rank - s->root, s->size);
}

/* ---- direct: in round i each rank sends to rank + i + 1 ---- */

static int once_round(const struct el_comm_shape *s)
{
    return s->size - 1;
}

static int twice_round(const struct el_comm_shape *s)
{
    return 2 * (s->size - 1);
}

static struct el_comm_round direct_all_reduce(const struct el_comm_shape *s, int i)
{
    int half = s->size - 1, distance = i % half + 1, to = rank_at(s, distance), from = rank_at(s, -distance);
    struct el_comm_round round;
    if (i >= half) {
        round.send = chunk_message(s, to, s->rank, EL_SIDE_RESULT);
        round.receive = chunk_message(s, from, from, EL_SIDE_RESULT);
        return round;
    }
    round.send = chunk_message(s, to, to, EL_SIDE_DATA);
    round.receive = chunk_message(s, from, s->rank, EL_SIDE_RESULT);
    round.receive.own = so_far(i == 0, round.receive.at.begin, round.receive.at.begin);
    round.receive.last = i == half - 1;
    return round;
}

static struct el_comm_round direct_reduce_scatter(const struct el_comm_shape *s, int i)
{
    int to = rank_at(s, i + 1), from = rank_at(s, -i - 1);
    struct el_comm_round round = {.send = part_message(s, to, to, EL_SIDE_DATA, true),
                                  .receive = part_message(s, from, s->rank, EL_SIDE_RESULT, false)};
    round.receive.own = so_far(i == 0, (size_t)s->rank * s->count, 0);
    round.receive.last = i == s->size - 2;
    return round;
}

static struct el_comm_round direct_all_gather(const struct el_comm_shape *s, int i)
{
    int to = rank_at(s, i + 1), from = rank_at(s, -i - 1);
    return (struct el_comm_round){.send = part_message(s, to, s->rank, EL_SIDE_DATA, false),
                                  .receive = part_message(s, from, from, EL_SIDE_RESULT, true)};
}

static struct el_comm_round direct_all_to_all(const struct el_comm_shape *s, int i)
{
    int to = rank_at(s, i + 1), from = rank_at(s, -i - 1);
    struct el_comm_round round = {.send = part_message(s, to, to, EL_SIDE_DATA, true),
                                  .receive = part_message(s, from, from, EL_SIDE_RESULT, true)};
    round.send.count = el_comm_used(&s->used, to, false, 0, s->count);
    round.receive.count = el_comm_used(&s->used, from, true, 0, s->count);
    return round;
}

static struct el_comm_round direct_from_root(const struct el_comm_shape *s, int i)
{
    bool parts = s->verb == EL_COMM_SCATTER;
    int place = place_of(s), to = rank_at(s, i + 1);
    struct el_comm_round round = {nothing, nothing};
    if (place == 0) round.send = part_message(s, to, parts ? to : 0, EL_SIDE_DATA, parts);
    if (place == i + 1) round.receive = part_message(s, s->root, parts ? s->rank : 0, EL_SIDE_RESULT, false);
    return round;
}

/* Reduce (the root's own data first, then by descending rank) and gather. */
static struct el_comm_round direct_to_root(const struct el_comm_shape *s, int i)
{
    bool parts = s->verb == EL_COMM_GATHER;
    int place = place_of(s), from = rank_at(s, -i - 1);
    struct el_comm_round round = {nothing, nothing};
    if (place == s->size - 1 - i) round.send = part_message(s, s->root, parts ? s->rank : 0, EL_SIDE_DATA, false);
    if (place != 0) return round;
    round.receive = part_message(s, from, parts ? from : 0, EL_SIDE_RESULT, parts);
    if (parts) return round;
    round.receive.own = so_far(i == 0, 0, 0);
    round.receive.last = i == s->size - 2;
    return round;
}

/* ---- ring: each rank sends to the next ---- */

/* First half: partial chunks move on; second half: complete chunks. */
static struct el_comm_round ring_all_reduce(const struct el_comm_shape *s, int i)
{
    int half = s->size - 1, next = rank_at(s, 1), before = rank_at(s, -1);
    int chunk = i < half ? rank_at(s, -i) : rank_at(s, 1 - (i - half));
    struct el_comm_round round = {.send = chunk_message(s, next, chunk, i == 0 ? EL_SIDE_DATA : EL_SIDE_RESULT),
                                  .receive =
                                      chunk_message(s, before, el_comm_wrap(chunk - 1, s->size), EL_SIDE_RESULT)};
    if (i < half) round.receive.own = data_at(round.receive.at.begin);
    round.receive.last = i == half - 1;
    return round;
}

/* Part r - 1 starts at rank r and ends, complete, at rank r - 1. Partial results alternate between two halves of
 * scratch, so that one leaves while the other arrives. */
static struct el_comm_round ring_reduce_scatter(const struct el_comm_shape *s, int i)
{
    int out = rank_at(s, -1 - i), in = rank_at(s, -2 - i);
    bool last = i == s->size - 2;
    struct el_comm_round round = {.send = part_message(s, rank_at(s, 1), out, EL_SIDE_DATA, true),
                                  .receive = part_message(s, rank_at(s, -1), in, EL_SIDE_RESULT, false)};
    if (i > 0) round.send.at = (struct el_comm_slice){EL_SIDE_SCRATCH, (size_t)((i - 1) % 2) * s->count};
    if (!last) round.receive.at = (struct el_comm_slice){EL_SIDE_SCRATCH, (size_t)(i % 2) * s->count};
    round.receive.own = data_at((size_t)in * s->count);
    round.receive.last = last;
    return round;
}

static struct el_comm_round ring_all_gather(const struct el_comm_shape *s, int i)
{
    return (struct el_comm_round){.send = part_message(s, rank_at(s, 1), rank_at(s, -i), EL_SIDE_RESULT, true),
                                  .receive = part_message(s, rank_at(s, -1), rank_at(s, -i - 1), EL_SIDE_RESULT, true)};
}

static int chain_rounds(const struct el_comm_shape *s)
{
    return n_segments(s) + s->size - 2;
}

/* From the root on: place p forwards what it received in the round before. */
static struct el_comm_round ring_broadcast(const struct el_comm_shape *s, int i)
{
    int place = place_of(s);
    struct el_comm_round round = {nothing, nothing};
    if (place < s->size - 1)
        round.send = segment_message(s, rank_at(s, 1), i - place, place == 0 ? EL_SIDE_DATA : EL_SIDE_RESULT);
    if (place > 0) round.receive = segment_message(s, rank_at(s, -1), i - place + 1, EL_SIDE_RESULT);
    return round;
}

/* From the rank behind the root to the root; partial segments alternate between two halves of scratch. */
static struct el_comm_round ring_reduce(const struct el_comm_shape *s, int i)
{
    int place = el_comm_wrap(place_of(s) - 1, s->size); /* in the chain; the root is last */
    bool is_root = place == s->size - 1;
    struct el_comm_round round = {nothing, nothing};
    if (!is_root)
        round.send = segment_message(s, rank_at(s, 1), i - place, place == 0 ? EL_SIDE_DATA : EL_SIDE_SCRATCH);
    if (place == 0) return round;
    round.receive = segment_message(s, rank_at(s, -1), i - place + 1, is_root ? EL_SIDE_RESULT : EL_SIDE_SCRATCH);
    if (round.receive.peer < 0) return round;
    round.receive.own = data_at(el_comm_chunk(s->count, n_segments(s), round.receive.part));
    round.receive.last = is_root;
    return round;
}

/* ---- ps: rank 0 receives from 1, 2, ..., then sends to them ---- */

static struct el_comm_round ps_all_reduce(const struct el_comm_shape *s, int i)
{
    int half = s->size - 1, worker = i % half + 1;
    bool gives = i >= half;
    struct el_comm_round round = {nothing, nothing};
    if (s->rank != 0 && s->rank != worker) return round;
    int peer = s->rank == 0 ? worker : 0;
    if ((s->rank == 0) == gives)
        round.send = part_message(s, peer, 0, gives ? EL_SIDE_RESULT : EL_SIDE_DATA, false);
    else
        round.receive = part_message(s, peer, 0, EL_SIDE_RESULT, false);
    if (gives || s->rank != 0) return round;
    round.receive.own = so_far(i == 0, 0, 0);
    round.receive.last = i == half - 1;
    return round;
}

/* ---- the list ---- */

struct schedule {
    int (*rounds)(const struct el_comm_shape *s);
    struct el_comm_round (*round)(const struct el_comm_shape *s, int i);
};

static const struct schedule schedules[EL_COMM_VERB_COUNT][EL_COMM_ALGORITHM_COUNT] = {
    [EL_COMM_ALL_REDUCE] = {[EL_COMM_DIRECT] = {twice_round, direct_all_reduce},
                            [EL_COMM_RING] = {twice_round, ring_all_reduce},
                            [EL_COMM_PS] = {twice_round, ps_all_reduce}},
    [EL_COMM_BROADCAST] =
        {[EL_COMM_DIRECT] = {once_round, direct_from_root}, [EL_COMM_RING] = {chain_rounds, ring_broadcast}},
    [EL_COMM_REDUCE] = {[EL_COMM_DIRECT] = {once_round, direct_to_root}, [EL_COMM_RING] = {chain_rounds, ring_reduce}},
    [EL_COMM_REDUCE_SCATTER] =
        {[EL_COMM_DIRECT] = {once_round, direct_reduce_scatter}, [EL_COMM_RING] = {once_round, ring_reduce_scatter}},
    [EL_COMM_ALL_GATHER] =
        {[EL_COMM_DIRECT] = {once_round, direct_all_gather}, [EL_COMM_RING] = {once_round, ring_all_gather}},
    [EL_COMM_SCATTER] = {[EL_COMM_DIRECT] = {once_round, direct_from_root}},
    [EL_COMM_GATHER] = {[EL_COMM_DIRECT] = {once_round, direct_to_root}},
    [EL_COMM_ALL_TO_ALL] = {[EL_COMM_DIRECT] = {once_round, direct_all_to_all}},
};

static const struct schedule *schedule_of(const struct el_comm_shape *s)
{
    bool known = schedules[s->verb][s->algorithm].round;
    return &schedules[s->verb][known ? s->algorithm : EL_COMM_DIRECT];
}

bool el_comm_has_algorithm(enum el_comm_verb verb, enum el_comm_algorithm algorithm)
{
    return schedules[verb][algorithm].round;
}

struct el_comm_copy el_comm_own_copy(const struct el_comm_shape *s)
{
    const size_t count = el_comm_used(&s->used, s->rank, true, 0, s->count);
    struct el_comm_copy copy = {.from = data_at(0), .to = result_at(0), .count = count}, none = {.count = 0};
    const struct el_comm_verb_row *row = el_comm_verb_row(s->verb);
    size_t part = (size_t)s->rank * s->count;
    bool is_root = s->rank == s->root;
    if (row->is_link || s->verb == EL_COMM_BARRIER || (row->has_root && !is_root)) return none;
    if (row->reduces && s->size > 1) return none; /* a reduce combines it with the first message instead */
    if (row->all_data) copy.from.begin = part;
    if (row->all_result) copy.to.begin = part;
    return copy;
}

void el_comm_copy_own(const struct el_comm_sides *sides, const struct el_comm_shape *shape)
{
    struct el_comm_copy own = el_comm_own_copy(shape);
    if (own.count == 0) return;
    char *to = el_comm_address(sides, own.to);
    const char *from = el_comm_address(sides, own.from);
    if (to != from) memcpy(to, from, own.count * sides->width);
}

int el_comm_rounds(const struct el_comm_shape *s)
{
    const struct schedule *schedule = schedule_of(s);
    return schedule->round && s->size > 1 && s->count > 0 ? schedule->rounds(s) : 0;
}

struct el_comm_round el_comm_round(const struct el_comm_shape *s, int round)
{
    return schedule_of(s)->round(s, round);
}

size_t el_comm_scratch(const struct el_comm_shape *s)
{
    int place = place_of(s);
    if (s->algorithm != EL_COMM_RING) return 0;
    if (s->verb == EL_COMM_REDUCE_SCATTER) return (s->size > 3 ? 2 : s->size > 2 ? 1 : 0) * s->count;
    if (s->verb == EL_COMM_REDUCE && place > 1) return (n_segments(s) > 1 ? 2 : 1) * segment_most(s);
    return 0;
}

enum el_status el_comm_reserve_scratch(const char *backend, const struct el_comm_shape *shape, char **scratch_p,
                                       size_t *bytes_p)
{
    size_t bytes = el_comm_scratch(shape) * shape->element_bytes;
    if (bytes <= *bytes_p) return EL_OK;
    char *larger = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!larger) return el_fail_errno("%s communicator: %zu bytes of workspace", backend, bytes);
    free(*scratch_p);
    *scratch_p = larger;
    *bytes_p = bytes;
    return EL_OK;
}

struct el_op_messages el_comm_messages(const struct el_comm_shape *s)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(s->verb);
    bool is_link = row->is_link;
    size_t largest = is_link ? s->count : 0, parts = row->all_data || row->all_result ? (size_t)s->size : 1;
    int n = el_comm_rounds(s);
    for (int i = 0; i < n; i++) {
        struct el_comm_round round = el_comm_round(s, i);
        if (round.send.peer >= 0 && round.send.count > largest) largest = round.send.count;
        if (round.receive.peer >= 0 && round.receive.count > largest) largest = round.receive.count;
    }
    return (struct el_op_messages){.verb = row->name,
                                   .algorithm = el_comm_algorithm_name(s->algorithm),
                                   .total_bytes = s->count * parts * s->element_bytes,
                                   .rank = s->rank,
                                   .size = s->size,
                                   .rounds = is_link && s->count > 0 ? 1 : n,
                                   .largest_bytes = largest * s->element_bytes};
}

struct el_comm_traffic el_comm_rounds_traffic(const struct el_comm_shape *s)
{
    struct el_comm_traffic sum = {0, 0};
    int n = el_comm_rounds(s);
    if (s->verb == EL_COMM_SEND) sum.sent_bytes = s->count * s->element_bytes;
    if (s->verb == EL_COMM_RECV) sum.received_bytes = s->count * s->element_bytes;
    for (int i = 0; i < n; i++) {
        struct el_comm_round round = el_comm_round(s, i);
        if (round.send.peer >= 0) sum.sent_bytes += round.send.count * s->element_bytes;
        if (round.receive.peer >= 0) sum.received_bytes += round.receive.count * s->element_bytes;
    }
    return sum;
}
