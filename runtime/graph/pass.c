/* Issues a graph's forward and backward, and keeps the account of who still needs which tensor. Arithmetic is the
 * kernels', shapes are the graph's, and what a gradient is for is the mode's. */
#include "runtime/graph/pass.h"

#include <stdio.h>
#include <stdlib.h>

struct el_pass {
    struct el_pass_spec spec;
    struct el_program *program;
    enum el_phase phase;
    struct el_view values[EL_GRAPH_TENSORS_MAX]; /* buffer NULL: freed or not yet allocated */
    bool owned[EL_GRAPH_TENSORS_MAX];            /* values that this pass frees */
    struct el_view grads[EL_GRAPH_TENSORS_MAX];  /* of tensors */
    bool grad_owned[EL_GRAPH_TENSORS_MAX];       /* false: the caller's doutput */
    bool is_output[EL_GRAPH_TENSORS_MAX];
    struct el_buffer *indices[EL_GRAPH_NODES_MAX];
    int last_forward[EL_GRAPH_TENSORS_MAX];    /* last node that reads it, -1: none */
    int last_inputs[EL_GRAPH_TENSORS_MAX];     /* lowest node whose backward for inputs reads it, -1: none */
    int last_weights[EL_GRAPH_TENSORS_MAX];    /* the same of backward for weights */
    int param_uses[EL_GRAPH_PARAMS_MAX];       /* backward contributions to come */
    struct el_view fresh[EL_GRAPH_PARAMS_MAX]; /* new gradients that are to be added to kept ones */
    bool begun[EL_GRAPH_PARAMS_MAX];           /* overwritten gradients that have a contribution */
};

static unsigned keeps(const struct el_node *node)
{
    return node->type->keeps ? node->type->keeps(node) : 0;
}

/* The lower of two node indices, where -1 is none. */
static int lower(int a, int b)
{
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return a < b ? a : b;
}

static void find_uses(struct el_pass *pass)
{
    const struct el_graph *graph = pass->spec.graph;
    for (int t = 0; t < graph->n_tensors; t++)
        pass->last_forward[t] = pass->last_inputs[t] = pass->last_weights[t] = -1;
    for (int i = 0; i < graph->n_outputs; i++) pass->is_output[graph->outputs[i]] = true;
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct el_node *node = &graph->nodes[n];
        for (int i = 0; i < node->n_inputs; i++) {
            int t = node->inputs[i];
            pass->last_forward[t] = n;
            if (keeps(node) & EL_KEEPS_INPUT_FOR_WEIGHTS) pass->last_weights[t] = lower(pass->last_weights[t], n);
        }
        if (keeps(node) & EL_KEEPS_OUTPUT) pass->last_inputs[node->output] = lower(pass->last_inputs[node->output], n);
        for (int i = 0; i < node->n_params; i++) pass->param_uses[node->params[i]]++;
    }
}

enum el_status el_pass_open(struct el_program *program, const struct el_pass_spec *spec, struct el_pass **pass_p)
{
    struct el_pass *pass = calloc(1, sizeof *pass);
    if (!pass) return el_fail_errno("%s: a pass", el_device_name(spec->device));
    pass->spec = *spec;
    pass->program = program;
    find_uses(pass);
    *pass_p = pass;
    return EL_OK;
}

static size_t tensor_bytes(const struct el_pass *pass, int t)
{
    const struct el_tensor *tensor = &pass->spec.graph->tensors[t];
    return (size_t)(pass->spec.batch * el_shape_count(&tensor->shape)) *
           el_dtype_bytes(tensor->is_float ? pass->spec.dtype : tensor->dtype);
}

static struct el_view alloc(struct el_pass *pass, enum el_tag tag, size_t bytes, const char *name)
{
    struct el_buffer *buffer;
    el_program_alloc(pass->program, pass->spec.device, tag, bytes, name, &buffer);
    return el_view_of(buffer, 0);
}

static void drop_value(struct el_pass *pass, int t)
{
    if (!pass->owned[t]) return;
    el_program_free(pass->program, pass->values[t].buffer);
    pass->owned[t] = false;
}

static void drop_grad(struct el_pass *pass, int t)
{
    if (pass->grad_owned[t]) el_program_free(pass->program, pass->grads[t].buffer);
    pass->grad_owned[t] = false;
}

static void drop_indices(struct el_pass *pass, int n)
{
    el_program_free(pass->program, pass->indices[n]);
    pass->indices[n] = NULL;
}

static bool kept(const struct el_pass *pass, int t)
{
    return pass->is_output[t] || (pass->spec.training && lower(pass->last_inputs[t], pass->last_weights[t]) >= 0);
}

