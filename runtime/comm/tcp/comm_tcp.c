/* The communicator `tcp`: sockets between ranks on any hosts, like gloo in PyTorch. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/comm/rounds.h"
#include "runtime/comm/tcp/comm_tcp.h"

/* All ranks connect at about the same time. */
enum { NEIGHBOURS_S = 30 };
static const char KIND[] = "tcp communicator";

static void free_group(struct el_tcp_group *group)
{
    if (!group) return;
    if (group->peers) {
        el_tcp_mesh_close(group);
        for (int i = 0; i < group->size; i++) el_tcp_mail_clear(&group->peers[i].post);
    }
    if (group->news >= 0) close(group->news);
    if (group->bell >= 0) close(group->bell);
    pthread_cond_destroy(&group->failure);
    pthread_mutex_destroy(&group->mutex);
    free(group->inbox);
    free(group->scratch);
    free(group->peers);
    free(group);
}

static void make_locks(struct el_tcp_group *group)
{
    el_clock_cond_init(&group->failure);
    pthread_mutex_init(&group->mutex, NULL);
}

struct el_tcp_group *el_tcp_create(const char *kind, int rank, int size)
{
    struct el_tcp_group *group = calloc(1, sizeof *group);
    if (!group) return NULL;
    *group = (struct el_tcp_group){.kind = kind,
                                   .rank = rank,
                                   .size = size,
                                   .listener = -1,
                                   .news = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                   .bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                                   .inbox = aligned_alloc(64, EL_TCP_INBOX_BYTES),
                                   .peers = calloc((size_t)size, sizeof *group->peers)};
    make_locks(group);
    for (int i = 0; group->peers && i < size; i++)
        for (int lane = 0; lane < EL_TCP_LANES; lane++) {
            atomic_init(&group->peers[i].to[lane], -1);
            atomic_init(&group->peers[i].from[lane], -1);
        }
    if (group->peers && group->inbox && group->news >= 0 && group->bell >= 0) return group;
    free_group(group);
    return NULL;
}

void el_tcp_close(void *state)
{
    if (state) el_tcp_dismiss(state);
    free_group(state);
}

enum el_status el_tcp_join(struct el_tcp_group *group)
{
    int next = el_comm_wrap(group->rank + 1, group->size), before = el_comm_wrap(group->rank - 1, group->size), to;
    struct pollfd polls[1];
    group->timeout_ns = (int64_t)NEIGHBOURS_S * 1000000000;
    group->deadline_ns = el_clock_ns() + group->timeout_ns;
    enum el_status status = el_tcp_attend(group);
    if (status == EL_OK) status = el_tcp_mesh_to(group, next, EL_TCP_LANE_ALARM, &to);
    while (status == EL_OK && atomic_load(&group->peers[before].from[EL_TCP_LANE_ALARM]) < 0)
        status = el_tcp_wait(group, polls, 1, before);
    group->timeout_ns = 0;
    return status;
}

static enum el_status open_ranks(struct el_bootstrap *bootstrap, void **state_p)
{
    struct el_tcp_group *group = el_tcp_create(KIND, el_bootstrap_rank(bootstrap), el_bootstrap_size(bootstrap));
    enum el_status status =
        el_bootstrap_agree(bootstrap, group ? EL_OK : el_fail(EL_ERR_HOST_MEMORY, "tcp communicator: no memory"));
    if (!group) return status == EL_OK ? EL_ERR_HOST_MEMORY : status;
    if (status == EL_OK) status = el_tcp_mesh_open(group, bootstrap);
    if (status == EL_OK) status = el_bootstrap_agree(bootstrap, el_tcp_join(group));
    if (status != EL_OK) {
        el_tcp_close(group);
        return status;
    }
    *state_p = group;
    return EL_OK;
}

static void abort_group(void *state)
{
    struct el_tcp_group *group = state;
    char reason[64];
    snprintf(reason, sizeof reason, "rank %d gave up", group->rank);
    el_tcp_give_up(group, reason);
}

static void set_timeout(void *state, int64_t timeout_ns)
{
    ((struct el_tcp_group *)state)->timeout_ns = timeout_ns;
}

/* ---- splitting: the parent's all-gathers replace the bootstrap; every member listens before it tells its address
 * ---- */

struct card {
    uint64_t word, key;
    char row[EL_TCP_ROW_BYTES]; /* "": in no group */
    char failure[128];
};

static enum el_status agree(struct el_tcp_group *parent, enum el_status mine, struct card *card, struct card *cards)
{
    struct el_error own;
    el_error_take(mine, &own);
    snprintf(card->failure, sizeof card->failure, "%.*s", mine == EL_OK ? 0 : (int)sizeof card->failure - 1,
             own.text[0] ? own.text : el_status_text(mine));
    const struct el_comm_task task = el_comm_tell_task(el_comm_tcp_backend.ops, card, cards, sizeof *card);
    EL_TRY(el_tcp_run(parent, &task));
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
    *group_p = el_tcp_create(KIND, 0, parent->size);
    if (!*group_p) return el_fail(EL_ERR_HOST_MEMORY, "tcp communicator: no memory");
    return el_tcp_mesh_listen(*group_p, parent->peers[parent->rank].address, card->row);
}

/* The group's key is its first member's. */
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

static enum el_status split_group(void *state, enum el_status mine, struct el_comm_split *split)
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

/* Up to FEW_BYTES the total number of messages decides (CPU time): ps has fewest. Measured: an all-reduce of 1 KiB
 * over loopback, 3 and 4 ranks on 2 cores: 45 and 80 us by ps, 113 and 150 by direct, 97 and 131 by ring. ps won up to
 * 64 KiB, but rank 0's link would lose that at 1 Gbit/s. Up to SMALL_BYTES the number of consecutive messages decides:
 * direct has fewest. Beyond, the bytes of the busiest rank: a ring or chain has fewest. */
enum { FEW_BYTES = 2048, SMALL_BYTES = 64 * 1024 };

static enum el_comm_algorithm choose(const struct el_comm_shape *shape)
{
    size_t bytes = shape->count * shape->element_bytes;
    if (shape->size > 2 && shape->verb == EL_COMM_ALL_REDUCE && bytes <= FEW_BYTES) return EL_COMM_PS;
    if (shape->size == 2 || bytes <= SMALL_BYTES || !el_comm_has_algorithm(shape->verb, EL_COMM_RING))
        return EL_COMM_DIRECT;
    return EL_COMM_RING;
}

static const struct el_comm_ops tcp_ops = {
    .verbs = (1 << EL_COMM_VERB_COUNT) - 1,
    .run = el_tcp_run,
    .reserve = el_tcp_reserve,
    .choose = choose,
    .open_mailboxes = el_tcp_open_mailboxes,
    .split = split_group,
    .set_timeout = set_timeout,
    .abort = abort_group,
    .close = el_tcp_close,
};

const struct el_comm_backend el_comm_tcp_backend = {.name = "tcp", .ops = &tcp_ops, .open_ranks = open_ranks};
