/* A micro-batch's way through a part (flight.h). The loss is the mean of micro-batch means, which are of equal size, so
 * that it is plain training's. */
#include <stdlib.h>
#include <string.h>

#include "runtime/modes/pipeline/flight.h"
#include "runtime/worker/share.h"

static size_t edge_bytes(const struct el_worker *worker, int64_t batch, int tensor)
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
    el_program_alloc(program, device, EL_TAG_ACTIVATION, edge_bytes(worker, edge->batch, tensor), op.label, buffer_p);
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
        for (int i = 0; i < part->n_inputs; i++) bytes += edge_bytes(worker, batch, part->inputs[i]);
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

/* Opens mailboxes between communicating workers, with the schedule's room, for micro-batches of `batch` samples.
 * Collective. */
static enum el_status edge_open(struct el_worker *worker, const struct el_held *held, int64_t batch)
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

struct at {
    struct el_line *line;
    int local; /* among the device's parts */
    int micro;
    const struct el_held_part *part;
    struct el_flight *flight;
};

static struct at at(struct el_line *line, int local, int micro)
{
    return (struct at){line, local, micro, &line->held.parts[local], &line->flights[local * line->n_micro + micro]};
}

static const struct el_shard *shard_of(const struct el_line *line)
{
    return &line->worker->members[0].shard;
}

static struct at at_part(struct el_line *line, int part, int micro)
{
    int local = 0;
    while (line->held.parts[local].number != part) local++;
    return at(line, local, micro);
}

static struct el_edge edge(const struct at *a, int peer)
{
    return (struct el_edge){.peer = peer, .batch = a->line->micro_batch};
}

static struct el_view receive(const struct at *a, const struct el_edge *from, int tensor)
{
    struct el_flight *flight = a->flight;
    return el_edge_receive(a->line->worker, a->line->program, from, tensor, &flight->owned[flight->n_owned++]);
}

static void send(const struct at *a, const struct el_edge *to, int tensor, struct el_view view)
{
    el_edge_send(a->line->worker, a->line->program, to, tensor, view, &a->flight->sent_op);
}

static bool has_grad(const struct at *a, int tensor)
{
    return a->line->worker->graph->tensors[tensor].requires_grad;
}

static void receive_inputs(const struct at *a)
{
    const struct el_graph *graph = a->part->graph;
    struct el_edge from = edge(a, a->part->before);
    for (int i = 0; i < graph->n_inputs; i++) a->flight->inputs[i] = receive(a, &from, graph->inputs[i]);
    a->flight->has_inputs = true;
}

static void receive_doutputs(const struct at *a)
{
    const struct el_graph *graph = a->part->graph;
    struct el_edge from = edge(a, a->part->behind);
    for (int i = 0; i < graph->n_outputs; i++)
        if (has_grad(a, graph->outputs[i])) a->flight->doutputs[i] = receive(a, &from, graph->outputs[i]);
    a->flight->has_doutputs = true;
}

static void receive_next(struct el_line *line, int from)
{
    const struct el_schedule *schedule = &line->worker->parts->schedule;
    int stage = schedule->device[from], own = schedule->device[line->held.parts[0].number], to = -1;
    struct el_action sent = {0};
    while (to < 0 || schedule->device[to] != own) {
        sent = schedule->actions[stage][line->n_looked[stage]++];
        to = el_schedule_receiver(schedule, sent);
    }
    struct at a = at_part(line, to, sent.micro);
    (sent.kind == EL_ACTION_FORWARD ? receive_inputs : receive_doutputs)(&a);
}

static void take_inputs(const struct at *a)
{
    const struct el_graph *graph = a->part->graph;
    struct el_flight *flight = a->flight;
    if (a->part->before == EL_HELD_NOBODY)
        flight->inputs[0] = el_view_of(
            a->line->inputs, (size_t)a->micro * edge_bytes(a->line->worker, a->line->micro_batch, graph->inputs[0]));
    else if (a->part->before == EL_HELD_HERE)
        memcpy(flight->inputs, at(a->line, a->local - 1, a->micro).flight->outputs,
               (size_t)graph->n_inputs * sizeof *flight->inputs);
    else
        while (!flight->has_inputs) receive_next(a->line, a->part->number - 1);
}

