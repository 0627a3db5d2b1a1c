#include "runtime/graph/part.h"

#include <stdlib.h>

/* Nodes [first, end) of a model. */
struct cut {
    const struct el_graph *model;
    struct el_graph *part;
    int first, end;
};

static bool is_inside(const struct cut *cut, int node)
{
    return node >= cut->first && node < cut->end;
}

static enum el_status make(int n_tensors, int n_nodes, int n_params, int n_buffers, struct el_graph **graph_p)
{
    EL_TRY(el_graph_create(graph_p));
    struct el_graph *graph = *graph_p;
    graph->tensors = calloc((size_t)n_tensors + 1, sizeof *graph->tensors);
    graph->nodes = calloc((size_t)n_nodes + 1, sizeof *graph->nodes);
    graph->params = calloc((size_t)n_params + 1, sizeof *graph->params);
    graph->buffers = calloc((size_t)n_buffers + 1, sizeof *graph->buffers);
    graph->inputs = calloc((size_t)n_tensors + 1, sizeof *graph->inputs);
    graph->outputs = calloc((size_t)n_tensors + 1, sizeof *graph->outputs);
    if (graph->tensors && graph->nodes && graph->params && graph->buffers && graph->inputs && graph->outputs)
        return EL_OK;
    enum el_status status = el_fail_errno("a part of a graph");
    el_graph_destroy(graph);
    return status;
}

static void copy_head(struct el_graph *graph, const struct el_graph *model)
{
    graph->loss = model->loss;
    graph->labels = model->labels;
    graph->classes = model->classes;
    graph->class_slice = model->class_slice;
    graph->piece = model->piece;
    graph->n_pieces = model->n_pieces;
    graph->expert_rank = model->expert_rank;
    graph->n_expert_ranks = model->n_expert_ranks;
    graph->lent_routing = model->routing ? model->routing : model->lent_routing;
    graph->precision = model->precision;
    graph->by_tokens = model->by_tokens;
}

/* Each tensor's last reader; n_nodes for the output; -1: none. */
static int *find_last_readers(const struct el_graph *model)
{
    int *last = malloc(((size_t)model->n_tensors + 1) * sizeof *last);
    for (int t = 0; last && t < model->n_tensors; t++) last[t] = -1;
    for (int n = 0; last && n < model->n_nodes; n++)
        for (int i = 0; i < model->nodes[n].n_inputs; i++) last[model->nodes[n].inputs[i]] = n;
    if (last) last[model->outputs[0]] = model->n_nodes;
    return last;
}

static enum el_status find_edges(const struct cut *cut)
{
    struct el_graph *part = cut->part;
    int *last_reader = find_last_readers(cut->model);
    if (!last_reader) return el_fail_errno("a part of a graph");
    for (int t = 0; t < cut->model->n_tensors; t++) {
        struct el_tensor *tensor = &part->tensors[t];
        const int last = last_reader[t];
        if (tensor->producer < cut->first && last >= cut->first) part->inputs[part->n_inputs++] = t;
        if (tensor->producer < cut->end && last >= cut->end) part->outputs[part->n_outputs++] = t;
        tensor->producer = is_inside(cut, tensor->producer) ? tensor->producer - cut->first : -1;
    }
    free(last_reader);
    return EL_OK;
}

static int *numbers_of(struct el_node *node, bool buffers, int *n_p)
{
    *n_p = buffers ? node->n_buffers : node->n_params;
    return buffers ? node->buffers : node->params;
}

struct use {
    bool before, inside, after;
    int number;
};

static void find_uses(const struct cut *cut, bool buffers, struct use *uses)
{
    int n_used;
    for (int n = 0; n < cut->model->n_nodes; n++) {
        const int *used = numbers_of(&cut->model->nodes[n], buffers, &n_used);
        for (int i = 0; i < n_used; i++) {
            uses[used[i]].before |= n < cut->first;
            uses[used[i]].inside |= is_inside(cut, n);
            uses[used[i]].after |= n >= cut->end;
        }
    }
}

