/* The messages of collectives (runtime/comm/rounds.h): both halves of each agree, and whoever carries them as they say
 * gets what the verb promises, for every verb, algorithm, size of the group, length and root, in place and out of
 * place. The carrier here is a loop over all members' memories. */
#include "tests/test.h"

#include <stdlib.h>

#include "runtime/comm/rounds.h"

/* An element counts for so many bytes that LARGE ones are several segments of a chain. */
enum { RANKS_MAX = 7, LARGE = 4099, ELEMENT_BYTES = 160, UNTOUCHED = -1 };

static const int sizes[] = {1, 2, 3, 4, 7};
static const size_t counts[] = {0, 1, 13, 16, 1000, LARGE};
enum { EACH = 2, UNIT = 3 }; /* numbers of a part, elements that each counts for */
enum { N_SIZES = sizeof sizes / sizeof sizes[0], N_COUNTS = sizeof counts / sizeof counts[0] };

/* A member's memory: [n * count] each, f64, integer-valued. */
struct memory {
    double *data, *result, *scratch;
};

struct game {
    struct el_comm_shape shape; /* of rank 0 */
    bool in_place;
    struct memory members[RANKS_MAX];
    bool counted; /* an all-to-all of parts that are used in part */
    int32_t counts[RANKS_MAX][2 * RANKS_MAX * EACH];
};

static struct el_comm_shape shape_of(const struct game *game, int rank)
{
    struct el_comm_shape shape = game->shape;
    shape.rank = rank;
    if (game->counted)
        shape.used = (struct el_comm_used){game->counts[rank], shape.size, EACH, UNIT, game->shape.used.back};
    return shape;
}

/* What is used of the part from one to another: nothing, all that are whole units, or some. */
static size_t used_of(const struct game *game, int from, int to)
{
    size_t most = game->shape.count / UNIT, draw = (size_t)(from * 5 + to * 3);
    if (!game->counted) return game->shape.count;
    return (draw % 3 == 0 ? 0 : draw % 3 == 1 ? most : most * (draw % 7) / 7) * UNIT;
}

/* On the way home a member gives what it got on the way there. */
static void count(struct game *game)
{
    int n = game->shape.size;
    bool back = game->shape.used.back;
    for (int r = 0; r < n; r++)
        for (int k = 0; k < n; k++) {
            int32_t gives = (int32_t)used_of(game, r, k) / UNIT, gets = (int32_t)used_of(game, k, r) / UNIT;
            int32_t *first = &game->counts[r][k * EACH], *second = &game->counts[r][(n + k) * EACH];
            first[0] = (back ? gets : gives) / 3;
            first[1] = (back ? gets : gives) - first[0];
            second[0] = (back ? gives : gets) / 2;
            second[1] = (back ? gives : gets) - second[0];
        }
}

static double value(int rank, size_t i)
{
    return (double)(rank + 1) * (double)(i % 89 + 1);
}

static double sum_of(int size, size_t i)
{
    return (double)(size * (size + 1)) / 2 * (double)(i % 89 + 1);
}

static size_t data_count(const struct game *game)
{
    return game->shape.count * (el_comm_verb_row(game->shape.verb)->all_data ? (size_t)game->shape.size : 1);
}

static size_t result_count(const struct game *game)
{
    return game->shape.count * (el_comm_verb_row(game->shape.verb)->all_result ? (size_t)game->shape.size : 1);
}

static bool gives(const struct game *game, int rank)
{
    return !el_comm_verb_row(game->shape.verb)->data_on_root || rank == game->shape.root;
}

static bool gets(const struct game *game, int rank)
{
    return !el_comm_verb_row(game->shape.verb)->result_on_root || rank == game->shape.root;
}

/* ---- the game's memory ---- */

