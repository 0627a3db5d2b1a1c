/* The interface of a communicator's backend; only comm.c and operation.c call it. The life of a member's state:
 *
 *     open_ranks(), open_on()      all ranks at once; open_members() for members of one process
 *     run()  ...                   on the member's communication stream, one at a time, in issue order
 *     enqueue(), poll()  ...       instead, where asynchronous: on the thread that issues to the device's streams
 *     abort()                      any thread, any time between open and close
 *     close()                      on the thread that opened, when no operation runs
 *
 * operation.c checks arguments, handles a group of one and a count of 0, and calls abort() after a failure. Errors of
 * all hooks: EL_ERR_PEER, EL_ERR_HOST_MEMORY. "Collective": all members at once, each in its own thread, between
 * steps; `mine`: this member's status; where one failed, all fail. */
#pragma once

#include "runtime/comm/comm.h"

/* How much of an all-to-all's parts is used. */
struct el_comm_used {
    const int32_t *counts; /* [2][size][each]: of what it gives, of what it gets; NULL: whole parts */
    int32_t size, each, unit;
    bool back; /* the halves change places */
};

/* `data` and `result` are sized as in comm.h; `result` equals `data` if it was left out; NULL where this member gives
 * or gets nothing. */
struct el_comm_task {
    enum el_comm_verb verb;
    enum el_comm_reduction reduction;
    enum el_dtype dtype;
    enum el_comm_algorithm algorithm; /* never EL_COMM_AUTO where the backend has algorithms */
    int root;
    int tag;
    uint64_t number; /* of this member's operations, from 1; for error messages */
    size_t count;    /* elements per part; 0: a barrier, or a muted link's empty message */
    void *data;
    void *result;
    struct el_comm_used used; /* reserve: without its pointer. Asynchronous: in the device's memory, may be ignored */
    void *stream;             /* asynchronous only: the device's own handle (a cudaStream_t) */
};

struct el_comm_place {
    struct el_device *device;
    int stream;
};

static inline bool el_comm_same_task(const struct el_comm_task *a, const struct el_comm_task *b)
{
    return a->verb == b->verb && a->count == b->count && a->dtype == b->dtype && a->root == b->root &&
           a->reduction == b->reduction && a->algorithm == b->algorithm;
}

/* Parts that a member gives, and gets: 0, 1 or `size`. */
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

static inline bool el_comm_goes(const struct el_comm_task *task, int from, int to)
{
    const struct el_comm_verb_row *row = el_comm_verb_row(task->verb);
    return (!row->data_on_root || from == task->root) && (!row->result_on_root || to == task->root);
}

struct el_comm_part {
    void *state;
    struct el_comm_task task;
};

struct el_comm_shape {
    enum el_comm_verb verb;
    enum el_comm_algorithm algorithm;
    int rank, size, root;
    size_t count;
    size_t element_bytes;
    struct el_comm_used used;
};

static inline struct el_comm_shape el_comm_task_shape(const struct el_comm_task *task, int rank, int size)
{
    return (struct el_comm_shape){.verb = task->verb,
                                  .algorithm = task->algorithm,
                                  .rank = rank,
                                  .size = size,
                                  .root = task->root,
                                  .count = task->count,
                                  .element_bytes = el_dtype_bytes(task->dtype),
                                  .used = task->used};
}

struct el_comm_split {
    int color, key;
    struct el_comm_place place;
    const struct el_comm_backend *backend; /* may be changed */
    int rank, size;                        /* out; size 0: in no group */
    void *state;                           /* out: NULL for a group of one, or none */
    const void *group;                     /* out: equal for members in this process, else unique; may be NULL */
};

struct el_comm_ops {
    /* true: works in order on the device's streams, by `enqueue`. false: `run` gets host-readable memory and an idle
     * stream. */
    bool asynchronous;
    /* Required where asynchronous. Enqueues parts [n], in issue order, of all members of this thread, without waiting.
     * Several threads may call it for one group at once. */
    enum el_status (*enqueue)(const struct el_comm_part *parts, int n);
    /* Optional, asynchronous only: default is no graphs (program.h). Called when enqueue recorded an operation into a
     * graph, and with `again` at each later launch. */
    void (*graph)(void *state, bool again);
    /* Optional. Between steps: announces an operation without its pointers. Errors: also EL_ERR_OOM. */
    enum el_status (*reserve)(void *state, const struct el_comm_task *task);
    /* Optional, asynchronous only. Called every few milliseconds while the host waits for the step's end. */
    enum el_status (*poll)(void *state);

    /* Required where not asynchronous. Returns when `data` and `result` may be reused. The same inputs give the same
     * bits on every member, in every run. */
    enum el_status (*run)(void *state, const struct el_comm_task *task);
    /* Bits EL_COMM_...; other verbs fail with EL_ERR_ABSENT. */
    uint32_t verbs;
    /* Optional: default is all reductions of the type. False: EL_ERR_ABSENT. */
    bool (*reduces)(enum el_comm_reduction reduction, enum el_dtype dtype);
    /* Optional: default is that its library chooses (EL_COMM_AUTO). The same answer on every member. */
    enum el_comm_algorithm (*choose)(const struct el_comm_shape *shape);
    /* Optional: default is el_comm_rounds_traffic (rounds.h). Exact; over all members, sent equals received. */
    struct el_comm_traffic (*traffic)(const void *state, const struct el_comm_shape *shape);
    /* Optional: default is plain device memory. Collective (not if asynchronous). Memory for operations in place; its
     * release() frees it, possibly after close(). Never on simulated devices. Errors: also EL_ERR_OOM; EL_ERR_ABSENT
     * on all members: use plain memory. */
    enum el_status (*alloc)(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p);

