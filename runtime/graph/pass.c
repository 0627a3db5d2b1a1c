/* Issues a graph's forward and backward, and tracks the remaining readers of each tensor. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/shapes.h"
#include "runtime/graph/pass.h"

struct value {
    struct el_view view; /* buffer NULL: freed or not yet allocated */
    bool owned;          /* this pass frees it */
    struct el_view grad;
    bool grad_owned; /* false: the caller's doutput, or handed over */
    bool is_output;
    int segment;      /* the only one that makes and reads it: recomputed in backward; 0: none */
    int last_forward; /* last reader, -1: none */
    int last_inputs;  /* lowest node whose backward for inputs reads it, -1: none */
    int last_weights; /* the same for weights */
};

struct weight {
    struct el_view cast;  /* copy in the other type; buffer NULL: none now */
    struct el_view wide;  /* a new gradient in the pass's type, to be cast */
    int uses;             /* pending contributions in backward */
    struct el_view fresh; /* a new gradient to add to a kept one; for a frozen parameter: unwanted */
    bool begun;           /* an overwritten gradient with a contribution */
};

struct el_pass {
    struct el_pass_spec spec;
    struct el_program *program;
    enum el_phase phase;
    bool again; /* forward_node recomputes */
    bool split; /* this backward is one half of two */
    struct value *values;
    struct weight *weights;
    struct el_buffer **kept;   /* [n_nodes]: forward's extra values */
    struct el_view sums, part; /* a pending sum over pieces, for the current node; part's buffer NULL: none */
    int sum_op;
};

static void pass_emit_as(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op,
                         enum el_dtype dtype);
static enum el_dtype pass_stored(const struct el_pass *pass);

static size_t pass_tensor_bytes(const struct el_pass *pass, int t)
{
    const struct el_tensor *tensor = &pass->spec.graph->tensors[t];
    return (size_t)(pass->spec.batch * el_shape_count(&tensor->shape)) *
           el_dtype_bytes(el_tensor_dtype(tensor, pass->spec.dtype));
}

static struct el_view pass_alloc(struct el_pass *pass, enum el_tag tag, size_t bytes, const char *name)
{
    struct el_buffer *buffer;
    el_program_alloc(pass->program, pass->spec.device, tag, bytes, name, &buffer);
    return el_view_of(buffer, 0);
}

const struct el_pass_spec *el_pass_get(const struct el_pass *pass)
{
    return &pass->spec;
}

struct el_view el_pass_input(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->values[node->inputs[i]].view;
}

struct el_view el_pass_output(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->values[node->outputs[i]].view;
}

const struct el_weights_layout *el_pass_param_layout(const struct el_pass *pass, const struct el_node *node, int i)
{
    return el_param_layout(&pass->spec.graph->params[node->params[i]], pass->spec.device, pass_stored(pass));
}

static enum el_dtype pass_stored(const struct el_pass *pass)
{
    return el_param_dtype(pass->spec.graph->precision, pass->spec.dtype);
}

static enum el_dtype pass_grads(const struct el_pass *pass)
{
    return pass->spec.full_grads ? pass->spec.dtype : pass_stored(pass);
}

static enum el_dtype pass_dtype(const struct el_pass *pass, const struct el_node *node)
{
    return el_tensor_dtype(&pass->spec.graph->tensors[node->outputs[0]], pass->spec.dtype);
}

static void cast(struct el_pass *pass, const struct el_node *node, struct el_view from, enum el_dtype from_dtype,
                 struct el_view to, enum el_dtype to_dtype, int64_t n, double acc)
{
    pass_emit_as(pass, node,
                 &(struct el_kernel_op){
                     .op = EL_OP_CAST, .views = {from, to}, .args = {.d = {n}, .s = {1, acc}, .k = {from_dtype}}},
                 to_dtype);
}

void el_pass_move(struct el_pass *pass, const struct el_node *node, struct el_view from, int from_tensor,
                  struct el_view to, int to_tensor, double acc)
{
    const struct el_tensor *tensors = pass->spec.graph->tensors;
    const enum el_dtype source = el_tensor_dtype(&tensors[from_tensor], pass->spec.dtype),
                        target = el_tensor_dtype(&tensors[to_tensor], pass->spec.dtype);
    const int64_t rows = pass->spec.batch, n = el_shape_count(&tensors[to_tensor].shape);
    struct el_kernel_op copy = {
        .op = EL_OP_COPY_COLUMNS, .views = {from, to}, .args = {.d = {rows, n, n, n}, .s = {acc}}};
    if (source == target)
        pass_emit_as(pass, node, &copy, target);
    else
        cast(pass, node, from, source, to, target, rows * n, acc);
}

