/* Random sequences of operations over random sub-groups: a group is split, a part of it once more, and then operations
 * of any verb are made on all three in one program, in any order. All members draw the same numbers. As one member of a
 * group sees it: included by the tests that start members, each in its own way. */
#pragma once

#include "tests/conformance/comm_product.h"

enum { SEQUENCE_GROUPS = 3, SEQUENCE_OPS = 5, SEQUENCE_COLORS = 3 };

struct sequence {
    struct el_rng_key key;
    uint64_t number, drawn;
    struct el_comm *comms[SEQUENCE_GROUPS]; /* the whole group, a part of it, a part of that; NULL: not in it */
};

/* 0 to n - 1, the next one that all members draw. */
static inline int sequence_draw(struct sequence *s, int n)
{
    return (int)(el_rng_u64(&s->key, s->number, s->drawn++) % (uint64_t)n);
}

/* What member `rank` of the whole group says: every fourth is in no part. */
static inline enum el_status sequence_split(struct sequence *s, int group, int world_rank)
{
    uint64_t mine = el_rng_u64(&s->key, s->number, (uint64_t)1 << 32 | (uint64_t)(group << 8 | world_rank));
    int color = (int)(mine % (SEQUENCE_COLORS + 1)) - 1, key = (int)(mine >> 32 & 7);
    if (!s->comms[group - 1]) return EL_OK;
    EL_TRY(el_comm_split(s->comms[group - 1], color, key, &s->comms[group]));
    return s->comms[group] ? product_open_mailboxes(s->comms[group]) : EL_OK;
}

/* Draws until it is a case that the backend has: by the whole group, whose parts are of the same kind. */
static inline struct comm_case sequence_case(struct sequence *s, int size)
{
    struct el_comm *world = s->comms[0];
    struct pairwise_row row;
    int length = sequence_draw(s, 300), shift = sequence_draw(s, 4);
    do {
        row.level[OF_VERB] = sequence_draw(s, EL_COMM_VERB_COUNT);
        row.level[OF_TYPE] = sequence_draw(s, EL_DTYPE_COUNT);
        row.level[OF_REDUCTION] = sequence_draw(s, EL_COMM_REDUCTION_COUNT);
        row.level[OF_ALGORITHM] = EL_COMM_AUTO;
        row.level[OF_LENGTH] = 0;
        row.level[OF_ROOT] = sequence_draw(s, 3);
        row.level[IN_PLACE] = sequence_draw(s, 2);
        row.level[REGISTERED] = sequence_draw(s, 8) == 0;
        row.level[AT_ONCE] = 0;
    } while (!product_valid(&row, &world));
    struct comm_case c = product_case(&row, size);
    c.count = (size_t)length;
    c.shift = (size_t)shift;
    return c;
}

/* Links need a partner. */
static inline bool sequence_can(const struct comm_case *c, const struct el_comm *comm)
{
    return comm && (c->verb != EL_COMM_SEND || el_comm_has_verb(comm, EL_COMM_SEND));
}

static inline enum el_status sequence_play(struct sequence *s)
{
    struct case_play plays[SEQUENCE_OPS];
    int n = 0;
    for (int i = 0; i < SEQUENCE_OPS; i++) {
        struct el_comm *comm = s->comms[sequence_draw(s, SEQUENCE_GROUPS)];
        struct comm_case c = sequence_case(s, comm ? el_comm_size(comm) : 1);
        if (sequence_can(&c, comm)) plays[n++] = (struct case_play){.c = c, .comm = comm};
    }
    return case_check_all(plays, n);
}

/* All have ended when this has: then the parts may be closed. */
static inline enum el_status sequence_end(struct sequence *s)
{
    struct comm_case all = {.verb = EL_COMM_ALL_REDUCE, .count = 1};
    return case_check(&all, s->comms[0]);
}

static inline enum el_status check_sequence(struct el_comm *comm, uint64_t seed, uint64_t number)
{
    struct sequence s = {.key = {.seed = seed, .use = EL_RNG_TEST}, .number = number, .comms = {comm}};
    int rank = el_comm_rank(comm);
    enum el_status status = sequence_split(&s, 1, rank);
    if (status == EL_OK) status = sequence_split(&s, 2, rank);
    if (status == EL_OK) status = sequence_play(&s);
    if (status == EL_OK) status = sequence_end(&s);
    for (int g = 0; g < SEQUENCE_GROUPS && status != EL_OK; g++)
        if (s.comms[g]) el_comm_abort(s.comms[g]); /* the others would wait for this one */
    for (int g = SEQUENCE_GROUPS - 1; g > 0; g--) el_comm_close(s.comms[g]);
    return status;
}

/* Collective. `n` of them, or with EVENLOAD_LONG=1 fifty times as many. EVENLOAD_SEED: other ones than always. */
static inline enum el_status check_sequences(struct el_comm *comm, int n)
{
    if (is_sanitized()) n = (n + 3) / 4;
    const char *seed = getenv("EVENLOAD_SEED");
    uint64_t number = seed ? strtoull(seed, NULL, 10) : 20;
    int all = getenv("EVENLOAD_LONG") ? 50 * n : n;
    enum el_status status = EL_OK;
    if (el_comm_rank(comm) == 0)
        printf("# %d sequences over groups of %d, seed %llu\n", all, el_comm_size(comm), (unsigned long long)number);
    for (int i = 0; i < all && status == EL_OK; i++) status = check_sequence(comm, number, (uint64_t)i);
    if (status != EL_OK)
        printf("# rank %d, seed %llu: %s\n", el_comm_rank(comm), (unsigned long long)number, el_error_message());
    return status;
}