/* In place as comm.h says: the smaller one lies in the larger one, at the member's own part. */
static void set_up_member(struct game *game, int rank)
{
    struct memory *m = &game->members[rank];
    struct el_comm_shape shape = shape_of(game, rank);
    size_t n_data = data_count(game), n_result = result_count(game), part = (size_t)rank * game->shape.count;
    bool together = game->in_place && gives(game, rank) && gets(game, rank);
    m->data = gives(game, rank) && !(together && n_data < n_result) ? calloc(n_data + 1, sizeof *m->data) : NULL;
    m->result = gets(game, rank) && !(together && n_result <= n_data) ? calloc(n_result + 1, sizeof *m->data) : NULL;
    m->scratch = calloc(el_comm_scratch(&shape) + 1, sizeof *m->scratch);
    if (together && n_data < n_result) m->data = m->result + part;
    if (together && n_result <= n_data) m->result = m->data + (n_result < n_data ? part : 0);
    for (size_t i = 0; m->result && i < n_result; i++) m->result[i] = UNTOUCHED;
    for (size_t i = 0; m->data && i < n_data; i++) m->data[i] = value(rank, i);
}

static void free_member(const struct game *game, int rank)
{
    const struct memory *m = &game->members[rank];
    bool together = game->in_place && gives(game, rank) && gets(game, rank);
    bool data_inside = together && data_count(game) < result_count(game);
    free(m->scratch);
    if (!data_inside) free(m->data);
    if (!together || data_inside) free(m->result);
}

/* ---- the carrier ---- */

static double *find(const struct game *game, int rank, struct el_comm_slice at, size_t count)
{
    const struct memory *m = &game->members[rank];
    struct el_comm_shape shape = shape_of(game, rank);
    size_t end = at.begin + count;
    double *side = NULL;
    if (at.side == EL_SIDE_DATA && end <= data_count(game)) side = m->data;
    if (at.side == EL_SIDE_RESULT && end <= result_count(game)) side = m->result;
    if (at.side == EL_SIDE_SCRATCH && end <= el_comm_scratch(&shape)) side = m->scratch;
    if (!side) fail_msg("rank %d: %zu elements at %zu of side %d are not there", rank, count, at.begin, (int)at.side);
    return side + at.begin;
}

static bool overlap(const double *a, size_t n, const double *b, size_t m)
{
    return n && m && a < b + m && b < a + n;
}

/* What leaves and what comes at once are not one place. */
static void check_apart(const struct game *game, int rank, const struct el_comm_round *round)
{
    if (round->send.peer < 0 || round->receive.peer < 0) return;
    size_t out = round->send.count, in = round->receive.count;
    assert_false(overlap(find(game, rank, round->send.at, out), out, find(game, rank, round->receive.at, in), in));
}

static void carry(struct game *game, int rank, const struct el_comm_message *in, const struct el_comm_message *out)
{
    const double *from = find(game, in->peer, out->at, out->count);
    double *to = find(game, rank, in->at, in->count);
    const double *own = in->own.side == EL_SIDE_NONE ? NULL : find(game, rank, in->own, in->count);
    assert_int_equal(out->peer, rank);
    assert_int_equal(out->count, in->count);
    if (game->shape.verb != EL_COMM_ALL_TO_ALL) assert_int_equal(out->part, in->part);
    for (size_t i = 0; i < in->count; i++) to[i] = own ? own[i] + from[i] : from[i];
}

static void play_round(struct game *game, int i)
{
    struct el_comm_round rounds[RANKS_MAX];
    int n_out = 0, n_in = 0;
    for (int r = 0; r < game->shape.size; r++) {
        struct el_comm_shape shape = shape_of(game, r);
        rounds[r] = el_comm_round(&shape, i);
        n_out += rounds[r].send.peer >= 0;
        check_apart(game, r, &rounds[r]);
    }
    for (int r = 0; r < game->shape.size; r++) {
        const struct el_comm_message *in = &rounds[r].receive;
        if (in->peer < 0) continue;
        n_in++;
        assert_int_not_equal(in->peer, r);
        carry(game, r, in, &rounds[in->peer].send);
    }
    assert_int_equal(n_in, n_out);
}

