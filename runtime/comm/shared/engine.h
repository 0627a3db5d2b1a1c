/* Operations of members that access each other's memory: threads of a process (local.c) or processes (shm.c).
 *
 *     el_shared_open(&shared, "local", rank, size, faces);      faces: [size], zeroed, seen by all members
 *     shared.ways = &ways; shared.owner = ...; shared.scratch = ...
 *     el_shared_run(&shared, &task);  ...
 *     el_shared_close(&shared);
 *
 * Every member has a *face* that all see: a post (its operation, and where data and result lie) and a counter of its
 * steps. An operation begins with a meeting: each posts, raises its counter and waits for all others. After it, all
 * have left the operation before, so two posts alternate. If all memory is reachable, members work in place:
 *
 * - direct (in_place.c): each takes what it needs; in an all-reduce each combines its own chunk over all members and
 *   writes it to all while it is in the cache. A second meeting ends it.
 * - ring, ps (in_place.c): the messages of rounds.h, pulled by the receiver.
 *
 * Otherwise data go in pieces through staging areas (pieces.c). Threads: one per member; el_shared_abort any. */
#pragma once

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/rounds.h"
#include "runtime/comm/shared/flag.h"

/* SLOTS: staged pieces that others may be reading. PIECE_BYTES: measured with two ranks on two cores, 2 MiB of L2. */
enum {
    EL_SHARED_MEMBERS_MAX = 16384,
    EL_SHARED_SLOTS = 4,
    EL_SHARED_PIECE_BYTES = 128 * 1024,
    EL_SHARED_STAGING_BYTES = EL_SHARED_SLOTS * EL_SHARED_PIECE_BYTES
};

struct el_shared_place {
    uint32_t region; /* 0: nowhere */
    uint64_t offset;
};

struct el_shared_post {
    struct el_comm_task task; /* pointers are the owner's */
    struct el_shared_place data, result, scratch;
    bool reachable; /* by all others */
    struct el_error outcome;
    uint64_t number; /* of el_shared_agree */
};

/* What all see of one member; initially zero. */
struct el_shared_face {
    struct el_flag steps;
    _Alignas(64) struct el_shared_post posts[2];
};

/* Counts members that touch others' memory now; after an abort a leaving member waits for them. */
struct el_shared_care {
    _Atomic uint32_t aborted, touching;
};

struct el_shared_ways {
    /* Required. Translates this member's memory; false: others cannot reach it. */
    bool (*place)(void *owner, const void *address, size_t bytes, struct el_shared_place *place_p);
    /* Required. The inverse, here, for a place of another member; NULL: it is gone. */
    void *(*address)(void *owner, const struct el_shared_place *place);
    /* Optional. EL_ERR_PEER, with the reason, where the member is gone. */
    enum el_status (*check_alive)(void *owner, int rank);
};

struct el_shared {
    const char *kind;
    int rank, size;
    struct el_shared_face *faces; /* [size] */
    struct el_shared_care *care;  /* NULL: memory outlives its member */
    const struct el_shared_ways *ways;
    void *owner;
    char *scratch; /* [scratch_bytes], reachable by all */
    size_t scratch_bytes;
    char **staging; /* [size] areas of EL_SHARED_STAGING_BYTES; NULL: all memory is reachable */
    int64_t timeout_ns;
    uint32_t steps;
    uint64_t n_posts;
    struct el_shared_mail *mail; /* NULL: no mailboxes */
    /* Copies a message into `partner`'s box (`puts`) or out of this one's. NULL: memcpy. */
    enum el_status (*move)(void *mover, int partner, bool puts, void *to, const void *from, size_t bytes);
    void *mover;
    int64_t deadline_ns;
    const char *late;                    /* text for a late member */
    char **data, **results, **scratches; /* [size] local addresses of each member's; NULL: none */
};

