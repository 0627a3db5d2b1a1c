/* Private to the communicator `tcp`.
 *
 *     comm_tcp.c    opening, aborting, closing, splitting; the choice of algorithms
 *     mesh.c        connections, made when first needed and accepted from any member
 *     attendant.c   a thread per rank: accepts connections, hears alarms, receives mail; also the bootstrap's
 *     transfer.c    collectives          mailbox.c    send, recv
 *
 * A connection carries bytes one way, from the rank that made it; only mail has answers. Threads: the attendant
 * accepts connections and reads alarms and mail; the operation's thread makes connections and moves data; any may
 * abort. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/tcp/socket.h"

/* INBOX: data to combine, a piece at a time, small enough to stay in a cache. */
enum { EL_TCP_INBOX_BYTES = 256 * 1024, EL_TCP_HOST_BYTES = 64, EL_TCP_REASON_BYTES = 240 };

enum el_tcp_lane { EL_TCP_LANE_DATA, EL_TCP_LANE_ALARM, EL_TCP_LANE_MAIL, EL_TCP_LANES };

/* Mail waits at the receiver, so no order of sends and receives deadlocks while the mailboxes have room.
 *
 * A mailbox is a ring buffer at the receiver. A sender counts the bytes in it and waits while the next message does
 * not fit. The attendant stores arriving messages; the receive copies one out and reports the freed space, in arrival
 * order. */
struct el_tcp_letter {
    struct el_tcp_letter *next;
    int32_t tag;
    uint64_t bytes;
    size_t begin; /* in the box */
    bool taken;
};

/* From one sender. Queue and letters: the group's mutex; the rest: the attendant. */
struct el_tcp_post {
    char *box; /* [the group's mailbox_bytes]; NULL: none */
    size_t next;
    struct el_tcp_letter *first, *last; /* complete ones that still take space, oldest first */
    struct el_tcp_letter *coming;       /* NULL: its head is arriving */
    size_t done;                        /* bytes of the message or head */
    char head[16];
    _Atomic bool ended;
};

struct el_tcp_peer {
    char address[EL_TCP_ADDRESS_BYTES], host[EL_TCP_HOST_BYTES];
    int port;
    _Atomic int to[EL_TCP_LANES]; /* sockets to it; -1: none yet */
    _Atomic int from[EL_TCP_LANES];
    bool left;                      /* said farewell: its end is no alarm */
    bool answered;                  /* the last ASK */
    uint64_t headed_out, headed_in; /* the last collective with a header sent there, received from there */
    _Atomic uint64_t unread_bytes;  /* sent mail that still takes space there */
    struct el_tcp_post post;
};

struct el_tcp_introduction {
    char magic[8];
    uint64_t key;
    uint32_t rank, lane;
};

/* Connected, introduction incomplete. */
struct el_tcp_guest {
    int socket;
    size_t have;
    int64_t since_ns;
    struct el_tcp_introduction introduction;
};
enum { EL_TCP_GUESTS = 64 }; /* one more replaces the first */

struct el_tcp_group {
    const char *kind;
    bool of_job; /* the bootstrap's */
    int rank, size;
    uint64_t key;              /* of this group; a connection without it is refused */
    struct el_tcp_peer *peers; /* [size] */
    int listener, n_guests;
    struct el_tcp_guest guests[EL_TCP_GUESTS]; /* the attendant's, by arrival */
    int news;                                  /* wakes the running operation */
    int bell;                                  /* wakes the attendant */
    bool attended;
    _Atomic int dismissed;
    pthread_t attendant;
    int64_t timeout_ns, deadline_ns; /* 0: none */
    uint64_t collectives;
    char *inbox; /* [EL_TCP_INBOX_BYTES] */
    size_t mailbox_bytes;
    char *scratch; /* [scratch_bytes] */
    size_t scratch_bytes;

    pthread_mutex_t mutex; /* of `reason`, sends to neighbours, and all posts */
    pthread_cond_t failure;
    _Atomic int aborted;
    char reason[EL_TCP_REASON_BYTES];
};

