/* What the files of the communicator `tcp` share: a rank's state, its connections, and how its operation waits.
 *
 *     comm_tcp.c    opening, aborting, closing, splitting; the choice of algorithms
 *     mesh.c        connections: to whom, made when first needed, taken from whoever comes
 *     attendant.c   a thread per rank: takes connections, hears of ranks that are gone, receives mail; the bootstrap's
 * too transfer.c    collectives          mailbox.c    send, recv
 *
 * A connection carries bytes one way, from the rank that made it; only mail's has answers. Threads: two of a rank, the
 * attendant and the one that runs operations, beside whoever aborts. The attendant alone takes connections and reads
 * alarms and mail; the operation's thread alone makes connections and moves data.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/tcp/socket.h"

/* INBOX: what comes to be combined, a piece at a time, small enough to be still in a cache then. */
enum { EL_TCP_INBOX_BYTES = 256 * 1024, EL_TCP_HOST_BYTES = 64, EL_TCP_REASON_BYTES = 240 };

enum el_tcp_lane { EL_TCP_LANE_DATA, EL_TCP_LANE_ALARM, EL_TCP_LANE_MAIL, EL_TCP_LANES };

/* Mail: messages from one rank to another that wait at the receiver until it asks for them, so that no order of sends
 * and receives can deadlock as long as the mailboxes are not full.
 *
 * A mailbox is a stretch of memory at the receiver, in which messages stand one behind the other and go on at its
 * beginning. A sender knows how many bytes it has sent whose room is not free again, and waits while the next message
 * would not fit. The attendant puts there what comes off the connection, at once; the receiving operation copies it,
 * and tells the sender of the room that is free: in the order in which messages came.
 */
struct el_tcp_letter {
    struct el_tcp_letter *next;
    int32_t tag;
    uint64_t bytes;
    size_t begin; /* in the box */
    bool taken;
};

/* What comes from one sender; queue and letters under the group's mutex, the rest the attendant's. */
struct el_tcp_post {
    char *box;                          /* [the group's mailbox_bytes]; NULL: none from there */
    size_t next;                        /* where the next message begins in it */
    struct el_tcp_letter *first, *last; /* whole ones whose room is not free, oldest first */
    struct el_tcp_letter *coming;       /* NULL: its head is coming */
    size_t done;                        /* bytes of the one, or of the other */
    char head[16];
    _Atomic bool ended; /* nothing more will come */
};

struct el_tcp_peer {
    char address[EL_TCP_ADDRESS_BYTES], host[EL_TCP_HOST_BYTES];
    int port;                       /* it listens there */
    _Atomic int to[EL_TCP_LANES];   /* sockets to it; -1: none yet */
    _Atomic int from[EL_TCP_LANES]; /* from it */
    bool left;                      /* said farewell: what ends there is no alarm */
    bool answered;                  /* what was asked last */
    uint64_t headed_out, headed_in; /* collectives in which a header has gone there, or come from there */
    _Atomic uint64_t unread_bytes;  /* of mail sent there whose room is not free again */
    struct el_tcp_post post;        /* mail that came from there */
};

/* What one who connects says first. */
struct el_tcp_introduction {
    char magic[8];
    uint64_t key;
    uint32_t rank, lane;
};

/* Came, and has not yet said all of it. */
struct el_tcp_guest {
    int socket;
    size_t have;
    int64_t since_ns;
    struct el_tcp_introduction introduction;
};
enum { EL_TCP_GUESTS = 64 }; /* one more takes the place of the first */

struct el_tcp_group {
    const char *kind; /* "tcp communicator", "bootstrap tcp" */
    bool of_job;      /* the bootstrap's */
    int rank, size;
    uint64_t key;              /* of this group: who comes without it is turned away */
    struct el_tcp_peer *peers; /* [size] */
    int listener, n_guests;
    struct el_tcp_guest guests[EL_TCP_GUESTS]; /* in order of their coming; the attendant's */
    int news;      /* an eventfd: something has come that the running operation may wait for */
    int bell;      /* an eventfd: the attendant must check its connections again, or end */
    bool attended; /* `attendant` runs */
    _Atomic int dismissed;
    pthread_t attendant;
    int64_t timeout_ns, deadline_ns; /* of an operation, of the running one; 0: none */
    uint64_t collectives;            /* begun */
    char *inbox;                     /* [EL_TCP_INBOX_BYTES] */
    size_t mailbox_bytes;
    char *scratch; /* [scratch_bytes] */
    size_t scratch_bytes;

    pthread_mutex_t mutex; /* of `reason`, what is said to neighbours, and all posts */
    pthread_cond_t failure;
    _Atomic int aborted;
    char reason[EL_TCP_REASON_BYTES];
};