    /* Required with send and recv. Collective. A mailbox per member of partners[size], by rank, in `boxes` [number of
     * partners][bytes] from alloc() (NULL: none). Errors: EL_ERR_INVALID where a partner does not name this member. */
    enum el_status (*open_mailboxes)(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes);
    bool brings_boxes; /* open_mailboxes() allocates them itself: `boxes` is NULL */

    /* Optional: default is that el_comm_split is refused. Collective. Errors: also EL_ERR_IO. */
    enum el_status (*split)(void *state, enum el_status mine, struct el_comm_split *split);

    /* Optional: default is that time-outs are refused. 0: none. */
    void (*set_timeout)(void *state, int64_t timeout_ns);
    /* Required. Makes all members' running and later operations return EL_ERR_PEER, without waiting. Threads: any. May
     * be repeated. */
    void (*abort)(void *state);
    /* Required. Frees the member's state; the last member frees what they share. */
    void (*close)(void *state);
};

enum { EL_COMM_FIRST_VERBS = 1 << EL_COMM_ALL_REDUCE | 1 << EL_COMM_BROADCAST | 1 << EL_COMM_REDUCE };
enum {
    EL_COMM_COLLECTIVES = EL_COMM_FIRST_VERBS | 1 << EL_COMM_REDUCE_SCATTER | 1 << EL_COMM_ALL_GATHER |
                          1 << EL_COMM_SCATTER | 1 << EL_COMM_GATHER | 1 << EL_COMM_ALL_TO_ALL | 1 << EL_COMM_BARRIER
};

struct el_comm_backend {
    const char *name;
    const struct el_comm_ops *ops;
    /* Optional: default is that it cannot span processes. Size above 1. */
    enum el_status (*open_ranks)(struct el_bootstrap *bootstrap, void **state_p);
    /* Optional: default is open_ranks. For backends of device memory. */
    enum el_status (*open_on)(struct el_bootstrap *bootstrap, const struct el_comm_place *place, void **state_p);
    /* Optional: default is that it cannot be opened within a process. Fills states[0..n), n > 1. */
    enum el_status (*open_members)(const struct el_comm_place *places, int n, void **states);
};

extern const struct el_comm_backend el_comm_local_backend, el_comm_shm_backend, el_comm_tcp_backend,
    el_comm_nccl_backend, el_comm_peer_backend, el_comm_staged_local_backend;

/* choose.c: for members of one process; `one_thread`: one thread issues for all. */
const struct el_comm_backend *el_comm_choose_members(struct el_device *const *devices, int n, bool one_thread);

/* exchange.c: from each rank's el_comm_split_word, the split's rank and size, and members[0..size), the old ranks. */
uint64_t el_comm_split_word(const struct el_comm_split *split);
void el_comm_split_plan(const uint64_t *words, int n, int rank, struct el_comm_split *split, int *members);

/* exchange.c: an all-gather of each member's `bytes` into all[size][bytes]. */
struct el_comm_task el_comm_tell_task(const struct el_comm_ops *ops, const void *mine, void *all, size_t bytes);

/* exchange.c: for open_mailboxes() without shared memory: whether all have room (`mine`) and name each other. */
enum el_status el_comm_meet_partners(const struct el_comm_ops *ops, void *state, int rank, int size,
                                     enum el_status mine, const bool *partners);

/* comm.c: with the given backend. */
enum el_status el_comm_open_with(const struct el_comm_backend *backend, struct el_device *const *devices, int n,
                                 struct el_comm **comms);

/* staged.c: wraps a host-memory communicator for an asynchronous device. Owns the state, also on failure. */
enum el_status el_staged_wrap(const struct el_comm_place *place, int rank, int size,
                              const struct el_comm_backend **backend, void **state_p);

/* A task without its addresses; crosses hosts, so without padding. */
struct el_comm_header {
    uint16_t verb, reduction, dtype, algorithm;
    int32_t root;
    uint32_t zero;
    uint64_t count, number;
};
_Static_assert(sizeof(struct el_comm_header) == 32, "no holes");

/* verbs.c; accepts any header. */
struct el_comm_header el_comm_task_header(const struct el_comm_task *task);
struct el_comm_task el_comm_header_task(const struct el_comm_header *header);

/* verbs.c: "reduce number 17 (1000 f32, sum, root 1)". */
enum { EL_COMM_WORDS_BYTES = 128 };
void el_comm_task_words(const struct el_comm_task *task, char words[EL_COMM_WORDS_BYTES]);
/* EL_ERR_INTERNAL, naming both operations. */
enum el_status el_comm_fail_different(const char *backend, int rank, const struct el_comm_task *task, int other_rank,
                                      const struct el_comm_task *other);

/* Where chunk `i` of `size` begins, in elements; [size] is `count`. Boundaries fall on whole cache lines, so that no
 * two members write one line. */
static inline size_t el_comm_chunk(size_t count, int size, int i)
{
    if (i >= size) return count;
    size_t even = count / (size_t)size * (size_t)i + count % (size_t)size * (size_t)i / (size_t)size;
    size_t whole = (even + 15) / 16 * 16;
    return whole < count ? whole : count;
}
