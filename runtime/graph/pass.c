/* Issues a graph's forward and backward, and keeps the account of who still needs which tensor. Arithmetic is the
 * kernels', shapes are the graph's, and what a gradient is for is the mode's. */
#include "runtime/graph/pass.h"

#include <stdio.h>
#include <stdlib.h>

/* A tensor's way through the pass. */
struct value {
    struct el_view view; /* buffer NULL: freed or not yet allocated */
    bool owned;          /* this pass frees it */
    struct el_view grad;
    bool grad_owned; /* false: the caller's doutput, or another tensor's now */
    bool is_output;
    int last_forward; /* last node that reads it, -1: none */
    int last_inputs;  /* lowest node whose backward for inputs reads it, -1: none */
    int last_weights; /* the same of backward for weights */
};

/* A parameter's. */
struct weight {
    int uses;             /* backward contributions to come */
    struct el_view fresh; /* a new gradient that is to be added to a kept one */
    bool begun;           /* an overwritten gradient that has a contribution */
};

struct el_pass {
    struct el_pass_spec spec;
    struct el_program *program;
    enum el_phase phase;
    struct value *values;    /* [n_tensors] */
    struct weight *weights;  /* [n_params] */
    struct el_buffer **kept; /* [n_nodes]: what forward leaves beside tensors */
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
    struct value *values = pass->values;
    for (int t = 0; t < graph->n_tensors; t++)
        values[t].last_forward = values[t].last_inputs = values[t].last_weights = -1;
    for (int i = 0; i < graph->n_outputs; i++) values[graph->outputs[i]].is_output = true;
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct el_node *node = &graph->nodes[n];
        struct value *output = &values[node->output];
        for (int i = 0; i < node->n_inputs; i++) {
            struct value *input = &values[node->inputs[i]];
            input->last_forward = n;
            if (keeps(node) & EL_KEEPS_INPUT && i == 0) input->last_inputs = lower(input->last_inputs, n);
            if (keeps(node) & EL_KEEPS_INPUT_FOR_WEIGHTS) input->last_weights = lower(input->last_weights, n);
        }
        if (keeps(node) & EL_KEEPS_OUTPUT) output->last_inputs = lower(output->last_inputs, n);
        for (int i = 0; i < node->n_params; i++) pass->weights[node->params[i]].uses++;
    }
}

static void destroy(struct el_pass *pass)
{
    free(pass->values);
    free(pass->weights);
    free(pass->kept);
    free(pass);
}

const struct el_weights_layout *el_param_layout(const struct el_param *array, const struct el_device *device,
                                                enum el_dtype dtype)
{
    if (array->shape.n != 4 || array->max_norm > 0) return NULL;
    return el_device_weights_layout(device, dtype, array->shape.d);
}

enum el_status el_pass_open(struct el_program *program, const struct el_pass_spec *spec, struct el_pass **pass_p)
{
    const struct el_graph *graph = spec->graph;
    if (graph->n_buffers && !spec->buffers)
        return el_fail(EL_ERR_INTERNAL, "a pass through '%s' without its buffers", graph->nodes[0].name);
    struct el_pass *pass = calloc(1, sizeof *pass);
    if (!pass) return el_fail_errno("%s: a pass", el_device_name(spec->device));
    pass->spec = *spec;
    pass->program = program;
    pass->values = calloc((size_t)graph->n_tensors, sizeof *pass->values);
    pass->weights = calloc((size_t)graph->n_params + 1, sizeof *pass->weights);
    pass->kept = calloc((size_t)graph->n_nodes, sizeof(struct el_buffer *));
    if (!pass->values || !pass->weights || !pass->kept) {
        enum el_status status = el_fail_errno("%s: a pass", el_device_name(spec->device));
        destroy(pass);
        return status;
    }
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
    if (pass->values[t].owned) el_program_free(pass->program, pass->values[t].view.buffer);
    pass->values[t].owned = false;
}

static void drop_grad(struct el_pass *pass, int t)
{
    if (pass->values[t].grad_owned) el_program_free(pass->program, pass->values[t].grad.buffer);
    pass->values[t].grad_owned = false;
}

static void drop_kept(struct el_pass *pass, int n)
{
    el_program_free(pass->program, pass->kept[n]);
    pass->kept[n] = NULL;
}

static bool is_kept(const struct el_pass *pass, int t)
{
    const struct value *value = &pass->values[t];
    return value->is_output || (pass->spec.training && lower(value->last_inputs, value->last_weights) >= 0);
}

static void alloc_kept(struct el_pass *pass, const struct el_node *node)
{
    if (!node->type->kept) return;
    struct el_kept kept = node->type->kept(pass->spec.graph, node);
    size_t count = (size_t)(pass->spec.batch * kept.per_sample + kept.fixed);
    size_t bytes = count * el_dtype_bytes(kept.dtype == EL_I32 ? EL_I32 : pass->spec.dtype);
    pass->kept[node->index] = alloc(pass, EL_TAG_ACTIVATION, bytes, node->name).buffer;
}

static void forward_node(struct el_pass *pass, const struct el_node *node)
{
    const struct el_graph *graph = pass->spec.graph;
    struct value *output = &pass->values[node->output];
    output->view = alloc(pass, output->is_output ? EL_TAG_OUTPUT : EL_TAG_ACTIVATION, tensor_bytes(pass, node->output),
                         graph->tensors[node->output].name);
    output->owned = true;
    alloc_kept(pass, node);
    node->type->forward(pass, node);
    if (!pass->spec.training) drop_kept(pass, node->index);
    for (int i = 0; i < node->n_inputs; i++) {
        int t = node->inputs[i];
        if (pass->values[t].last_forward == node->index && !is_kept(pass, t)) drop_value(pass, t);
    }
}

