/* Issues a graph's forward and backward, and keeps the account of who still needs which tensor. Arithmetic is the
 * kernels', shapes are the graph's, and what a gradient is for is the mode's. */
#include "runtime/graph/pass_state.h"

#include <stdlib.h>

static bool has_backward(const struct el_pass *pass, const struct el_node *node)
{
    return pass->spec.graph->tensors[node->outputs[0]].requires_grad;
}

/* The lower of two node indices, where -1 is none. */
static int lower(int a, int b)
{
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return a < b ? a : b;
}

/* What is computed again is what one segment alone makes and reads. */
static void find_segments(struct el_pass *pass)
{
    const struct el_graph *graph = pass->spec.graph;
    for (int t = 0; t < graph->n_tensors; t++) {
        const int producer = graph->tensors[t].producer;
        const bool made = producer >= 0 && !pass->values[t].is_output;
        pass->values[t].segment = made ? graph->nodes[producer].segment : 0;
    }
    for (int n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_inputs; i++) {
            struct value *input = &pass->values[graph->nodes[n].inputs[i]];
            if (input->segment != graph->nodes[n].segment) input->segment = 0;
        }
}

static void find_uses(struct el_pass *pass)
{
    const struct el_graph *graph = pass->spec.graph;
    struct value *values = pass->values;
    for (int t = 0; t < graph->n_tensors; t++)
        values[t].last_forward = values[t].last_inputs = values[t].last_weights = -1;
    for (int i = 0; i < graph->n_outputs; i++) values[graph->outputs[i]].is_output = true;
    find_segments(pass);
    for (int n = 0; n < graph->n_nodes; n++) {
        const struct el_node *node = &graph->nodes[n];
        const unsigned keeps = el_graph_keeps(graph, node);
        const bool again = node->segment && el_graph_again_at(graph, node) >= n;
        for (int i = 0; i < node->n_inputs; i++) {
            struct value *input = &values[node->inputs[i]];
            input->last_forward = n;
            if ((keeps & EL_KEEPS_INPUT && i == 0) || (again && !input->segment))
                input->last_inputs = lower(input->last_inputs, n);
            if (keeps & EL_KEEPS_INPUT_FOR_WEIGHTS) input->last_weights = lower(input->last_weights, n);
        }
        for (int i = 0; i < node->n_outputs && keeps & EL_KEEPS_OUTPUT; i++)
            values[node->outputs[i]].last_inputs = lower(values[node->outputs[i]].last_inputs, n);
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

static void drop_cast(struct el_pass *pass, int p)
{
    struct el_view *cast = &pass->weights[p].cast;
    if (!cast->buffer) return;
    if (!pass->spec.casts || --pass->spec.casts[p].users == 0) el_program_free(pass->program, cast->buffer);
    *cast = (struct el_view){0};
}

/* After forward: what backward does not compute with, which are biases, and weights whose inputs have no gradient. */
static void drop_casts(struct el_pass *pass)
{
    const struct el_graph *graph = pass->spec.graph;
    for (int p = 0; p < graph->n_params; p++) {
        bool needed = false;
        for (int n = 0; n < graph->n_nodes && pass->weights[p].cast.buffer && pass->spec.training; n++)
            needed |= graph->nodes[n].n_params > 0 && graph->nodes[n].params[0] == p &&
                      el_pass_wants_grad(pass, graph->nodes[n].inputs[0]);
        if (!needed) drop_cast(pass, p);
    }
}

static bool is_kept(const struct el_pass *pass, int t)
{
    const struct value *value = &pass->values[t];
    if (value->is_output || !pass->spec.training) return value->is_output;
    return lower(value->last_inputs, value->last_weights) >= 0 && (!value->segment || pass->again);
}

/* Whether what it leaves for backward is freed in forward, and computed again. */
static bool goes(const struct el_pass *pass, const struct el_node *node)
{
    return pass->values[node->outputs[0]].segment > 0;
}

static void alloc_kept(struct el_pass *pass, const struct el_node *node)
{
    if (!node->type->kept) return;
    struct el_kept kept = node->type->kept(pass->spec.graph, node);
    size_t count = (size_t)(pass->spec.batch * kept.per_sample + kept.fixed);
    size_t bytes = count * el_dtype_bytes(kept.dtype == EL_I32 ? EL_I32 : pass->spec.dtype);
    pass->kept[node->index] = el_pass_alloc(pass, EL_TAG_ACTIVATION, bytes, node->name).buffer;
}

static void tell(struct el_pass *pass, el_pass_node_hook *hook, const struct el_node *node)
{
    if (hook && !pass->again) hook(pass->spec.env.context, pass->program, node, pass->phase);
}

static void forward_node(struct el_pass *pass, const struct el_node *node)
{
    const struct el_graph *graph = pass->spec.graph;
    tell(pass, pass->spec.env.before_node, node);
    for (int i = 0; i < node->n_outputs; i++) {
        int t = node->outputs[i];
        struct value *output = &pass->values[t];
        output->view = el_pass_alloc(pass, output->is_output ? EL_TAG_OUTPUT : EL_TAG_ACTIVATION,
                                     el_pass_tensor_bytes(pass, t), graph->tensors[t].name);
        output->owned = true;
    }
    alloc_kept(pass, node);
    node->type->forward(pass, node);
    tell(pass, pass->spec.env.after_node, node);
    if (!pass->spec.training || !has_backward(pass, node) || (goes(pass, node) && !pass->again))
        drop_kept(pass, node->index);
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
    drop_casts(pass);
    for (int i = 0; i < graph->n_outputs; i++) outputs[i] = pass->values[graph->outputs[i]].view;
}

/* All contributions are there: the new gradient is added to the kept one, and freed. */
static void add_to_kept(struct el_pass *pass, const struct el_node *node, int p)
{
    struct el_view fresh = pass->weights[p].fresh;
    if (!fresh.buffer) return;
    struct el_kernel_op op = {
        .op = EL_OP_ADD, .views = {fresh, pass->spec.grads[p]}, .args.d = {el_param_count(pass->spec.graph, p)}};
    el_pass_emit_as(pass, node, &op, el_pass_grads(pass));
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

static void drop_outputs_after(struct el_pass *pass, const struct el_node *node, enum halves halves)
{
    for (int i = 0; i < node->n_outputs; i++) drop_after(pass, node, node->outputs[i], halves);
}

static void count_param_uses(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        int p = node->params[node->type->last_param_first ? node->n_params - 1 - i : i];
        if (--pass->weights[p].uses > 0) continue;
        drop_cast(pass, p);
        if (pass->spec.graph->params[p].frozen) continue;
        add_to_kept(pass, node, p);
        if (pass->spec.grad_ready) pass->spec.grad_ready(pass->spec.context, p);
    }
}

/* Gradients of frozen parameters, of nodes whose kernel gives them with others. */
static void drop_unwanted(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        struct weight *weight = &pass->weights[node->params[i]];
        if (!pass->spec.graph->params[node->params[i]].frozen) continue;
        el_program_free(pass->program, weight->fresh.buffer);
        weight->fresh = (struct el_view){0};
    }
}

/* Issues a segment's forward once more, up to `node`, whose backward needs it. `node` itself runs again only if its
 * backward reads its own output. No hook is called: the parameters of the segment are there when `node` begins. */
static void compute_again(struct el_pass *pass, const struct el_node *node)
{
    const struct el_graph *graph = pass->spec.graph;
    const int first = el_graph_again_from(graph, node);
    pass->again = true;
    for (int n = first; n <= node->index; n++) {
        const struct el_node *one = &graph->nodes[n];
        const bool reads_own = el_graph_keeps(graph, one) & EL_KEEPS_OUTPUT || one->type->kept;
        if (goes(pass, one) && (n < node->index || reads_own)) forward_node(pass, one);
    }
    for (int n = first; n <= node->index; n++)
        for (int i = 0; i < graph->nodes[n].n_outputs; i++)
            if (!is_kept(pass, graph->nodes[n].outputs[i])) drop_value(pass, graph->nodes[n].outputs[i]);
    pass->again = false;
}

static void backward_node(struct el_pass *pass, const struct el_node *node, enum halves halves)
{
    if (!has_backward(pass, node)) return;
    tell(pass, pass->spec.env.before_node, node);
    if (halves & INPUTS && node->segment && el_graph_again_at(pass->spec.graph, node) == node->index)
        compute_again(pass, node);
    if (halves & INPUTS && node->type->backward_begin) {
        node->type->backward_begin(pass, node);
        drop_outputs_after(pass, node, halves);
    }
    if (halves & WEIGHTS && el_node_trains(pass->spec.graph, node)) call(node->type->backward_weights, pass, node);
    if (halves & INPUTS) call(node->type->backward_inputs, pass, node);
    el_pass_store_grads(pass, node);
    drop_unwanted(pass, node);
    for (int i = 0; i < node->n_outputs && (halves & WEIGHTS || !node->type->backward_weights); i++)
        drop_grad(pass, node->outputs[i]);
    if (halves & INPUTS) drop_kept(pass, node->index);
    for (int i = 0; i < node->n_inputs; i++) drop_after(pass, node, node->inputs[i], halves);
    drop_outputs_after(pass, node, halves);
    if (halves & WEIGHTS) count_param_uses(pass, node);
    tell(pass, pass->spec.env.after_node, node);
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
    for (int p = 0; p < pass->spec.graph->n_params; p++) drop_cast(pass, p);
    destroy(pass);
}