struct el_view el_pass_param(struct el_pass *pass, const struct el_node *node, int i)
{
    const int p = node->params[i];
    const struct el_param *param = &pass->spec.graph->params[p];
    const enum el_dtype stored = pass_stored(pass),
                        wanted = node->type->params_full & 1U << i ? pass->spec.dtype : pass_dtype(pass, node);
    struct el_view *copy = &pass->weights[p].cast;
    if (stored == wanted) return pass->spec.params[p];
    if (copy->buffer) return *copy;
    if (pass->spec.casts && pass->spec.casts[p].users++ > 0) return *copy = pass->spec.casts[p].view;
    const int64_t n = el_shape_count(&param->shape);
    *copy = pass_alloc(pass, EL_TAG_CAST, (size_t)n * el_dtype_bytes(wanted), param->name);
    cast(pass, node, pass->spec.params[p], stored, *copy, wanted, n, 0);
    if (pass->spec.casts) pass->spec.casts[p].view = *copy;
    return *copy;
}

struct el_view el_pass_buffer(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->spec.buffers[node->buffers[i]];
}

struct el_view el_pass_kept(const struct el_pass *pass, const struct el_node *node)
{
    return el_view_of(pass->kept[node->index], 0);
}

struct el_view el_pass_output_grad(const struct el_pass *pass, const struct el_node *node, int i)
{
    return pass->values[node->outputs[i]].grad;
}

/* New gradients are stored after a node's backward. */
static bool pass_wants_grad(const struct el_pass *pass, int t)
{
    const struct el_tensor *tensor = &pass->spec.graph->tensors[t];
    return tensor->requires_grad && (tensor->producer >= 0 || pass->spec.input_grads);
}

bool el_pass_input_grad(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p, double *acc_p)
{
    int t = node->inputs[i];
    struct value *value = &pass->values[t];
    if (!pass_wants_grad(pass, t)) return false;
    *acc_p = value->grad.buffer ? 1 : 0;
    if (!value->grad.buffer) {
        value->grad =
            pass_alloc(pass, EL_TAG_ACTIVATION, pass_tensor_bytes(pass, t), pass->spec.graph->tensors[t].name);
        value->grad_owned = true;
    }
    *view_p = value->grad;
    return true;
}

bool el_pass_input_grad_hand_over(struct el_pass *pass, const struct el_node *node, int i)
{
    struct value *from = &pass->values[node->outputs[0]], *to = &pass->values[node->inputs[i]];
    if (!pass_wants_grad(pass, node->inputs[i]) || to->grad.buffer) return false;
    if (pass->spec.graph->tensors[node->inputs[i]].dtype != pass->spec.graph->tensors[node->outputs[0]].dtype)
        return false;
    if (pass->split && node->type->backward_weights) return false; /* its second half reads it */
    to->grad = from->grad;
    to->grad_owned = from->grad_owned;
    from->grad_owned = false;
    return true;
}

bool el_pass_input_grads_share(struct el_pass *pass, const struct el_node *node)
{
    const struct el_graph *graph = pass->spec.graph;
    const int x = node->inputs[0], f = node->inputs[1], producer = graph->tensors[f].producer;
    const struct el_node *before = node->index > 0 ? &graph->nodes[node->index - 1] : NULL;
    if (pass->split || !before || producer != before->index || !before->type->reads_grad) return false;
    if (before->attributes.relu || before->inputs[0] == x || x == f) return false;
    if (!pass_wants_grad(pass, x) || !pass_wants_grad(pass, f) || pass->values[f].grad.buffer) return false;
    if (graph->tensors[f].dtype != graph->tensors[node->outputs[0]].dtype) return false;
    pass->values[f].grad = pass->values[node->outputs[0]].grad;
    if (el_pass_input_grad_hand_over(pass, node, 0)) return true;
    pass->values[f].grad = (struct el_view){0};
    return false;
}

bool el_pass_input_grad_open(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p)
{
    double acc;
    if (!el_pass_input_grad(pass, node, i, view_p, &acc)) return false;
    if (acc != 0)
        *view_p = pass_alloc(pass, EL_TAG_WORKSPACE, pass_tensor_bytes(pass, node->inputs[i]), "gradient to be added");
    return true;
}

void el_pass_input_grad_force(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p)
{
    if (el_pass_input_grad_open(pass, node, i, view_p)) return;
    *view_p = pass_alloc(pass, EL_TAG_WORKSPACE, pass_tensor_bytes(pass, node->inputs[i]), "gradient nobody wants");
}