/* A pass's hook, for the micro-batch that completes the part's gradients. */
static void take_grad(void *context, int p)
{
    const struct el_flight *flight = context;
    struct el_line *line = flight->line;
    int param = line->held.parts[flight->local].place[p];
    shard_of(line)->issued[param] = line->grads[flight->local][p];
    if (line->hooks.grad_ready) line->hooks.grad_ready(line->hooks.context, param);
}

static enum el_status forward(const struct at *a)
{
    struct el_line *line = a->line;
    const struct el_train_config *config = line->worker->config;
    const struct el_feed_spec *feed = &line->worker->members[0].feeds[0].spec;
    const struct el_share_hooks *hooks = &line->hooks;
    const bool first = a->micro == line->first_micro[a->local], last = a->micro == line->last_micro[a->local];
    struct el_pass_spec spec = {.graph = a->part->graph,
                                .device = shard_of(line)->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = config->dtype,
                                .batch = line->micro_batch,
                                .sample_weight = 1.0 / (double)(line->micro_batch * line->n_micro),
                                .sample_first = feed->part + a->micro * line->micro_batch * feed->n_parts,
                                .sample_stride = feed->n_parts,
                                .seed = config->seed,
                                .training = true,
                                .input_grads = a->part->before != EL_HELD_NOBODY,
                                .params = hooks->params ? hooks->params : a->part->params,
                                .buffers = a->part->buffers,
                                .casts = line->casts[a->local],
                                .grads = line->grads[a->local],
                                .full_grads = !hooks->computed_grads && el_config_stored(config) == config->dtype,
                                .overwrite = hooks->overwrite && (first || hooks->each),
                                .grad_ready = last || hooks->each ? take_grad : NULL,
                                .context = a->flight,
                                .env = {.group = line->worker->group,
                                        .before_node = hooks->before_node,
                                        .after_node = hooks->after_node,
                                        .context = hooks->context,
                                        .routed = el_view_of(shard_of(line)->routed, 0)}};
    EL_TRY(el_pass_open(line->program, &spec, &a->flight->pass));
    take_inputs(a);
    el_pass_forward(a->flight->pass, a->flight->inputs, a->flight->outputs);
    struct el_edge to = edge(a, a->part->behind);
    for (int i = 0; i < a->part->graph->n_outputs && a->part->behind >= 0; i++)
        send(a, &to, a->part->graph->outputs[i], a->flight->outputs[i]);
    return EL_OK;
}

/* The gradient of the micro-batch's share of the mean loss. */
static struct el_view issue_loss(const struct at *a)
{
    const struct el_line *line = a->line;
    const struct el_shard *shard = shard_of(line);
    const enum el_dtype full = line->worker->config->dtype, dtype = el_graph_output_dtype(shard->graph, full);
    size_t labels_at = (size_t)a->micro * (size_t)line->micro_batch * el_graph_label_bytes(line->worker->graph);
    int64_t n = line->micro_batch * el_graph_output_count(line->worker->parts->model);
    struct el_buffer *buffer;
    el_program_alloc(line->program, shard->device, EL_TAG_OUTPUT, (size_t)n * el_dtype_bytes(dtype),
                     "gradient of the output", &buffer);
    a->flight->owned[a->flight->n_owned++] = buffer;
    struct el_view gradient = el_view_of(buffer, 0);
    el_share_issue_loss(shard, line->program, line->worker->group[EL_AXIS_TENSOR], a->flight->outputs[0],
                        el_view_of(line->labels, labels_at), gradient, line->micro_batch,
                        el_view_of(line->losses, (size_t)a->micro * el_dtype_bytes(full)));
    if (line->n_micro > 1)
        el_shard_issue_move(shard, line->program, EL_PHASE_LOSS, "divide", dtype, gradient, dtype, gradient, n,
                            1.0 / line->n_micro);
    return gradient;
}

