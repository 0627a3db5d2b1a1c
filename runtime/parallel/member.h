/* A member's own state, and the parts of a step that all modes share: loading, loss, optimizer.
 *
 * A member is a device with its rank. An owner holds parameters, kept gradients and optimizer state across steps; dp's
 * other devices hold nothing between steps. The issue functions put ops on the member's compute stream; their failures
 * are the program's.
 */
#ifndef EL_MEMBER_H
#define EL_MEMBER_H

#include "runtime/comm/comm.h"
#include "runtime/graph/pass.h"
#include "runtime/parallel/train.h"

struct el_member {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_device *device;
    int rank, size; /* which share of each global batch it loads */
    int64_t share;  /* samples of its share */
    struct el_view params[EL_GRAPH_PARAMS_MAX];
    struct el_view grads[EL_GRAPH_PARAMS_MAX]; /* --zero-grad keep; else buffers are NULL */
    struct el_view slots[2][EL_GRAPH_PARAMS_MAX];
    struct el_buffer *loss;
    const struct el_dataset *dataset;
    struct el_loader *loader;
    void *host_inputs;
    int32_t *host_labels;
};

/* Opens an owner: allocates and initializes. `dataset` NULL: nothing can be loaded (forecasts). */
enum el_status el_member_open_owner(struct el_member *member, const struct el_train_config *config,
                                    const struct el_graph *graph, struct el_device *device, int rank, int size,
                                    const struct el_dataset *dataset);
/* A device without state of its own. */
void el_member_open_helper(struct el_member *member, const struct el_train_config *config, const struct el_graph *graph,
                           struct el_device *device);
/* Rank `rank` of `size`'s samples for a device that `owner` already owns: nothing but a loader. */
enum el_status el_member_open_share(struct el_member *member, const struct el_member *owner, int rank, int size);
/* The owner's weights with share `rank` of `size` of another split, in order and once; `batch` of all shares together.
 */
enum el_status el_member_open_evaluation(struct el_member *member, const struct el_member *owner,
                                         enum el_data_split split, int rank, int size, int64_t batch);
/* Closes what the two above opened; the owner's state stays. */
void el_member_close_share(struct el_member *member);
void el_member_close(struct el_member *member);

size_t el_member_param_bytes(const struct el_member *member, int param);
/* A sample's bytes of input. */
size_t el_member_input_bytes(const struct el_member *member);

/* Zeroes kept gradients (phase optimizer); nothing where they are freed. */
void el_member_issue_zero_grad(struct el_member *member, struct el_program *program);
/* Loads the member's share into host memory and copies it to the device: inputs and labels are allocated here (tag
 * input).
 */
void el_member_issue_load(struct el_member *member, struct el_program *program, struct el_buffer **inputs_p,
                          struct el_buffer **labels_p);
/* loss = mean over `batch`; `dlogits` gets its gradient. */
void el_member_issue_loss(struct el_member *member, struct el_program *program, struct el_view logits,
                          struct el_view labels, struct el_view dlogits, int64_t batch, struct el_view loss);
/* A share of the batch on its way through a member's device: what stays in memory until the step's end, as a training
 * loop's variables do. */
struct el_share_pass {
    struct el_member *share; /* whose samples; the member itself, or one opened by el_member_open_share */
    struct el_view *grads;   /* as in el_pass_spec */
    double scale;            /* of the loss's gradient; 1: as it is */
    struct el_buffer *loss;  /* gets the share's mean loss */
    void (*grad_ready)(void *context, int param);
    void *context;
    struct el_buffer *inputs, *labels; /* made here */
    struct el_pass *pass;
};
/* Loads the share, and issues its forward, loss and backward. */
enum el_status el_member_issue_gradients(struct el_member *member, struct el_program *program,
                                         struct el_share_pass *pass);
void el_member_end_gradients(struct el_program *program, struct el_share_pass *pass);

/* One step of the optimizer, then the limit on norms. */
void el_member_issue_optimizer(struct el_member *member, struct el_program *program, const struct el_view *grads);
/* y = scale * x, n elements. */
void el_member_issue_scale(struct el_member *member, struct el_program *program, enum el_phase phase, const char *label,
                           struct el_view x, struct el_view y, int64_t n, double scale);
/* Frees gradients that were allocated in the step. */
void el_member_free_grads(struct el_member *member, struct el_program *program, const struct el_view *grads);

/* The last step's loss; 0 where kernels do not compute. Between steps. */
enum el_status el_member_read_loss(const struct el_member *member, double *loss_p);

#endif
