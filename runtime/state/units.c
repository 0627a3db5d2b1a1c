#include "runtime/state/units.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Length of the name's block: up to its last numeric part; 0: none. */
static size_t block_length(const char *name)
{
    size_t length = 0;
    for (size_t begin = 0, i = 0; name[i]; i++) {
        if (name[i] != '.') continue;
        bool number = i > begin;
        for (size_t k = begin; k < i; k++) number &= isdigit((unsigned char)name[k]) != 0;
        if (number) length = i;
        begin = i + 1;
    }
    return length;
}

static size_t layer_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : strlen(name);
}

static bool has_blocks(const struct el_graph *graph)
{
    for (int p = 0; p < graph->n_params; p++)
        if (block_length(graph->params[p].name) > 0) return true;
    return false;
}

static void name_of(const struct el_graph *graph, enum el_unit_kind kind, int p, char name[EL_GRAPH_NAME_BYTES])
{
    const char *own = graph->params[p].name;
    size_t length = kind == EL_UNIT_MODEL ? 0 : kind == EL_UNIT_LAYER ? layer_length(own) : block_length(own);
    if (kind == EL_UNIT_BLOCK && length == 0 && !has_blocks(graph)) length = layer_length(own);
    memcpy(name, own, length);
    name[length] = 0;
}

static bool stands_alone(const struct el_param *param)
{
    return param->max_norm > 0 || param->is_shared;
}

static struct el_unit *find(struct el_units *units, const struct el_graph *graph, enum el_unit_kind kind, int p)
{
    const bool trained = el_graph_trains_param(graph, p), alone = stands_alone(&graph->params[p]);
    char name[EL_GRAPH_NAME_BYTES];
    name_of(graph, kind, p, name);
    for (int u = 0; u < units->n && !alone; u++)
        if (units->units[u].trained == trained && strcmp(units->units[u].name, name) == 0 &&
            !stands_alone(&graph->params[units->units[u].first_param]))
            return &units->units[u];
    struct el_unit *unit = &units->units[units->n++];
    *unit = (struct el_unit){.trained = trained,
                             .first_param = p,
                             .forward_open = -1,
                             .forward_close = -1,
                             .backward_open = -1,
                             .backward_close = -1};
    memcpy(unit->name, name, sizeof name);
    return unit;
}

static void use(struct el_unit *unit, int node, bool backward)
{
    if (unit->forward_open < 0) unit->forward_open = node;
    unit->forward_close = node;
    if (!backward) return;
    if (unit->backward_close < 0) unit->backward_close = node;
    unit->backward_open = node;
}

/* The node's forward is repeated before node `at`'s backward. */
static void use_again(struct el_unit *unit, int node, int at)
{
    if (node > at) return;
    if (unit->backward_close < 0 || unit->backward_close > at) unit->backward_close = at;
    if (unit->backward_open < at) unit->backward_open = at;
}

enum el_status el_units_open(const struct el_graph *graph, enum el_unit_kind kind, int n_pieces,
                             struct el_units **units_p)
{
    const size_t n = (size_t)graph->n_params + 1;
    struct el_units *units = calloc(1, sizeof *units);
    if (units)
        *units = (struct el_units){n_pieces, 0, calloc(n, sizeof *units->units), calloc(n, sizeof *units->of),
                                   calloc(n, sizeof *units->offset)};
    if (!units || !units->units || !units->of || !units->offset) {
        el_units_close(units);
        return el_fail_errno("units of %d parameters", graph->n_params);
    }
    for (int p = 0; p < graph->n_params; p++) {
        struct el_unit *unit = find(units, graph, kind, p);
        units->of[p] = (int)(unit - units->units);
        units->offset[p] = unit->count;
        unit->count += el_param_count(graph, p);
        unit->n_params++;
    }
    for (int u = 0; u < units->n; u++) {
        struct el_unit *unit = &units->units[u];
        const struct el_param *first = &graph->params[unit->first_param];
        const int64_t together = n_pieces * (first->max_norm > 0 ? unit->count / first->shape.d[0] : 1);
        unit->padding = (together - unit->count % together) % together;
        unit->count += unit->padding;
    }
    for (int i = 0; i < graph->n_nodes; i++)
        for (int k = 0; k < graph->nodes[i].n_params; k++)
            use(&units->units[units->of[graph->nodes[i].params[k]]], i,
                graph->tensors[graph->nodes[i].outputs[0]].requires_grad);
    for (int i = 0; i < graph->n_nodes; i++) {
        const int at = el_graph_again_at(graph, &graph->nodes[i]);
        for (int k = 0; k < graph->nodes[i].n_params; k++)
            use_again(&units->units[units->of[graph->nodes[i].params[k]]], i, at);
    }
    *units_p = units;
    return EL_OK;
}

void el_units_close(struct el_units *units)
{
    if (!units) return;
    free(units->units);
    free(units->of);
    free(units->offset);
    free(units);
}

void el_units_own(const struct el_units *units, int p, int64_t n, int piece, int64_t *first_p, int64_t *count_p)
{
    const int64_t part = units->units[units->of[p]].count / units->n_pieces;
    int64_t begin = piece * part - units->offset[p], end = begin + part;
    begin = begin < 0 ? 0 : begin < n ? begin : n;
    end = end < begin ? begin : end < n ? end : n;
    *first_p = begin;
    *count_p = end - begin;
}
