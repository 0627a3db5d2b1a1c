/* What an author of a communicator owes. Users read comm.h; only comm.c and operation.c call these hooks.
 *
 * The life of a member's state, in the order of the calls:
 *     open_ranks(), open_on()      all ranks at once; open_members() for members that share a process
 *     run()  ...                   by the thread of the member's communication stream, one at a time, in issue order
 *     enqueue(), poll()  ...       instead, where asynchronous: by the thread that issues to the device's streams
 *     abort()                      from any thread, at any time between open and close
 *     close()                      by the thread that opened; no operation runs any more
 *
 * The wrappers in operation.c have checked the arguments, booked the bytes and dealt with what needs no transport (a
 * group of one, a count of 0) before a hook is called; they call abort() after a hook that failed.
 */
#pragma once

#include "runtime/comm/comm.h"

/* One operation as a member runs it; the part without addresses is what all members agree on. Sizes of `data` and
 * `result`: as comm.h's verbs say. `result` is `data` where it was left out; NULL where this member gives, or gets,
 * nothing (a reduce off its root). */
struct el_comm_task {
    enum el_comm_verb verb;
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    enum el_comm_algorithm algorithm; /* never EL_COMM_AUTO where the backend has algorithms */
    int root;                         /* 0 where the verb has none */
    int tag;
    uint64_t number; /* of this member's operations on this communicator, from 1: for failures' texts */
    size_t count;    /* elements of a part; 0: a barrier, or a link that is muted: an empty message */
    void *data;
    void *result;
    void *stream; /* asynchronous communicators only: the device's own word for it (a cudaStream_t) */
};

/* Where a member lives. */
struct el_comm_place {
    struct el_device *device;
    int stream; /* of the device: the communicator's own */
};

/* Whether two members are in the same operation. */
static inline bool el_comm_same_task(const struct el_comm_task *a, const struct el_comm_task *b)
{
    return a->verb == b->verb && a->count == b->count && a->dtype == b->dtype && a->root == b->root &&
           a->reduction == b->reduction && a->algorithm == b->algorithm;
}

/* How many parts member `rank` of `size` gives to such an operation, and how many it gets: 0, 1, or one for each. */
static inline size_t el_comm_parts_given(enum el_comm_verb verb, int rank, int root, int size)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(verb);
    if (verb == EL_COMM_RECV || verb == EL_COMM_BARRIER || (row->data_on_root && rank != root)) return 0;
    return row->all_data ? (size_t)size : 1;
}

static inline size_t el_comm_parts_got(enum el_comm_verb verb, int rank, int root, int size)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(verb);
    if (verb == EL_COMM_SEND || verb == EL_COMM_BARRIER || (row->result_on_root && rank != root)) return 0;
    return row->all_result ? (size_t)size : 1;
}

/* Whether anything of member `from`'s data goes to member `to` (or stays with it). */
static inline bool el_comm_goes(const struct el_comm_task *task, int from, int to)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(task->verb);
    return (!row->data_on_root || from == task->root) && (!row->result_on_root || to == task->root);
}

/* One member's part of an operation that a thread enqueues for several members at once. */
struct el_comm_part {
    void *state;
    struct el_comm_task task;
};

/* What decides how many bytes a member moves. */
struct el_comm_shape {
    enum el_comm_verb verb;
    enum el_comm_algorithm algorithm;
    int rank, size, root; /* size > 1 */
    size_t count;
    size_t element_bytes;
};

/* Of a task of rank `rank` of `size`. */
static inline struct el_comm_shape el_comm_task_shape(const struct el_comm_task *task, int rank, int size)
{
    return (struct el_comm_shape){.verb = task->verb,
                                  .algorithm = task->algorithm,
                                  .rank = rank,
                                  .size = size,
                                  .root = task->root,
                                  .count = task->count,
                                  .element_bytes = el_dtype_bytes(task->dtype)};
}

/* A member's part in splitting a group: what it says, and what it gets. */
struct el_comm_split {
    int color, key;                        /* color < 0: it will be in no group */
    struct el_comm_place place;            /* of the new member */
    const struct el_comm_backend *backend; /* this one's own; may be changed */
    int rank, size;                        /* out: in the new group; size 0: in none */
    void *state;                           /* out: NULL for a group of one, or none */
    const void *group;                     /* out: the same for its members in this process, else unique; may be NULL */
};

