#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/graph/graph.h"

const struct el_axis_row *el_axis_row(enum el_axis axis)
{
    static const struct el_axis_row rows[EL_AXIS_COUNT] = {
        [EL_AXIS_DATA] = {"data", "dp", "a part of each global batch", true},
        [EL_AXIS_STAGE] = {"stage", "pp", "a piece of the model, cut along its depth", false},
        [EL_AXIS_TENSOR] = {"tensor", "tp", "a piece of each layer, cut across", true},
        [EL_AXIS_SHARD] = {"shard", "shard", "a part of each global batch, and a range of the state", true},
        [EL_AXIS_EXPERT] = {"expert", "ep", "a part of each global batch, and some of each layer's experts", true},
    };
    return &rows[axis];
}

static int64_t inner(const struct el_shape *shape, int dim)
{
    int64_t n = 1;
    for (int i = dim + 1; i < shape->n; i++) n *= shape->d[i];
    return n;
}

int64_t el_slice_run(const struct el_shape *shape, const struct el_slice *slice)
{
    return slice->of ? shape->d[slice->dim] * inner(shape, slice->dim) : el_shape_count(shape);
}

int64_t el_slice_at(const struct el_shape *shape, const struct el_slice *slice, int64_t i)
{
    if (!slice->of) return i;
    int64_t run = el_slice_run(shape, slice), each = inner(shape, slice->dim);
    return (i / run * slice->of + slice->first) * each + i % run;
}

struct el_shape el_slice_origin(const struct el_shape *shape, const struct el_slice *slice)
{
    struct el_shape origin = *shape;
    if (slice->of) origin.d[slice->dim] = slice->of;
    return origin;
}

void el_slice_take(const struct el_shape *shape, const struct el_slice *slice, const double *origin, double *values)
{
    int64_t n = el_shape_count(shape), run = el_slice_run(shape, slice);
    for (int64_t i = 0; i < n; i += run)
        memcpy(values + i, origin + el_slice_at(shape, slice, i), (size_t)run * sizeof *values);
}

void el_slice_put(const struct el_shape *shape, const struct el_slice *slice, const double *values, double *origin)
{
    int64_t n = el_shape_count(shape), run = el_slice_run(shape, slice);
    for (int64_t i = 0; i < n; i += run)
        memcpy(origin + el_slice_at(shape, slice, i), values + i, (size_t)run * sizeof *values);
}

enum el_status el_graph_create(struct el_graph **graph_p)
{
    struct el_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return el_fail_errno("a graph");
    *graph_p = graph;
    return EL_OK;
}

void el_routing_close(struct el_routing *routing)
{
    if (!routing) return;
    free(routing->table);
    free(routing->single);
    free(routing->expected);
    free(routing);
}

void el_graph_destroy(struct el_graph *graph)
{
    if (!graph) return;
    free(graph->tensors);
    free(graph->nodes);
    free(graph->params);
    free(graph->buffers);
    free(graph->inputs);
    free(graph->outputs);
    el_routing_close(graph->routing);
    free(graph);
}

static int keep(struct el_graph *graph, enum el_status status)
{
    if (graph->failure == EL_OK) {
        graph->failure = status;
        el_error_take(status, &graph->error);
    }
    return -1;
}

/* Room for one more than `n`: doubles whenever `n` is a power of two. NULL: no memory, the old array stays. */
static void *grow(struct el_graph *graph, void *array, int n, size_t size)
{
    if (n & (n - 1)) return array;
    void *larger = realloc(array, (n ? 2 * (size_t)n : 1) * size);
    if (!larger) keep(graph, el_fail_errno("a graph"));
    return larger;
}

static int add_tensor(struct el_graph *graph, const char *name, enum el_dtype dtype, const struct el_shape *shape,
                      int producer)
{
    struct el_tensor *tensors = grow(graph, graph->tensors, graph->n_tensors, sizeof *tensors);
    if (!tensors) return -1;
    graph->tensors = tensors;
    struct el_tensor *tensor = &tensors[graph->n_tensors];
    *tensor = (struct el_tensor){.dtype = dtype, .is_float = dtype != EL_I32, .shape = *shape, .producer = producer};
    tensor->requires_grad = producer < 0 && tensor->is_float;
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    return graph->n_tensors++;
}

