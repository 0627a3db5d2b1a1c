/* Flights: a micro-batch on its way through a part of the model, from its forward to the end of its backward. What a
 * pipeline's step is made of; in which order is the schedule's.
 *
 *     el_line_open(worker, &line);                       once
 *     el_line_step(&line, program);                      all of a step; of which are
 *     el_line_begin(&line, program, inputs, labels);     before the first action ...
 *     el_line_do(&line, action);                         each of the device's row
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
#include "runtime/worker/share.h"

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
    struct el_view **grads;        /* [held.n], of each part's parameters */
    struct el_pass_cast **casts;   /* likewise: one copy of each for all micro-batches in flight */
    struct el_flight *flights;     /* [held.n][n_micro] */
    int *first_micro, *last_micro; /* [held.n]: whose backward is the first, and completes the part's gradients */
    struct el_buffer *losses;      /* [n_micro], where the last part is; else NULL */
    struct el_share_hooks hooks;   /* of the mode: set after open; zeros: none */
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

/* line.c: as el_share_step, of a device with some of the model's parts: with what the mode's hooks add to it. */
enum el_status el_line_step(struct el_line *line, struct el_program *program);
/* The mean over micro-batches, of the device that has the last part; the others have none. */
enum el_status el_line_read_loss(const struct el_line *line, double *loss_p);
/* Whether the model can be cut as the schedule has it, and the batch too; fills in n_micro. Errors: EL_ERR_INVALID
 * naming the option to change. */
enum el_status el_line_check(struct el_train_config *config, const struct el_layout *layout);
