/* What a kind of node sees of a pass: where its operands are, where its gradients go, and how it issues an op. */
#include <stdio.h>

#include "kernels/shapes.h"
#include "runtime/graph/pass_state.h"

size_t el_pass_tensor_bytes(const struct el_pass *pass, int t)
{
    const struct el_tensor *tensor = &pass->spec.graph->tensors[t];
    return (size_t)(pass->spec.batch * el_shape_count(&tensor->shape)) *
           el_dtype_bytes(el_tensor_dtype(tensor, pass->spec.dtype));
}

struct el_view el_pass_alloc(struct el_pass *pass, enum el_tag tag, size_t bytes, const char *name)
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
    return el_param_layout(&pass->spec.graph->params[node->params[i]], pass->spec.device, el_pass_stored(pass));
}

enum el_dtype el_pass_stored(const struct el_pass *pass)
{
    return el_param_dtype(pass->spec.graph->precision, pass->spec.dtype);
}

enum el_dtype el_pass_grads(const struct el_pass *pass)
{
    return pass->spec.full_grads ? pass->spec.dtype : el_pass_stored(pass);
}

enum el_dtype el_pass_dtype(const struct el_pass *pass, const struct el_node *node)
{
    return el_tensor_dtype(&pass->spec.graph->tensors[node->outputs[0]], pass->spec.dtype);
}

