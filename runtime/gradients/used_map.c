/* Maps of used parameters; see used_map.h. */
#include "runtime/gradients/used_map.h"

#include <stdio.h>
#include <stdlib.h>

struct el_used_map {
    const struct el_shard *shard;
    struct el_comm *comm, *across;
    int n;                  /* parameters that are not frozen: those of the map */
    struct el_buffer *sums; /* [n] int32 */
    int32_t *own;           /* [n], in host memory */
};

static size_t map_bytes(const struct el_used_map *map)
{
    return (size_t)map->n * sizeof(int32_t);
}

enum el_status el_used_map_open(const struct el_shard *shard, struct el_comm *comm, struct el_comm *across,
                                struct el_used_map **map_p)
{
    struct el_used_map *map = calloc(1, sizeof *map);
    if (!map) return el_fail_errno("a map of used parameters");
    *map = (struct el_used_map){.shard = shard,
                                .comm = comm,
                                .across = across,
                                .own = calloc((size_t)shard->graph->n_params + 1, sizeof(int32_t))};
    *map_p = map;
    if (!map->own) return el_fail_errno("a map of used parameters");
    for (int p = 0; p < shard->graph->n_params; p++)
        if (!shard->graph->params[p].frozen) map->own[map->n++] = el_graph_uses_param(shard->graph, p);
    return el_comm_alloc(across ? across : comm, EL_TAG_BUCKET, map_bytes(map), "map of used parameters", &map->sums);
}

void el_used_map_close(struct el_used_map *map)
{
    if (!map) return;
    el_device_free(map->sums);
    free(map->own);
    free(map);
}

void el_used_map_issue(struct el_used_map *map, struct el_program *program, int *op_p)
{
    struct el_op_head head = {.label = "map of used parameters", .phase = EL_PHASE_REDUCE};
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .dtype = EL_I32,
                            .count = (size_t)map->n,
                            .data = el_view_of(map->sums, 0),
                            .label = "all_reduce used parameters",
                            .phase = EL_PHASE_COMM};
    el_program_copy(program, map->shard->device, EL_STREAM_COMPUTE, &head, op.data, el_view_host(map->own),
                    map_bytes(map), NULL);
    el_comm_issue(map->comm, program, &op, op_p);
    if (!map->across) return;
    el_comm_wait(map->across, program, *op_p);
    el_comm_issue(map->across, program, &op, op_p);
}

enum el_status el_used_map_check(const struct el_used_map *map)
{
    const struct el_param *params = map->shard->graph->params;
    for (int i = 0, p = 0; i < map->n; i++, p++) {
        int32_t sum;
        while (params[p].frozen) p++;
        if (map->own[i]) continue;
        EL_TRY(el_device_read(el_view_of(map->sums, (size_t)i * sizeof sum), &sum, sizeof sum));
        if (sum == 0) continue;
        return el_fail(EL_ERR_INTERNAL,
                       "'%s' got a gradient on another rank, and none on rank %d: ranks train one graph",
                       params[p].name, el_comm_rank(map->comm));
    }
    return EL_OK;
}

void el_used_map_missing(const struct el_graph *graph, char *text, size_t bytes)
{
    int n = 0, first = 0;
    for (int p = graph->n_params - 1; p >= 0; p--) {
        if (graph->params[p].frozen || el_graph_uses_param(graph, p)) continue;
        first = p;
        n++;
    }
    *text = 0;
    if (n > 1) snprintf(text, bytes, "'%s' and %d more", graph->params[first].name, n - 1);
    if (n == 1) snprintf(text, bytes, "'%s'", graph->params[first].name);
}