int el_graph_input(struct el_graph *graph, const char *name, enum el_dtype dtype, const struct el_shape *shape)
{
    if (graph->failure != EL_OK) return -1;
    if (graph->n_inputs == 1) return keep(graph, el_fail(EL_ERR_INTERNAL, "%s: a second input", name));
    int t = add_tensor(graph, name, dtype, shape, -1);
    int *inputs = t < 0 ? NULL : grow(graph, graph->inputs, 0, sizeof *inputs);
    if (!inputs) return -1;
    graph->inputs = inputs;
    inputs[graph->n_inputs++] = t;
    return t;
}

static int add_array(struct el_graph *graph, struct el_param **array, int *n_p, const char *name,
                     const struct el_shape *shape, struct el_initial initial)
{
    if (graph->failure != EL_OK) return -1;
    struct el_param *larger = grow(graph, *array, *n_p, sizeof *larger);
    if (!larger) return -1;
    *array = larger;
    larger[*n_p] = (struct el_param){.origin = *n_p, .shape = *shape, .initial = initial};
    snprintf(larger[*n_p].name, sizeof larger->name, "%s", name);
    return (*n_p)++;
}

int el_graph_param(struct el_graph *graph, const char *name, const struct el_shape *shape, struct el_initial initial)
{
    return add_array(graph, &graph->params, &graph->n_params, name, shape, initial);
}

int el_graph_buffer(struct el_graph *graph, const char *name, const struct el_shape *shape, struct el_initial initial)
{
    return add_array(graph, &graph->buffers, &graph->n_buffers, name, shape, initial);
}

void el_graph_slice_param(struct el_graph *graph, int param, struct el_slice slice)
{
    if (graph->failure == EL_OK) graph->params[param].slice = slice;
}

void el_graph_slice_node(struct el_graph *graph, int output, struct el_slice slice)
{
    if (graph->failure == EL_OK) graph->nodes[graph->tensors[output].producer].slice = slice;
}

void el_graph_between(struct el_graph *graph, int param)
{
    if (graph->failure == EL_OK) graph->params[param].is_partial = graph->by_tokens;
}

static int check_ids(struct el_graph *graph, const char *name, const int *ids, int n, int limit)
{
    for (int i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= limit)
            return keep(graph, el_fail(EL_ERR_INTERNAL, "%s: input %d does not exist", name, i));
    }
    return 0;
}

bool el_node_trains(const struct el_graph *graph, const struct el_node *node)
{
    bool trains = false;
    for (int i = 0; i < node->n_params; i++) trains |= !graph->params[node->params[i]].frozen;
    return trains;
}

/* Whether anything trained is at or before its output. */
static bool needs_backward(const struct el_graph *graph, const struct el_node *node)
{
    bool needs = el_node_trains(graph, node);
    for (int i = 0; i < node->n_inputs; i++) {
        const struct el_tensor *input = &graph->tensors[node->inputs[i]];
        needs |= input->producer >= 0 && input->requires_grad;
    }
    return needs;
}

/* Earlier nodes that are not casts. */
static int next_origin(const struct el_graph *graph)
{
    int n = 0;
    for (int i = 0; i < graph->n_nodes; i++) n += graph->nodes[i].type != &el_node_cast;
    return n;
}