static void cast(struct el_pass *pass, const struct el_node *node, struct el_view from, enum el_dtype from_dtype,
                 struct el_view to, enum el_dtype to_dtype, int64_t n, double acc)
{
    el_pass_emit_as(pass, node,
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
        el_pass_emit_as(pass, node, &copy, target);
    else
        cast(pass, node, from, source, to, target, rows * n, acc);
}

struct el_view el_pass_param(struct el_pass *pass, const struct el_node *node, int i)
{
    const int p = node->params[i];
    const struct el_param *param = &pass->spec.graph->params[p];
    const enum el_dtype stored = el_pass_stored(pass),
                        wanted = node->type->params_full & 1U << i ? pass->spec.dtype : el_pass_dtype(pass, node);
    struct el_view *copy = &pass->weights[p].cast;
    if (stored == wanted) return pass->spec.params[p];
    if (copy->buffer) return *copy;
    if (pass->spec.casts && pass->spec.casts[p].users++ > 0) return *copy = pass->spec.casts[p].view;
    const int64_t n = el_shape_count(&param->shape);
    *copy = el_pass_alloc(pass, EL_TAG_CAST, (size_t)n * el_dtype_bytes(wanted), param->name);
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

bool el_pass_wants_grad(const struct el_pass *pass, int t)
{
    const struct el_tensor *tensor = &pass->spec.graph->tensors[t];
    return tensor->requires_grad && (tensor->producer >= 0 || pass->spec.input_grads);
}

bool el_pass_input_grad(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p, double *acc_p)
{
    int t = node->inputs[i];
    struct value *value = &pass->values[t];
    if (!el_pass_wants_grad(pass, t)) return false;
    *acc_p = value->grad.buffer ? 1 : 0;
    if (!value->grad.buffer) {
        value->grad =
            el_pass_alloc(pass, EL_TAG_ACTIVATION, el_pass_tensor_bytes(pass, t), pass->spec.graph->tensors[t].name);
        value->grad_owned = true;
    }
    *view_p = value->grad;
    return true;
}

bool el_pass_input_grad_hand_over(struct el_pass *pass, const struct el_node *node, int i)
{
    struct value *from = &pass->values[node->outputs[0]], *to = &pass->values[node->inputs[i]];
    if (!el_pass_wants_grad(pass, node->inputs[i]) || to->grad.buffer) return false;
    if (pass->spec.graph->tensors[node->inputs[i]].dtype != pass->spec.graph->tensors[node->outputs[0]].dtype)
        return false;
    to->grad = from->grad;
    to->grad_owned = from->grad_owned;
    from->grad_owned = false;
    return true;
}

bool el_pass_input_grad_open(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p)
{
    double acc;
    if (!el_pass_input_grad(pass, node, i, view_p, &acc)) return false;
    if (acc != 0)
        *view_p =
            el_pass_alloc(pass, EL_TAG_WORKSPACE, el_pass_tensor_bytes(pass, node->inputs[i]), "gradient to be added");
    return true;
}

void el_pass_input_grad_force(struct el_pass *pass, const struct el_node *node, int i, struct el_view *view_p)
{
    if (el_pass_input_grad_open(pass, node, i, view_p)) return;
    *view_p =
        el_pass_alloc(pass, EL_TAG_WORKSPACE, el_pass_tensor_bytes(pass, node->inputs[i]), "gradient nobody wants");
}

void el_pass_input_grad_done(struct el_pass *pass, const struct el_node *node, int i, struct el_view view)
{
    int t = node->inputs[i];
    if (view.buffer == pass->values[t].grad.buffer) return;
    int64_t count = pass->spec.batch * el_shape_count(&pass->spec.graph->tensors[t].shape);
    if (pass->values[t].grad.buffer)
        el_pass_emit_as(
            pass, node,
            &(struct el_kernel_op){.op = EL_OP_ADD, .views = {view, pass->values[t].grad}, .args.d = {count}},
            el_tensor_dtype(&pass->spec.graph->tensors[t], pass->spec.dtype));
    el_program_free(pass->program, view.buffer);
}

/* Where it is stored. */
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
    if (!param->frozen) *acc_p = grad->buffer ? 1 : 0; /* that of the others, else */
    if (!grad->buffer) {
        size_t bytes = (size_t)el_shape_count(&param->shape) * el_dtype_bytes(el_pass_grads(pass));
        *grad = el_pass_alloc(pass, param->frozen ? EL_TAG_WORKSPACE : EL_TAG_GRAD, bytes, param->name);
    }
    return *grad;
}

struct el_view el_pass_param_grad(struct el_pass *pass, const struct el_node *node, int i, double *acc_p)
{
    const int p = node->params[i];
    const struct el_param *param = &pass->spec.graph->params[p];
    struct weight *weight = &pass->weights[p];
    if (el_pass_grads(pass) == pass->spec.dtype) return param_grad(pass, p, acc_p);
    if (!param->frozen) *acc_p = 0;
    weight->wide = el_pass_alloc(pass, EL_TAG_WORKSPACE,
                                 (size_t)el_shape_count(&param->shape) * el_dtype_bytes(pass->spec.dtype), param->name);
    return weight->wide;
}

void el_pass_store_grads(struct el_pass *pass, const struct el_node *node)
{
    for (int i = 0; i < node->n_params; i++) {
        const int p = node->params[i];
        const struct el_param *param = &pass->spec.graph->params[p];
        struct weight *weight = &pass->weights[p];
        double acc = 0;
        if (!weight->wide.buffer) continue;
        if (!param->frozen) {
            struct el_view grad = param_grad(pass, p, &acc);
            cast(pass, node, weight->wide, pass->spec.dtype, grad, el_pass_grads(pass), el_shape_count(&param->shape),
                 acc);
        }
        el_program_free(pass->program, weight->wide.buffer);
        weight->wide = (struct el_view){0};
    }
}

struct el_comm *el_pass_group(const struct el_pass *pass, enum el_axis axis)
{
    struct el_comm *const *group = pass->spec.env.group;
    return group && group[axis] && el_comm_size(group[axis]) > 1 ? group[axis] : NULL;
}

/* The operation's number; -1: there is nobody. */
static int communicate(struct el_pass *pass, const struct el_node *node, enum el_axis axis, struct el_comm_op *op)
{
    struct el_comm *comm = el_pass_group(pass, axis);
    int id = -1;
    if (!comm) return id;
    op->dtype = el_pass_dtype(pass, node);
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

/* ---- pieces ---- */

static struct el_view room_for_whole(struct el_pass *pass, const struct el_node *node, enum el_tag tag, int64_t count)
{
    return el_pass_alloc(pass, tag,
                         (size_t)(pass->spec.graph->n_pieces * count) * el_dtype_bytes(el_pass_dtype(pass, node)),
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

/* A piece has as many n-ths of samples as the batch has samples, none of which lies in two samples. */
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
    el_pass_emit_as(pass, node, op, el_pass_dtype(pass, node));
}

void el_pass_shift(const struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, int view,
                   int64_t elements)
{
    const enum el_dtype dtype = el_op_operand_dtype(op->op, el_pass_dtype(pass, node), &op->args, view);
    if (op->views[view].buffer) op->views[view].offset += (size_t)elements * el_dtype_bytes(dtype);
}

void el_pass_zero_grad(struct el_pass *pass, const struct el_node *node, struct el_view grad, int64_t n)
{
    el_pass_emit_as(pass, node, &(struct el_kernel_op){.op = EL_OP_FILL, .views = {grad}, .args.d = {n}},
                    pass->spec.dtype);
}

void el_pass_emit_as(struct el_pass *pass, const struct el_node *node, struct el_kernel_op *op, enum el_dtype dtype)
{
    char label[2 * EL_GRAPH_NAME_BYTES];
    snprintf(label, sizeof label, "%s %s", el_op_name(op->op), node->name);
    op->head.label = label; /* the program keeps a copy */
    op->head.phase = pass->phase;
    op->head.again = pass->again;
    op->dtype = dtype;
    el_program_kernel(pass->program, pass->spec.device, pass->spec.stream, op, NULL);
}
