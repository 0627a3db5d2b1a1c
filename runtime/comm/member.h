/* A communicator as its own files see it: comm.c opens, sets and closes it, check.c says which operations it takes,
 * operation.c makes them, exchange.c compares them among members. */
#pragma once

#include "runtime/comm/comm_ops.h"

/* What was found of the last operation of a verb. */
struct el_comm_known {
    struct el_comm_shape shape; /* size 0: there was none */
    struct el_op_messages messages;
    struct el_comm_traffic traffic;
};

/* One member's. */
struct el_comm {
    const struct el_comm_backend *backend;
    struct el_comm_place place;
    void *state; /* NULL: a group of one that needs no transport */
    int rank, size;
    const void *group; /* the same for its members of this process, another for all else: what tells groups apart */
    const char *name;  /* el_comm_name's; NULL: none was given */
    uint64_t number;   /* the same for its members in all processes, another for all groups that came of one split */
    uint64_t n_split;  /* groups that it was asked for */
    bool together;     /* one thread issues for all members of this process */
    struct el_comm *first;       /* of this process's members, open as long as operations are run */
    struct el_comm_part *parts;  /* the first member's: [n_parts], of the operation being enqueued */
    int n_parts;                 /* members in this process */
    bool *partners;              /* [size], whose mailboxes are open; NULL: none are */
    struct el_buffer *mailboxes; /* NULL: none, or the backend's own */
    size_t mailbox_bytes;        /* of each */
    uint64_t issued;             /* collectives: members issue the same ones in the same order */
    uint64_t first_issued, kept; /* of el_comm_begin_program: from which on, and what is next besides */
    uint64_t run[2];             /* operations that have begun: collectives, and this member's of links */
    bool muted;
    enum el_comm_algorithm forced;  /* EL_COMM_AUTO: the backend's choice */
    struct el_comm_known *known;    /* [EL_COMM_VERB_COUNT]; NULL: it has issued nothing */
    struct el_comm_header *headers; /* [size], of what all are about to begin; NULL: not in the checking mode */
};

/* What a group of one has before its first operation: many of them never have one. */
enum { EL_COMM_NO_STREAM = EL_STREAM_COMPUTE };

/* What the member gives to such an operation, and what it gets, in parts. */
static inline size_t el_comm_gives(const struct el_comm *comm, enum el_comm_verb verb, int root)
{
    return el_comm_parts_given(verb, comm->rank, root, comm->size);
}

static inline size_t el_comm_gets(const struct el_comm *comm, enum el_comm_verb verb, int root)
{
    return el_comm_parts_got(verb, comm->rank, root, comm->size);
}

/* Left out, it is all zeros. */
static inline bool el_comm_is_given(struct el_view view)
{
    return view.buffer || view.offset;
}

/* EL_ERR_INVALID for what comm.h does not allow, EL_ERR_ABSENT for what the backend has not; each by name. */
enum el_status el_comm_check(const struct el_comm *comm, const struct el_comm_op *op);
/* In the checking mode: whether all members are about to begin this one. Collective, but for links. Errors:
 * EL_ERR_INTERNAL, naming both where they differ; EL_ERR_PEER. */
enum el_status el_comm_check_others(struct el_comm *comm, const struct el_comm_task *task);