void el_pass_forward(struct el_pass *pass, const struct el_view *inputs, struct el_view *outputs)
{
    const struct el_graph *graph = pass->spec.graph;
    pass->phase = EL_PHASE_FORWARD;
    for (int i = 0; i < graph->n_inputs; i++) pass->values[graph->inputs[i]].view = inputs[i];
    for (int n = 0; n < graph->n_nodes; n++) forward_node(pass, &graph->nodes[n]);
    for (int i = 0; i < graph->n_outputs; i++) outputs[i] = pass->values[graph->outputs[i]].view;
}

/* All contributions are there: the new gradient is added to the kept one, and freed. */
static void add_to_kept(struct el_pass *pass, const struct el_node *node, int p)
{
    struct el_view fresh = pass->weights[p].fresh;
    if (!fresh.buffer) return;
    struct el_kernel_op op = {
        .op = EL_OP_ADD, .views = {fresh, pass->spec.grads[p]}, .args.d = {el_param_count(pass->spec.graph, p)}};
    el_pass_emit(pass, node, &op);
    el_program_free(pass->program, fresh.buffer);
    pass->weights[p].fresh = (struct el_view){0};
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
    const struct value *value = &pass->values[t];
    int last = halves == INPUTS ? value->last_inputs : value->last_weights;
    if (halves == BOTH) last = lower(value->last_inputs, value->last_weights);
    if (halves == INPUTS && value->last_weights >= 0) return;
    if (last == node->index && !value->is_output) drop_value(pass, t);
}

static void count_param_uses(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        int p = node->params[node->type->last_param_first ? node->n_params - 1 - i : i];
        if (--pass->weights[p].uses > 0) continue;
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
    if (halves & INPUTS) drop_kept(pass, node->index);
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
    for (int i = 0; i < graph->n_outputs; i++) pass->values[graph->outputs[i]].grad = doutputs[i];
    go_back(pass, halves);
    for (int i = 0; dinputs && i < graph->n_inputs; i++) dinputs[i] = pass->values[graph->inputs[i]].grad;
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
    for (int n = 0; n < pass->spec.graph->n_nodes; n++) drop_kept(pass, n);
    destroy(pass);
}

const struct el_pass_spec *el_pass_get(const struct el_pass *pass)
{
    return &pass->spec;
}

struct el_view el_pass_input(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->values[node->inputs[i]].view;
}

struct el_view el_pass_output(const struct el_pass *pass, const struct el_node *node)
{
    return pass->values[node->output].view;
}

const struct el_weights_layout *el_pass_param_layout(const struct el_pass *pass, const struct el_node *node, int i)
{
    return el_param_layout(&pass->spec.graph->params[node->params[i]], pass->spec.device, pass->spec.dtype);
}

struct el_view el_pass_param(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->spec.params[node->params[i]];
}

struct el_view el_pass_buffer(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->spec.buffers[node->buffers[i]];
}

struct el_view el_pass_kept(const struct el_pass *pass, const struct el_node *node)
{
    return el_view_of(pass->kept[node->index], 0);
}

struct el_view el_pass_output_grad(const struct el_pass *pass, const struct el_node *node)
{
    return pass->values[node->output].grad;
}

static bool wants_grad(const struct el_pass *pass, int t)
{
    const struct el_tensor *tensor = &pass->spec.graph->tensors[t];
    return tensor->producer >= 0 || (pass->spec.input_grads && tensor->is_float);
}

bool el_pass_input_grad(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p, double *acc_p)
{
    int t = node->inputs[i];
    struct value *value = &pass->values[t];
    if (!wants_grad(pass, t)) return false;
    *acc_p = value->grad.buffer ? 1 : 0;
    if (!value->grad.buffer) {
        value->grad = alloc(pass, EL_TAG_ACTIVATION, tensor_bytes(pass, t), pass->spec.graph->tensors[t].name);
        value->grad_owned = true;
    }
    *view_p = value->grad;
    return true;
}

bool el_pass_input_grad_hand_over(struct el_pass *pass, const struct el_node *node, int i)
{
    struct value *from = &pass->values[node->output], *to = &pass->values[node->inputs[i]];
    if (!wants_grad(pass, node->inputs[i]) || to->grad.buffer) return false;
    to->grad = from->grad;
    to->grad_owned = from->grad_owned;
    from->grad_owned = false;
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
    if (view.buffer == pass->values[t].grad.buffer) return;
    int64_t count = pass->spec.batch * el_shape_count(&pass->spec.graph->tensors[t].shape);
    el_pass_emit(pass, node,
                 &(struct el_kernel_op){.op = EL_OP_ADD, .views = {view, pass->values[t].grad}, .args.d = {count}});
    el_program_free(pass->program, view.buffer);
}

struct el_view el_pass_param_grad(struct el_pass *pass, const struct el_node *node, int i, double *acc_p)
{
    int p = node->params[i];
    struct weight *weight = &pass->weights[p];
    if (pass->spec.overwrite) {
        *acc_p = weight->begun ? 1 : 0;
        weight->begun = true;
        return pass->spec.grads[p];
    }
    struct el_view *grad = pass->spec.grads[p].buffer ? &weight->fresh : &pass->spec.grads[p];
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
