#include "runtime/state/buffers.h"

#include <stdlib.h>

int64_t el_buffers_place(const struct el_graph *graph, int b)
{
    int64_t at = 0;
    for (int i = 0; i < b; i++) at += el_shape_count(&graph->buffers[i].shape);
    return at;
}

int64_t el_buffers_count(const struct el_graph *graph)
{
    return el_buffers_place(graph, graph->n_buffers);
}

bool el_buffers_are_in(const struct el_model_config *model)
{
    struct el_graph *graph;
    if (el_model_build(model, &graph) != EL_OK) return false;
    bool are = graph->n_buffers > 0;
    el_graph_destroy(graph);
    return are;
}

size_t el_buffers_bytes(const struct el_graph *graph, enum el_dtype dtype)
{
    return (size_t)el_buffers_count(graph) * el_dtype_bytes(dtype);
}

void el_buffers_view(const struct el_graph *graph, enum el_dtype dtype, struct el_view storage, struct el_view *views)
{
    for (int b = 0; b < graph->n_buffers; b++) {
        views[b] = storage;
        storage.offset += (size_t)el_shape_count(&graph->buffers[b].shape) * el_dtype_bytes(dtype);
    }
}

struct el_comm_op el_buffers_broadcast(const struct el_shard *shard, struct el_view data)
{
    return (struct el_comm_op){.verb = EL_COMM_BROADCAST,
                               .dtype = shard->config->dtype,
                               .count = (size_t)el_buffers_count(shard->graph),
                               .data = data,
                               .label = "broadcast buffers",
                               .phase = EL_PHASE_COMM,
                               .join = true};
}

void el_buffers_issue_broadcast(struct el_comm *comm, const struct el_shard *shard, struct el_program *program)
{
    if (shard->graph->n_buffers == 0 || el_comm_size(comm) == 1) return;
    const struct el_comm_op op = el_buffers_broadcast(shard, shard->buffers[0]);
    el_comm_issue(comm, program, &op, NULL);
}