static int add_node(struct el_graph *graph, const struct el_node_type *type, const char *name, enum el_dtype dtype,
                    const int *inputs, int n_inputs, const int *params, int n_params,
                    const struct el_node_attributes *attributes)
{
    struct el_node *nodes = grow(graph, graph->nodes, graph->n_nodes, sizeof *nodes);
    if (!nodes) return -1;
    struct el_node *node = &nodes[graph->n_nodes];
    graph->nodes = nodes;
    *node = (struct el_node){.type = type,
                             .index = graph->n_nodes,
                             .origin = next_origin(graph),
                             .segment = graph->segment,
                             .n_inputs = n_inputs,
                             .n_params = n_params,
                             .n_outputs = type->n_outputs ? type->n_outputs : 1};
    if (attributes) node->attributes = *attributes;
    for (int i = 0; i < n_inputs; i++) node->inputs[i] = inputs[i];
    for (int i = 0; i < n_params; i++) {
        node->params[i] = params[i];
        graph->params[params[i]].used = true;
    }
    snprintf(node->name, sizeof node->name, "%s", name);
    struct el_shape shapes[EL_NODE_OUTPUTS_MAX];
    enum el_status status = type->shape(graph, node, shapes);
    if (status != EL_OK) return keep(graph, status);
    for (int i = 0; i < node->n_outputs; i++) {
        node->outputs[i] = add_tensor(graph, name, type->ids & 1U << i ? EL_I32 : dtype, &shapes[i], node->index);
        if (node->outputs[i] < 0) return -1;
        struct el_tensor *output = &graph->tensors[node->outputs[i]];
        output->requires_grad = output->is_float && needs_backward(graph, node);
    }
    graph->n_nodes++;
    return node->outputs[0];
}

/* The type in which a node computes. */
static enum el_dtype type_of_node(const struct el_graph *graph, const struct el_node_type *type, const int *inputs,
                                  int n_inputs)
{
    bool halves = false, wide = false;
    if (graph->precision == EL_PRECISION_FULL) return EL_F32;
    if (graph->precision >= EL_PRECISION_BF16_PURE || type->takes == EL_TAKES_BF16) return EL_BF16;
    for (int i = 0; i < n_inputs; i++) {
        wide |= graph->tensors[inputs[i]].dtype == EL_F32;
        halves |= graph->tensors[inputs[i]].dtype == EL_BF16;
    }
    return type->takes == EL_TAKES_FULL || wide || !halves ? EL_F32 : EL_BF16;
}

int el_graph_node(struct el_graph *graph, const struct el_node_type *type, const char *name, const int *inputs,
                  int n_inputs, const int *params, int n_params, const struct el_node_attributes *attributes)
{
    int cast[EL_NODE_INPUTS_MAX];
    char text[2 * EL_GRAPH_NAME_BYTES];
    if (graph->failure != EL_OK) return -1;
    if (n_inputs > EL_NODE_INPUTS_MAX || n_params > EL_NODE_PARAMS_MAX)
        return keep(graph, el_fail(EL_ERR_INTERNAL, "%s: too many inputs or parameters", name));
    if (check_ids(graph, name, inputs, n_inputs, graph->n_tensors) < 0) return -1;
    if (check_ids(graph, name, params, n_params, graph->n_params) < 0) return -1;
    const enum el_dtype dtype = type_of_node(graph, type, inputs, n_inputs);
    for (int i = 0; i < n_inputs; i++) {
        const struct el_tensor *input = &graph->tensors[inputs[i]];
        cast[i] = inputs[i];
        if (!input->is_float || input->dtype == dtype || type->takes == EL_TAKES_ANY) continue;
        snprintf(text, sizeof text, "%s.input", name);
        cast[i] = add_node(graph, &el_node_cast, text, dtype, &inputs[i], 1, NULL, 0, NULL);
        if (cast[i] < 0) return -1;
    }
    return add_node(graph, type, name, dtype, cast, n_inputs, params, n_params, attributes);
}

void el_graph_store_transposed(struct el_graph *graph, int weight, int bias)
{
    if (graph->failure == EL_OK) graph->params[weight].transposed = graph->params[bias].flat = true;
}

void el_graph_store_matrices(struct el_graph *graph, int weight)
{
    if (graph->failure == EL_OK) graph->params[weight].matrices = true;
}

void el_graph_node_buffers(struct el_graph *graph, int output, const int *buffers, int n)
{
    if (graph->failure != EL_OK || check_ids(graph, graph->tensors[output].name, buffers, n, graph->n_buffers) < 0)
        return;
    struct el_node *node = &graph->nodes[graph->tensors[output].producer];
    for (int i = 0; i < n; i++) node->buffers[i] = buffers[i];
    node->n_buffers = n;
}

/* Whether `name` is the parameter's, its layer's or an enclosing group's. */
static bool is_within(const char *param, const char *name)
{
    size_t n = strlen(name);
    return strncmp(param, name, n) == 0 && (!param[n] || param[n] == '.');
}

