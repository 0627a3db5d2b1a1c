/* Flights: a micro-batch on its way through a part of the model, from its forward to the end of its backward. What a
 * pipeline's step is made of; in which order is the schedule's.
 *
 *     el_line_open(worker, &line);                       once
 *     el_line_begin(&line, program, inputs, labels);     in a step, before the first action ...
 *     el_line_do(&line, action);                         each of the device's row
 *     el_line_end(&line, grads);                         gradients are complete: of the shard's parameters
 *     el_line_close(&line);
 *
 * A part's values go to the next one, and their gradients come back: by a message where that is on another device, else
 * as they are; so flights of one micro-batch through neighbours on a device end together. Messages of a device are
 * received in the order in which it sends them: with one that is needed come those before it, to flights that need them
 * later.
 *
 * Memory: a flight holds activations until it ends; where backward is parted the first half frees what gradients of
 * weights do not need. Errors: the program's, and EL_ERR_HOST_MEMORY. Threads: the worker's.
 */
#ifndef EL_FLIGHT_H
#define EL_FLIGHT_H

#include "runtime/parallel/edge.h"

/* A micro-batch on its way through a part. */
struct el_flight {
    struct el_pass *pass; /* NULL: not begun, or ended */
    struct el_view inputs[EL_GRAPH_EDGE_MAX], outputs[EL_GRAPH_EDGE_MAX];
    struct el_view doutputs[EL_GRAPH_EDGE_MAX], dinputs[EL_GRAPH_EDGE_MAX];
    bool has_inputs, has_doutputs;                  /* received */
    struct el_buffer *owned[2 * EL_GRAPH_EDGE_MAX]; /* what was received, or made for it: freed at its end */
    int n_owned;
    int sent_op;  /* the last of its values to leave, -1: none */
    bool is_back; /* nothing is left to compute */
};

/* A device's place in the pipeline: its member is its worker's only one. */
struct el_line {
    struct el_worker *worker;
    int n_micro;
    int64_t micro_batch; /* samples */
    struct el_held held;
    struct el_view (*grads)[EL_GRAPH_PARAMS_MAX]; /* [held.n], of each part's parameters */
    struct el_flight *flights;                    /* [held.n][n_micro] */
    struct el_buffer *losses;                     /* [n_micro], where the last part is; else NULL */
    /* The step being issued. */
    struct el_program *program;
    struct el_buffer *inputs, *labels; /* of the whole batch: where the first part is, where the last one is */
    int n_looked[EL_MEMBERS_MAX];      /* by stage: how many of its actions' messages to this one have been received */
};

/* After a failure too it is to be closed. */
enum el_status el_line_open(struct el_worker *worker, struct el_line *line);
/* A line of zeros is legal. */
void el_line_close(struct el_line *line);
void el_line_begin(struct el_line *line, struct el_program *program, struct el_buffer *inputs,
                   struct el_buffer *labels);
enum el_status el_line_do(struct el_line *line, struct el_action action);
void el_line_end(const struct el_line *line, struct el_view *grads);

#endif
