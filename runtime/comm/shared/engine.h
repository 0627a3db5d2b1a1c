/* Operations of members that read and write each other's memory: threads of one process (local.c), or processes that
 * map the same memory (shm.c). The arithmetic, the meetings and the failures are here; how memory is reached is theirs.
 *
 *     el_shared_open(&shared, "local", rank, size, faces);      faces: [size], zeroed, seen by all members
 *     shared.ways = &ways; shared.owner = ...; shared.scratch = ...
 *     el_shared_run(&shared, &task);  ...
 *     el_shared_close(&shared);
 *
 * Every member has a *face* that all see. It shows there what operation it is in and where its data and result lie
 * (a post), and how many steps it has made: a counter that only it raises. An operation begins with a meeting: each
 * posts, raises its counter and waits for all others' to be as high. Where all members' memory can be reached by all
 * they work there in place:
 *
 * - direct (in_place.c): each takes what it needs from the others; of an all-reduce each combines its own chunk
 *   over all members and writes it into all of them while it is in the cache. Then they meet again: nobody touches
 *   another's memory any more.
 * - ring, ps (in_place.c): the messages of rounds.h, each pulled by its receiver from the sender's memory.
 *
 * Where not, they go by pieces through a staging area of each member (pieces.c).
 *
 * The counter tells what may be used again. When a member has met the others in an operation, all of them have left the
 * one before: there are two posts, for odd and even operations. Threads: one a member; el_shared_abort any.
 */
#pragma once

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/rounds.h"
#include "runtime/comm/shared/flag.h"

/* SLOTS: pieces of a member that others may be reading, see pieces.c. PIECE_BYTES: measured with two ranks on
 * two cores of one socket with 2 MiB of second-level cache. */
enum {
    EL_SHARED_MEMBERS_MAX = 16384,
    EL_SHARED_SLOTS = 4,
    EL_SHARED_PIECE_BYTES = 128 * 1024,
    EL_SHARED_STAGING_BYTES = EL_SHARED_SLOTS * EL_SHARED_PIECE_BYTES
};

/* A place in a member's memory as others find it. */
struct el_shared_place {
    uint32_t region; /* 0: nowhere */
    uint64_t offset;
};

struct el_shared_post {
    struct el_comm_task task; /* pointers are the owner's own */
    struct el_shared_place data, result, scratch;
    bool reachable;          /* for all others, wherever it gives or gets */
    struct el_error outcome; /* of el_shared_agree */
    uint64_t number;         /* likewise */
};

/* What all members see of one. All zeros at first. */
struct el_shared_face {
    struct el_flag steps;
    _Alignas(64) struct el_shared_post posts[2];
};

/* Of members whose memory may go while others still use it: counts those who touch others' memory just now, so that who
 * leaves after an abort can wait for them. */
struct el_shared_care {
    _Atomic uint32_t aborted, touching;
};

struct el_shared_ways {
    /* Required. Where so many bytes at an address of this member's own lie for the others; false: out of their reach.
     */
    bool (*place)(void *owner, const void *address, size_t bytes, struct el_shared_place *place_p);
    /* Required. The address, here, of a place that another member named; NULL: there is none any more. */
    void *(*address)(void *owner, const struct el_shared_place *place);
    /* Optional: default is that none can be. EL_ERR_PEER, in words, where that member is gone for good. */
    enum el_status (*check_alive)(void *owner, int rank);
};

/* One member's own state. */
struct el_shared {
    const char *kind; /* "local" */
    int rank, size;
    struct el_shared_face *faces; /* [size] */
    struct el_shared_care *care;  /* NULL: memory stays there whatever happens to its member */
    const struct el_shared_ways *ways;
    void *owner;
    char *scratch; /* [scratch_bytes], in reach of all */
    size_t scratch_bytes;
    char **staging;     /* [size] areas of EL_SHARED_STAGING_BYTES; NULL: all memory is in reach */
    int64_t timeout_ns; /* 0: none */
    uint32_t steps;     /* of its own */
    uint64_t n_posts;
    struct el_shared_mail *mail; /* NULL: no mailboxes */
    /* How a message goes into member `partner`'s box (`puts`), or comes out of this one's; returns when it has. NULL:
     * memcpy. */
    enum el_status (*move)(void *mover, int partner, bool puts, void *to, const void *from, size_t bytes);
    void *mover;
    /* The operation under way. */
    int64_t deadline_ns;
    const char *late;                    /* what is to be said of a member for which the wait has been too long */
    char **data, **results, **scratches; /* [size] addresses, here, of each member's; NULL where it has none */
};

