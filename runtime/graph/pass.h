/* A pass: a member's forward and backward of a graph, issued into a program.
 *
 *     el_pass_open(program, &spec, &pass);
 *     el_pass_forward(pass, inputs, outputs);      activations are allocated here, kept where some backward needs them
 *     ... the loss's gradient ...
 *     el_pass_backward(pass, doutputs, dinputs);   gradients of parameters; a hook per parameter after its last use; or
 *     el_pass_backward_inputs(pass, doutputs, dinputs); ... el_pass_backward_weights(pass);      the same at two times
 *     el_pass_close(pass);                         frees what is left, mainly the outputs
 *
 * Memory: an activation is freed after its last reader in forward or backward; a tensor's gradient lives from its first
 * contribution to its producer's backward. Split backward: inputs and output gradients of nodes with weights stay until
 * the second half; a kernel that gives all gradients (batch norm) runs in the first, but hooks of parameters are called
 * in the second. Nodes without anything trained before them have no backward. A parameter used in another type is cast
 * at first use (tag cast) until its last use, or until the end of forward if backward does not need it; gradients are
 * computed in spec.dtype and cast to the stored type, node by node.
 * All is on one stream. Shapes: a tensor [a, b] is [batch, a, b] here. Ownership: a pass borrows spec's pointers until
 * close, and its views are valid until then. Threads: one. Errors: in the program (program.h). */
#pragma once

#include "runtime/comm/comm.h"
#include "runtime/device/program.h"
#include "runtime/graph/graph.h"

/* Before and after each node, in forward and backward (`phase`), and in both halves of a split backward. Gathers
 * sharded parameters: views in spec.params are read when the node issues. */
typedef void el_pass_node_hook(void *context, struct el_program *program, const struct el_node *node,
                               enum el_phase phase);

/* A pass's surroundings. Zeroed: one device. */
struct el_pass_env {
    struct el_comm *const *group; /* [EL_AXIS_COUNT], for nodes that communicate; NULL: none */
    el_pass_node_hook *before_node, *after_node;
    void *context;
    /* Optional, for routers: [layers, 2, experts] i32, to which each adds its choices and the rows that it kept. */
    struct el_view routed;
};

/* A parameter's copy in another type, shared by a step's simultaneous passes while any needs it, as in PyTorch's
 * autocast. */
struct el_pass_cast {
    struct el_view view;
    int users;
};

struct el_pass_spec {
    const struct el_graph *graph;
    struct el_device *device;
    int stream;
    enum el_dtype dtype; /* of everything but ids and the graph's bf16 */
    int64_t batch;
    double sample_weight; /* of a sample in the loss, for gradients that come from no output; 0: 1 / batch */
    int64_t sample_first, sample_stride; /* row r is global sample first + r * stride, for dropout */
    uint64_t seed;
    bool training;    /* dropout on, activations kept */
    bool input_grads; /* backward also gives the gradients of the graph's inputs: a later part of a model */
    const struct el_view *params;
    const struct el_view *buffers; /* [n_buffers]; changed by training */
    struct el_pass_cast *casts;    /* [n_params], shared by passes; NULL: this one only */
    /* [n_params], training only; frozen ones stay unchanged. Buffer NULL: the gradient is allocated (tag grad) at the
     * first contribution, and the caller frees it. Else the new gradient is allocated beside the given one, added when
     * complete, and freed, as by PyTorch's AccumulateGrad. */
    struct el_view *grads;
    bool full_grads; /* grads are of `dtype`; else of the parameters' type */
    bool overwrite;  /* all are given without values: the first contribution overwrites, later ones add */
    void (*grad_ready)(void *context, int param); /* optional: all contributions are issued; not for frozen ones */
    void *context;
    struct el_pass_env env;
};

/* The device's storage order of an array, its gradient and slots; NULL: its shape's. Four-dimensional weights are
 * conv2d's. Rows with a limit stay whole. */
const struct el_weights_layout *el_param_layout(const struct el_param *array, const struct el_device *device,
                                                enum el_dtype dtype);

enum el_status el_pass_open(struct el_program *program, const struct el_pass_spec *spec, struct el_pass **pass_p);
/* inputs[n_inputs of the graph], each [batch, its shape], the caller's until close. Sets outputs[n_outputs], the pass's
 * memory until close; an output that passes through is the input itself. */
void el_pass_forward(struct el_pass *pass, const struct el_view *inputs, struct el_view *outputs);
/* doutputs[n_outputs], each [batch, its shape], are the caller's and may be changed. With spec.input_grads sets
 * dinputs[n_inputs] (or NULL), the pass's memory until close; for an input that passes through the output's gradient
 * itself, for ids none. */
void el_pass_backward(struct el_pass *pass, const struct el_view *doutputs, struct el_view *dinputs);
/* Its two halves, with the same kernels: first dinputs, then gradients of parameters. doutputs may be changed, and
 * belong to the pass until the second. */
void el_pass_backward_inputs(struct el_pass *pass, const struct el_view *doutputs, struct el_view *dinputs);
void el_pass_backward_weights(struct el_pass *pass);
void el_pass_release_outputs(struct el_pass *pass);
/* Marks the rest as freed. NULL is legal. */
void el_pass_close(struct el_pass *pass);