static void forward_node(struct el_pass *pass, const struct el_node *node)
{
    const struct el_graph *graph = pass->spec.graph;
    pass->values[node->output] = alloc(pass, pass->is_output[node->output] ? EL_TAG_OUTPUT : EL_TAG_ACTIVATION,
                                       tensor_bytes(pass, node->output), graph->tensors[node->output].name);
    pass->owned[node->output] = true;
    int64_t indices = node->type->kept_indices ? node->type->kept_indices(graph, node) : 0;
    if (indices) {
        size_t bytes = (size_t)(pass->spec.batch * indices) * sizeof(int32_t);
        el_program_alloc(pass->program, pass->spec.device, EL_TAG_ACTIVATION, bytes, node->name,
                         &pass->indices[node->index]);
    }
    node->type->forward(pass, node);
    if (!pass->spec.training) drop_indices(pass, node->index);
    for (int i = 0; i < node->n_inputs; i++) {
        int t = node->inputs[i];
        if (pass->last_forward[t] == node->index && !kept(pass, t)) drop_value(pass, t);
    }
}

void el_pass_forward(struct el_pass *pass, const struct el_view *inputs, struct el_view *outputs)
{
    const struct el_graph *graph = pass->spec.graph;
    pass->phase = EL_PHASE_FORWARD;
    for (int i = 0; i < graph->n_inputs; i++) pass->values[graph->inputs[i]] = inputs[i];
    for (int n = 0; n < graph->n_nodes; n++) forward_node(pass, &graph->nodes[n]);
    for (int i = 0; i < graph->n_outputs; i++) outputs[i] = pass->values[graph->outputs[i]];
}

/* All contributions are there: the new gradient is added to the kept one, and freed. */
static void add_to_kept(struct el_pass *pass, const struct el_node *node, int p)
{
    struct el_view fresh = pass->fresh[p];
    if (!fresh.buffer) return;
    struct el_kernel_op op = {
        .op = EL_OP_ADD, .views = {fresh, pass->spec.grads[p]}, .args.d = {el_param_count(pass->spec.graph, p)}};
    el_pass_emit(pass, node, &op);
    el_program_free(pass->program, fresh.buffer);
    pass->fresh[p] = (struct el_view){0};
}

/* What of backward is gone through. */
enum halves { INPUTS = 1, WEIGHTS = 2, BOTH = 3 };

static void call(void (*hook)(struct el_pass *, const struct el_node *), struct el_pass *pass,
                 const struct el_node *node)
{
    if (hook) hook(pass, node);
}

/* No node that is still to come reads it, in this half or a later one. */
static void drop_after(struct el_pass *pass, const struct el_node *node, int t, enum halves halves)
{
    int last = halves == INPUTS ? pass->last_inputs[t] : pass->last_weights[t];
    if (halves == BOTH) last = lower(pass->last_inputs[t], pass->last_weights[t]);
    if (halves == INPUTS && pass->last_weights[t] >= 0) return;
    if (last == node->index && !pass->is_output[t]) drop_value(pass, t);
}

static void count_param_uses(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        int p = node->params[node->type->last_param_first ? node->n_params - 1 - i : i];
        if (--pass->param_uses[p] > 0) continue;
        add_to_kept(pass, node, p);
        if (pass->spec.grad_ready) pass->spec.grad_ready(pass->spec.context, p);
    }
}

static void backward_node(struct el_pass *pass, const struct el_node *node, enum halves halves)
{
    if (halves & INPUTS) call(node->type->backward_begin, pass, node);
    if (halves & WEIGHTS) call(node->type->backward_weights, pass, node);
    if (halves & INPUTS) call(node->type->backward_inputs, pass, node);
    if (halves & WEIGHTS || !node->type->backward_weights) drop_grad(pass, node->output);
    if (halves & INPUTS) drop_indices(pass, node->index);
    for (int i = 0; i < node->n_inputs; i++) drop_after(pass, node, node->inputs[i], halves);
    drop_after(pass, node, node->output, halves);
    if (halves & WEIGHTS) count_param_uses(pass, node);
}

static void go_back(struct el_pass *pass, enum halves halves)
{
    pass->phase = EL_PHASE_BACKWARD;
    for (int n = pass->spec.graph->n_nodes - 1; n >= 0; n--) backward_node(pass, &pass->spec.graph->nodes[n], halves);
}