/* Room for each member's addresses, before its first operation; a member of many may never have one. Errors:
 * EL_ERR_HOST_MEMORY. */
enum el_status el_shared_ready(struct el_shared *shared);
enum el_status el_shared_open(struct el_shared *shared, const char *kind, int rank, int size,
                              struct el_shared_face *faces);
/* Legal on what was never opened, all zeros. */
void el_shared_close(struct el_shared *shared);
/* Contracts: comm_ops.h, run, set_timeout, abort; the state is an el_shared, or begins with one. Errors: EL_ERR_PEER (a
 * member is gone, late, or aborted), EL_ERR_INTERNAL where members are in different operations, or a message has
 * another length. */
enum el_status el_shared_run(void *state, const struct el_comm_task *task);
void el_shared_set_timeout(void *state, int64_t timeout_ns);
void el_shared_abort(void *state);
/* All members tell each other an outcome and a number, of which each then finds all in numbers[size] (NULL: not asked
 * for). Returns `mine` where it is none; else EL_ERR_PEER, with the words of the lowest rank that failed; else EL_OK.
 */
enum el_status el_shared_agree(struct el_shared *shared, enum el_status mine, uint64_t number, uint64_t *numbers);

/* Mailboxes of `bytes`, one for each member that partners[size] names at this one: `boxes` [number of partners][bytes]
 * and `links` [size] (zeroed, el_shared_links_bytes) are this member's, in reach of all, and stay the caller's.
 * Collective, as el_shared_agree. Errors: EL_ERR_INVALID where a partner does not name this member. */
enum el_status el_shared_open_mail(struct el_shared *shared, enum el_status mine, const bool *partners, void *links,
                                   void *boxes, size_t bytes);
size_t el_shared_links_bytes(int size);
/* el_comm_ops.choose: measured, see there. */
enum el_comm_algorithm el_shared_choose(const struct el_comm_shape *shape);

enum { EL_SHARED_VERBS = (1 << EL_COMM_VERB_COUNT) - 1 };

/* ---- what the files of the engine share ---- */

/* Makes a step: what was written before it is seen by all who wait for it. */
void el_shared_step(struct el_shared *shared);
/* Before an operation's waits. */
void el_shared_begin(struct el_shared *shared);
/* Until a flag that member `of` raises is at `count`. */
enum el_status el_shared_wait_flag(struct el_shared *shared, int of, struct el_flag *flag, uint32_t count);
/* Until member `of` has made so many steps. */
enum el_status el_shared_wait(struct el_shared *shared, int of, uint32_t steps);
/* Until all have. */
enum el_status el_shared_wait_all(struct el_shared *shared, uint32_t steps);
/* A step, and until all have made as many. */
enum el_status el_shared_meet(struct el_shared *shared);
/* Round the use of others' memory: false after an abort, then it may be gone. */
bool el_shared_touch(struct el_shared *shared);
void el_shared_untouch(struct el_shared *shared);
/* After an abort: until nobody touches others' memory. Always EL_ERR_PEER. */
enum el_status el_shared_leave(struct el_shared *shared);

/* A send or a receive. */
enum el_status el_shared_run_link(struct el_shared *shared, const struct el_comm_task *task);
void el_shared_close_mail(struct el_shared *shared);
void el_shared_abort_mail(struct el_shared *shared);

/* A piece of a direct operation: what a member takes from all others' data into its own result. */
struct el_shared_pull {
    const struct el_comm_task *task; /* its addresses and count are not used */
    int rank, size;
    char *const *data;  /* [size]; NULL where a member gives nothing */
    size_t data_stride; /* elements from one part of the data to the next */
    char *result;       /* NULL where this one gets nothing */
    size_t result_stride;
    size_t count;
};
void el_shared_pull(const struct el_shared_pull *pull);
/* All-reduce: this member's chunk of `count` elements, combined over all members' data, into all results. */
void el_shared_give_chunk(const struct el_shared *shared, const struct el_comm_task *task);

/* In place; the members have met. */
enum el_status el_shared_direct(struct el_shared *shared, const struct el_comm_task *task);
/* Likewise; addresses are in shared->data, results, scratches. Others may be in its last messages when it returns, but
 * none of them in this member's memory. */
enum el_status el_shared_rounds(struct el_shared *shared, const struct el_comm_task *task);

/* What this member stages before the first meeting, and the rest, after it. `restart`: some had staged nothing. */
void el_shared_stage_first(struct el_shared *shared, const struct el_comm_task *task);
enum el_status el_shared_staged(struct el_shared *shared, const struct el_comm_task *task, bool restart);