void el_pass_input_grad_done(struct el_pass *pass, const struct el_node *node, int i, struct el_view view)
{
    int t = node->inputs[i];
    if (view.buffer == pass->values[t].grad.buffer) return;
    int64_t count = pass->spec.batch * el_shape_count(&pass->spec.graph->tensors[t].shape);
    if (pass->values[t].grad.buffer)
        pass_emit_as(pass, node,
                     &(struct el_kernel_op){.op = EL_OP_ADD, .views = {view, pass->values[t].grad}, .args.d = {count}},
                     el_tensor_dtype(&pass->spec.graph->tensors[t], pass->spec.dtype));
    el_program_free(pass->program, view.buffer);
}

static struct el_view param_grad(struct el_pass *pass, int p, double *acc_p)
{
    const struct el_param *param = &pass->spec.graph->params[p];
    struct weight *weight = &pass->weights[p];
    if (pass->spec.overwrite && !param->frozen) {
        *acc_p = weight->begun ? 1 : 0;
        weight->begun = true;
        return pass->spec.grads[p];
    }
    struct el_view *grad = pass->spec.grads[p].buffer || param->frozen ? &weight->fresh : &pass->spec.grads[p];
    if (!param->frozen) *acc_p = grad->buffer ? 1 : 0;
    if (!grad->buffer) {
        size_t bytes = (size_t)el_shape_count(&param->shape) * el_dtype_bytes(pass_grads(pass));
        *grad = pass_alloc(pass, param->frozen ? EL_TAG_WORKSPACE : EL_TAG_GRAD, bytes, param->name);
    }
    return *grad;
}

struct el_view el_pass_param_grad(struct el_pass *pass, const struct el_node *node, int i, double *acc_p)
{
    const int p = node->params[i];
    const struct el_param *param = &pass->spec.graph->params[p];
    struct weight *weight = &pass->weights[p];
    if (pass_grads(pass) == pass->spec.dtype) return param_grad(pass, p, acc_p);
    if (!param->frozen) *acc_p = 0;
    weight->wide = pass_alloc(pass, EL_TAG_WORKSPACE,
                              (size_t)el_shape_count(&param->shape) * el_dtype_bytes(pass->spec.dtype), param->name);
    return weight->wide;
}

static void pass_store_grads(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        const int p = node->params[i];
        const struct el_param *param = &pass->spec.graph->params[p];
        struct weight *weight = &pass->weights[p];
        double acc = 0;
        if (!weight->wide.buffer) continue;
        if (!param->frozen) {
            struct el_view grad = param_grad(pass, p, &acc);
            cast(pass, node, weight->wide, pass->spec.dtype, grad, pass_grads(pass), el_shape_count(&param->shape),
                 acc);
        }
        el_program_free(pass->program, weight->wide.buffer);
        weight->wide = (struct el_view){0};
    }
}

static struct el_comm *pass_group(const struct el_pass *pass, enum el_axis axis)
{
    struct el_comm *const *group = pass->spec.env.group;
    return group && group[axis] && el_comm_size(group[axis]) > 1 ? group[axis] : NULL;
}

static int communicate(struct el_pass *pass, const struct el_node *node, enum el_axis axis, struct el_comm_op *op)
{
    struct el_comm *comm = pass_group(pass, axis);
    int id = -1;
    if (!comm) return id;
    if (op->dtype != EL_I32) op->dtype = pass_dtype(pass, node);
    op->label = node->name;
    op->phase = EL_PHASE_COMM;
    el_comm_issue(comm, pass->program, op, &id);
    return id;
}

void el_pass_communicate(struct el_pass *pass, const struct el_node *node, enum el_axis axis, struct el_comm_op *op)
{
    op->join = true;
    communicate(pass, node, axis, op);
}

struct el_view el_pass_routed(const struct el_pass *pass)
{
    return pass->spec.training && !pass->again ? pass->spec.env.routed : (struct el_view){0};
}

struct el_view el_pass_scratch(struct el_pass *pass, size_t bytes, const char *name)
{
    return pass_alloc(pass, EL_TAG_WORKSPACE, bytes, name);
}

void el_pass_free(struct el_pass *pass, struct el_view scratch)
{
    el_program_free(pass->program, scratch.buffer);
}

void el_pass_bring(struct el_pass *pass, const struct el_node *node, const void *from, size_t bytes, struct el_view to)
{
    el_program_copy(pass->program, pass->spec.device, pass->spec.stream,
                    &(struct el_op_head){.label = node->name, .phase = EL_PHASE_H2D}, to,
                    el_view_host((void *)(uintptr_t)from), bytes, NULL);
}