static void play(struct game *game)
{
    for (int r = 0; r < game->shape.size; r++) {
        struct el_comm_shape shape = shape_of(game, r);
        struct el_comm_copy copy = el_comm_own_copy(&shape);
        if (copy.count == 0) continue;
        memmove(find(game, r, copy.to, copy.count), find(game, r, copy.from, copy.count), copy.count * sizeof(double));
    }
    for (int i = 0; i < el_comm_rounds(&game->shape); i++) play_round(game, i);
}

/* ---- what must come of it ---- */

static double expected(const struct game *game, int rank, size_t i)
{
    size_t count = game->shape.count, part = i / count, at = i % count;
    switch (game->shape.verb) {
    case EL_COMM_ALL_REDUCE:
    case EL_COMM_REDUCE:
        return sum_of(game->shape.size, i);
    case EL_COMM_REDUCE_SCATTER:
        return sum_of(game->shape.size, (size_t)rank * count + i);
    case EL_COMM_BROADCAST:
        return value(game->shape.root, i);
    case EL_COMM_SCATTER:
        return value(game->shape.root, (size_t)rank * count + i);
    case EL_COMM_ALL_TO_ALL:
        return at < used_of(game, (int)part, rank) ? value((int)part, (size_t)rank * count + at) : UNTOUCHED;
    default: /* the gathers */
        return value((int)part, at);
    }
}

static void check_member(const struct game *game, int rank)
{
    const struct memory *m = &game->members[rank];
    if (gets(game, rank))
        for (size_t i = 0; m->result && i < result_count(game); i++)
            if (m->result[i] != expected(game, rank, i))
                fail_msg("%s %s of %zu, %d ranks, root %d%s: rank %d [%zu] is %g, not %g",
                         el_comm_algorithm_name(game->shape.algorithm), el_comm_verb_row(game->shape.verb)->name,
                         game->shape.count, game->shape.size, game->shape.root, game->in_place ? ", in place" : "",
                         rank, i, m->result[i], expected(game, rank, i));
    if (gives(game, rank) && !(game->in_place && gets(game, rank)))
        for (size_t i = 0; m->data && i < data_count(game); i++)
            if (m->data[i] != value(rank, i))
                fail_msg("%s: data[%zu] of rank %d has changed", el_comm_verb_row(game->shape.verb)->name, i, rank);
}

static void check_game(struct game *game)
{
    for (int r = 0; r < game->shape.size; r++) set_up_member(game, r);
    play(game);
    for (int r = 0; r < game->shape.size; r++) check_member(game, r);
    for (int r = 0; r < game->shape.size; r++) free_member(game, r);
}

/* ---- over all of them ---- */

typedef void (*check)(struct game *game);

/* Every root of a small group, the first and the last of a large one; the root of verbs without one is 0. */
static void over_roots(enum el_comm_verb verb, enum el_comm_algorithm algorithm, check one)
{
    bool has_root = el_comm_verb_row(verb)->has_root;
    for (int s = 0; s < N_SIZES; s++)
        for (int c = 0; c < N_COUNTS; c++)
            for (int root = 0; root < (has_root ? sizes[s] : 1); root += counts[c] == LARGE && sizes[s] > 2 ? 2 : 1)
                for (int in_place = 0; in_place <= (verb != EL_COMM_ALL_TO_ALL); in_place++)
                    one(&(struct game){.shape = {.verb = verb,
                                                 .algorithm = algorithm,
                                                 .size = sizes[s],
                                                 .root = root,
                                                 .count = counts[c],
                                                 .element_bytes = ELEMENT_BYTES},
                                       .in_place = in_place});
}

static void over_all(check one)
{
    int n = 0;
    for (int verb = 0; verb < EL_COMM_SEND; verb++)
        for (int algorithm = EL_COMM_DIRECT; algorithm < EL_COMM_ALGORITHM_COUNT; algorithm++)
            if (el_comm_has_algorithm((enum el_comm_verb)verb, (enum el_comm_algorithm)algorithm)) {
                over_roots((enum el_comm_verb)verb, (enum el_comm_algorithm)algorithm, one);
                n++;
            }
    assert_int_equal(n, 8 + 5 + 1); /* direct, ring, ps */
}

