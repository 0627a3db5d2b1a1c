/* The communicator `hierarchical`: ranks on several hosts (nodes), several on each. An all-reduce sums within each node
 * through shared memory, then the nodes' first ranks (leaders) all-reduce among themselves over sockets, and each node
 * gets the sum from its leader; a broadcast goes to the leaders first. Of each node only one rank uses the wire, and
 * each byte crosses it once. All other verbs go over sockets between the ranks themselves: round the ranks in their
 * order, or straight to who needs them, their bytes cross the wire no more often. A sub-group finds its own nodes. */
#ifndef EL_COMM_HIERARCHICAL_H
#define EL_COMM_HIERARCHICAL_H

#include "runtime/comm/comm_ops.h"

/* As the backend's open_ranks, where `node` says who shares a node: the same text in ranks that do, which must be on
 * one host; less than EL_HOST_IDENTITY_BYTES. */
enum el_status el_hierarchical_open(struct el_bootstrap *bootstrap, const char *node, void **state_p);

#endif
