/* Messages at a cut of the model, on the world's communicator: values to the next part, gradients back, one per tensor
 * in the order of the edges. A device's messages are received in sending order, because not all communicators can
 * distinguish them.
 *
 *     el_edge_open(worker, &held, batch);                            mailboxes: once, before the first program
 *     el_edge_receive(worker, program, &edge, tensor, &buffer);      in a step: the compute stream waits for it
 *     el_edge_send(worker, program, &edge, tensor, view, &op);       the view may be freed after op `op`
 *
 * Ownership: the caller frees received buffers, by the program. Threads: the worker's. Errors: the program's. */
#pragma once

#include "runtime/worker/copies.h"

struct el_edge {
    int peer;      /* worker */
    int64_t batch; /* samples per message */
};

/* Opens mailboxes between communicating workers, with the schedule's room, for micro-batches of `batch` samples.
 * Collective. */
enum el_status el_edge_open(struct el_worker *worker, const struct el_held *held, int64_t batch);
/* Sums gradients of parameters on two stages, on both; grads[n_params] of the shard's graph. At a step's end, after all
 * other messages. */
void el_edge_issue_sums(struct el_worker *worker, struct el_program *program, const struct el_view *grads);
size_t el_edge_bytes(const struct el_worker *worker, int64_t batch, int tensor);
struct el_view el_edge_receive(struct el_worker *worker, struct el_program *program, const struct el_edge *edge,
                               int tensor, struct el_buffer **buffer_p);
void el_edge_send(struct el_worker *worker, struct el_program *program, const struct el_edge *edge, int tensor,
                  struct el_view view, int *op_p);