static void test_carried_as_said_they_do_what_the_verb_promises(void **state)
{
    over_all(check_game);
}

static void test_parts_that_are_used_in_part(void **state)
{
    for (int s = 0; s < N_SIZES; s++)
        for (int c = 0; c < N_COUNTS; c++)
            for (int back = 0; back < 2; back++) {
                struct game game = {.shape = {.verb = EL_COMM_ALL_TO_ALL,
                                              .algorithm = EL_COMM_DIRECT,
                                              .size = sizes[s],
                                              .count = counts[c],
                                              .element_bytes = ELEMENT_BYTES,
                                              .used = {.back = back}},
                                    .counted = true};
                count(&game);
                check_game(&game);
            }
}

/* From any element on; never beyond the part, whatever the numbers are. */
static void test_what_is_used_of_a_stretch(void **state)
{
    static const int32_t numbers[2][2][2] = {{{1, 2}, {0, 0}}, {{2, 2}, {-7, 1}}};
    struct el_comm_used used = {&numbers[0][0][0], 2, 2, 4, false};
    assert_int_equal(el_comm_used(&used, 0, false, 0, 100), 12);
    assert_int_equal(el_comm_used(&used, 0, false, 5, 100), 7);
    assert_int_equal(el_comm_used(&used, 0, false, 5, 3), 3);
    assert_int_equal(el_comm_used(&used, 0, false, 13, 3), 0);
    assert_int_equal(el_comm_used(&used, 1, false, 0, 100), 0);
    assert_int_equal(el_comm_used(&used, 0, true, 0, 100), 16);
    assert_int_equal(el_comm_used(&used, 1, true, 0, 100), 0);
    used.back = true;
    assert_int_equal(el_comm_used(&used, 0, false, 0, 10), 10);
    assert_int_equal(el_comm_used(&used, 0, true, 0, 100), 12);
    used.counts = NULL;
    assert_int_equal(el_comm_used(&used, 1, true, 7, 9), 9);
}

static void check_bytes(struct game *game)
{
    uint64_t sent = 0, received = 0;
    for (int r = 0; r < game->shape.size; r++) {
        struct el_comm_shape shape = shape_of(game, r);
        struct el_comm_traffic traffic = el_comm_rounds_traffic(&shape);
        sent += traffic.sent_bytes;
        received += traffic.received_bytes;
    }
    assert_int_equal(sent, received);
    uint64_t part = game->shape.count * game->shape.element_bytes, others = (uint64_t)game->shape.size - 1;
    switch (game->shape.verb) {
    case EL_COMM_ALL_REDUCE:
        assert_int_equal(sent, 2 * others * part);
        break;
    case EL_COMM_REDUCE_SCATTER:
    case EL_COMM_ALL_GATHER:
    case EL_COMM_ALL_TO_ALL:
        assert_int_equal(sent, (others + 1) * others * part);
        break;
    default:
        assert_int_equal(sent, others * part);
    }
}

static void test_sums_of_sent_and_received_are_equal(void **state)
{
    over_all(check_bytes);
}

static struct el_comm_traffic traffic_of(enum el_comm_verb verb, enum el_comm_algorithm algorithm, int rank, int size)
{
    struct el_comm_shape shape = {
        .verb = verb, .algorithm = algorithm, .rank = rank, .size = size, .count = 16 * 3 * 4 * 7, .element_bytes = 4};
    return el_comm_rounds_traffic(&shape);
}

/* nccl-tests, doc/PERFORMANCE.md: 2 (n - 1) / n of an all-reduce, (n - 1) parts of a reduce-scatter and an all-gather,
 * from each rank and to each. Of a parameter server rank 0 has it all. */
