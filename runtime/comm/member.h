/* Private state of a communicator, for comm.c, check.c, operation.c and exchange.c. */
#pragma once

#include "runtime/comm/comm_ops.h"

/* Cache of a verb's last operation. */
struct el_comm_known {
    struct el_comm_shape shape; /* size 0: empty */
    struct el_op_messages messages;
    struct el_comm_traffic traffic;
};

struct el_comm {
    const struct el_comm_backend *backend;
    struct el_comm_place place;
    void *state; /* NULL: needs no transport */
    int rank, size;
    const void *group; /* identifies the group in this process */
    const char *name;  /* NULL: none */
    uint64_t number;   /* identifies the group in the job */
    uint64_t n_split;
    bool together;               /* one thread issues for all members here */
    struct el_comm *first;       /* of this process's members; outlives all operations */
    struct el_comm_part *parts;  /* the first member's: [n_parts] */
    int n_parts;                 /* members in this process */
    bool *partners;              /* [size], with open mailboxes; NULL: none */
    struct el_buffer *mailboxes; /* NULL: none, or the backend's own */
    size_t mailbox_bytes;
    uint64_t issued;
    uint64_t first_issued, kept; /* el_comm_begin_program: the program's first number; the next without `again` */
    uint64_t run[2];             /* operations begun: collectives, and this member's links */
    int64_t beyond[2];           /* el_comm_beyond: sent, received */
    bool muted;
    enum el_comm_algorithm forced;
    struct el_comm_known *known;    /* [EL_COMM_VERB_COUNT]; NULL: none yet */
    struct el_comm_header *headers; /* [size], of the next operations; NULL: unchecked */
};

enum { EL_COMM_NO_STREAM = EL_STREAM_COMPUTE };

static inline size_t el_comm_gives(const struct el_comm *comm, enum el_comm_verb verb, int root)
{
    return el_comm_parts_given(verb, comm->rank, root, comm->size);
}

static inline size_t el_comm_gets(const struct el_comm *comm, enum el_comm_verb verb, int root)
{
    return el_comm_parts_got(verb, comm->rank, root, comm->size);
}

/* All zeros: left out. */
static inline bool el_comm_is_given(struct el_view view)
{
    return view.buffer || view.offset;
}

/* EL_ERR_INVALID for what comm.h does not allow, EL_ERR_ABSENT for what the backend lacks. */
enum el_status el_comm_check(const struct el_comm *comm, const struct el_comm_op *op);
/* Checking mode: whether all members begin this operation. Collective, except for links. Errors: EL_ERR_INTERNAL,
 * EL_ERR_PEER. */
enum el_status el_comm_check_others(struct el_comm *comm, const struct el_comm_task *task);