/* Allocates. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_shared_ready(struct el_shared *shared);
enum el_status el_shared_open(struct el_shared *shared, const char *kind, int rank, int size,
                              struct el_shared_face *faces);
/* Legal on all zeros. */
void el_shared_close(struct el_shared *shared);
/* See comm_ops.h: run, set_timeout, abort. The state begins with an el_shared. Errors: EL_ERR_PEER (a member is gone,
 * late or aborted), EL_ERR_INTERNAL (different operations or message lengths). */
enum el_status el_shared_run(void *state, const struct el_comm_task *task);
void el_shared_set_timeout(void *state, int64_t timeout_ns);
void el_shared_abort(void *state);
/* Each member gives an outcome and a number; numbers[size] (may be NULL) gets all. Returns `mine` if it failed; else
 * EL_ERR_PEER with the text of the lowest rank that failed; else EL_OK. */
enum el_status el_shared_agree(struct el_shared *shared, enum el_status mine, uint64_t number, uint64_t *numbers);

/* Mailboxes of `bytes` for each member in partners[size]: `boxes` [number of partners][bytes] and `links` [size]
 * (zeroed, el_shared_links_bytes) are reachable by all and stay the caller's. Collective, as el_shared_agree. Errors:
 * EL_ERR_INVALID where a partner does not name this member. */
enum el_status el_shared_open_mail(struct el_shared *shared, enum el_status mine, const bool *partners, void *links,
                                   void *boxes, size_t bytes);
size_t el_shared_links_bytes(int size);
enum el_comm_algorithm el_shared_choose(const struct el_comm_shape *shape);

enum { EL_SHARED_VERBS = (1 << EL_COMM_VERB_COUNT) - 1 };

/* ---- shared by the engine's files ---- */

/* Raises the counter; publishes earlier writes. */
void el_shared_step(struct el_shared *shared);
void el_shared_begin(struct el_shared *shared);
/* Waits until member `of` has raised the flag to `count`. */
enum el_status el_shared_wait_flag(struct el_shared *shared, int of, struct el_flag *flag, uint32_t count);
enum el_status el_shared_wait(struct el_shared *shared, int of, uint32_t steps);
enum el_status el_shared_wait_all(struct el_shared *shared, uint32_t steps);
/* A step, then waits until all have made as many. */
enum el_status el_shared_meet(struct el_shared *shared);
/* Brackets access to others' memory; false after an abort: it may be gone. */
bool el_shared_touch(struct el_shared *shared);
void el_shared_untouch(struct el_shared *shared);
/* After an abort: waits until nobody touches others' memory. Always EL_ERR_PEER. */
enum el_status el_shared_leave(struct el_shared *shared);

enum el_status el_shared_run_link(struct el_shared *shared, const struct el_comm_task *task);
void el_shared_close_mail(struct el_shared *shared);
void el_shared_abort_mail(struct el_shared *shared);

/* Takes from all members' data into the own result. */
struct el_shared_pull {
    const struct el_comm_task *task; /* addresses and count are not used */
    int rank, size;
    char *const *data;  /* [size]; NULL: gives nothing */
    size_t data_stride; /* elements between parts */
    char *result;       /* NULL: gets nothing */
    size_t result_stride;
    size_t begin, count; /* of each part */
};
void el_shared_pull(const struct el_shared_pull *pull);
/* All-reduce: combines this member's chunk of `count` elements into all results. */
void el_shared_give_chunk(const struct el_shared *shared, const struct el_comm_task *task);

/* In place, after the meeting. */
enum el_status el_shared_direct(struct el_shared *shared, const struct el_comm_task *task);
/* On shared->data, results, scratches. On return others may still work, but not in this member's memory. */
enum el_status el_shared_rounds(struct el_shared *shared, const struct el_comm_task *task);

/* Before the first meeting, and after it. `restart`: some had staged nothing. */
void el_shared_stage_first(struct el_shared *shared, const struct el_comm_task *task);
enum el_status el_shared_staged(struct el_shared *shared, const struct el_comm_task *task, bool restart);
