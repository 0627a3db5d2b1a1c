/* A model's buffers (batch norm's running statistics), in one piece of memory, so that one op sends or copies all.
 *
 *     el_buffers_view(graph, dtype, storage, views);          views[n_buffers] of el_buffers_bytes of memory
 *     el_buffers_issue_broadcast(comm, shard, program);    in a step: all get those of comm's first member
 *     el_copies_read(worker, ...);                            after the last step, as numbers (runtime/worker/copies.h)
 *
 * The mode decides whether ranks get rank 0's in each step (docs/semantics.md). Evaluation uses the first copy's
 * everywhere. */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/state/shard.h"

bool el_buffers_are_in(const struct el_model_config *model);
int64_t el_buffers_count(const struct el_graph *graph);
size_t el_buffers_bytes(const struct el_graph *graph, enum el_dtype dtype);
void el_buffers_view(const struct el_graph *graph, enum el_dtype dtype, struct el_view storage, struct el_view *views);

/* Buffer `b`'s place, in elements. */
int64_t el_buffers_place(const struct el_graph *graph, int b);

struct el_comm_op el_buffers_broadcast(const struct el_shard *shard, struct el_view data);
/* From member `root` to the others (phase comm); nothing for a group of one. */
void el_buffers_issue_broadcast(struct el_comm *comm, const struct el_shard *shard, struct el_program *program);
