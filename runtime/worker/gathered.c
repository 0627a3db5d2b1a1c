/* Parameters that are gathered for the nodes that read them; see gathered.h. */
#include "runtime/worker/gathered.h"

#include <stdio.h>
#include <stdlib.h>

/* Where a unit is needed from: in forward, or in backward. */
struct need {
    int unit, node;
};

struct place {
    struct el_buffer *buffer; /* NULL: it is not there */
    int gather_op;
};

struct el_gathered {
    const struct el_shard *shard;
    struct el_comm *comm; /* NULL: what is stored is all */
    bool gathers;         /* from the others, or from another type */
    int ahead;
    bool frees;
    int n_passes, n_back;   /* of a step, and those that have begun to go back */
    struct el_view *params; /* [n_params] */
    struct place *places;   /* [units->n] */
    struct need *needs[2];  /* in forward, and in backward, in their order */
    int n_needs[2];
    int at; /* in the half that is issued: the first need that has not come */
};

/* It is the last in forward and the first in backward, or nothing is freed in between. */
static bool stays(const struct el_gathered *gathered, const struct el_unit *unit)
{
    const struct el_graph *graph = gathered->shard->graph;
    return unit->backward_open >= 0 && (!gathered->frees || unit->backward_open == graph->n_nodes - 1);
}

/* What is stored here is of another type than what is gathered. */
static bool casts(const struct el_shard *shard)
{
    return el_config_computed(shard->config) != el_config_stored(shard->config);
}

static void list_needs(struct el_gathered *gathered)
{
    const struct el_units *units = gathered->shard->units;
    const int n_nodes = gathered->shard->graph->n_nodes;
    for (int i = 0; i < n_nodes; i++)
        for (int u = 0; u < units->n; u++)
            if (units->units[u].forward_open == i) gathered->needs[0][gathered->n_needs[0]++] = (struct need){u, i};
    for (int i = n_nodes - 1; i >= 0; i--)
        for (int u = 0; u < units->n; u++)
            if (units->units[u].backward_open == i && !stays(gathered, &units->units[u]))
                gathered->needs[1][gathered->n_needs[1]++] = (struct need){u, i};
}

enum el_status el_gathered_open(const struct el_shard *shard, struct el_comm *comm, int ahead, bool frees, int n_passes,
                                struct el_gathered **gathered_p)
{
    struct el_gathered *gathered = calloc(1, sizeof *gathered);
    const size_t n = (size_t)shard->units->n + 1;
    if (!gathered) return el_fail_errno("gathered parameters");
    *gathered = (struct el_gathered){.shard = shard,
                                     .comm = comm,
                                     .gathers = comm || casts(shard),
                                     .ahead = ahead,
                                     .frees = frees,
                                     .n_passes = n_passes,
                                     .params = calloc((size_t)shard->graph->n_params + 1, sizeof *gathered->params),
                                     .places = calloc(n, sizeof *gathered->places),
                                     .needs = {calloc(n, sizeof(struct need)), calloc(n, sizeof(struct need))}};
    if (!gathered->params || !gathered->places || !gathered->needs[0] || !gathered->needs[1]) {
        el_gathered_close(gathered);
        return el_fail_errno("gathered parameters");
    }
    list_needs(gathered);
    for (int p = 0; p < shard->graph->n_params && !gathered->gathers; p++) gathered->params[p] = shard->params[p];
    *gathered_p = gathered;
    return EL_OK;
}

void el_gathered_close(struct el_gathered *gathered)
{
    if (!gathered) return;
    free(gathered->params);
    free(gathered->places);
    free(gathered->needs[0]);
    free(gathered->needs[1]);
    free(gathered);
}

const struct el_view *el_gathered_params(const struct el_gathered *gathered)
{
    return gathered->params;
}

static void gather(struct el_gathered *gathered, struct el_program *program, enum el_phase phase, int u)
{
    const struct el_shard *shard = gathered->shard;
    const struct el_unit *unit = &shard->units->units[u];
    struct place *place = &gathered->places[u];
    const enum el_dtype dtype = el_config_computed(shard->config);
    const size_t width = el_dtype_bytes(dtype);
    char label[2 * EL_GRAPH_NAME_BYTES];
    if (place->buffer) return;
    snprintf(label, sizeof label, "all_gather %s", *unit->name ? unit->name : "rest");
    el_program_alloc_padded(program, shard->device, EL_TAG_REPLICA, (size_t)unit->count * width,
                            (size_t)unit->padding * width, label, &place->buffer);
    const int64_t part = unit->count / shard->units->n_pieces;
    const struct el_view stored = el_view_of(shard->params[unit->first_param].buffer, 0),
                         own = el_view_of(place->buffer, (size_t)(shard->piece * part) * width);
    if (casts(shard))
        el_shard_issue_move(shard, program, phase, "cast parameters", el_config_stored(shard->config), stored, dtype,
                            own, part, 1);
    struct el_comm_op op = {.verb = EL_COMM_ALL_GATHER,
                            .dtype = dtype,
                            .count = (size_t)part,
                            .data = casts(shard) ? own : stored,
                            .result = el_view_of(place->buffer, 0),
                            .label = label,
                            .phase = EL_PHASE_COMM};
    if (gathered->comm) el_comm_issue(gathered->comm, program, &op, &place->gather_op);
    for (int p = 0; p < shard->graph->n_params; p++)
        if (shard->units->of[p] == u)
            gathered->params[p] = el_view_of(place->buffer, (size_t)shard->units->offset[p] * width);
}

static void gather_now(struct el_gathered *gathered, struct el_program *program, enum el_phase phase, int u)
{
    gather(gathered, program, phase, u);
    el_program_wait(program, gathered->shard->device, EL_STREAM_COMPUTE, gathered->places[u].gather_op);
}

static void drop(struct el_gathered *gathered, struct el_program *program, int u)
{
    el_program_free(program, gathered->places[u].buffer);
    gathered->places[u].buffer = NULL;
}

void el_gathered_before(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct el_gathered *gathered = context;
    const int half = phase == EL_PHASE_BACKWARD;
    const struct need *needs = gathered->needs[half];
    const struct el_units *units = gathered->shard->units;
    if (!gathered->gathers) return;
    if (node->index == (half ? gathered->shard->graph->n_nodes - 1 : 0)) {
        gathered->at = 0;
        gathered->n_back = half ? gathered->n_back % gathered->n_passes + 1 : gathered->n_back;
    }
    for (int u = 0; u < units->n && half; u++) {
        const struct el_unit *unit = &units->units[u];
        const bool gone = stays(gathered, unit) && !gathered->places[u].buffer; /* with a pass before this one */
        if (unit->backward_open == node->index && gone) gather_now(gathered, program, phase, u);
    }
    int at = gathered->at;
    for (; at < gathered->n_needs[half] && needs[at].node == node->index; at++)
        gather_now(gathered, program, phase, needs[at].unit);
    if (at == gathered->at) return;
    gathered->at = at;
    for (int i = at; i < at + gathered->ahead && i < gathered->n_needs[half]; i++)
        gather(gathered, program, phase, needs[i].unit);
}

void el_gathered_after(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct el_gathered *gathered = context;
    const struct el_units *units = gathered->shard->units;
    const bool is_free = gathered->frees || gathered->n_back == gathered->n_passes;
    for (int u = 0; u < units->n && gathered->gathers; u++) {
        const struct el_unit *unit = &units->units[u];
        if (phase == EL_PHASE_BACKWARD ? unit->backward_close == node->index && is_free
                                       : unit->forward_close == node->index && !stays(gathered, unit))
            drop(gathered, program, u);
    }
}