/* ---- comm_tcp.c ---- */

/* A rank without connections; NULL: no memory. `size` may be made smaller before it has any. */
struct el_tcp_group *el_tcp_create(const char *kind, int rank, int size);
/* The ring of alarms: all come to each other at about the same time. */
enum el_status el_tcp_join(struct el_tcp_group *group);
void el_tcp_close(void *state);

/* ---- mesh.c ---- */

/* A rank's place as others see it: address, port, host. */
enum { EL_TCP_ROW_BYTES = 160 };
enum el_status el_tcp_mesh_listen(struct el_tcp_group *group, const char *address, char row[EL_TCP_ROW_BYTES]);
enum el_status el_tcp_mesh_learn(struct el_tcp_group *group, int rank, const char *row);
/* A new group's. */
uint64_t el_tcp_mesh_key(void);
/* Every rank learns where the others listen. Collective. Errors: the bootstrap's, EL_ERR_IO, EL_ERR_ABSENT. */
enum el_status el_tcp_mesh_open(struct el_tcp_group *group, struct el_bootstrap *bootstrap);
/* This rank's socket to another one; connects where there is none yet, which needs nothing of the other rank's threads.
 */
enum el_status el_tcp_mesh_to(struct el_tcp_group *group, int rank, enum el_tcp_lane lane, int *socket_p);
/* Takes whoever is at the listener, and hears what guests say; waits for nobody. The attendant's. */
void el_tcp_mesh_take(struct el_tcp_group *group);
/* Takes all who are there; waits for nobody to come, and for what they say no longer than for an honest one. */
void el_tcp_mesh_take_all(struct el_tcp_group *group);
/* All sockets, the listener too. */
void el_tcp_mesh_close(struct el_tcp_group *group);
/* "rank 2 (host b)" */
enum { EL_TCP_NAME_BYTES = EL_TCP_HOST_BYTES + 32 };
void el_tcp_name(const struct el_tcp_group *group, int rank, char name[EL_TCP_NAME_BYTES]);

/* ---- attendant.c ---- */

/* Of the bootstrap too: then the alarms are a star round rank 0, which passes them on. */
enum el_status el_tcp_attend(struct el_tcp_group *group);
/* Says farewell and ends the thread. */
void el_tcp_dismiss(struct el_tcp_group *group);
/* All operations here and, by the neighbours, everywhere fail from now on; the first reason is kept. Waits for nobody.
 * Threads: any. */
void el_tcp_give_up(struct el_tcp_group *group, const char *reason);
/* EL_ERR_PEER with the reason that is kept. */
enum el_status el_tcp_fail_aborted(struct el_tcp_group *group);
/* A connection with `rank` failed, by a number of errno (0: its end): EL_ERR_PEER with what is known of it, or will be
 * in a moment. */
enum el_status el_tcp_fail_rank(struct el_tcp_group *group, int rank, int number);

/* Contract: el_bootstrap_silent, of those to which there is an alarm connection: their threads answer by themselves. */
void el_tcp_silent(struct el_tcp_group *group, char *text, size_t bytes);
/* Ends all ranks of the job, this one too. Threads: any. */
void el_tcp_end_job(struct el_tcp_group *group, int exit_status) __attribute__((noreturn));

struct pollfd;
/* The operation sleeps until one of polls[1..n) is ready or there is news. `rank`: for whom it waits. polls[0] is
 * filled here. Errors: EL_ERR_PEER when the communicator was aborted, or the time is over. */
enum el_status el_tcp_wait(struct el_tcp_group *group, struct pollfd *polls, int n, int rank);

/* ---- mailbox.c ---- */

enum el_status el_tcp_send(struct el_tcp_group *group, const struct el_comm_task *task);
enum el_status el_tcp_receive(struct el_tcp_group *group, const struct el_comm_task *task);
/* The attendant's: takes what has come from `rank`; false: nothing more will. */
bool el_tcp_mail_take(struct el_tcp_group *group, int rank);
/* What `rank` has taken of our mail; false: nothing more will be said. */
bool el_tcp_mail_hear(struct el_tcp_group *group, int rank);
/* The hook of comm_ops.h. */
enum el_status el_tcp_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes);
/* Frees what was not taken. */
void el_tcp_mail_clear(struct el_tcp_post *post);

/* ---- transfer.c ---- */

/* Contracts: comm_ops.h, run, reserve. */
enum el_status el_tcp_run(void *state, const struct el_comm_task *task);
enum el_status el_tcp_reserve(void *state, const struct el_comm_task *task);
