/* What the files of the communicator `tcp` share: a rank's state. Its two connections are those of a ring: it sends to
 * the next rank and receives from the one before. */
#ifndef EL_TCP_GROUP_H
#define EL_TCP_GROUP_H

#include <stdatomic.h>

#include "runtime/comm/comm_ops.h"

/* INBOX: what comes to be summed, a piece at a time, small enough to be still in a cache then. STAGE: partial sums of a
 * reduce between coming and going. */
enum { EL_TCP_INBOX_BYTES = 256 * 1024, EL_TCP_STAGE_BYTES = 1 << 20 };

struct el_tcp_group {
    int rank, size;
    int next, before; /* sockets; -1: not open */
    int wake;         /* an eventfd: abort() wakes a running operation */
    _Atomic int aborted;
    uint32_t issued; /* operations */
    char *inbox;     /* [EL_TCP_INBOX_BYTES] */
    char *stage;     /* [EL_TCP_STAGE_BYTES] */
};

/* Contract: comm_ops.h, run. */
enum el_status el_tcp_run(void *state, const struct el_comm_task *task);

#endif