static struct el_view room_for_whole(struct el_pass *pass, const struct el_node *node, enum el_tag tag, int64_t count)
{
    return pass_alloc(pass, tag, (size_t)(pass->spec.graph->n_pieces * count) * el_dtype_bytes(pass_dtype(pass, node)),
                      node->name);
}

static void gather(struct el_pass *pass, const struct el_node *node, struct el_view part, struct el_view whole,
                   int64_t count)
{
    struct el_comm_op op = {.verb = EL_COMM_ALL_GATHER, .count = (size_t)count, .data = part, .result = whole};
    el_pass_communicate(pass, node, EL_AXIS_TENSOR, &op);
}

struct el_view el_pass_sum_open(struct el_pass *pass, const struct el_node *node, struct el_view part, int64_t count)
{
    return pass->spec.graph->by_tokens ? room_for_whole(pass, node, EL_TAG_WORKSPACE, count) : part;
}

void el_pass_sum_begin(struct el_pass *pass, const struct el_node *node, struct el_view sums, struct el_view part,
                       int64_t count)
{
    const bool by_tokens = pass->spec.graph->by_tokens;
    struct el_comm_op op = {.verb = by_tokens ? EL_COMM_REDUCE_SCATTER : EL_COMM_ALL_REDUCE,
                            .count = (size_t)count,
                            .data = sums,
                            .result = by_tokens ? part : (struct el_view){0}};
    pass->sums = sums;
    pass->part = part;
    pass->sum_op = communicate(pass, node, EL_AXIS_TENSOR, &op);
}

struct el_view el_pass_sum_end(struct el_pass *pass)
{
    const struct el_view part = pass->part;
    if (!part.buffer) return part;
    el_program_wait(pass->program, pass->spec.device, pass->spec.stream, pass->sum_op);
    if (pass->spec.graph->by_tokens) el_program_free(pass->program, pass->sums.buffer);
    pass->part = (struct el_view){0};
    return part;
}

void el_pass_sum_done(struct el_pass *pass, const struct el_node *node, struct el_view sums, struct el_view part,
                      int64_t count)
{
    el_pass_sum_begin(pass, node, sums, part, count);
    el_pass_sum_end(pass);
}

struct el_view el_pass_whole_open(struct el_pass *pass, const struct el_node *node, struct el_view part, int64_t count)
{
    if (!pass->spec.graph->by_tokens) return part;
    struct el_view whole = room_for_whole(pass, node, EL_TAG_WORKSPACE, count);
    gather(pass, node, part, whole, count);
    return whole;
}

void el_pass_whole_done(struct el_pass *pass, struct el_view whole, struct el_view part)
{
    if (whole.buffer != part.buffer) el_program_free(pass->program, whole.buffer);
}

void el_pass_output_grad_whole(struct el_pass *pass, const struct el_node *node, int i)
{
    if (!pass->spec.graph->by_tokens) return;
    struct value *value = &pass->values[node->outputs[i]];
    const int64_t count = pass->spec.batch * el_shape_count(&pass->spec.graph->tensors[node->outputs[i]].shape);
    struct el_view whole = room_for_whole(pass, node, EL_TAG_ACTIVATION, count);
    gather(pass, node, value->grad, whole, count);
    if (value->grad_owned) el_program_free(pass->program, value->grad.buffer);
    value->grad = whole;
    value->grad_owned = true;
}

/* A batch is n parts per sample by tokens; a piece has as many parts as the batch has samples. */
bool el_pass_next_stretch(const struct el_pass *pass, int tensor, struct el_stretch *stretch)
{
    const struct el_graph *graph = pass->spec.graph;
    const int64_t part = el_shape_count(&graph->tensors[tensor].shape), n = graph->by_tokens ? graph->n_pieces : 1;
    const int64_t done = stretch->at / part + stretch->n_samples * stretch->count / part,
                  left = pass->spec.batch - done;
    const int64_t at = graph->by_tokens ? graph->piece * pass->spec.batch + done : done, within = at % n;
    if (left == 0) return false;
    const bool whole = within == 0 && left >= n;
    const int64_t parts = whole ? n : n - within < left ? n - within : left;
    *stretch = (struct el_stretch){.at = done * part,
                                   .sample = at / n,
                                   .n_samples = whole ? left / n : 1,
                                   .first = within * part,
                                   .count = parts * part,
                                   .is_part = !whole};
    return true;
}

void el_pass_emit(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op)
{
    pass_emit_as(pass, node, op, pass_dtype(pass, node));
}

