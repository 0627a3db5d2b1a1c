/* A share of the batch on one device: load, forward, loss, backward, for modes with the whole model on a device.
 *
 *     el_share_step(worker, program, &hooks);     a whole step, with the mode's additions; or in pieces:
 *
 *     struct el_share_pass pass = {.shard = ..., .feed = ..., .grads = grads, .scale = 1, .loss = ...};
 *     el_share_issue(program, &pass);     sets grads[]; inputs, labels and output still exist
 *     ... reduce, optimizer ...
 *     el_share_end(program, &pass);       frees them, like a training loop's variables at its end
 *
 * Errors: the program's, except el_share_issue's EL_ERR_HOST_MEMORY. Threads: the worker's. */
#pragma once

#include "runtime/gradients/reducer.h"
#include "runtime/worker/worker.h"

struct el_share_pass {
    const struct el_shard *shard;
    struct el_feed *feed;
    int64_t first, samples;                 /* rows of the loaded ones; samples 0: all */
    struct el_view *grads;                  /* [n_params], as in el_pass_spec */
    const struct el_view *params, *buffers; /* NULL: the shard's */
    struct el_pass_env env;
    bool overwrite;
    bool computed_grads; /* gradients have the type of parameters in passes; else the stored one */
    double scale;        /* of the loss's gradient */
    struct el_view loss; /* receives the share's mean loss: one element */
    void (*grad_ready)(void *context, int param);
    void *context;
    struct el_buffer *inputs, *labels; /* made by el_share_issue, like the pass */
    struct el_pass *pass;
};

/* A mode's additions to a plain step; all optional. */
struct el_share_hooks {
    bool overwrite; /* as in el_pass_spec: in the first micro-step, or in `each` */
    bool computed_grads;
    bool each; /* call grad_ready in each micro-step, not only in the last */
    void (*grad_ready)(void *context, int param);
    const struct el_view *params;
    el_pass_node_hook *before_node, *after_node;
    /* Before anything is issued; and when all gradients are ready, to sum them over the members. */
    void (*begin)(void *context, struct el_program *program, struct el_view *grads);
    void (*reduce)(void *context, struct el_program *program, struct el_view *grads);
    /* After the optimizer has updated the parameters. */
    void (*updated)(void *context, struct el_program *program);
    void *context;
};

struct el_share_hooks el_share_reduce_by(struct el_reducer *reducer);

/* A whole step of a worker with one member and the whole model: zeroes gradients, loads, forward, backward, optimizer.
 * `hooks` NULL: plain training. With n_accumulate each micro-step does all but the optimizer, weighted equally or by
 * samples, and adds to the gradients. */
enum el_status el_share_step(struct el_worker *worker, struct el_program *program, const struct el_share_hooks *hooks);

enum el_status el_share_issue(struct el_program *program, struct el_share_pass *pass);
void el_share_end(struct el_program *program, struct el_share_pass *pass);

/* The weight of the worker's loss in its own mean: 1, or by samples. */
double el_share_weight_of_worker(const struct el_worker *worker);
/* Sums gradients of the pieces' own tokens (el_param.is_partial) over the pieces, in one all-reduce. */
void el_share_sum_pieces(struct el_worker *worker, struct el_program *program, const struct el_view *grads);
/* A member's mean over micro-steps. */
enum el_status el_share_read_loss(const struct el_member *member, double *loss_p);

/* Broadcasts the first member's weights and buffers over `comm`, in a step of its own. Blocking. Collective. */
enum el_status el_share_send_weights(struct el_worker *worker, struct el_comm *comm);

/* loss [1] = mean over `batch` rows; dlogits [batch, classes]: its gradient. `pieces`: devices with some of the classes
 * each, which exchange three numbers per row; NULL: none. */
void el_share_issue_loss(const struct el_shard *shard, struct el_program *program, struct el_comm *pieces,
                         struct el_view logits, struct el_view labels, struct el_view dlogits, int64_t batch,
                         struct el_view loss);
