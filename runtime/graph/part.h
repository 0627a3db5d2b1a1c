/* A part of a model: consecutive nodes of its graph, with what crosses the cuts.
 *
 *     el_graph_part(model, first, n_nodes, &part);
 *     ... part->inputs[] come from the part before, part->outputs[] go to the next one ...
 *     el_graph_destroy(part);
 *
 * Tensors keep their numbers, so that a tensor has the same one on both sides of a cut; nodes and parameters are
 * numbered anew, by their order in the model, and keep their numbers there as `origin`. A tensor that a later part
 * reads passes through all parts between. The parts of a model that has been cut without a gap, each with a pass of its
 * own (pass.h), compute what the model does, bit by bit.
 *
 * A parameter that is used on both sides of a cut is in both parts: whoever trains them adds up its gradients.
 *
 * Ownership: the part is the caller's; it does not need the model any more. Threads: any.
 */
#pragma once

#include "runtime/graph/graph.h"

/* Nodes [first, first + n_nodes). Errors: EL_ERR_INVALID where a buffer is used inside and outside, naming it, or where
 * there is no such node; EL_ERR_HOST_MEMORY. */
enum el_status el_graph_part(const struct el_graph *model, int first, int n_nodes, struct el_graph **part_p);

/* What a device holds that has several parts of a model, given in the model's order: their parameters and nodes, in
 * that order too, and their loss. It has no tensors: a pass goes through a single part. Errors: EL_ERR_INVALID where
 * two of them have the same parameter; EL_ERR_HOST_MEMORY. */
enum el_status el_graph_of_parts(const struct el_graph *const *parts, int n, struct el_graph **graph_p);