static enum el_status take_arrays(const struct cut *cut, bool buffers, const struct el_param *arrays, int n_arrays,
                                  struct el_param *taken, int *n_taken)
{
    enum el_status status = EL_OK;
    int n_used;
    struct use *uses = calloc((size_t)n_arrays + 1, sizeof *uses);
    if (!uses) return el_fail_errno("the %d arrays of a graph", n_arrays);
    find_uses(cut, buffers, uses);
    for (int a = 0; a < n_arrays && status == EL_OK; a++) {
        if (!uses[a].inside) continue;
        if (buffers && (uses[a].before || uses[a].after))
            status = el_fail(EL_ERR_INVALID, "a cut separates two uses of '%s'", arrays[a].name);
        uses[a].number = *n_taken;
        taken[*n_taken] = arrays[a];
        taken[*n_taken].is_shared = uses[a].before || uses[a].after;
        taken[(*n_taken)++].is_copy = uses[a].before;
    }
    for (int n = 0; n < cut->part->n_nodes; n++) {
        int *numbers = numbers_of(&cut->part->nodes[n], buffers, &n_used);
        for (int i = 0; i < n_used; i++) numbers[i] = uses[numbers[i]].number;
    }
    free(uses);
    return status;
}

static enum el_status fill(struct cut *cut)
{
    const struct el_graph *model = cut->model;
    struct el_graph *part = cut->part;
    copy_head(part, model);
    part->n_tensors = model->n_tensors;
    for (int t = 0; t < model->n_tensors; t++) part->tensors[t] = model->tensors[t];
    for (int n = cut->first; n < cut->end; n++) {
        part->nodes[part->n_nodes] = model->nodes[n];
        part->nodes[part->n_nodes].index = part->n_nodes;
        part->n_nodes++;
    }
    EL_TRY(find_edges(cut));
    EL_TRY(take_arrays(cut, false, model->params, model->n_params, part->params, &part->n_params));
    return take_arrays(cut, true, model->buffers, model->n_buffers, part->buffers, &part->n_buffers);
}

enum el_status el_graph_part(const struct el_graph *model, int first, int n_nodes, struct el_graph **part_p)
{
    struct cut cut = {.model = model, .first = first, .end = first + n_nodes};
    if (first < 0 || n_nodes < 1 || cut.end > model->n_nodes)
        return el_fail(EL_ERR_INVALID, "no nodes %d to %d in a model of %d", first, cut.end - 1, model->n_nodes);
    EL_TRY(make(model->n_tensors, n_nodes, model->n_params, model->n_buffers, &cut.part));
    enum el_status status = fill(&cut);
    if (status == EL_OK)
        *part_p = cut.part;
    else
        el_graph_destroy(cut.part);
    return status;
}

static int by_origin(const void *a, const void *b)
{
    return ((const struct el_param *)a)->origin - ((const struct el_param *)b)->origin;
}

static int find_origin(const struct el_param *arrays, int origin)
{
    int a = 0;
    while (arrays[a].origin != origin) a++;
    return a;
}

static void add_nodes(struct el_graph *graph, const struct el_graph *part)
{
    for (int n = 0; n < part->n_nodes; n++) {
        struct el_node *node = &graph->nodes[graph->n_nodes];
        *node = part->nodes[n];
        node->index = graph->n_nodes++;
        for (int i = 0; i < node->n_params; i++)
            node->params[i] = find_origin(graph->params, part->params[node->params[i]].origin);
        for (int i = 0; i < node->n_buffers; i++)
            node->buffers[i] = find_origin(graph->buffers, part->buffers[node->buffers[i]].origin);
    }
}

enum el_status el_graph_of_parts(const struct el_graph *const *parts, int n, struct el_graph **graph_p)
{
    struct el_graph *graph;
    int n_nodes = 0, n_params = 0, n_buffers = 0;
    for (int k = 0; k < n; k++) {
        n_nodes += parts[k]->n_nodes;
        n_params += parts[k]->n_params;
        n_buffers += parts[k]->n_buffers;
    }
    EL_TRY(make(0, n_nodes, n_params, n_buffers, &graph));
    copy_head(graph, parts[0]);
    for (int k = 0; k < n; k++) {
        for (int p = 0; p < parts[k]->n_params; p++) graph->params[graph->n_params++] = parts[k]->params[p];
        for (int b = 0; b < parts[k]->n_buffers; b++) graph->buffers[graph->n_buffers++] = parts[k]->buffers[b];
    }
    qsort(graph->params, (size_t)n_params, sizeof *graph->params, by_origin);
    qsort(graph->buffers, (size_t)n_buffers, sizeof *graph->buffers, by_origin);
    for (int p = 1; p < n_params; p++)
        if (graph->params[p].origin == graph->params[p - 1].origin) {
            enum el_status status = el_fail(EL_ERR_INVALID,
                                            "two parts on one device both have '%s': take a --schedule in which they "
                                            "are on two",
                                            graph->params[p].name);
            el_graph_destroy(graph);
            return status;
        }
    for (int k = 0; k < n; k++) add_nodes(graph, parts[k]);
    *graph_p = graph;
    return EL_OK;
}
