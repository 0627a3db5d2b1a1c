/* Parts of a graph; see part.h. */
#include "runtime/graph/part.h"

/* A cut model: nodes [first, end) are inside. */
struct cut {
    const struct el_graph *model;
    struct el_graph *part;
    int first, end;
};

static bool is_inside(const struct cut *cut, int node)
{
    return node >= cut->first && node < cut->end;
}

/* Where a tensor is read last, as a node; behind all where it is the model's output. */
static int last_reader(const struct el_graph *model, int t)
{
    if (t == model->outputs[0]) return model->n_nodes;
    for (int n = model->n_nodes - 1; n >= 0; n--)
        for (int i = 0; i < model->nodes[n].n_inputs; i++)
            if (model->nodes[n].inputs[i] == t) return n;
    return -1;
}

/* `node`: the first one behind the edge. */
static enum el_status add_edge(const struct cut *cut, int *edge, int *n_p, int tensor, int node)
{
    if (*n_p == EL_GRAPH_EDGE_MAX)
        return el_fail(EL_ERR_INVALID, "a cut before '%s': more than %d values cross it", cut->model->nodes[node].name,
                       EL_GRAPH_EDGE_MAX);
    edge[(*n_p)++] = tensor;
    return EL_OK;
}

static enum el_status find_edges(const struct cut *cut)
{
    struct el_graph *part = cut->part;
    for (int t = 0; t < cut->model->n_tensors; t++) {
        struct el_tensor *tensor = &part->tensors[t];
        int last = last_reader(cut->model, t);
        if (tensor->producer < cut->first && last >= cut->first)
            EL_TRY(add_edge(cut, part->inputs, &part->n_inputs, t, cut->first));
        if (tensor->producer < cut->end && last >= cut->end)
            EL_TRY(add_edge(cut, part->outputs, &part->n_outputs, t, cut->end));
        tensor->producer = is_inside(cut, tensor->producer) ? tensor->producer - cut->first : -1;
    }
    return EL_OK;
}

static enum el_status add_params(const struct cut *cut)
{
    const struct el_graph *model = cut->model;
    int number[EL_GRAPH_PARAMS_MAX]; /* in the part, -1: outside */
    bool outside[EL_GRAPH_PARAMS_MAX] = {false};
    for (int p = 0; p < model->n_params; p++) number[p] = -1;
    for (int n = 0; n < model->n_nodes; n++)
        for (int i = 0; i < model->nodes[n].n_params; i++) {
            int p = model->nodes[n].params[i];
            if (is_inside(cut, n))
                number[p] = 0;
            else
                outside[p] = true;
        }
    for (int p = 0; p < model->n_params; p++) {
        if (number[p] < 0) continue;
        if (outside[p]) return el_fail(EL_ERR_INVALID, "a cut separates two uses of '%s'", model->params[p].name);
        number[p] = cut->part->n_params;
        cut->part->params[cut->part->n_params++] = model->params[p];
    }
    for (int n = 0; n < cut->part->n_nodes; n++) {
        struct el_node *node = &cut->part->nodes[n];
        for (int i = 0; i < node->n_params; i++) node->params[i] = number[node->params[i]];
    }
    return EL_OK;
}

static enum el_status fill(const struct cut *cut)
{
    struct el_graph *part = cut->part;
    part->loss = cut->model->loss;
    part->n_tensors = cut->model->n_tensors;
    for (int t = 0; t < part->n_tensors; t++) part->tensors[t] = cut->model->tensors[t];
    for (int n = cut->first; n < cut->end; n++) {
        part->nodes[part->n_nodes] = cut->model->nodes[n];
        part->nodes[part->n_nodes].index = part->n_nodes;
        part->n_nodes++;
    }
    EL_TRY(find_edges(cut));
    return add_params(cut);
}

enum el_status el_graph_part(const struct el_graph *model, int first, int n_nodes, struct el_graph **part_p)
{
    struct cut cut = {.model = model, .first = first, .end = first + n_nodes};
    if (first < 0 || n_nodes < 1 || cut.end > model->n_nodes)
        return el_fail(EL_ERR_INVALID, "no nodes %d to %d in a model of %d", first, cut.end - 1, model->n_nodes);
    EL_TRY(el_graph_create(&cut.part));
    enum el_status status = fill(&cut);
    if (status == EL_OK)
        *part_p = cut.part;
    else
        el_graph_destroy(cut.part);
    return status;
}

/* Of the parameters behind `origin`, of all parts, the first in the model's order; NULL: there is none. */
static const struct el_param *next_param(const struct el_graph *const *parts, int n, int origin)
{
    const struct el_param *next = NULL;
    for (int k = 0; k < n; k++)
        for (int p = 0; p < parts[k]->n_params; p++) {
            const struct el_param *param = &parts[k]->params[p];
            if (param->origin > origin && (!next || param->origin < next->origin)) next = param;
        }
    return next;
}

static void add_nodes(struct el_graph *graph, const struct el_graph *part)
{
    for (int n = 0; n < part->n_nodes; n++) {
        struct el_node *node = &graph->nodes[graph->n_nodes];
        *node = part->nodes[n];
        node->index = graph->n_nodes++;
        for (int i = 0; i < node->n_params; i++) {
            int origin = part->params[part->nodes[n].params[i]].origin;
            for (node->params[i] = 0; graph->params[node->params[i]].origin != origin;) node->params[i]++;
        }
    }
}

enum el_status el_graph_of_parts(const struct el_graph *const *parts, int n, struct el_graph **graph_p)
{
    struct el_graph *graph;
    int origin = -1;
    EL_TRY(el_graph_create(&graph));
    graph->loss = parts[0]->loss;
    for (const struct el_param *param; (param = next_param(parts, n, origin)) != NULL; origin = param->origin)
        graph->params[graph->n_params++] = *param;
    for (int k = 0; k < n; k++) add_nodes(graph, parts[k]);
    *graph_p = graph;
    return EL_OK;
}
