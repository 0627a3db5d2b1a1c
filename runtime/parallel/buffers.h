/* A model's buffers in the modes: arrays that live from step to step without being parameters, as batch norm's running
 * statistics. All of a graph's lie in one piece of memory, in its order, so that they are sent and copied at once.
 *
 *     el_buffers_view(graph, dtype, storage, views);          views[n_buffers] of el_buffers_bytes of memory
 *     el_buffers_issue_broadcast(comm, shard, program);       in a step: all get those of comm's first member
 *     el_buffers_read(worker, &values, &n);                   after the last step, as numbers
 *
 * Whether ranks get rank 0's in each step, or have their own, is the mode's to say (docs/semantics.md). Evaluation
 * takes those of the first copy of the model everywhere.
 *
 * Threads: the worker's. Errors: what is called issue leaves them to the program.
 */
#ifndef EL_BUFFERS_H
#define EL_BUFFERS_H

#include "runtime/parallel/held.h"

/* Whether a model, which is resolved, has any. */
bool el_buffers_are_in(const struct el_model_config *model);
/* Of all together; 0: the graph has none. */
int64_t el_buffers_count(const struct el_graph *graph);
size_t el_buffers_bytes(const struct el_graph *graph, enum el_dtype dtype);
void el_buffers_view(const struct el_graph *graph, enum el_dtype dtype, struct el_view storage, struct el_view *views);

/* From the first member's to the others', in a collective of phase comm; nothing for a group of one. */
void el_buffers_issue_broadcast(struct el_comm *comm, const struct el_shard *shard, struct el_program *program);

/* For a forward that shall use those of the model's first copy, while the member's own stay: makes a piece of memory
 * with them, and views of it in held->parts[].buffers. A step of its own. Blocking. Collective: among the copies of the
 * member's part. *buffer_p is the caller's to free: NULL where the member's own are the first copy's. */
enum el_status el_buffers_take_first(struct el_worker *worker, int member, struct el_held *held,
                                     struct el_buffer **buffer_p);

/* What each copy of the model has, of the whole model, one copy after another: values[*n_p] on rank 0's first worker
 * (elsewhere NULL), to be freed; 0 where the model has none, or kernels do not compute. Blocking. Collective: all
 * workers, between steps. Errors: EL_ERR_HOST_MEMORY, EL_ERR_PEER. */
enum el_status el_buffers_read(struct el_worker *worker, double **values_p, int64_t *n_p);

#endif