static void take_doutputs(const struct at *a)
{
    struct el_flight *flight = a->flight;
    if (a->part->behind == EL_HELD_NOBODY)
        flight->doutputs[0] = issue_loss(a);
    else if (a->part->behind == EL_HELD_HERE)
        memcpy(flight->doutputs, at(a->line, a->local + 1, a->micro).flight->dinputs,
               (size_t)a->part->graph->n_outputs * sizeof *flight->doutputs);
    else
        while (!flight->has_doutputs) receive_next(a->line, a->part->number + 1);
}

/* Frees its remaining memory, after its sends. */
static void end(const struct at *a)
{
    struct el_flight *flight = a->flight;
    el_program_wait(a->line->program, shard_of(a->line)->device, EL_STREAM_COMPUTE, flight->sent_op);
    el_pass_close(flight->pass);
    flight->pass = NULL;
    while (flight->n_owned > 0) el_program_free(a->line->program, flight->owned[--flight->n_owned]);
}

/* Adjacent parts on a device share values, so that they end together when all are back. */
static void come_back(const struct at *a)
{
    int first = a->local, last = a->local;
    bool all = a->flight->is_back = true;
    while (a->line->held.parts[first].before == EL_HELD_HERE) first--;
    while (a->line->held.parts[last].behind == EL_HELD_HERE) last++;
    for (int local = first; local <= last; local++) all = all && at(a->line, local, a->micro).flight->is_back;
    for (int local = first; local <= last && all; local++) {
        struct at one = at(a->line, local, a->micro);
        end(&one);
    }
}

static void backward(const struct at *a, bool whole)
{
    const struct el_graph *graph = a->part->graph;
    struct el_edge to = edge(a, a->part->before);
    take_doutputs(a);
    (whole ? el_pass_backward : el_pass_backward_inputs)(a->flight->pass, a->flight->doutputs, a->flight->dinputs);
    for (int i = 0; i < graph->n_inputs && a->part->before >= 0; i++)
        if (has_grad(a, graph->inputs[i])) send(a, &to, graph->inputs[i], a->flight->dinputs[i]);
    if (whole) come_back(a);
}

enum el_status el_line_do(struct el_line *line, struct el_action action)
{
    struct at a = at_part(line, action.part, action.micro);
    switch (action.kind) {
    case EL_ACTION_FORWARD:
        return forward(&a);
    case EL_ACTION_BACKWARD:
        backward(&a, true);
        return EL_OK;
    case EL_ACTION_BACKWARD_INPUTS:
        backward(&a, false);
        return EL_OK;
    case EL_ACTION_BACKWARD_WEIGHTS:
        el_pass_backward_weights(a.flight->pass);
        come_back(&a);
        return EL_OK;
    }
    return EL_OK;
}

void el_line_begin(struct el_line *line, struct el_program *program, struct el_buffer *inputs, struct el_buffer *labels)
{
    line->program = program;
    line->inputs = inputs;
    line->labels = labels;
    memset(line->n_looked, 0, sizeof line->n_looked);
    for (int i = 0; i < line->held.n; i++)
        for (int p = 0; p < line->held.parts[i].graph->n_params; p++)
            line->grads[i][p] = shard_of(line)->issued[line->held.parts[i].place[p]];
    for (int i = 0; i < line->held.n * line->n_micro; i++) {
        struct el_flight *flight = &line->flights[i];
        flight->pass = NULL;
        flight->has_inputs = flight->has_doutputs = flight->is_back = false;
        flight->n_owned = 0;
        flight->sent_op = -1;
    }
}

