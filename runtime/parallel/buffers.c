/* A model's buffers in the modes; see buffers.h. */
#include "runtime/parallel/buffers.h"

#include <stdlib.h>

/* Where buffer `b` stands among all, in elements. */
static int64_t place_of(const struct el_graph *graph, int b)
{
    int64_t at = 0;
    for (int i = 0; i < b; i++) at += el_shape_count(&graph->buffers[i].shape);
    return at;
}

int64_t el_buffers_count(const struct el_graph *graph)
{
    return place_of(graph, graph->n_buffers);
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

static struct el_comm_op broadcast(const struct el_shard *shard, struct el_view data)
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
    struct el_comm_op op = broadcast(shard, shard->buffers[0]);
    el_comm_issue(comm, program, &op, NULL);
}

/* ---- evaluation ---- */

/* `source`: the first copy's own, or, with a communicator, whatever this member has. */
static enum el_status receive_first(struct el_comm *comm, const struct el_shard *shard, struct el_view source,
                                    struct el_buffer *buffer)
{
    struct el_comm_op op = broadcast(shard, el_view_of(buffer, 0));
    struct el_program *program;
    EL_TRY(el_program_create(&program));
    el_program_copy(program, shard->device, EL_STREAM_COMPUTE,
                    &(struct el_op_head){.label = "copy buffers", .phase = EL_PHASE_COMM}, op.data, source,
                    el_buffers_bytes(shard->graph, shard->config->dtype), NULL);
    if (comm) el_comm_issue(comm, program, &op, NULL);
    enum el_status status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return status;
}

enum el_status el_buffers_take_first(struct el_worker *worker, int member, struct el_held *held,
                                     struct el_buffer **buffer_p)
{
    const struct el_shard *shard = &worker->members[member].shard;
    struct el_comm *comm = el_worker_copies(worker);
    struct el_buffer *buffer;
    *buffer_p = NULL;
    if (shard->graph->n_buffers == 0 || (!comm && member == 0)) return EL_OK;
    EL_TRY(el_device_alloc(shard->device, EL_TAG_BUFFER, el_buffers_bytes(shard->graph, shard->config->dtype),
                           "buffers of the first copy", &buffer));
    *buffer_p = buffer;
    for (int i = 0; i < held->n; i++)
        for (int b = 0; b < held->parts[i].graph->n_buffers; b++) held->parts[i].buffers[b].buffer = buffer;
    return receive_first(comm, shard, (comm ? shard : &worker->members[0].shard)->buffers[0], buffer);
}

/* ---- as numbers ---- */

static enum el_status read_copy(const struct el_shard *shard, const struct el_view *views, const struct el_graph *model,
                                double *values)
{
    for (int b = 0; b < shard->graph->n_buffers; b++) {
        const struct el_param *array = &shard->graph->buffers[b];
        EL_TRY(el_shard_read_doubles(shard, array, views[b], values + place_of(model, array->origin)));
    }
    return EL_OK;
}

/* Copies that are fed alike are one. */
static bool is_copys_first(const struct el_layout *layout, int position)
{
    const struct el_spot *spot = &layout->devices[position];
    for (int d = 0; d < position; d++)
        if (layout->devices[d].owns && layout->devices[d].stage == spot->stage && layout->devices[d].feed == spot->feed)
            return false;
    return spot->owns;
}

/* Where a mode computes copies on one device they are all this worker's. */
static enum el_status read_own(struct el_worker *worker, int n_copies, double *values)
{
    const struct el_mode_ops *mode = el_mode_ops_find(worker->config->mode);
    int64_t n = el_buffers_count(worker->graph);
    for (int c = 0; c < n_copies && mode->buffers; c++)
        EL_TRY(read_copy(&worker->members[0].shard, mode->buffers(worker, c), worker->graph, values + c * n));
    for (int m = 0; m < worker->n_members && !mode->buffers; m++) {
        int position = worker->first + m;
        const struct el_shard *shard = &worker->members[m].shard;
        if (!is_copys_first(worker->layout, position)) continue;
        EL_TRY(read_copy(shard, shard->buffers, worker->graph, values + worker->layout->devices[position].feed * n));
    }
    return EL_OK;
}

enum el_status el_buffers_read(struct el_worker *worker, double **values_p, int64_t *n_p)
{
    const struct el_mode_ops *mode = el_mode_ops_find(worker->config->mode);
    int n_copies = mode->buffers ? worker->config->n_devices : el_layout_copies(worker->layout);
    int64_t n = n_copies * el_buffers_count(worker->graph);
    *values_p = NULL;
    *n_p = 0;
    if (n == 0 || !el_device_computes(worker->members[0].shard.device)) return EL_OK;
    double *values = calloc((size_t)n, sizeof *values);
    if (!values) return el_fail_errno("%lld running statistics", (long long)n);
    enum el_status status = read_own(worker, n_copies, values);
    if (status == EL_OK) status = el_worker_sum(worker, values, n);
    if (status == EL_OK && worker->first == 0) {
        *values_p = values;
        *n_p = n;
        return EL_OK;
    }
    free(values);
    return status;
}
