/* A pass: one forward and backward of a graph by one member, issued into a program.
 *
 *     el_pass_open(program, &spec, &pass);
 *     el_pass_forward(pass, inputs, outputs);      activations are allocated here, kept where some backward needs them
 *     ... the loss's gradient ...
 *     el_pass_backward(pass, doutputs, dinputs);   gradients of parameters; a hook a parameter after its last use; or
 *     el_pass_backward_inputs(pass, doutputs, dinputs); ... el_pass_backward_weights(pass);      the same at two times
 *     el_pass_close(pass);                         frees what is left (the output above all)
 *
 * Memory: an activation is freed after its last use in forward if no backward keeps it, else after the last backward
 * that does; the gradient of a tensor is allocated with its first contribution and freed after its producer's backward.
 * In two halves what gradients of weights need stays until the second: inputs of nodes that have any, and the gradients
 * of their outputs. Where a node's kernel gives both gradients at once (batch norm) it runs in the first; the
 * parameter's hook is called in the second all the same. A node before which nothing is trained has no backward, and
 * nothing is kept for it; one whose own parameters are frozen gives the gradients of its inputs alone. All marks and
 * ops are on one stream. Shapes: a tensor of shape [a, b] is [batch, a, b] here; a parameter and its gradient have the
 * graph's. A parameter that a node computes with in another type than it is stored in is cast at its first use, and the
 * copy (tag cast) is freed after its last one, or where backward does not need it after forward; gradients are computed
 * in spec.dtype, and cast to what is stored, node by node. Ownership: a pass borrows what its spec points to until
 * close; views that it gives are valid until then. Threads: one. Errors: kept by the program (program.h).
 */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/device/program.h"
#include "runtime/graph/graph.h"

/* Before and after what is issued for a node: forward, and backward, by `phase`; of backward in two halves (below) in
 * both. What is stored in pieces is gathered here: views in spec.params are read when the node issues. */
typedef void el_pass_node_hook(void *context, struct el_program *program, const struct el_node *node,
                               enum el_phase phase);

/* What surrounds a pass. All zeros: one device, which has everything. */
struct el_pass_env {
    struct el_comm *const *group; /* [EL_AXIS_COUNT], for nodes that communicate; NULL: nobody is beside it */
    el_pass_node_hook *before_node, *after_node; /* optional */
    void *context;
};

/* What passes of one step that go on beside one another have of a parameter in another type: one copy, as long as one
 * of them needs it, as PyTorch's autocast keeps one. */
struct el_pass_cast {
    struct el_view view;
    int users;
};

struct el_pass_spec {
    const struct el_graph *graph;
    struct el_device *device;
    int stream;
    enum el_dtype dtype; /* of everything that is not ids, nor of bf16 by the graph's precision */
    int64_t batch;
    int64_t sample_first, sample_stride; /* global sample of row r: first + r * stride; dropout draws by it */
    uint64_t seed;
    bool training;                 /* dropout on, activations kept */
    bool input_grads;              /* backward gives the gradients of the graph's inputs too: a later part of a model */
    const struct el_view *params;  /* [n_params] */
    const struct el_view *buffers; /* [n_buffers]; training changes their values */
    struct el_pass_cast *casts;    /* [n_params], of all passes that share them; NULL: this one alone */
    /* [n_params], training only; a frozen parameter's stays as it is. Where buffer is NULL the gradient is allocated
     * (tag grad) at the first contribution and put here: the caller frees it. Else the new gradient is allocated beside
     * the given one, added to it when complete, and freed, as PyTorch's AccumulateGrad does. */
    struct el_view *grads;
    bool full_grads; /* they are of `dtype`; else of the type that parameters have */
    bool overwrite;  /* all are given and hold no values: the first contribution is written there, later ones added */
    void (*grad_ready)(void *context, int param); /* optional: all contributions are issued; not of frozen ones */
    void *context;
    struct el_pass_env env;
};

/* The order in which a device stores an array's values, and those of its gradient and slots; NULL: that of its shape.
 * Weights of four dimensions are conv2d's. Where rows have a limit they stay whole. */
const struct el_weights_layout *el_param_layout(const struct el_param *array, const struct el_device *device,
                                                enum el_dtype dtype);

/* Errors: EL_ERR_HOST_MEMORY. */
enum el_status el_pass_open(struct el_program *program, const struct el_pass_spec *spec, struct el_pass **pass_p);
/* inputs[n_inputs of the graph], each [batch, its shape], the caller's until close. Fills outputs[n_outputs], whose
 * memory is the pass's until close; one that only passes through is the input itself. */
void el_pass_forward(struct el_pass *pass, const struct el_view *inputs, struct el_view *outputs);
/* doutputs[n_outputs], each [batch, its shape], are the caller's; they may be changed. Fills dinputs[n_inputs], where
 * spec.input_grads asks for them; dinputs may be NULL. Their memory is the pass's until close; of an input that only
 * passes through it is the output's gradient itself, and of ids there is none. */
void el_pass_backward(struct el_pass *pass, const struct el_view *doutputs, struct el_view *dinputs);
/* Its two halves, which together issue the same kernels. The first gives dinputs, the second gradients of parameters:
 * until then doutputs, which the first may change, are the pass's too. */
