#include "runtime/modes/pipeline/edge.h"

#include <stdlib.h>

size_t el_edge_bytes(const struct el_worker *worker, int64_t batch, int tensor)
{
    const struct el_tensor *t = &worker->parts->model->tensors[tensor];
    return (size_t)(batch * el_shape_count(&t->shape)) * el_dtype_bytes(el_tensor_dtype(t, worker->config->dtype));
}

static struct el_comm_op message(const struct el_worker *worker, const struct el_edge *edge, int tensor)
{
    const struct el_tensor *t = &worker->parts->model->tensors[tensor];
    return (struct el_comm_op){.dtype = el_tensor_dtype(t, worker->config->dtype),
                               .count = (size_t)(edge->batch * el_shape_count(&t->shape)),
                               .root = edge->peer,
                               .label = t->name,
                               .phase = EL_PHASE_COMM};
}

struct el_view el_edge_receive(struct el_worker *worker, struct el_program *program, const struct el_edge *edge,
                               int tensor, struct el_buffer **buffer_p)
{
    struct el_comm_op op = message(worker, edge, tensor);
    struct el_device *device = worker->members[0].shard.device;
    el_program_alloc(program, device, EL_TAG_ACTIVATION, el_edge_bytes(worker, edge->batch, tensor), op.label,
                     buffer_p);
    op.verb = EL_COMM_RECV;
    op.result = el_view_of(*buffer_p, 0);
    op.join = true;
    el_comm_issue(worker->world, program, &op, NULL);
    return op.result;
}

void el_edge_send(struct el_worker *worker, struct el_program *program, const struct el_edge *edge, int tensor,
                  struct el_view view, int *op_p)
{
    struct el_comm_op op = message(worker, edge, tensor);
    op.verb = EL_COMM_SEND;
    op.data = view;
    el_comm_issue(worker->world, program, &op, op_p);
}

static size_t widest(const struct el_worker *worker, int64_t batch)
{
    size_t most = 0;
    for (int k = 1; k < worker->parts->n; k++) {
        const struct el_graph *part = worker->parts->part[k];
        size_t bytes = 0;
        for (int i = 0; i < part->n_inputs; i++) bytes += el_edge_bytes(worker, batch, part->inputs[i]);
        if (bytes > most) most = bytes;
    }
    return most;
}

/* The other worker with parameter `p` in this copy of the model; -1: none. */
static int other_holder(const struct el_worker *worker, int p)
{
    const struct el_spot own = el_layout_spot(worker->layout, worker->first);
    const int each = worker->layout->n[EL_AXIS_TENSOR];
    for (int s = 0; s < worker->parts->n_stages; s++) {
        const struct el_graph *stage = worker->parts->stage[s];
        for (int q = 0; q < stage->n_params && s != own.at[EL_AXIS_STAGE]; q++)
            if (stage->params[q].origin == worker->members[0].shard.graph->params[p].origin)
                return own.worker + (s - own.at[EL_AXIS_STAGE]) * each;
    }
    return -1;
}

void el_edge_issue_sums(struct el_worker *worker, struct el_program *program, const struct el_view *grads)
{
    const struct el_shard *shard = &worker->members[0].shard;
    for (int p = 0; p < shard->graph->n_params; p++) {
        const int other = grads[p].buffer ? other_holder(worker, p) : -1;
        int64_t first, n;
        el_shard_range(shard, EL_STATE_SLOT, p, &first, &n);
        struct el_comm_op op = {.verb = EL_COMM_SEND,
                                .dtype = el_config_stored(shard->config),
                                .count = (size_t)n,
                                .root = other,
                                .data = grads[p],
                                .label = shard->graph->params[p].name,
                                .phase = EL_PHASE_COMM};
        struct el_buffer *received;
        int sent;
        if (other < 0 || n == 0) continue;
        el_comm_issue(worker->world, program, &op, &sent);
        el_program_alloc(program, shard->device, EL_TAG_WORKSPACE, (size_t)n * el_dtype_bytes(op.dtype), op.label,
                         &received);
        op.verb = EL_COMM_RECV;
        op.result = el_view_of(received, 0);
        op.data = (struct el_view){0};
        op.join = true;
        el_comm_issue(worker->world, program, &op, NULL);
        el_program_wait(program, shard->device, EL_STREAM_COMPUTE, sent);
        struct el_kernel_op add = {.head = {.label = "add", .phase = EL_PHASE_REDUCE},
                                   .op = EL_OP_ADD,
                                   .dtype = el_config_stored(shard->config),
                                   .views = {el_view_of(received, 0), grads[p]},
                                   .args.d = {n}};
        el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &add, NULL);
        el_program_free(program, received);
    }
}

static size_t bytes_of_sums(const struct el_worker *worker)
{
    size_t bytes = 0;
    for (int s = 0; s < worker->parts->n_stages; s++) {
        const struct el_graph *stage = worker->parts->stage[s];
        for (int p = 0; p < stage->n_params; p++)
            if (stage->params[p].is_copy)
                bytes += (size_t)el_param_count(stage, p) * el_dtype_bytes(el_config_stored(worker->config));
    }
    return bytes;
}

enum el_status el_edge_open(struct el_worker *worker, const struct el_held *held, int64_t batch)
{
    if (worker->parts->n_stages == 1) return EL_OK;
    bool *partners = calloc((size_t)el_comm_size(worker->world), sizeof *partners);
    if (!partners) return el_fail_errno("mailboxes");
    for (int i = 0; i < held->n; i++) {
        if (held->parts[i].before >= 0) partners[held->parts[i].before] = true;
        if (held->parts[i].behind >= 0) partners[held->parts[i].behind] = true;
    }
    const struct el_graph *own = worker->members[0].shard.graph;
    for (int p = 0; p < own->n_params; p++)
        if (other_holder(worker, p) >= 0) partners[other_holder(worker, p)] = true;
    enum el_status status = el_comm_open_mailboxes(
        worker->world, partners, (size_t)worker->parts->schedule.room * widest(worker, batch) + bytes_of_sums(worker));
    free(partners);
    return status;
}
