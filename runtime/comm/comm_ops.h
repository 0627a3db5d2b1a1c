/* What an author of a communicator owes. Users read comm.h; only comm.c calls these hooks.
 *
 * The life of a member's state, in the order of the calls:
 *     open_ranks()                 all ranks at once (local, whose members share a process, is opened by el_local_open)
 *     run[verb]()  ...             by the thread of the member's communication stream, one at a time, in issue order
 *     abort()                      from any thread, at any time between open and close
 *     close()                      by the thread that opened; no operation runs any more
 *
 * The wrappers in comm.c have checked the arguments, booked the bytes and dealt with what needs no transport (a group
 * of one, a count of 0) before a hook is called; they call abort() after a hook that failed.
 */
#ifndef EL_COMM_OPS_H
#define EL_COMM_OPS_H

#include "runtime/comm/comm.h"

/* One operation as a member runs it. */
struct el_comm_task {
    enum el_comm_verb verb;
    enum el_dtype dtype;
    int root;
    size_t count; /* elements, > 0 */
    void *data;   /* [count] */
    void *result; /* [count], reduce on its root only; may be `data` */
};

/* What decides how many bytes a member moves. */
struct el_comm_shape {
    enum el_comm_verb verb;
    int rank, size, root; /* size > 1 */
    size_t count;
    size_t element_bytes;
};

struct el_comm_traffic {
    uint64_t sent_bytes, received_bytes;
};

struct el_comm_ops {
    /* Required, each. Returns when `data` (and `result`) may be used and overwritten again. The same inputs give the
     * same bits on every member, in every run. Errors: EL_ERR_PEER. */
    enum el_status (*run[EL_COMM_VERB_COUNT])(void *state, const struct el_comm_task *task);
    /* Optional: default is el_comm_traffic_direct. What `run` moves, exactly. Sums of sent and received over all
     * members are equal. */
    struct el_comm_traffic (*traffic)(const struct el_comm_shape *shape);
    /* Required. Makes all members' running and later operations return EL_ERR_PEER; must not wait for any of them. */
    void (*abort)(void *state);
    /* Required. */
    void (*close)(void *state);
};

struct el_comm_backend {
    const char *name;
    const struct el_comm_ops *ops;
    /* Optional: default is that it cannot be opened between processes. Called only where the size is above 1. */
    enum el_status (*open_ranks)(struct el_bootstrap *bootstrap, void **state_p);
};

extern const struct el_comm_backend el_comm_local_backend, el_comm_shm_backend;
/* Fills states[0..n). */
enum el_status el_local_open(int n, void **states);

/* Every member sums its own chunk and gives it to all others; a root is read by, or reads, every other. */
struct el_comm_traffic el_comm_traffic_direct(const struct el_comm_shape *shape);

/* Where chunk `i` of `size` begins; [0] is 0 and [size] is `count`. Boundaries are whole cache lines of elements, so
 * that no two members write one line. */
static inline size_t el_comm_chunk(size_t count, int size, int i)
{
    if (i >= size) return count;
    size_t even = count / (size_t)size * (size_t)i + count % (size_t)size * (size_t)i / (size_t)size;
    size_t whole = (even + 15) / 16 * 16;
    return whole < count ? whole : count;
}

#endif