void el_pass_backward_inputs(struct el_pass *pass, const struct el_view *doutputs, struct el_view *dinputs);
void el_pass_backward_weights(struct el_pass *pass);
/* Frees the outputs before close, where nobody needs them any more. */
void el_pass_release_outputs(struct el_pass *pass);
/* Marks what is left as freed. NULL is legal. */
void el_pass_close(struct el_pass *pass);

/* For node types. Views are of whole batches. */
const struct el_pass_spec *el_pass_get(const struct el_pass *pass);
struct el_view el_pass_input(const struct el_pass *pass, const struct el_node *node, int i);
struct el_view el_pass_output(const struct el_pass *pass, const struct el_node *node, int i);
/* In the type that the node computes with it. */
struct el_view el_pass_param(struct el_pass *pass, const struct el_node *node, int i);
/* In which order its values are stored; NULL: that of its shape. */
const struct el_weights_layout *el_pass_param_layout(const struct el_pass *pass, const struct el_node *node, int i);
struct el_view el_pass_buffer(const struct el_pass *pass, const struct el_node *node, int i);
/* What its type's hook `kept` asked for. */
struct el_view el_pass_kept(const struct el_pass *pass, const struct el_node *node);
/* Backward: the gradient of output i, complete; the node may change it. */
struct el_view el_pass_output_grad(const struct el_pass *pass, const struct el_node *node, int i);
/* Where the gradient of input i goes; *acc_p is 1 where it must be added. false: nobody wants it (ids, the
 * model's input). */
bool el_pass_input_grad(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p, double *acc_p);
/* The same for kernels that can only overwrite: where the gradient must be added the view is scratch, and `done` adds
 * it. */
bool el_pass_input_grad_open(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p);
/* For kernels that must give it with other gradients: scratch where nobody wants it, that `done` frees. */
void el_pass_input_grad_force(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p);
void el_pass_input_grad_done(struct el_pass *pass, const struct el_node *node, int i, struct el_view view);
/* The output's gradient becomes that of input i, without a copy; the node may go on changing it, as long as its
 * backward runs. Shapes must be equal. false: nobody wants it, or there are contributions already, to which the node
 * must add. */
bool el_pass_input_grad_hand_over(struct el_pass *pass, const struct el_node *node, int i);
/* Where the gradient of parameter i goes. Of a frozen one, of a node that has others or whose kernel gives all
 * gradients together: scratch, and *acc_p stays as it is. */
struct el_view el_pass_param_grad(struct el_pass *pass, const struct el_node *node, int i, double *acc_p);
/* Issues a collective among them, which the node's next op waits for: dtype, label and phase are filled in. Nothing
 * where nobody is there. */
void el_pass_communicate(struct el_pass *pass, const struct el_node *node, enum el_axis axis, struct el_comm_op *op);
/* What the pieces of a model say to each other. `part` has `count` elements: a tensor that each piece has whole, or, by
 * tokens (graph.h), in part.
 *
 *     sums = el_pass_sum_open(pass, node, part, count);     each piece's contribution to all of it goes here
 *     el_pass_sum_done(pass, node, sums, part, count);      all-reduce, or reduce-scatter; or in two: _begin, which
 * goes on beside what the node issues next, and _end whole = el_pass_whole_open(pass, node, part, count);  all of it:
 * an all-gather, or the tensor itself el_pass_whole_done(pass, whole, part);
 */
struct el_view el_pass_sum_open(struct el_pass *pass, const struct el_node *node, struct el_view part, int64_t count);
void el_pass_sum_begin(struct el_pass *pass, const struct el_node *node, struct el_view sums, struct el_view part,
                       int64_t count);
/* The part; of no buffer, if none has begun. */
struct el_view el_pass_sum_end(struct el_pass *pass);
void el_pass_sum_done(struct el_pass *pass, const struct el_node *node, struct el_view sums, struct el_view part,
                      int64_t count);
struct el_view el_pass_whole_open(struct el_pass *pass, const struct el_node *node, struct el_view part, int64_t count);
void el_pass_whole_done(struct el_pass *pass, struct el_view whole, struct el_view part);
/* From here on the gradient of output i is that of all tokens. */
void el_pass_output_grad_whole(struct el_pass *pass, const struct el_node *node, int i);
/* The rows of a batch that a device has, as stretches of whole samples, or of a part of one; by tokens there may be
 * several. For nodes that tell samples and tokens apart.
 *
 *     for (struct el_stretch s = {0}; el_pass_next_stretch(pass, tensor, &s);)
 */
struct el_stretch {
    int64_t at;                /* its first element, among the device's */
    int64_t sample, n_samples; /* of the batch */
    int64_t first, count;      /* elements of a sample, as the model has them */
    bool is_part;              /* not the whole sample */
};
bool el_pass_next_stretch(const struct el_pass *pass, int tensor, struct el_stretch *stretch);
/* to (+)= from, both of the batch and the tensors' types, which have the same shape. */
void el_pass_move(struct el_pass *pass, const struct el_node *node, struct el_view from, int from_tensor,
                  struct el_view to, int to_tensor, double acc);
/* Issues a kernel of the node's type: dtype, label and phase are filled in. */
void el_pass_emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op);
/* The view of an op that el_pass_emit takes, so many elements further on, of the type that it has in the op. */
void el_pass_shift(const struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, int view,
                   int64_t elements);
/* Zeros where el_pass_param_grad says: there they are of the pass's type, whatever the node's is. */
void el_pass_zero_grad(struct el_pass *pass, const struct el_node *node, struct el_view grad, int64_t n);
