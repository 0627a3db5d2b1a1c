/* Messages between the stages of a model; see edge.h. */
#include "runtime/modes/pipeline/edge.h"

#include <stdlib.h>

size_t el_edge_bytes(const struct el_worker *worker, int64_t batch, int tensor)
{
    const struct el_tensor *t = &worker->graph->tensors[tensor];
    return (size_t)(batch * el_shape_count(&t->shape)) * el_dtype_bytes(t->is_float ? worker->config->dtype : t->dtype);
}

static struct el_comm_op message(const struct el_worker *worker, const struct el_edge *edge, int tensor)
{
    const struct el_tensor *t = &worker->graph->tensors[tensor];
    return (struct el_comm_op){.dtype = t->is_float ? worker->config->dtype : t->dtype,
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

/* What crosses the widest cut. */
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

enum el_status el_edge_open(struct el_worker *worker, const struct el_held *held, int64_t batch)
{
    if (worker->parts->n_stages == 1) return EL_OK;
    bool *partners = calloc((size_t)el_comm_size(worker->world), sizeof *partners);
    if (!partners) return el_fail_errno("mailboxes");
    for (int i = 0; i < held->n; i++) {
        if (held->parts[i].before >= 0) partners[held->parts[i].before] = true;
        if (held->parts[i].behind >= 0) partners[held->parts[i].behind] = true;
    }
    enum el_status status =
        el_comm_open_mailboxes(worker->world, partners, (size_t)worker->parts->schedule.room * widest(worker, batch));
    free(partners);
    return status;
}
