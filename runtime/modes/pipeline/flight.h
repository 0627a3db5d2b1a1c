/* Flights: a micro-batch on its way through a part of the model, from its forward to the end of its backward. What a
 * pipeline's step is made of; in which order is the schedule's.
 *
 *     el_line_open(worker, &line);                       once
 *     el_line_begin(&line, program, inputs, labels);     in a step, before the first action ...
 *     el_line_do(&line, action);                         each of the device's row
 *     the shard's issued[]                               ... and behind the last one
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
#pragma once

#include "runtime/modes/pipeline/edge.h"

struct el_line;

/* A micro-batch on its way through a part. */
struct el_flight {
    struct el_line *line;
    int local;                        /* part, among the device's */
    struct el_pass *pass;             /* NULL: not begun, or ended */
    struct el_view *inputs, *outputs; /* [n_inputs], [n_outputs] of the part */
    struct el_view *dinputs, *doutputs;
    bool has_inputs, has_doutputs; /* received */
    struct el_buffer **owned;      /* what was received, or made for it: freed at its end */
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
    struct el_view **grads;    /* [held.n], of each part's parameters */
    struct el_flight *flights; /* [held.n][n_micro] */
    int *last_micro;           /* [held.n]: whose backward completes a part's gradients */
    struct el_buffer *losses;  /* [n_micro], where the last part is; else NULL */
    /* Gradient `param` of the shard is complete, in its issued[param]; NULL: nobody asks. Set after open. After the
     * last action all are there. */
    void (*grad_ready)(void *context, int param);
    void *context;
    /* The step being issued. */
    struct el_program *program;
    struct el_buffer *inputs, *labels; /* of the data rank's share: where the first part is, where the last one is */
    int n_looked[EL_PARTS_MAX];        /* by stage: how many of its actions' messages to this one have been received */
};

/* After a failure too it is to be closed. */
enum el_status el_line_open(struct el_worker *worker, struct el_line *line);
/* A line of zeros is legal. */
void el_line_close(struct el_line *line);
void el_line_begin(struct el_line *line, struct el_program *program, struct el_buffer *inputs,
                   struct el_buffer *labels);
enum el_status el_line_do(struct el_line *line, struct el_action action);