static void backward(struct el_pass *pass, const struct el_view *doutputs, struct el_view *dinputs, enum halves halves)
{
    const struct el_graph *graph = pass->spec.graph;
    for (int i = 0; i < graph->n_outputs; i++) pass->grads[graph->outputs[i]] = doutputs[i];
    go_back(pass, halves);
    for (int i = 0; dinputs && i < graph->n_inputs; i++) dinputs[i] = pass->grads[graph->inputs[i]];
}

void el_pass_backward(struct el_pass *pass, const struct el_view *doutputs, struct el_view *dinputs)
{
    backward(pass, doutputs, dinputs, BOTH);
}

void el_pass_backward_inputs(struct el_pass *pass, const struct el_view *doutputs, struct el_view *dinputs)
{
    backward(pass, doutputs, dinputs, INPUTS);
}

void el_pass_backward_weights(struct el_pass *pass)
{
    go_back(pass, WEIGHTS);
}

void el_pass_release_outputs(struct el_pass *pass)
{
    for (int i = 0; i < pass->spec.graph->n_outputs; i++) drop_value(pass, pass->spec.graph->outputs[i]);
}

void el_pass_close(struct el_pass *pass)
{
    if (!pass) return;
    for (int t = 0; t < pass->spec.graph->n_tensors; t++) {
        drop_value(pass, t);
        drop_grad(pass, t);
    }
    for (int n = 0; n < pass->spec.graph->n_nodes; n++) drop_indices(pass, n);
    free(pass);
}

const struct el_pass_spec *el_pass_get(const struct el_pass *pass)
{
    return &pass->spec;
}

struct el_view el_pass_input(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->values[node->inputs[i]];
}

struct el_view el_pass_output(const struct el_pass *pass, const struct el_node *node)
{
    return pass->values[node->output];
}

struct el_view el_pass_param(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->spec.params[node->params[i]];
}

struct el_view el_pass_indices(const struct el_pass *pass, const struct el_node *node)
{
    return el_view_of(pass->indices[node->index], 0);
}

struct el_view el_pass_output_grad(const struct el_pass *pass, const struct el_node *node)
{
    return pass->grads[node->output];
}

bool el_pass_input_grad(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p, double *acc_p)
{
    int t = node->inputs[i];
    const struct el_tensor *tensor = &pass->spec.graph->tensors[t];
    if (tensor->producer < 0 && !(pass->spec.input_grads && tensor->is_float)) return false;
    *acc_p = pass->grads[t].buffer ? 1 : 0;
    if (!pass->grads[t].buffer) {
        pass->grads[t] = alloc(pass, EL_TAG_ACTIVATION, tensor_bytes(pass, t), tensor->name);
        pass->grad_owned[t] = true;
    }
    *view_p = pass->grads[t];
    return true;
}

bool el_pass_input_grad_open(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p)
{
    double acc;
    if (!el_pass_input_grad(pass, node, i, view_p, &acc)) return false;
    if (acc != 0) *view_p = alloc(pass, EL_TAG_WORKSPACE, tensor_bytes(pass, node->inputs[i]), "gradient to be added");
    return true;
}

void el_pass_input_grad_done(struct el_pass *pass, const struct el_node *node, int i, struct el_view view)
{
    int t = node->inputs[i];
    if (view.buffer == pass->grads[t].buffer) return;
    int64_t count = pass->spec.batch * el_shape_count(&pass->spec.graph->tensors[t].shape);
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_ADD, .views = {view, pass->grads[t]}, .args.d = {count}});
    el_program_free(pass->program, view.buffer);
}

struct el_view el_pass_param_grad(struct el_pass *pass, const struct el_node *node, int i, double *acc_p)
{
    int p = node->params[i];
    if (pass->spec.overwrite) {
        *acc_p = pass->begun[p] ? 1 : 0;
        pass->begun[p] = true;
        return pass->spec.grads[p];
    }
    struct el_view *grad = pass->spec.grads[p].buffer ? &pass->fresh[p] : &pass->spec.grads[p];
    *acc_p = grad->buffer ? 1 : 0;
    if (!grad->buffer) {
        size_t bytes = (size_t)el_param_count(pass->spec.graph, p) * el_dtype_bytes(pass->spec.dtype);
        *grad = alloc(pass, EL_TAG_GRAD, bytes, pass->spec.graph->params[p].name);
    }
    return *grad;
}

void el_pass_emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    char label[2 * EL_GRAPH_NAME_BYTES];
    snprintf(label, sizeof label, "%s %s", el_op_name(op->op), node->name);
    op->head.label = label; /* the program keeps a copy */
    op->head.phase = pass->phase;
    op->dtype = pass->spec.dtype;
    el_program_kernel(pass->program, pass->spec.device, pass->spec.stream, op, NULL);
}
