/* What the files of the communicator `nccl` share. Users read comm.h; tests open groups on a table of their own. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "runtime/comm/comm_ops.h"
#include "runtime/comm/nccl/api.h"
#include "runtime/comm/shared/presence.h"

/* How long the host waits for a step's collectives before it takes them for stuck. */
#define EL_NCCL_PATIENCE_NS INT64_C(60000000000)

/* One way between a member and another: NCCL's communicator of these two, 0 sends to 1. */
struct el_nccl_link {
    void *comm;  /* NULL: they exchange nothing */
    size_t next; /* where the next message begins in the sender's mailbox: both ends count */
    /* The sender's end; see outbox.c. */
    int stream;
    char *box; /* [bytes of a mailbox] */
    size_t used;
    uint64_t n_put, n_gone;
    struct el_nccl_letter *letters; /* [EL_NCCL_LETTERS], in the box: message k is [k % EL_NCCL_LETTERS] */
};
enum { EL_NCCL_LETTERS = 63 };

/* A member's mailboxes. */
struct el_nccl_mail {
    size_t bytes;                   /* of a mailbox */
    struct el_nccl_link *to, *from; /* [size] of the group */
};

/* Memory of NCCL's that was lent to a device; the list ends with the group. */
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
    struct el_buffer *word;    /* [2] of barriers and empty messages: what comes, what is sent; NULL: there was none */
    struct el_nccl_mail *mail; /* NULL: not opened */
    struct el_nccl_memory *memories;
    int rank, stream;         /* of the device: the communicator's own */
    void *comm;               /* NULL: never opened, or gone after an abort */
    int64_t waiting_since_ns; /* 0: nothing has been waited for since the last operation; its issuing thread's */
    int64_t looked_ns;        /* at the other processes */
};

struct el_nccl_group {
    const struct el_nccl_api *api;
    struct el_presence *presence; /* of the other processes; NULL within one */
    _Atomic int64_t patience_ns;  /* all members set the same */
    struct el_nccl_group *whole;  /* the group of which this is a part, or itself: a group and its parts end together */
    struct el_nccl_group *part;   /* the whole's list of its parts, under its lock */
    /* The whole's alone. */
    pthread_mutex_t lock; /* of what follows, and of communicators against being freed */
    pthread_cond_t changed;
    bool aborted;
    struct el_error why; /* of an abort while a call lasted: its status EL_OK otherwise */
    int n_calling;       /* threads in calls of NCCL's that may wait for other members */
    int64_t calling_since_ns;
    pthread_t watcher;
    bool watched, closing;
    bool in_graph, aborts_beside; /* an operation was noted for a graph; ... so that `aborter` aborts */
    pthread_t aborter;
    int n;            /* members of this process */
    _Atomic int open; /* those not closed yet, by threads of their own */
    int size;         /* of all processes */
    struct el_nccl_member members[];
};

extern const struct el_comm_ops el_nccl_ops;

/* `n` members of this process from rank `first` on, of `size`, without communicators and devices yet. Errors:
 * EL_ERR_HOST_MEMORY. */
enum el_status el_nccl_group_create(const struct el_nccl_api *api, int n, int first, int size,
                                    struct el_nccl_group **group_p);
void el_nccl_group_destroy(struct el_nccl_group *group);

/* EL_OK, or the failure in the house's words, naming the call and the device that it was for; NULL: none, or several.
 */
enum el_status el_nccl_check(const struct el_nccl_api *api, const struct el_device *device, int result,
                             const char *call);
#define EL_NCCL_TRY(api, device, name, ...) EL_TRY(el_nccl_check(api, device, (api)->name(__VA_ARGS__), "nccl " #name))

/* guard.c. Around calls of NCCL's that may wait for other members. Errors: the group was aborted; then no call may
 * be made, and enter has no leave. begin is enter without words. */
bool el_nccl_begin(struct el_nccl_group *group);
enum el_status el_nccl_enter(struct el_nccl_group *group);
void el_nccl_leave(struct el_nccl_group *group);
/* With the result of the one call that was made: its failure in words, or the abort's. */
enum el_status el_nccl_leave_with(const struct el_nccl_member *member, int result, const char *call);
/* The member's communicator, in such a call; NULL: aborted meanwhile. */
void *el_nccl_comm(struct el_nccl_member *member);
bool el_nccl_is_aborted(struct el_nccl_group *group);
/* Says why it was. */
enum el_status el_nccl_say_aborted(struct el_nccl_group *group);
/* The others are looked after while a call lasts; stop is legal where it was not started. */
enum el_status el_nccl_watch_start(struct el_nccl_group *group);
void el_nccl_watch_stop(struct el_nccl_group *group);
/* EL_OK, or why who waits since then gives up: a rank is gone, has failed, or the time is up. */
enum el_status el_nccl_check_others(struct el_nccl_group *group, int64_t since_ns, int64_t patience_ns,
                                    const char *what);
/* The status of a call of NCCL's, whose words name no rank: one that is gone or has failed explains it; where there is
 * none the failure is this rank's own, and explains those of others. */
enum el_status el_nccl_explain(struct el_nccl_group *group, enum el_status status);
/* Opens members[0]'s communicator. `*left_p`: NCCL still waits there for ranks that will not come. */
enum el_status el_nccl_open_watched(struct el_nccl_group *group, const struct el_nccl_id *id, bool *left_p);

/* open.c, with a table given: what the backend's hooks do with the module's. */
enum el_status el_nccl_open_members(const struct el_nccl_api *api, const struct el_comm_place *places, int n,
                                    void **states);
enum el_status el_nccl_open_rank(const struct el_nccl_api *api, struct el_bootstrap *bootstrap, const char *uuid,
                                 struct el_device *device, void **state_p);

/* outbox.c: the hook of comm_ops.h; what it does for a send or a recv; its end, by the group's last member, when
 * nothing runs; the communicators of a member's links, of which it calls `each` with those that are open. */
enum el_status el_nccl_open_mailboxes(void *state, enum el_status mine, const bool *partners, void *boxes,
                                      size_t bytes);
enum el_status el_nccl_enqueue_link(struct el_nccl_member *member, const struct el_comm_task *task);
void el_nccl_mail_close(struct el_nccl_member *member);
enum el_status el_nccl_each_comm(struct el_nccl_member *member,
                                 enum el_status (*each)(const struct el_nccl_member *member, void **comm_p));
/* The word of barriers and of empty messages, in the device's memory. */
enum el_status el_nccl_reserve_word(struct el_nccl_member *member);

/* open.c: the hook of comm_ops.h, and the end of what it gave, before its communicator's. */
enum el_status el_nccl_alloc(void *state, size_t bytes, enum el_status mine, struct el_lent_memory *memory_p);
void el_nccl_memory_close(struct el_nccl_member *member);

/* open.c: the hook of comm_ops.h. */
enum el_status el_nccl_split(void *state, enum el_status mine, struct el_comm_split *split);

/* open.c: NCCL takes one member per card on what it takes for one host. EL_ERR_INVALID with what to do where two
 * ranks share one. Collective. */
enum el_status el_nccl_check_cards(const struct el_nccl_api *api, struct el_bootstrap *bootstrap, const char *uuid);
