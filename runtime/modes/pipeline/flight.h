/* Flights: micro-batches on their way through a part of the model, from forward to the end of backward.
 *
 *     el_line_open(worker, &line);                       once
 *     el_line_step(&line, program);                      a whole step, which consists of
 *     el_line_begin(&line, program, inputs, labels);     before the first action ...
 *     el_line_do(&line, action);                         each of the device's row
 *     el_line_close(&line);
 *
 * Flights of one micro-batch through adjacent parts on a device share values and end together. Messages are received in
 * sending order: earlier ones come with a needed one, for flights that need them later.
 * Memory: a flight keeps activations until it ends; the first half of a split backward frees what weight gradients do
 * not need. Errors: the program's, and EL_ERR_HOST_MEMORY. Threads: the worker's. */
#pragma once

#include "runtime/worker/copies.h"
#include "runtime/worker/share.h"

/* Messages at a cut of the model, on the world's communicator: values to the next part, gradients back, one per tensor
 * in the order of the edges. A device's messages are received in sending order, because not all communicators can
 * distinguish them.
 *
 *     el_edge_open(worker, &held, batch);                            mailboxes: once, before the first program
 *     el_edge_receive(worker, program, &edge, tensor, &buffer);      in a step: the compute stream waits for it
 *     el_edge_send(worker, program, &edge, tensor, view, &op);       the view may be freed after op `op`
 *
 * Ownership: the caller frees received buffers, by the program. Threads: the worker's. Errors: the program's. */

struct el_edge {
    int peer;      /* worker */
    int64_t batch; /* samples per message */
};

/* Sums gradients of parameters on two stages, on both; grads[n_params] of the shard's graph. At a step's end, after all
 * other messages. */
void el_edge_issue_sums(struct el_worker *worker, struct el_program *program, const struct el_view *grads);
struct el_view el_edge_receive(struct el_worker *worker, struct el_program *program, const struct el_edge *edge,
                               int tensor, struct el_buffer **buffer_p);
void el_edge_send(struct el_worker *worker, struct el_program *program, const struct el_edge *edge, int tensor,
                  struct el_view view, int *op_p);

struct el_line;

struct el_flight {
    struct el_line *line;
    int local;                        /* part, among the device's */
    struct el_pass *pass;             /* NULL: not begun, or ended */
    struct el_view *inputs, *outputs; /* [n_inputs], [n_outputs] of the part */
    struct el_view *dinputs, *doutputs;
    bool has_inputs, has_doutputs;
    struct el_buffer **owned; /* received or allocated for it: freed at its end */
    int n_owned;
    int sent_op; /* its last send, -1: none */
    bool is_back;
};

/* A device's place in the pipeline; its member is its worker's only one. */
struct el_line {
    struct el_worker *worker;
    int n_micro;
    int64_t micro_batch; /* samples */
    struct el_held held;
    struct el_view **grads;      /* [held.n], of each part's parameters */
    struct el_pass_cast **casts; /* likewise: one copy for all micro-batches in flight */
    struct el_flight *flights;
    int *first_micro, *last_micro; /* [held.n]: first backward, and the one that completes the part's gradients */
    struct el_buffer *losses;      /* [n_micro], at the last part; else NULL */
    struct el_share_hooks hooks;   /* the mode's, set after open; zeros: none */
    /* The step being issued. */
    struct el_program *program;
    struct el_buffer *inputs, *labels; /* the data rank's share: at the first part, at the last part */
    int n_looked[EL_PARTS_MAX];        /* by stage: its actions whose messages to this one are received */
};

/* Close it after a failure too. */
enum el_status el_line_open(struct el_worker *worker, struct el_line *line);
void el_line_close(struct el_line *line); /* A zeroed line is legal */
void el_line_begin(struct el_line *line, struct el_program *program, struct el_buffer *inputs,
                   struct el_buffer *labels);
enum el_status el_line_do(struct el_line *line, struct el_action action);

/* line.c: like el_share_step, for a device with some parts; calls the mode's hooks. */
enum el_status el_line_step(struct el_line *line, struct el_program *program);
/* The mean over micro-batches, at the last part; elsewhere there is none. */
enum el_status el_line_read_loss(const struct el_line *line, double *loss_p);
/* Checks the schedule's cut of model and batch; sets n_micro. Errors: EL_ERR_INVALID naming the option to change. */
enum el_status el_line_check(struct el_train_config *config, const struct el_layout *layout);
