/* What crosses a cut of the model: values to the next stage, gradients to the one before, as messages between
 * neighbours on the world's communicator. One message a tensor, in the order of the parts' edges, which both sides
 * have alike.
 *
 *     el_edge_open(worker, batch, n_messages);                       mailboxes: once, before the first program
 *     el_edge_receive(worker, program, &edge, tensor, &buffer);      in a step: the compute stream waits for it
 *     el_edge_send(worker, program, &edge, tensor, view, &op);       the view may be freed behind op `op`
 *
 * Units: batch in samples. Ownership: what is received is the caller's to free, by the program. Threads: the worker's.
 * Errors: the program's.
 */
#ifndef EL_EDGE_H
#define EL_EDGE_H

#include "runtime/parallel/mode.h"

struct el_edge {
    int peer;      /* worker */
    int64_t batch; /* samples of each message */
};

/* Mailboxes for so many micro-batches of `batch` samples each way. Collective. */
enum el_status el_edge_open(struct el_worker *worker, int64_t batch, int n_messages);
/* Of a tensor of the whole model. */
size_t el_edge_bytes(const struct el_worker *worker, int64_t batch, int tensor);
struct el_view el_edge_receive(struct el_worker *worker, struct el_program *program, const struct el_edge *edge,
                               int tensor, struct el_buffer **buffer_p);
void el_edge_send(struct el_worker *worker, struct el_program *program, const struct el_edge *edge, int tensor,
                  struct el_view view, int *op_p);

#endif