void el_pass_shift(const struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, int view,
                   int64_t elements)
{
    const enum el_dtype dtype = el_op_operand_dtype(op->op, pass_dtype(pass, node), &op->args, view);
    if (op->views[view].buffer) op->views[view].offset += (size_t)elements * el_dtype_bytes(dtype);
}

void el_pass_zero_grad(struct el_pass *pass, const struct el_node *node, struct el_view grad, int64_t n)
{
    pass_emit_as(pass, node, &(struct el_kernel_op){.op = EL_OP_FILL, .views = {grad}, .args.d = {n}},
                 pass->spec.dtype);
}

static void pass_emit_as(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, enum el_dtype dtype)
{
    char label[2 * EL_GRAPH_NAME_BYTES];
    snprintf(label, sizeof label, "%s %s", el_op_name(op->op), node->name);
    op->head.label = label; /* the program copies it */
    op->head.phase = pass->phase;
    op->head.again = pass->again;
    op->dtype = dtype;
    el_program_kernel(pass->program, pass->spec.device, pass->spec.stream, op, NULL);
}

static bool has_backward(const struct el_pass *pass, const struct el_node *node)
{
    return pass->spec.graph->tensors[node->outputs[0]].requires_grad;
}

static int lower(int a, int b)
{
    if (a < 0 || b < 0) return a < 0 ? b : a;
    return a < b ? a : b;
}

/* Recomputed are tensors that one segment alone makes and reads. */
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
        const unsigned read = node->type->reads ? node->type->reads : 1;
        for (int i = 0; i < node->n_inputs; i++) {
            struct value *input = &values[node->inputs[i]];
            input->last_forward = n;
            if ((keeps & EL_KEEPS_INPUT && read & 1U << i) || (again && !input->segment))
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

/* After forward, frees casts that backward does not use: biases, and weights whose inputs have no gradient. */
static void drop_casts(struct el_pass *pass)
{
    const struct el_graph *graph = pass->spec.graph;
    for (int p = 0; p < graph->n_params; p++) {
        bool needed = false;
        for (int n = 0; n < graph->n_nodes && pass->weights[p].cast.buffer && pass->spec.training; n++)
            needed |= graph->nodes[n].n_params > 0 && graph->nodes[n].params[0] == p &&
                      pass_wants_grad(pass, graph->nodes[n].inputs[0]);
        if (!needed) drop_cast(pass, p);
    }
}

static bool is_kept(const struct el_pass *pass, int t)
{
    const struct value *value = &pass->values[t];
    if (value->is_output || !pass->spec.training) return value->is_output;
    return lower(value->last_inputs, value->last_weights) >= 0 && (!value->segment || pass->again);
}

/* Whether its values for backward are freed in forward and recomputed. */
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
    pass->kept[node->index] = pass_alloc(pass, EL_TAG_ACTIVATION, bytes, node->name).buffer;
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
        output->view = pass_alloc(pass, output->is_output ? EL_TAG_OUTPUT : EL_TAG_ACTIVATION,
                                  pass_tensor_bytes(pass, t), graph->tensors[t].name);
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

static void add_to_kept(struct el_pass *pass, const struct el_node *node, int p)
{
    struct el_view fresh = pass->weights[p].fresh;
    if (!fresh.buffer) return;
    struct el_kernel_op op = {
        .op = EL_OP_ADD, .views = {fresh, pass->spec.grads[p]}, .args.d = {el_param_count(pass->spec.graph, p)}};
    pass_emit_as(pass, node, &op, pass_grads(pass));
    el_program_free(pass->program, fresh.buffer);
    pass->weights[p].fresh = (struct el_view){0};
}

enum halves { INPUTS = 1, WEIGHTS = 2, BOTH = 3 };

static void call(void (*hook)(struct el_pass *, const struct el_node *), struct el_pass *pass,
                 const struct el_node *node)
{
    if (hook) hook(pass, node);
}

/* No later node reads it, in this half or later. */
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

/* Frozen parameters' gradients, given by a kernel with others. */
static void drop_unwanted(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        struct weight *weight = &pass->weights[node->params[i]];
        if (!pass->spec.graph->params[node->params[i]].frozen) continue;
        el_program_free(pass->program, weight->fresh.buffer);
        weight->fresh = (struct el_view){0};
    }
}

/* Issues a segment's forward again up to `node`, and `node` itself only if its backward reads its own output. Calls no
 * hook: the segment's parameters are present when `node` begins. */
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
    pass_store_grads(pass, node);
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
    pass->split = halves != BOTH;
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
