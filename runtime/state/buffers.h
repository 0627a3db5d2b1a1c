/* A model's buffers in the modes: arrays that live from step to step without being parameters, as batch norm's running
 * statistics. All of a graph's lie in one piece of memory, in its order, so that they are sent and copied at once.
 *
 *     el_buffers_view(graph, dtype, storage, views);          views[n_buffers] of el_buffers_bytes of memory
 *     el_buffers_issue_broadcast(comm, shard, program);    in a step: all get those of comm's first member
 *     el_copies_read(worker, ...);                            after the last step, as numbers (runtime/worker/copies.h)
 *
 * Whether ranks get rank 0's in each step, or have their own, is the mode's to say (docs/semantics.md). Evaluation
 * takes those of the first copy of the model everywhere.
 *
 * Threads: the worker's. Errors: what is called issue leaves them to the program.
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/state/shard.h"

/* Whether a model, which is resolved, has any. */
bool el_buffers_are_in(const struct el_model_config *model);
/* Of all together; 0: the graph has none. */
int64_t el_buffers_count(const struct el_graph *graph);
size_t el_buffers_bytes(const struct el_graph *graph, enum el_dtype dtype);
void el_buffers_view(const struct el_graph *graph, enum el_dtype dtype, struct el_view storage, struct el_view *views);

/* Where buffer `b` stands among all, in elements. */
int64_t el_buffers_place(const struct el_graph *graph, int b);

/* The broadcast of a shard's buffers, which lie at `data`. */
struct el_comm_op el_buffers_broadcast(const struct el_shard *shard, struct el_view data);
/* From member `root` to the others, in a collective of phase comm; nothing for a group of one. */
void el_buffers_issue_broadcast(struct el_comm *comm, const struct el_shard *shard, struct el_program *program);
