/* Running statistics of the copies of a model; see copies.h. */
#include "runtime/worker/copies.h"

#include <stdlib.h>

#include "runtime/state/buffers.h"

/* ---- evaluation ---- */

/* `source`: the first copy's own, or, with a communicator, whatever this member has. */
static enum el_status receive_first(struct el_comm *const comm[2], const struct el_shard *shard, struct el_view source,
                                    struct el_buffer *buffer)
{
    struct el_comm_op op = el_buffers_broadcast(shard, el_view_of(buffer, 0));
    struct el_program *program;
    EL_TRY(el_program_create(&program));
    el_program_copy(program, shard->device, EL_STREAM_COMPUTE,
                    &(struct el_op_head){.label = "copy buffers", .phase = EL_PHASE_COMM}, op.data, source,
                    el_buffers_bytes(shard->graph, shard->config->dtype), NULL);
    for (int i = 0; i < 2 && comm[i]; i++) el_comm_issue(comm[i], program, &op, NULL);
    enum el_status status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return status;
}

enum el_status el_copies_take_first(struct el_worker *worker, int member, struct el_held *held,
                                    struct el_buffer **buffer_p)
{
    const struct el_shard *shard = &worker->members[member].shard;
    struct el_comm *const data = worker->group[EL_AXIS_DATA], *const shards = worker->group[EL_AXIS_SHARD];
    struct el_comm *const comm[2] = {data ? data : shards, data ? shards : NULL}; /* all copies of this part */
    struct el_buffer *buffer;
    *buffer_p = NULL;
    if (shard->graph->n_buffers == 0 || (!comm[0] && member == 0)) return EL_OK;
    EL_TRY(el_device_alloc(shard->device, EL_TAG_BUFFER, el_buffers_bytes(shard->graph, shard->config->dtype),
                           "buffers of the first copy", &buffer));
    *buffer_p = buffer;
    for (int i = 0; i < held->n; i++)
        for (int b = 0; b < held->parts[i].graph->n_buffers; b++) held->parts[i].buffers[b].buffer = buffer;
    return receive_first(comm, shard, (comm[0] ? shard : &worker->members[0].shard)->buffers[0], buffer);
}

/* ---- as numbers ---- */

static enum el_status read_copy(const struct el_shard *shard, const struct el_view *views, const struct el_graph *model,
                                double *values)
{
    for (int b = 0; b < shard->graph->n_buffers; b++) {
        const struct el_param *array = &shard->graph->buffers[b];
        EL_TRY(el_shard_read_doubles(shard, array, views[b], values + el_buffers_place(model, array->origin)));
    }
    return EL_OK;
}

/* Copies that are fed alike are one. */
static bool is_copys_first(const struct el_layout *layout, int position)
{
    const struct el_spot spot = el_layout_spot(layout, position);
    for (int d = 0; d < position; d++)
        if (el_layout_spot(layout, d).owns && el_layout_spot(layout, d).at[EL_AXIS_STAGE] == spot.at[EL_AXIS_STAGE] &&
            el_layout_spot(layout, d).feed == spot.feed)
            return false;
    return spot.owns;
}

/* Where a mode computes copies on one device they are all this worker's. */
static enum el_status read_own(struct el_worker *worker, el_copies_views *computed, int n_copies, double *values)
{
    int64_t n = el_buffers_count(worker->graph);
    for (int c = 0; c < n_copies && computed; c++)
        EL_TRY(read_copy(&worker->members[0].shard, computed(worker, c), worker->graph, values + c * n));
    for (int m = 0; m < worker->n_members && !computed; m++) {
        int position = worker->first + m;
        const struct el_shard *shard = &worker->members[m].shard;
        if (!is_copys_first(worker->layout, position)) continue;
        EL_TRY(read_copy(shard, shard->buffers, worker->graph,
                         values + el_layout_spot(worker->layout, position).feed * n));
    }
    return EL_OK;
}

enum el_status el_copies_read(struct el_worker *worker, el_copies_views *computed, double **values_p, int64_t *n_p)
{
    int n_copies = computed ? worker->config->n_devices : el_layout_copies(worker->layout);
    int64_t n = n_copies * el_buffers_count(worker->graph);
    *values_p = NULL;
    *n_p = 0;
    if (n == 0 || !el_device_computes(worker->members[0].shard.device)) return EL_OK;
    double *values = calloc((size_t)n, sizeof *values);
    if (!values) return el_fail_errno("%lld running statistics", (long long)n);
    enum el_status status = read_own(worker, computed, n_copies, values);
    if (status == EL_OK) status = el_worker_sum(worker, values, n);
    if (status == EL_OK && worker->first == 0) {
        *values_p = values;
        *n_p = n;
        return EL_OK;
    }
    free(values);
    return status;
}
