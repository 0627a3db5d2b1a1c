/* Private to the communicator `nccl`. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/nccl/api.h"
#include "runtime/comm/shared/presence.h"

/* Time after which a step's collectives count as stuck. */
#define EL_NCCL_PATIENCE_NS INT64_C(60000000000)

/* One direction between two members: an NCCL communicator of both, where 0 sends to 1. */
struct el_nccl_link {
    void *comm;  /* NULL: no link */
    size_t next; /* start of the next message in the sender's mailbox; both ends count */
    /* The sender's end (outbox.c). */
    int stream;
    char *box; /* [bytes of a mailbox] */
    size_t used;
    uint64_t n_put, n_gone;
    struct el_nccl_letter *letters; /* [EL_NCCL_LETTERS] in the box; message k is [k % EL_NCCL_LETTERS] */
};
enum { EL_NCCL_LETTERS = 63 };

struct el_nccl_mail {
    size_t bytes;
    struct el_nccl_link *to, *from; /* [size] of the group */
};

/* NCCL memory lent to a device; the list ends with the group. */
struct el_nccl_memory {
    struct el_nccl_member *member; /* NULL: closed */
    const struct el_nccl_api *api;
    void *memory, *handle;
    int device;
    struct el_nccl_memory *next;
};

struct el_nccl_member {
    struct el_nccl_group *group;
    struct el_device *device;
    struct el_buffer *word; /* [2] for barriers and empty messages: received, sent; NULL: not yet allocated */
    struct el_nccl_mail *mail;
    struct el_nccl_memory *memories;
    int rank, stream;         /* of the device */
    void *comm;               /* NULL: never opened, or aborted */
    int64_t waiting_since_ns; /* 0: no wait since the last operation; its issuing thread's */
    int64_t looked_ns;
};

struct el_nccl_group {
    const struct el_nccl_api *api;
    struct el_presence *presence; /* NULL within one process */
    _Atomic int64_t patience_ns;  /* the same for all members */
    struct el_nccl_group *whole;  /* the group that this one was split from, or itself; they are aborted together */
    struct el_nccl_group *part;   /* the whole's list of parts, under its lock */
    /* Only the whole's: */
    pthread_mutex_t lock; /* also of communicators, against being freed */
    pthread_cond_t changed;
    bool aborted;
    struct el_error why; /* reason for an abort during a call; EL_OK: none */
    int n_calling;       /* threads in NCCL calls that may wait for other members */
    int64_t calling_since_ns;
    pthread_t watcher;
    bool watched, closing;
    bool in_graph, aborts_beside; /* an operation is in a graph; `aborter` aborts */
    pthread_t aborter;
    int n;
    _Atomic int open; /* not closed yet, by any thread */
    int size;         /* all processes */
    struct el_nccl_member members[];
};

extern const struct el_comm_ops el_nccl_ops;

/* Members from rank `first` on, without communicators and devices. Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_nccl_group_create(const struct el_nccl_api *api, int n, int first, int size,
                                    struct el_nccl_group **group_p);
void el_nccl_group_destroy(struct el_nccl_group *group);

/* EL_OK, or an error naming the call and the device (NULL: none, or several). */
enum el_status el_nccl_check(const struct el_nccl_api *api, const struct el_device *device, int result,
                             const char *call);
#define EL_NCCL_TRY(api, device, name, ...) EL_TRY(el_nccl_check(api, device, (api)->name(__VA_ARGS__), "nccl " #name))

/* guard.c: brackets NCCL calls that may wait for other members. Fails if the group was aborted; then no call and no
 * leave. begin sets no error text. */
bool el_nccl_begin(struct el_nccl_group *group);
enum el_status el_nccl_enter(struct el_nccl_group *group);
void el_nccl_leave(struct el_nccl_group *group);
/* Leaves; returns the call's error, or the abort's. */
enum el_status el_nccl_leave_with(const struct el_nccl_member *member, int result, const char *call);
/* Within a call; NULL: aborted. */
void *el_nccl_comm(struct el_nccl_member *member);
bool el_nccl_is_aborted(struct el_nccl_group *group);
enum el_status el_nccl_say_aborted(struct el_nccl_group *group);
/* Watches the other ranks during calls; stop is legal without start. */
enum el_status el_nccl_watch_start(struct el_nccl_group *group);
void el_nccl_watch_stop(struct el_nccl_group *group);
/* EL_OK, or why a wait since then fails: a rank is gone or has failed, or the time is up. */
enum el_status el_nccl_check_others(struct el_nccl_group *group, int64_t since_ns, int64_t patience_ns,
                                    const char *what);
/* Explains a failed call by a rank that is gone or has failed; otherwise the failure is this rank's own. */
enum el_status el_nccl_explain(struct el_nccl_group *group, enum el_status status);
/* Opens members[0]'s communicator. `*left_p`: NCCL still waits there for ranks that will not come. */
enum el_status el_nccl_open_watched(struct el_nccl_group *group, const struct el_nccl_id *id, bool *left_p);

enum el_status el_nccl_open_members(const struct el_nccl_api *api, const struct el_comm_place *places, int n,
                                    void **states);
enum el_status el_nccl_open_rank(const struct el_nccl_api *api, struct el_bootstrap *bootstrap, const char *uuid,
                                 struct el_device *device, void **state_p);

/* outbox.c: open_mailboxes of comm_ops.h; sends and receives; freeing, when nothing runs; and `each` for every open
 * communicator of the member and its links. */
enum el_status el_nccl_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes,
                                      size_t bytes);
enum el_status el_nccl_enqueue_link(struct el_nccl_member *member, const struct el_comm_task *task);
void el_nccl_mail_close(struct el_nccl_member *member);
enum el_status el_nccl_each_comm(struct el_nccl_member *member,
                                 enum el_status (*each)(const struct el_nccl_member *member, void **comm_p));
enum el_status el_nccl_reserve_word(struct el_nccl_member *member);

/* open.c: alloc of comm_ops.h; and its end, before the communicator's. */
enum el_status el_nccl_alloc(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p);
void el_nccl_memory_close(struct el_nccl_member *member);

enum el_status el_nccl_split(void *state, enum el_status mine, struct el_comm_split *split);

/* open.c: NCCL accepts one member per card on one host. EL_ERR_INVALID with advice where two ranks share one.
 * Collective. */
enum el_status el_nccl_check_cards(const struct el_nccl_api *api, struct el_bootstrap *bootstrap, const char *uuid);