static void test_bytes_of_a_rank(void **state)
{
    const uint64_t all = 16 * 3 * 4 * 7 * 4;
    for (int s = 1; s < N_SIZES; s++)
        for (int rank = 0; rank < sizes[s]; rank++) {
            uint64_t n = (uint64_t)sizes[s], ps = rank == 0 ? (n - 1) * all : all;
            struct el_comm_traffic ring = traffic_of(EL_COMM_ALL_REDUCE, EL_COMM_RING, rank, sizes[s]);
            assert_int_equal(ring.sent_bytes, 2 * (n - 1) * all / n);
            assert_int_equal(ring.received_bytes, 2 * (n - 1) * all / n);
            assert_int_equal(traffic_of(EL_COMM_ALL_REDUCE, EL_COMM_PS, rank, sizes[s]).sent_bytes, ps);
            assert_int_equal(traffic_of(EL_COMM_REDUCE_SCATTER, EL_COMM_RING, rank, sizes[s]).sent_bytes,
                             (n - 1) * all);
            assert_int_equal(traffic_of(EL_COMM_ALL_GATHER, EL_COMM_RING, rank, sizes[s]).received_bytes,
                             (n - 1) * all);
            /* the last of a chain sends nothing */
            assert_int_equal(traffic_of(EL_COMM_BROADCAST, EL_COMM_RING, rank, sizes[s]).sent_bytes,
                             rank < sizes[s] - 1 ? all : 0);
        }
    assert_int_equal(traffic_of(EL_COMM_SEND, EL_COMM_DIRECT, 1, 3).sent_bytes, all);
    assert_int_equal(traffic_of(EL_COMM_RECV, EL_COMM_DIRECT, 1, 3).received_bytes, all);
    assert_int_equal(traffic_of(EL_COMM_BARRIER, EL_COMM_DIRECT, 1, 3).sent_bytes, 0);
}

static void expect_message(struct el_comm_message message, int peer, int part)
{
    assert_int_equal(message.peer, peer);
    assert_int_equal(message.part, part);
}

/* As textbooks draw it. */
static void test_the_ring_step_by_step(void **state)
{
    static const int leaves[] = {2, 1, 0, 3, 2, 1}; /* chunks that rank 2 of 4 sends */
    struct el_comm_shape shape = {
        .verb = EL_COMM_ALL_REDUCE, .algorithm = EL_COMM_RING, .rank = 2, .size = 4, .count = 4096, .element_bytes = 4};
    assert_int_equal(el_comm_rounds(&shape), 6);
    for (int i = 0; i < 6; i++) {
        struct el_comm_round round = el_comm_round(&shape, i);
        expect_message(round.send, 3, leaves[i]);
        expect_message(round.receive, 1, el_comm_wrap(leaves[i] - 1, 4));
        assert_int_equal(round.receive.own.side, i < 3 ? EL_SIDE_DATA : EL_SIDE_NONE);
        assert_int_equal(round.receive.last, i == 2);
    }
}

/* Of everything that is combined, each element of the result is divided once. */
static void check_last(struct game *game)
{
    size_t divided = 0;
    for (int r = 0; r < game->shape.size; r++) {
        struct el_comm_shape shape = shape_of(game, r);
        for (int i = 0; i < el_comm_rounds(&shape); i++) {
            struct el_comm_message in = el_comm_round(&shape, i).receive;
            if (in.peer < 0 || !in.last) continue;
            assert_int_not_equal(in.own.side, EL_SIDE_NONE);
            assert_int_equal(in.at.side, EL_SIDE_RESULT);
            divided += in.count;
        }
    }
    bool reduces = el_comm_verb_row(game->shape.verb)->reduces && game->shape.size > 1;
    bool parts = game->shape.verb == EL_COMM_REDUCE_SCATTER;
    assert_int_equal(divided, reduces ? game->shape.count * (parts ? (size_t)game->shape.size : 1) : 0);
}

static void test_each_element_is_complete_once(void **state)
{
    over_all(check_last);
}

RUN_TESTS(NULL, NULL, test_carried_as_said_they_do_what_the_verb_promises, test_parts_that_are_used_in_part,
          test_what_is_used_of_a_stretch, test_sums_of_sent_and_received_are_equal, test_bytes_of_a_rank,
          test_the_ring_step_by_step, test_each_element_is_complete_once)
