/* What the files of the fake NCCL share. Where a card would compute nonsense or hang without a word, it says what was
 * wrong and ends the process (a breach): members that ask for different things, a communicator that is gone.
 *
 * nccl_world.c   what the members of a communicator share, in one process or in several
 * nccl_item.c    collectives and messages where they happen: on the streams' threads
 * nccl_group.c   calls on their way there: groups, and the first call, which waits for the others
 * nccl_comm.c    a communicator's life
 *
 * In a stream's capture an operation is noted, and runs with each launch of the graph. The communicator then ends after
 * the graph: ncclCommDestroy and ncclCommAbort wait for it, and here such a wait without end is a breach.
 *
 * As NCCL 2.28 does: the first collective and the first message of a pair hold the calling thread until the others have
 * called too; an abort is this member's own, so that the others learn of it from the program alone; nothing notices a
 * member's death. A message has been sent when it has been received.
 *
 * FAKE_CARDS_FAIL takes the calls by their names (calls.h; codes are NCCL's), and `ncclAsync`:
 * an operation that hangs, and of which ncclCommGetAsyncError tells.
 *
 * These files are compiled without the thread sanitizer; it sees what memcpy reads and writes. */
#pragma once

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { NCCL_REGISTERED_MAX = 64 };
enum { NCCL_RANKS_MAX = 16, NCCL_SLOT_BYTES = 1 << 16, NCCL_CARD_BYTES = 160 };

enum nccl_verb {
    NCCL_ALL_REDUCE,
    NCCL_BROADCAST,
    NCCL_REDUCE,
    NCCL_REDUCE_SCATTER,
    NCCL_ALL_GATHER,
    NCCL_SEND,
    NCCL_RECEIVE
};

/* What has to be the same for all. */
struct nccl_asked {
    int verb, type, reduction, root;
    int captured, registered; /* all of an operation's members capture it, or none; a collective's memory likewise */
    size_t count;
};

/* A rank's place; only it writes there. */
struct nccl_seat {
    _Atomic int is_here;
    char card[NCCL_CARD_BYTES];                           /* "uuid host" */
    _Atomic int connected;                                /* for collectives */
    _Atomic int to[NCCL_RANKS_MAX], from[NCCL_RANKS_MAX]; /* connected, for messages */
    _Atomic unsigned splits;                              /* two for each split */
    int color, key;
    ncclUniqueId split_id;
    _Atomic unsigned steps; /* of collectives on the stream */
    struct nccl_asked asked;
    char slot[NCCL_SLOT_BYTES];
};

/* A message on its way, a slot at a time. */
struct nccl_way {
    _Atomic int full;
    struct nccl_asked asked;
    char slot[NCCL_SLOT_BYTES];
};

/* A communicator's shared part: zeros are its beginning. */
struct nccl_world {
    _Atomic unsigned changes; /* a futex of several processes */
    _Atomic int n;
    struct nccl_seat seats[NCCL_RANKS_MAX];
    struct nccl_way ways[NCCL_RANKS_MAX][NCCL_RANKS_MAX]; /* [from][to] */
};

struct ncclComm {
    struct nccl_world *world;
    int rank, n, device;
    _Atomic bool aborted, gone;
    _Atomic int inside;       /* threads in its calls */
    _Atomic int error;        /* what ncclCommGetAsyncError says */
    _Atomic unsigned turn;    /* of the next item that may run */
    unsigned n_items;         /* issued, but for those in graphs: */
    _Atomic unsigned n_again; /* that have run */
    _Atomic int n_captured;   /* in graphs that are there */
    cudaStream_t stream;      /* of the last one, */
    int number;               /* and its number there */
    _Atomic unsigned n_left;  /* issued, and not ended */
    int n_registered;
    const char *registered[NCCL_REGISTERED_MAX];
    size_t registered_bytes[NCCL_REGISTERED_MAX];
    bool connected, to[NCCL_RANKS_MAX], from[NCCL_RANKS_MAX];
    struct ncclComm *next; /* all there ever were: one that is gone is known as such */
};

/* One call. */
struct nccl_call {
    struct ncclComm *comm;
    cudaStream_t stream;
    struct nccl_asked asked;
    const char *data;
    char *result;
    int peer; /* of a message */
};

__attribute__((format(printf, 1, 2), noreturn)) void nccl_breach(const char *format, ...);
/* Notes the words for ncclGetLastError and returns `result`. */
__attribute__((format(printf, 2, 3))) ncclResult_t nccl_fail(ncclResult_t result, const char *format, ...);
/* As FAKE_CARDS_FAIL says of this call: its result, or ncclSuccess. */
ncclResult_t nccl_planned(const char *call, int device);

/* ---- nccl_world.c ---- */

/* The id names memory without a name in any file system: it is gone with the last process that has it. */
ncclResult_t nccl_world_make(ncclUniqueId *id_p);
ncclResult_t nccl_world_open(const ncclUniqueId *id, struct nccl_world **world_p);
/* All have opened it, or never will. */
void nccl_world_forget(const ncclUniqueId *id);
void nccl_world_changed(struct nccl_world *world);
/* Waits until `is_so`; false: `comm` was aborted, or its stream ends. Either may be NULL. */
bool nccl_world_wait(struct nccl_world *world, bool (*is_so)(const void *), const void *what,
                     const struct ncclComm *comm, cudaStream_t stream);

/* ---- nccl_item.c, nccl_group.c ---- */

/* Calls of one communicator and stream: one collective, or messages, which go at once. */
ncclResult_t nccl_item_issue(const struct nccl_call *calls, int n);
/* 0: none of this fake's. */
size_t nccl_type_bytes(int type);
/* At the end of the group, or at once: opens of one group wait for one another. */
ncclResult_t nccl_group_open(struct ncclComm *comm, ncclComm_t *comm_p, const ncclUniqueId *id);
int nccl_group_depth(void);
/* Of a call that fails, so that its group does: returns `result`. */
ncclResult_t nccl_group_fail(ncclResult_t result);
/* The members of this process shall go on to what they were asked for last: somebody waits for them. */
void nccl_comm_want(const struct nccl_world *world);

/* ---- nccl_comm.c ---- */

/* Around each call on a communicator: one that is gone, and two threads at once, are breaches. */
void nccl_comm_enter(struct ncclComm *comm);
void nccl_comm_leave(struct ncclComm *comm);
/* The two halves of opening: this member is here; all are. */
ncclResult_t nccl_comm_arrive(struct ncclComm *comm);
ncclResult_t nccl_comm_meet(struct ncclComm *comm, const ncclUniqueId *id);
/* No call may use it any more; its memory stays, so that one that does is seen. */
void nccl_comm_end(struct ncclComm *comm);
