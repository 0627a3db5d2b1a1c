/* A part of a model: consecutive nodes, with the tensors that cross its cuts.
 *
 *     el_graph_part(model, first, n_nodes, &part);
 *     ... part->inputs[] come from the part before, part->outputs[] go to the next one ...
 *     el_graph_destroy(part);
 *
 * Tensors keep their numbers; nodes and parameters are renumbered, with the old number as `origin`. Tensors for later
 * parts pass through. Consecutive parts compute the same bits as the model. A parameter used in several parts is in
 * each: their trainer sums its gradients.
 * Ownership: the part is the caller's and independent of the model. Threads: any. */
#pragma once

#include "runtime/graph/graph.h"

/* Nodes [first, first + n_nodes). Errors: EL_ERR_INVALID, naming a buffer that is also used outside, or for unknown
 * nodes; EL_ERR_HOST_MEMORY. */
enum el_status el_graph_part(const struct el_graph *model, int first, int n_nodes, struct el_graph **part_p);

/* The parameters, nodes and loss of a device's parts, in the model's order; no tensors, because a pass covers one part.
 * Errors: EL_ERR_INVALID if two parts share a parameter; EL_ERR_HOST_MEMORY. */
enum el_status el_graph_of_parts(const struct el_graph *const *parts, int n, struct el_graph **graph_p);
