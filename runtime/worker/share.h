/* A share of the batch on its way through one device: load, forward, loss, backward. What modes with the whole model on
 * a device have in common; dp, whose loss is on another device than its passes, has parts of it only.
 *
 *     el_share_step(worker, program, &hooks);     all of a step, with what the mode adds to it; or, in pieces:
 *
 *     struct el_share_pass pass = {.shard = ..., .feed = ..., .grads = grads, .scale = 1, .loss = ...};
 *     el_share_issue(program, &pass);     grads[] are there; inputs, labels and output still are
 *     ... reduce, optimizer ...
 *     el_share_end(program, &pass);       frees them, as a training loop's variables go at its end
 *
 * Errors: the program's, but for el_share_issue's EL_ERR_HOST_MEMORY. Threads: the worker's.
 */
#pragma once

#include "runtime/gradients/reducer.h"
#include "runtime/worker/worker.h"

struct el_share_pass {
    const struct el_shard *shard;
    struct el_feed *feed;
    int64_t first, samples;                 /* of what it loads: which rows; samples 0: all */
    struct el_view *grads;                  /* [n_params], as in el_pass_spec */
    const struct el_view *params, *buffers; /* NULL: the shard's */
    struct el_pass_env env;                 /* as in el_pass_spec */
    bool overwrite;                         /* as in el_pass_spec */
    bool computed_grads; /* gradients are of the type that passes take parameters in; else of the stored one */
    double scale;        /* of the loss's gradient; 1: as it is */
    struct el_view loss; /* gets the share's mean loss: one element */
    void (*grad_ready)(void *context, int param); /* optional, as in el_pass_spec */
    void *context;
    struct el_buffer *inputs, *labels; /* made by el_share_issue, as the pass is */
    struct el_pass *pass;
};

/* What a mode adds to a plain step; all optional, but for `context` where it is wanted. */
struct el_share_hooks {
    bool overwrite;                               /* as in el_pass_spec: in the first micro-step, or in `each` */
    bool computed_grads;                          /* as in el_share_pass */
    bool each;                                    /* grad_ready is each micro-step's, not the last one's alone */
    void (*grad_ready)(void *context, int param); /* as in el_pass_spec */
    const struct el_view *params;                 /* NULL: the shard's */
    el_pass_node_hook *before_node, *after_node;  /* as in el_pass_env */
    /* Before anything is issued; and when all gradients are there: sums them over the members. */
    void (*begin)(void *context, struct el_program *program, struct el_view *grads);
    void (*reduce)(void *context, struct el_program *program, struct el_view *grads);
    /* When the optimizer has changed the parameters. */
    void (*updated)(void *context, struct el_program *program);
    void *context;
};

/* Those by which a reducer sums the gradients, as backward goes on. */
struct el_share_hooks el_share_reduce_by(struct el_reducer *reducer);

/* A whole step of a worker whose one member has the whole model: zeroes gradients, loads, goes forward and back, and
 * runs the optimizer. `hooks` NULL: plain training. Of several micro-steps (n_accumulate) each loads, goes forward and
 * back with its loss weighted as el_share_weight says, and adds to the gradients. */
enum el_status el_share_step(struct el_worker *worker, struct el_program *program, const struct el_share_hooks *hooks);

enum el_status el_share_issue(struct el_program *program, struct el_share_pass *pass);
void el_share_end(struct el_program *program, struct el_share_pass *pass);

/* What the worker's mean loss counts there: 1, or as its samples do. */
double el_share_weight_of_worker(const struct el_worker *worker);
/* Gradients that are of each piece's own tokens (el_param.is_partial) become their sums over the pieces, in one
 * all-reduce. */
void el_share_sum_pieces(struct el_worker *worker, struct el_program *program, const struct el_view *grads);
/* The mean over the micro-steps of a member. */
enum el_status el_share_read_loss(const struct el_member *member, double *loss_p);

/* Everybody of `comm` gets its first member's weights and buffers, in a step of their own. Blocking. Collective. */
enum el_status el_share_send_weights(struct el_worker *worker, struct el_comm *comm);

/* loss [1] = mean over `batch` rows; dlogits [batch, classes] gets its gradient. `pieces`: among devices that have some
 * of the classes each, which exchange three numbers a row; NULL: there are no others. */
void el_share_issue_loss(const struct el_shard *shard, struct el_program *program, struct el_comm *pieces,
                         struct el_view logits, struct el_view labels, struct el_view dlogits, int64_t batch,
                         struct el_view loss);
