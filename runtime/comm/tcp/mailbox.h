/* Mail: messages from one rank to another that wait at the receiver until it asks for them, so that no order of sends
 * and receives can deadlock as long as the mailboxes are not full.
 *
 * A mailbox is a stretch of memory at the receiver, in which messages stand one behind the other and go on at its
 * beginning. A sender knows how many bytes it has sent whose room is not free again, and waits while the next message
 * would not fit. The attendant puts there what comes off the connection, at once; the receiving operation copies it,
 * and tells the sender of the room that is free: in the order in which messages came.
 */
#ifndef EL_TCP_MAILBOX_H
#define EL_TCP_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

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

struct el_tcp_group;
struct el_comm_task;

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

#endif
