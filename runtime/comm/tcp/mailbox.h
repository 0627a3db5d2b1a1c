/* Mail: messages from one rank to another that wait at the receiver until it asks for them, so that no order of sends
 * and receives can dead-lock as long as the mailboxes are not full.
 *
 * A sender knows how many bytes it has sent that were not taken yet, and waits while the next message would not fit; a
 * message larger than the mailbox may lie there alone. The attendant takes what comes off the connection at once; the
 * receiving operation copies it and tells the sender.
 */
#ifndef EL_TCP_MAILBOX_H
#define EL_TCP_MAILBOX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/status.h"

/* Of one sender at one receiver. */
enum { EL_TCP_MAILBOX_BYTES = 16 << 20 };

struct el_tcp_letter {
    struct el_tcp_letter *next;
    int32_t tag;
    uint64_t bytes;
    char data[];
};

/* What comes from one sender; queue and letters under the group's mutex, the rest the attendant's. */
struct el_tcp_post {
    struct el_tcp_letter *first, *last; /* whole ones, oldest first */
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
/* Frees what was not taken. */
void el_tcp_mail_clear(struct el_tcp_post *post);

#endif