int el_graph_freeze(struct el_graph *graph, const char *name)
{
    int n = 0;
    for (int p = 0; p < graph->n_params && *name; p++) {
        if (!is_within(graph->params[p].name, name)) continue;
        graph->params[p].frozen = true;
        n++;
    }
    for (int t = 0; t < graph->n_tensors; t++)
        if (graph->tensors[t].producer >= 0 && graph->tensors[t].is_float)
            graph->tensors[t].requires_grad = needs_backward(graph, &graph->nodes[graph->tensors[t].producer]);
    return n;
}

/* Every tensor needs a reader, or is the output. */
static enum el_status check_uses(const struct el_graph *graph, int output)
{
    for (int t = 0; t < graph->n_tensors; t++) {
        bool used = t == output;
        for (int n = graph->tensors[t].producer + 1; n < graph->n_nodes && !used; n++)
            for (int i = 0; i < graph->nodes[n].n_inputs; i++) used = used || graph->nodes[n].inputs[i] == t;
        if (!used) return el_fail(EL_ERR_INTERNAL, "%s: nothing uses it", graph->tensors[t].name);
    }
    return EL_OK;
}

enum el_status el_graph_finish(struct el_graph *graph, int output, enum el_loss_kind loss)
{
    if (graph->failure != EL_OK) return el_error_give(&graph->error);
    EL_TRY(check_uses(graph, output));
    if (graph->n_params == 0) return el_fail(EL_ERR_INVALID, "a model without parameters cannot be trained");
    if (!graph->tensors[output].requires_grad)
        return el_fail(EL_ERR_INVALID,
                       "all parameters are frozen: nothing is left to train: give fewer names to --freeze");
    graph->outputs = malloc(sizeof *graph->outputs);
    if (!graph->outputs) return el_fail_errno("a graph");
    graph->outputs[graph->n_outputs++] = output;
    graph->loss = loss;
    const struct el_shape *shape = &graph->tensors[output].shape;
    graph->classes = shape->d[shape->n - 1];
    graph->labels = el_shape_count(shape) / graph->classes;
    graph->class_slice = graph->nodes[graph->tensors[output].producer].slice;
    return EL_OK;
}

unsigned el_graph_keeps(const struct el_graph *graph, const struct el_node *node)
{
    const unsigned keeps = node->type->keeps | (node->attributes.relu ? EL_KEEPS_OUTPUT : 0);
    if (!graph->tensors[node->outputs[0]].requires_grad) return 0;
    return el_node_trains(graph, node) ? keeps : keeps & ~(unsigned)EL_KEEPS_INPUT_FOR_WEIGHTS;
}

int el_graph_again_from(const struct el_graph *graph, const struct el_node *node)
{
    int first = node->index;
    while (first > 0 && graph->nodes[first - 1].segment == node->segment) first--;
    return first;
}

int el_graph_again_at(const struct el_graph *graph, const struct el_node *node)
{
    int at = -1;
    for (int n = el_graph_again_from(graph, node); n < graph->n_nodes; n++) {
        const struct el_node *one = &graph->nodes[n];
        if (!node->segment || one->segment != node->segment) break;
        const bool reads = el_graph_keeps(graph, one) || one->type->kept;
        if (reads && graph->tensors[one->outputs[0]].requires_grad) at = n;
    }
    return at;
}

int64_t el_graph_param_count(const struct el_graph *graph)
{
    int64_t count = 0;
    for (int i = 0; i < graph->n_params; i++) count += el_param_count(graph, i);
    return count;
}

int64_t el_graph_trained_count(const struct el_graph *graph)
{
    int64_t count = 0;
    for (int i = 0; i < graph->n_params; i++) count += graph->params[i].frozen ? 0 : el_param_count(graph, i);
    return count;
}

bool el_graph_trains_param(const struct el_graph *graph, int param)
{
    return !graph->params[param].frozen && el_graph_uses_param(graph, param);
}

bool el_graph_uses_param(const struct el_graph *graph, int param)
{
    return graph->params[param].used;
}