/* For node types. Views are of whole batches. */
const struct el_pass_spec *el_pass_get(const struct el_pass *pass);
struct el_view el_pass_input(const struct el_pass *pass, const struct el_node *node, int i);
struct el_view el_pass_output(const struct el_pass *pass, const struct el_node *node, int i);
struct el_view el_pass_param(struct el_pass *pass, const struct el_node *node, int i);
/* Its storage order; NULL: its shape's. */
const struct el_weights_layout *el_pass_param_layout(const struct el_pass *pass, const struct el_node *node, int i);
struct el_view el_pass_buffer(const struct el_pass *pass, const struct el_node *node, int i);
/* As requested by its type's hook `kept`. */
struct el_view el_pass_kept(const struct el_pass *pass, const struct el_node *node);
/* Backward: the complete gradient of output i; the node may change it. */
struct el_view el_pass_output_grad(const struct el_pass *pass, const struct el_node *node, int i);
/* Where input i's gradient goes; *acc_p 1: add. false: unwanted (ids, the model's input). */
bool el_pass_input_grad(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p, double *acc_p);
/* For kernels that only overwrite: scratch if the gradient must be added, which `done` does. */
bool el_pass_input_grad_open(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p);
/* For kernels that always give it: scratch if unwanted, which `done` frees. */
void el_pass_input_grad_force(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p);
void el_pass_input_grad_done(struct el_pass *pass, const struct el_node *node, int i, struct el_view view);
/* Makes the output's gradient input i's, without a copy; the node may change it during its backward. Shapes must be
 * equal. false: unwanted, or contributions exist: add instead. */
bool el_pass_input_grad_hand_over(struct el_pass *pass, const struct el_node *node, int i);
/* Makes the output's gradient that of inputs 0 and 1 at once, without a copy: where input 1's producer is the node
 * before, which reads it only (reads_grad) before anything is added to it for input 0. false: it is not so. */
bool el_pass_input_grads_share(struct el_pass *pass, const struct el_node *node);
/* Where parameter i's gradient goes. Scratch for a frozen one, if its node has trained ones or its kernel gives all
 * gradients; *acc_p is then unchanged. */
struct el_view el_pass_param_grad(struct el_pass *pass, const struct el_node *node, int i, double *acc_p);
/* Where a router adds what it chose (env.routed), once a step; no buffer: nowhere. */
struct el_view el_pass_routed(const struct el_pass *pass);
/* Workspace, which the node frees in the same hook. */
struct el_view el_pass_scratch(struct el_pass *pass, size_t bytes, const char *name);
void el_pass_free(struct el_pass *pass, struct el_view scratch);
/* Copies host memory, which stays valid, to the device in each step. */
void el_pass_bring(struct el_pass *pass, const struct el_node *node, const void *from, size_t bytes, struct el_view to);
/* Issues a collective on the axis's group, before the node's next op; sets dtype (unless i32), label and phase. Without
 * a group does nothing. */
void el_pass_communicate(struct el_pass *pass, const struct el_node *node, enum el_axis axis, struct el_comm_op *op);
/* Exchanges between a model's pieces. `part` has `count` elements: a whole tensor, or, by tokens (graph.h), a part.
 *
 *     sums = el_pass_sum_open(pass, node, part, count);     each piece's contribution goes here
 *     el_pass_sum_done(pass, node, sums, part, count);      all-reduce or reduce-scatter; _begin, _end: with overlap
 *     whole = el_pass_whole_open(pass, node, part, count);  all-gather, or the tensor itself
 *     el_pass_whole_done(pass, whole, part); */
struct el_view el_pass_sum_open(struct el_pass *pass, const struct el_node *node, struct el_view part, int64_t count);
void el_pass_sum_begin(struct el_pass *pass, const struct el_node *node, struct el_view sums, struct el_view part,
                       int64_t count);
/* The part; no buffer if none has begun. */
struct el_view el_pass_sum_end(struct el_pass *pass);
void el_pass_sum_done(struct el_pass *pass, const struct el_node *node, struct el_view sums, struct el_view part,
                      int64_t count);
struct el_view el_pass_whole_open(struct el_pass *pass, const struct el_node *node, struct el_view part, int64_t count);
void el_pass_whole_done(struct el_pass *pass, struct el_view whole, struct el_view part);
/* From here on output i's gradient is of all tokens. */
void el_pass_output_grad_whole(struct el_pass *pass, const struct el_node *node, int i);
/* A device's rows of a batch as stretches of whole samples or of a part of one (by tokens maybe several), for nodes
 * that distinguish samples and tokens.
 *
 *     for (struct el_stretch s = {0}; el_pass_next_stretch(pass, tensor, &s);) */
struct el_stretch {
    int64_t at; /* its first element on the device */
    int64_t sample, n_samples;
    int64_t first, count; /* elements within the model's sample */
    bool is_part;         /* not whole samples */
};
bool el_pass_next_stretch(const struct el_pass *pass, int tensor, struct el_stretch *stretch);
/* to (+)= from, of the batch and in the tensors' types; equal shapes. */
void el_pass_move(struct el_pass *pass, const struct el_node *node, struct el_view from, int from_tensor,
                  struct el_view to, int to_tensor, double acc);
/* Issues a kernel in the node's type; sets dtype, label and phase. */
void el_pass_emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op);
/* Moves a view of an op for el_pass_emit by so many elements of its type. */
void el_pass_shift(const struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, int view,
                   int64_t elements);
/* Zeros a gradient from el_pass_param_grad, in the pass's type. */
void el_pass_zero_grad(struct el_pass *pass, const struct el_node *node, struct el_view grad, int64_t n);
