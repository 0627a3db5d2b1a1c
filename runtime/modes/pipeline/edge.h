/* What crosses a cut of the model: values to the next part, gradients to the one before, as messages between the
 * devices that have them, on the world's communicator. One message a tensor, in the order of the parts' edges, which
 * both sides have alike. Messages of a device are received in the order in which it sends them, whatever is needed
 * first: not all communicators can tell them apart.
 *
 *     el_edge_open(worker, &held, batch);                            mailboxes: once, before the first program
 *     el_edge_receive(worker, program, &edge, tensor, &buffer);      in a step: the compute stream waits for it
 *     el_edge_send(worker, program, &edge, tensor, view, &op);       the view may be freed behind op `op`
 *
 * Units: batch in samples. Ownership: what is received is the caller's to free, by the program. Threads: the worker's.
 * Errors: the program's.
 */
#pragma once

#include "runtime/worker/copies.h"

struct el_edge {
    int peer;      /* worker */
    int64_t batch; /* samples of each message */
};

/* Mailboxes between those that exchange anything, with the room that the schedule needs, for micro-batches of `batch`
 * samples. Collective. */
enum el_status el_edge_open(struct el_worker *worker, const struct el_held *held, int64_t batch);
/* Gradients of parameters that are on two stages, grads[n_params] of the shard's graph: both get the sum. At a step's
 * end, when all other messages of the step have been issued. */
void el_edge_issue_sums(struct el_worker *worker, struct el_program *program, const struct el_view *grads);
/* Of a tensor of the whole model. */
size_t el_edge_bytes(const struct el_worker *worker, int64_t batch, int tensor);
struct el_view el_edge_receive(struct el_worker *worker, struct el_program *program, const struct el_edge *edge,
                               int tensor, struct el_buffer **buffer_p);
void el_edge_send(struct el_worker *worker, struct el_program *program, const struct el_edge *edge, int tensor,
                  struct el_view view, int *op_p);