/* ---- comm_tcp.c ---- */

/* Without connections; NULL: no memory. `size` may shrink before the first one. */
struct el_tcp_group *el_tcp_create(const char *kind, int rank, int size);
/* The ring of alarms. Collective. */
enum el_status el_tcp_join(struct el_tcp_group *group);
void el_tcp_close(void *state);

/* ---- mesh.c ---- */

/* A rank as others see it: address, port, host. */
enum { EL_TCP_ROW_BYTES = 160 };
enum el_status el_tcp_mesh_listen(struct el_tcp_group *group, const char *address, char row[EL_TCP_ROW_BYTES]);
enum el_status el_tcp_mesh_learn(struct el_tcp_group *group, int rank, const char *row);
uint64_t el_tcp_mesh_key(void);
/* Shares all addresses. Collective. Errors: the bootstrap's, EL_ERR_IO, EL_ERR_ABSENT. */
enum el_status el_tcp_mesh_open(struct el_tcp_group *group, struct el_bootstrap *bootstrap);
/* Connects if need be, without the other rank's threads. */
enum el_status el_tcp_mesh_to(struct el_tcp_group *group, int rank, enum el_tcp_lane lane, int *socket_p);
/* Accepts connections and reads introductions, without waiting. The attendant's. */
void el_tcp_mesh_take(struct el_tcp_group *group);
/* Accepts all pending ones; waits for introductions at most briefly. */
void el_tcp_mesh_take_all(struct el_tcp_group *group);
void el_tcp_mesh_close(struct el_tcp_group *group);
enum { EL_TCP_NAME_BYTES = EL_TCP_HOST_BYTES + 32 };
void el_tcp_name(const struct el_tcp_group *group, int rank, char name[EL_TCP_NAME_BYTES]);

/* ---- attendant.c ---- */

/* Also for the bootstrap, whose alarms are a star around rank 0. */
enum el_status el_tcp_attend(struct el_tcp_group *group);
void el_tcp_dismiss(struct el_tcp_group *group);
/* Makes all operations fail here and, through the neighbours, everywhere; the first reason is kept. Does not wait.
 * Threads: any. */
void el_tcp_give_up(struct el_tcp_group *group, const char *reason);
/* EL_ERR_PEER with that reason. */
enum el_status el_tcp_fail_aborted(struct el_tcp_group *group);
/* A connection failed with an errno (0: end of file): EL_ERR_PEER with the reason, which may still be arriving. */
enum el_status el_tcp_fail_rank(struct el_tcp_group *group, int rank, int number);

void el_tcp_silent(struct el_tcp_group *group, char *text, size_t bytes);
/* Ends all ranks of the job. Threads: any. */
void el_tcp_end_job(struct el_tcp_group *group, int exit_status) __attribute__((noreturn));

struct pollfd;
/* Sleeps until one of polls[1..n) is ready or there is news; fills polls[0]. `rank`: the one waited for. Errors:
 * EL_ERR_PEER after an abort or the time-out. */
enum el_status el_tcp_wait(struct el_tcp_group *group, struct pollfd *polls, int n, int rank);

/* ---- mailbox.c ---- */

enum el_status el_tcp_send(struct el_tcp_group *group, const struct el_comm_task *task);
enum el_status el_tcp_receive(struct el_tcp_group *group, const struct el_comm_task *task);
/* The attendant's: reads mail from `rank`; false: nothing more will come. */
bool el_tcp_mail_take(struct el_tcp_group *group, int rank);
/* Reads how much `rank` has taken of our mail; false: nothing more will come. */
bool el_tcp_mail_hear(struct el_tcp_group *group, int rank);
enum el_status el_tcp_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes, size_t bytes);
void el_tcp_mail_clear(struct el_tcp_post *post);

/* ---- transfer.c ---- */

enum el_status el_tcp_run(void *state, const struct el_comm_task *task);
enum el_status el_tcp_reserve(void *state, const struct el_comm_task *task);