struct el_comm_ops {
    /* true: works on device memory, in order on the device's streams; `enqueue` takes the place of `run`. false: `run`
     * works on memory that the host can read, when the stream has come to a stop (operation.c and staged.c see to
     * both). */
    bool asynchronous;
    /* Required where asynchronous. Enqueues the parts of one operation and returns without waiting for it: [n] parts in
     * the order of issue, all members for which this thread issues. Called for members of one group by
     * several threads at once, never twice for one member. Errors: EL_ERR_PEER. */
    enum el_status (*enqueue)(const struct el_comm_part *parts, int n);
    /* Optional, asynchronous communicators only: default is that no graph may have its operations (program.h). One of
     * this member's was noted for a graph, by enqueue; or, `again`, the graph is launched once more. */
    void (*graph)(void *state, bool again);
    /* Optional: default is nothing. Between steps: such an operation may come; its pointers are not known yet. Errors:
     * EL_ERR_HOST_MEMORY, EL_ERR_OOM. */
    enum el_status (*reserve)(void *state, const struct el_comm_task *task);
    /* Optional, asynchronous communicators only: default is that there is nothing to look for. Called every few
     * milliseconds while the host waits for the step's end. Errors: EL_ERR_PEER for what went wrong since the last
     * call.
     */
    enum el_status (*poll)(void *state);

    /* Required where not asynchronous. Returns when `data` (and `result`) may be used and overwritten again. The
     * same inputs give the same bits on every member, in every run. Errors: EL_ERR_PEER. */
    enum el_status (*run)(void *state, const struct el_comm_task *task);
    /* Bit EL_COMM_... set: has this verb; the wrapper refuses the others with EL_ERR_ABSENT. */
    uint32_t verbs;
    /* Optional: default is all that the type has. Whether it combines values of this type so; the wrapper refuses the
     * others with EL_ERR_ABSENT. */
    bool (*reduces)(enum el_comm_reduction reduction, enum el_dtype dtype);
    /* Optional: default is that its library chooses, and tasks come with EL_COMM_AUTO. The algorithm to be used where
     * none was forced. Same answer on every member. */
    enum el_comm_algorithm (*choose)(const struct el_comm_shape *shape);
    /* Optional: default is el_comm_rounds_traffic (rounds.h). What `run` moves, exactly. Sums of sent and received over
     * all members are equal. */
    struct el_comm_traffic (*traffic)(const void *state, const struct el_comm_shape *shape);
    /* Optional: default is plain memory of the device. Memory of this member's device that operations can work on in
     * place; all members ask at the same time, each in its own thread, between steps. `mine`: whether this
     * member has room for it; where one has not, all fail, that one with its own status, and nothing is kept. The
     * memory may outlive the state, and goes by its release(). Never called on simulated devices. Asynchronous backends
     * ask no other member. Errors: EL_ERR_PEER, EL_ERR_HOST_MEMORY, EL_ERR_OOM; EL_ERR_ABSENT, on all members: it has
     * none, and plain memory serves. */
    enum el_status (*alloc)(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p);

    /* Required where it has send and recv. Opens a mailbox for each member that partners[size]
     * names, by rank, in `boxes` [number of partners][bytes] of this member's, of alloc() (NULL: it has no partner);
     * before it there is no send and no recv. All members at the same time, as for alloc(). Errors: EL_ERR_PEER,
     * EL_ERR_HOST_MEMORY, EL_ERR_INVALID where a partner does not name this member. */
    enum el_status (*open_mailboxes)(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes);
    bool brings_boxes; /* open_mailboxes() has memory for them that is not the device's: `boxes` is NULL */

    /* Optional: default is that el_comm_split is refused. All members at the same time, each in its own thread, between
     * steps. `mine`: whether this member can take part; where one cannot, all fail, that one with its own status.
     * Errors: EL_ERR_PEER; EL_ERR_HOST_MEMORY, EL_ERR_IO. */
    enum el_status (*split)(void *state, enum el_status mine, struct el_comm_split *split);

    /* Optional: default is that el_comm_set_timeout is refused. Between operations; 0: none. */
    void (*set_timeout)(void *state, int64_t timeout_ns);
    /* Required. Makes all members' running and later operations return EL_ERR_PEER; must not wait for any of them.
     * Threads: any. May be called more than once. */
    void (*abort)(void *state);
    /* Required. Frees the member's state; what members share goes with the last one. */
    void (*close)(void *state);
};

