/* A bootstrap over a group that is open already: for opening another communicator among its members.
 * Ownership: the group is borrowed, and runs nothing else meanwhile; closed with el_bootstrap_close. Errors:
 * EL_ERR_HOST_MEMORY. */
#ifndef EL_COMM_GROUP_BOOTSTRAP_H
#define EL_COMM_GROUP_BOOTSTRAP_H

#include "runtime/comm/comm_ops.h"

/* `ops` and `state`: a communicator's that has all-gather, gather and broadcast, by EL_COMM_DIRECT. */
enum el_status el_bootstrap_open_group(const struct el_comm_ops *ops, void *state, int rank, int size,
                                       struct el_bootstrap **bootstrap_p);

#endif
