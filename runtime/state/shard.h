/* A shard: a device, and what it holds of a model from step to step. Its graph is the part of the model that it is
 * given, and everything here is sized by that graph. What is loaded into it is the feed's (feed.h).
 *
 *     el_shard_open(&shard, &config, graph, device, owns);     weights have their initial values
 *     el_shard_issue_zero_grad(&shard, program);                in a step ...
 *     el_shard_issue_optimizer(&shard, program, grads);
 *     el_shard_read_loss(&shard, &loss);                        ... and after it
 *     el_shard_close(&shard);
 *
 * Shapes: views are of a parameter's elements, in the type of the configuration: [n_params] of them, in the graph's
 * order. Where one is not there its buffer is NULL.
 * Timing: open, close and read_loss block. What is called issue puts ops on the device's compute stream, and its
 * failures are the program's.
 * Ownership: the shard owns its buffers; config, graph and device must outlive it. Threads: one at a time.
 * Errors: EL_ERR_OOM names device and tag; EL_ERR_HOST_MEMORY.
 */
#ifndef EL_SHARD_H
#define EL_SHARD_H

#include "runtime/graph/pass.h"
#include "runtime/layout/config.h"

struct el_shard {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_device *device;
    /* An owner's; NULL on a device that holds nothing between steps. A parameter that is frozen, or that the graph does
     * not use, has neither a gradient nor slots. */
    struct el_view *params;
    /* --zero-grad keep: its own. --bucket-view on: places in the mode's buckets, which the mode fills in and frees.
     * Else without buffers, and allocated in each step. */
    struct el_view *grads;
    struct el_view *slots[2]; /* of the optimizer */
    struct el_view *issued;   /* a place for the gradients of the step that its mode is issuing */
    struct el_view *buffers;  /* [n_buffers]: an owner's, with their initial values, in one piece (buffers.h) */
    struct el_buffer *loss;   /* [n_accumulate] of the configuration: of the last step's micro-steps */
};

/* After a failure too it is to be closed. */
enum el_status el_shard_open(struct el_shard *shard, const struct el_train_config *config, const struct el_graph *graph,
                             struct el_device *device, bool owns);
/* A shard of zeros is legal. */
void el_shard_close(struct el_shard *shard);

size_t el_shard_param_bytes(const struct el_shard *shard, int param);
/* What a parameter or a buffer of `graph` begins with: the values of config.weights, or those drawn by the seed;
 * [count] in the order of its shape. */
enum el_status el_shard_initial_values(const struct el_train_config *config, const struct el_graph *graph,
                                       const struct el_param *array, double *values);
/* An array's values as people, files and comparisons want them: all elements in the order of its shape, as doubles,
 * however the device stores them. `array` is a parameter or a buffer of the graph, `view` where its values are, or its
 * gradient's, or a slot's. Between steps. */
enum el_status el_shard_read_doubles(const struct el_shard *shard, const struct el_param *array, struct el_view view,
                                     double *values);
/* Element `i` of `values`, in the type of the configuration; 0 where kernels do not compute. Between steps. */
enum el_status el_shard_read_value(const struct el_shard *shard, struct el_buffer *values, int i, double *value_p);
/* The mean of `loss`. */
enum el_status el_shard_read_loss(const struct el_shard *shard, double *loss_p);

/* Zeroes kept gradients (phase optimizer); nothing where they are freed. */
void el_shard_issue_zero_grad(const struct el_shard *shard, struct el_program *program);
/* One step of the optimizer by grads[n_params], then the limit on norms. What has no gradient stays as it is. */
void el_shard_issue_optimizer(const struct el_shard *shard, struct el_program *program, const struct el_view *grads);
/* x = value, n elements. */
void el_shard_issue_fill(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                         const char *label, struct el_view x, int64_t n, double value);
/* y = scale * x, n elements. */
void el_shard_issue_scale(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                          const char *label, struct el_view x, struct el_view y, int64_t n, double scale);
/* Frees those of grads[n_params] that were allocated in the step. */
void el_shard_free_grads(const struct el_shard *shard, struct el_program *program, const struct el_view *grads);

#endif