/* What every backend has. */
enum { EL_COMM_FIRST_VERBS = 1 << EL_COMM_ALL_REDUCE | 1 << EL_COMM_BROADCAST | 1 << EL_COMM_REDUCE };
/* All but links. */
enum {
    EL_COMM_COLLECTIVES = EL_COMM_FIRST_VERBS | 1 << EL_COMM_REDUCE_SCATTER | 1 << EL_COMM_ALL_GATHER |
                          1 << EL_COMM_SCATTER | 1 << EL_COMM_GATHER | 1 << EL_COMM_ALL_TO_ALL | 1 << EL_COMM_BARRIER
};

struct el_comm_backend {
    const char *name;
    const struct el_comm_ops *ops;
    /* Optional: default is that it cannot be opened between processes. Called only where the size is above 1. */
    enum el_status (*open_ranks)(struct el_bootstrap *bootstrap, void **state_p);
    /* Optional: default is open_ranks. For communicators that work on the device itself. */
    enum el_status (*open_on)(struct el_bootstrap *bootstrap, const struct el_comm_place *place, void **state_p);
    /* Optional: default is that it cannot be opened within a process. Fills states[0..n), n > 1. */
    enum el_status (*open_members)(const struct el_comm_place *places, int n, void **states);
};

extern const struct el_comm_backend el_comm_local_backend, el_comm_shm_backend, el_comm_tcp_backend,
    el_comm_nccl_backend, el_comm_peer_backend, el_comm_staged_local_backend;

/* choose.c: the best backend for members of one process; `one_thread` issues for all of them. */
const struct el_comm_backend *el_comm_choose_members(struct el_device *const *devices, int n, bool one_thread);

/* exchange.c: who is with rank `rank` in a new group, when rank r of n said words[r] (el_comm_split_word): fills in the
 * split's rank and size, and members[0..size) with the ranks, now, of those in it. */
uint64_t el_comm_split_word(const struct el_comm_split *split);
void el_comm_split_plan(const uint64_t *words, int n, int rank, struct el_comm_split *split, int *members);

/* exchange.c: each member's `bytes` to all, all[size][bytes], by a backend's own all-gather. */
struct el_comm_task el_comm_tell_task(const struct el_comm_ops *ops, const void *mine, void *all, size_t bytes);

/* exchange.c: for open_mailboxes() of members that share no memory: whether all have room (`mine`) and name each other,
 * by an all-gather of the backend's own. What comes in mail may come before this returns. Errors: as open_mailboxes().
 */
enum el_status el_comm_meet_partners(const struct el_comm_ops *ops, void *state, int rank, int size,
                                     enum el_status mine, const bool *partners);

/* comm.c: as el_comm_open_local and el_comm_open_together, with a backend that need not be the best, nor known. */
enum el_status el_comm_open_with(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                 struct el_comm **comms);

/* staged.c: puts a communicator that works on host memory behind the memory of an asynchronous device; takes the state
 * over, and closes it if it fails. */
enum el_status el_staged_wrap(const struct el_comm_place *place, int rank, int size,
                              const struct el_comm_backend **backend, void **state_p);

/* What members must have in common of a task, and its number to name it by: without holes, as it crosses hosts. */
struct el_comm_header {
    uint16_t verb, reduction, dtype, algorithm;
    int32_t root;
    uint32_t zero;
    uint64_t count, number;
};
_Static_assert(sizeof(struct el_comm_header) == 32, "no holes");

/* verbs.c: there and back; what comes may be anything. */
struct el_comm_header el_comm_task_header(const struct el_comm_task *task);
struct el_comm_task el_comm_header_task(const struct el_comm_header *header);

/* verbs.c: what failures call an operation, "reduce number 17 (1000 f32, sum, root 1)". */
enum { EL_COMM_WORDS_BYTES = 128 };
void el_comm_task_words(const struct el_comm_task *task, char words[EL_COMM_WORDS_BYTES]);
/* EL_ERR_INTERNAL for two members that are in different operations, naming both. */
enum el_status el_comm_fail_different(const char *backend, int rank, const struct el_comm_task *task, int other_rank,
                                      const struct el_comm_task *other);

/* Where chunk `i` of `size` begins, in elements; [0] is 0 and [size] is `count`. Boundaries are whole cache lines of
 * elements, so that no two members write one line. */
static inline size_t el_comm_chunk(size_t count, int size, int i)
{
    if (i >= size) return count;
    size_t even = count / (size_t)size * (size_t)i + count % (size_t)size * (size_t)i / (size_t)size;
    size_t whole = (even + 15) / 16 * 16;
    return whole < count ? whole : count;
}
