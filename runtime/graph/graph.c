/* Building a graph: names, shapes, who consumes what. It issues nothing; pass.c does. */
#include "runtime/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>

enum el_status el_graph_create(struct el_graph **graph_p)
{
    struct el_graph *graph = calloc(1, sizeof *graph);
    if (!graph) return el_fail_errno("a graph");
    *graph_p = graph;
    return EL_OK;
}

void el_graph_destroy(struct el_graph *graph)
{
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

static int add_tensor(struct el_graph *graph, const char *name, enum el_dtype dtype, const struct el_shape *shape,
                      int producer)
{
    if (graph->n_tensors == EL_GRAPH_TENSORS_MAX) {
        return keep(graph, el_fail(EL_ERR_INTERNAL, "more than %d tensors", EL_GRAPH_TENSORS_MAX));
    }
    struct el_tensor *tensor = &graph->tensors[graph->n_tensors];
    *tensor = (struct el_tensor){.dtype = dtype, .is_float = dtype != EL_I32, .shape = *shape, .producer = producer};
    snprintf(tensor->name, sizeof tensor->name, "%s", name);
    return graph->n_tensors++;
}

int el_graph_input(struct el_graph *graph, const char *name, enum el_dtype dtype, const struct el_shape *shape)
{
    if (graph->failure != EL_OK) return -1;
    if (graph->n_inputs == 1) return keep(graph, el_fail(EL_ERR_INTERNAL, "%s: a second input", name));
    int t = add_tensor(graph, name, dtype, shape, -1);
    if (t >= 0) graph->inputs[graph->n_inputs++] = t;
    return t;
}

int el_graph_param(struct el_graph *graph, const char *name, const struct el_shape *shape, double init_bound)
{
    if (graph->failure != EL_OK) return -1;
    if (graph->n_params == EL_GRAPH_PARAMS_MAX) {
        return keep(graph, el_fail(EL_ERR_INTERNAL, "more than %d parameters", EL_GRAPH_PARAMS_MAX));
    }
    struct el_param *param = &graph->params[graph->n_params];
    *param = (struct el_param){.origin = graph->n_params, .shape = *shape, .init_bound = init_bound};
    snprintf(param->name, sizeof param->name, "%s", name);
    return graph->n_params++;
}

static int check_ids(struct el_graph *graph, const char *name, const int *ids, int n, int limit)
{
    for (int i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= limit)
            return keep(graph, el_fail(EL_ERR_INTERNAL, "%s: input %d does not exist", name, i));
    }
    return 0;
}

int el_graph_node(struct el_graph *graph, const struct el_node_type *type, const char *name, const int *inputs,
                  int n_inputs, const int *params, int n_params, const struct el_node_attributes *attributes)
{
    if (graph->failure != EL_OK) return -1;
    if (graph->n_nodes == EL_GRAPH_NODES_MAX || n_inputs > EL_NODE_INPUTS_MAX || n_params > EL_NODE_PARAMS_MAX) {
        return keep(graph, el_fail(EL_ERR_INTERNAL, "%s: too many nodes, inputs or parameters", name));
    }
    if (check_ids(graph, name, inputs, n_inputs, graph->n_tensors) < 0) return -1;
    if (check_ids(graph, name, params, n_params, graph->n_params) < 0) return -1;
    struct el_node *node = &graph->nodes[graph->n_nodes];
    *node = (struct el_node){
        .type = type, .index = graph->n_nodes, .origin = graph->n_nodes, .n_inputs = n_inputs, .n_params = n_params};
    if (attributes) node->attributes = *attributes;
    for (int i = 0; i < n_inputs; i++) node->inputs[i] = inputs[i];
    for (int i = 0; i < n_params; i++) node->params[i] = params[i];
    snprintf(node->name, sizeof node->name, "%s", name);
    struct el_shape shape;
    enum el_status status = type->shape(graph, node, &shape);
    if (status != EL_OK) return keep(graph, status);
    node->output = add_tensor(graph, name, EL_F32, &shape, node->index);
    graph->n_nodes++;
    return node->output;
}

enum el_status el_graph_finish(struct el_graph *graph, int output, enum el_loss_kind loss)
{
    if (graph->failure != EL_OK) return el_error_give(&graph->error);
    bool used[EL_GRAPH_TENSORS_MAX] = {false};
    used[output] = true;
    for (int n = 0; n < graph->n_nodes; n++) {
        for (int i = 0; i < graph->nodes[n].n_inputs; i++) used[graph->nodes[n].inputs[i]] = true;
    }
    for (int t = 0; t < graph->n_tensors; t++) {
        if (!used[t]) return el_fail(EL_ERR_INTERNAL, "%s: nothing uses it", graph->tensors[t].name);
    }
    if (graph->n_params == 0) return el_fail(EL_ERR_INVALID, "a model without parameters cannot be trained");
    graph->outputs[0] = output;
    graph->n_outputs = 1;
    graph->loss = loss;
    return EL_OK;
}

int64_t el_graph_param_count(const struct el_graph *graph)
{
    int64_t count = 0;
    for (int i = 0; i < graph->n_params; i++) count += el_param_count(graph, i);
    return count;
}

bool el_graph_uses_param(const struct el_graph *graph, int param)
{
    for (int n = 0; n < graph->n_nodes; n++)
        for (int i = 0; i < graph->nodes[n].n_params; i++)
            if (graph->nodes[n].params[i] == param) return true;
    return false;
}