/* A part's first and last backward (or half for weights) in the device's row. */
static void find_ends(struct el_line *line)
{
    const struct el_worker *worker = line->worker;
    const struct el_schedule *schedule = &worker->parts->schedule;
    int stage = el_layout_spot(worker->layout, worker->first).at[EL_AXIS_STAGE];
    for (int i = 0; i < schedule->n_actions[stage]; i++) {
        struct el_action action = schedule->actions[stage][i];
        if (action.kind == EL_ACTION_FORWARD || action.kind == EL_ACTION_BACKWARD_INPUTS) continue;
        const int local = at_part(line, action.part, action.micro).local;
        if (line->last_micro[local] < 0) line->first_micro[local] = action.micro;
        line->last_micro[local] = action.micro;
    }
}

static enum el_status open_flight(struct el_line *line, int i)
{
    struct el_flight *flight = &line->flights[i];
    *flight = (struct el_flight){.line = line, .local = i / line->n_micro, .sent_op = -1};
    const struct el_graph *graph = line->held.parts[flight->local].graph;
    size_t n_inputs = (size_t)graph->n_inputs, n_edges = n_inputs + (size_t)graph->n_outputs;
    flight->inputs = calloc(2 * n_edges, sizeof *flight->inputs);
    flight->owned = calloc(n_edges + 1, sizeof(struct el_buffer *));
    if (!flight->inputs || !flight->owned) return el_fail_errno("%d micro-batches", line->n_micro);
    flight->outputs = flight->inputs + n_inputs;
    flight->dinputs = flight->inputs + n_edges;
    flight->doutputs = flight->dinputs + n_inputs;
    return EL_OK;
}

static enum el_status open_flights(struct el_line *line)
{
    size_t n = (size_t)line->held.n;
    line->grads = calloc(n, sizeof(struct el_view *));
    line->flights = calloc(n * (size_t)line->n_micro, sizeof *line->flights);
    line->first_micro = calloc(2 * n, sizeof *line->first_micro);
    line->casts = calloc(n, sizeof(struct el_pass_cast *));
    if (!line->grads || !line->flights || !line->first_micro || !line->casts)
        return el_fail_errno("%d micro-batches", line->n_micro);
    line->last_micro = line->first_micro + n;
    for (size_t k = 0; k < n; k++) line->last_micro[k] = -1;
    line->grads[0] = shard_of(line)->issued; /* with one part the shard's */
    for (int k = 0; k < line->held.n; k++) {
        int n_params = line->held.parts[k].graph->n_params;
        line->casts[k] = calloc((size_t)n_params + 1, sizeof *line->casts[k]);
        if (n > 1) line->grads[k] = calloc((size_t)n_params + 1, sizeof *line->grads[k]);
        if (!line->casts[k] || !line->grads[k]) return el_fail_errno("gradients of %d parameters", n_params);
    }
    for (int i = 0; i < line->held.n * line->n_micro; i++) EL_TRY(open_flight(line, i));
    return EL_OK;
}

enum el_status el_line_open(struct el_worker *worker, struct el_line *line)
{
    const struct el_train_config *config = worker->config;
    *line = (struct el_line){.worker = worker,
                             .n_micro = (int)config->n_micro,
                             .micro_batch = config->global_batch / worker->layout->n_feeds / config->n_micro};
    EL_TRY(el_held_open(worker, 0, &line->held));
    EL_TRY(open_flights(line));
    find_ends(line);
    if (line->held.parts[line->held.n - 1].behind == EL_HELD_NOBODY)
        EL_TRY(el_device_alloc(shard_of(line)->device, EL_TAG_OUTPUT,
                               (size_t)line->n_micro * el_dtype_bytes(config->dtype), "losses", &line->losses));
    return edge_open(worker, &line->held, line->micro_batch);
}

void el_line_close(struct el_line *line)
{
    el_device_free(line->losses);
    for (int i = 0; line->flights && i < line->held.n * line->n_micro; i++) {
        free(line->flights[i].inputs);
        free(line->flights[i].owned);
    }
    for (int k = 0; line->grads && k < line->held.n && line->held.n > 1; k++) free(line->grads[k]);
    for (int k = 0; line->casts && k < line->held.n; k++) free(line->casts[k]);
    free(line->casts);
    free(line->flights);
    free(line->grads);
    free(line->first_micro);
    el_held_close(&line->held);
}
