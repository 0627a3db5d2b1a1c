/* Splitting a group of the communicator `tcp`: the parent's own all-gathers stand in for the bootstrap. Every member
 * listens before it says where, so that whoever knows the place can connect. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/comm/tcp/comm_tcp.h"

/* What a member tells all others. */
struct card {
    uint64_t word, key;
    char row[EL_TCP_ROW_BYTES]; /* "": it will be in no group */
    char failure[128];          /* "": none */
};

static enum el_status all_gather(struct el_tcp_group *parent, const void *mine, void *all, size_t bytes)
{
    const struct el_comm_task task = {.verb = EL_COMM_ALL_GATHER,
                                      .dtype = EL_U8,
                                      .algorithm = EL_COMM_DIRECT,
                                      .count = bytes,
                                      .data = (void *)mine,
                                      .result = all};
    return el_tcp_run(parent, &task);
}

/* EL_OK where all are well; else this member's own failure, or the first one's. */
static enum el_status agree(struct el_tcp_group *parent, enum el_status mine, struct card *card, struct card *cards)
{
    struct el_error own;
    el_error_take(mine, &own);
    snprintf(card->failure, sizeof card->failure, "%.*s", mine == EL_OK ? 0 : (int)sizeof card->failure - 1,
             own.text[0] ? own.text : el_status_text(mine));
    EL_TRY(all_gather(parent, card, cards, sizeof *card));
    if (mine != EL_OK) return el_error_give(&own);
    for (int i = 0; i < parent->size; i++) {
        cards[i].failure[sizeof cards[i].failure - 1] = cards[i].row[EL_TCP_ROW_BYTES - 1] = 0;
        if (cards[i].failure[0]) return el_fail(EL_ERR_PEER, "rank %d: %s", i, cards[i].failure);
    }
    return EL_OK;
}

static enum el_status prepare(struct el_tcp_group *parent, const struct el_comm_split *split, struct card *card,
                              struct el_tcp_group **group_p)
{
    card->word = el_comm_split_word(split);
    if (split->color < 0) return EL_OK;
    card->key = el_tcp_mesh_key();
    *group_p = el_tcp_create(0, parent->size);
    if (!*group_p) return el_fail(EL_ERR_HOST_MEMORY, "tcp communicator: no memory");
    return el_tcp_mesh_listen(*group_p, parent->peers[parent->rank].address, card->row);
}

/* The first member's key is the group's: another group's first member has another one. */
static enum el_status join(struct el_tcp_group *group, const struct el_comm_split *split, const struct card *cards,
                           const int *members)
{
    group->rank = split->rank;
    group->size = split->size;
    group->key = cards[members[0]].key;
    for (int i = 0; i < split->size; i++) EL_TRY(el_tcp_mesh_learn(group, i, cards[members[i]].row));
    return el_tcp_join(group);
}

struct desk {
    struct card *cards; /* [size] of the parent */
    uint64_t *words;
    int *members;
};

static enum el_status split_at(struct el_tcp_group *parent, const struct desk *desk, enum el_status status,
                               struct el_comm_split *split, struct el_tcp_group **group_p)
{
    struct card card = {.word = 0};
    if (status == EL_OK) status = prepare(parent, split, &card, group_p);
    EL_TRY(agree(parent, status, &card, desk->cards));
    for (int i = 0; i < parent->size; i++) desk->words[i] = desk->cards[i].word;
    el_comm_split_plan(desk->words, parent->size, parent->rank, split, desk->members);
    if (split->size > 1) status = join(*group_p, split, desk->cards, desk->members);
    return agree(parent, status, &card, desk->cards);
}

enum el_status el_tcp_split(void *state, enum el_status mine, struct el_comm_split *split)
{
    struct el_tcp_group *parent = state, *group = NULL;
    size_t size = (size_t)parent->size;
    struct desk desk = {.cards = calloc(size, sizeof *desk.cards),
                        .words = calloc(size, sizeof *desk.words),
                        .members = calloc(size, sizeof *desk.members)};
    bool made = desk.cards && desk.words && desk.members;
    enum el_status status = made ? split_at(parent, &desk, mine, split, &group)
                                 : el_fail(EL_ERR_HOST_MEMORY, "tcp communicator: no memory");
    if (!made) el_tcp_give_up(parent, "a rank has no memory to split the group"); /* the others wait for its card */
    free(desk.cards);
    free(desk.words);
    free(desk.members);
    if (status == EL_OK && split->size > 1) {
        group->timeout_ns = parent->timeout_ns;
        split->state = group;
    } else {
        el_tcp_close(group);
    }
    return status;
}
