/* mp and pipeline: the model cut into consecutive parts, one a device. Values cross the cuts forward, their gradients
 * back, as messages between neighbours (comm.h's send and recv). mp sends the whole batch through at once, so that one
 * device works at a time; pipeline cuts it into micro-batches, whose order on each stage is its schedule's.
 *
 * The loss is the mean over the micro-batches' means, each of which divides its gradient by their number: plain
 * training's, as they are of equal size. A stage holds a micro-batch's activations from its forward to its backward. */
#include <stdlib.h>

#include "runtime/parallel/edge.h"
#include "runtime/parallel/schedule.h"
#include "runtime/parallel/share.h"

/* Room in a mailbox: one message that is read while the next one comes. */
enum { MESSAGES = 2 };

/* A micro-batch on its way through the stage. */
struct flight {
    struct el_pass *pass;
    struct el_view inputs[EL_GRAPH_EDGE_MAX], outputs[EL_GRAPH_EDGE_MAX], doutputs[EL_GRAPH_EDGE_MAX];
    struct el_buffer *owned[2 * EL_GRAPH_EDGE_MAX]; /* what was received, or made for it: freed at its end */
    int n_owned;
    int sent_op; /* the last of its outputs to leave, -1: none */
};

struct pipeline {
    const struct el_schedule *schedule;
    int n_stages, stage, n_micro;
    int64_t micro_batch;      /* samples */
    struct el_buffer *losses; /* [n_micro], on the last stage */
    /* The step being issued. */
    struct el_program *program;
    struct el_buffer *inputs, *labels; /* of the whole batch: on the first stage, on the last one */
    struct el_view grads[EL_GRAPH_PARAMS_MAX];
    struct flight flights[EL_MICRO_MAX];
};

static const struct el_shard *shard_of(const struct el_worker *worker)
{
    return &worker->members[0].shard;
}

static bool is_last(const struct pipeline *line)
{
    return line->stage == line->n_stages - 1;
}

/* The neighbour on that side. */
static struct el_edge edge_to(const struct pipeline *line, int stage)
{
    return (struct el_edge){.peer = stage, .batch = line->micro_batch};
}

static struct el_view receive(struct el_worker *worker, struct flight *flight, int stage, int tensor)
{
    struct pipeline *line = worker->state;
    struct el_edge edge = edge_to(line, stage);
    return el_edge_receive(worker, line->program, &edge, tensor, &flight->owned[flight->n_owned++]);
}

static void send(struct el_worker *worker, struct flight *flight, int stage, int tensor, struct el_view view)
{
    struct pipeline *line = worker->state;
    struct el_edge edge = edge_to(line, stage);
    el_edge_send(worker, line->program, &edge, tensor, view, &flight->sent_op);
}

/* ---- a micro-batch ---- */

static enum el_status open_pass(struct el_worker *worker, int micro)
{
    struct pipeline *line = worker->state;
    const struct el_shard *shard = shard_of(worker);
    struct el_pass_spec spec = {.graph = shard->graph,
                                .device = shard->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = worker->config->dtype,
                                .batch = line->micro_batch,
                                .sample_first = micro * line->micro_batch,
                                .sample_stride = 1,
                                .seed = worker->config->seed,
                                .training = true,
                                .input_grads = line->stage > 0,
                                .params = shard->params,
                                .grads = line->grads};
    return el_pass_open(line->program, &spec, &line->flights[micro].pass);
}

static enum el_status forward(struct el_worker *worker, int micro)
{
    struct pipeline *line = worker->state;
    const struct el_graph *part = shard_of(worker)->graph;
    struct flight *flight = &line->flights[micro];
    *flight = (struct flight){.sent_op = -1};
    EL_TRY(open_pass(worker, micro));
    for (int i = 0; i < part->n_inputs; i++) {
        if (line->stage == 0)
            flight->inputs[i] =
                el_view_of(line->inputs, (size_t)micro * el_edge_bytes(worker, line->micro_batch, part->inputs[i]));
        else
            flight->inputs[i] = receive(worker, flight, line->stage - 1, part->inputs[i]);
    }
    el_pass_forward(flight->pass, flight->inputs, flight->outputs);
    for (int i = 0; i < part->n_outputs && !is_last(line); i++)
        send(worker, flight, line->stage + 1, part->outputs[i], flight->outputs[i]);
    return EL_OK;
}

/* The loss's gradient, of a micro-batch of which the mean over all will be taken. */
static void issue_loss(struct el_worker *worker, struct flight *flight, int micro)
{
    struct pipeline *line = worker->state;
    const struct el_shard *shard = shard_of(worker);
    size_t width = el_dtype_bytes(worker->config->dtype);
    int64_t n = line->micro_batch * worker->config->model.classes;
    struct el_buffer *buffer;
    el_program_alloc(line->program, shard->device, EL_TAG_OUTPUT, (size_t)n * width, "gradient of the output", &buffer);
    flight->owned[flight->n_owned++] = buffer;
    flight->doutputs[0] = el_view_of(buffer, 0);
    size_t labels_at = (size_t)micro * (size_t)line->micro_batch * sizeof(int32_t);
    el_share_issue_loss(shard, line->program, flight->outputs[0], el_view_of(line->labels, labels_at),
                        flight->doutputs[0], line->micro_batch, el_view_of(line->losses, (size_t)micro * width));
    if (line->n_micro > 1)
        el_shard_issue_scale(shard, line->program, EL_PHASE_LOSS, "divide", flight->doutputs[0], flight->doutputs[0], n,
                             1.0 / line->n_micro);
}

/* What it still holds is freed when all that it sent has left. */
static void end_flight(struct el_worker *worker, struct flight *flight)
{
    struct pipeline *line = worker->state;
    el_program_wait(line->program, shard_of(worker)->device, EL_STREAM_COMPUTE, flight->sent_op);
    el_pass_close(flight->pass);
    while (flight->n_owned > 0) el_program_free(line->program, flight->owned[--flight->n_owned]);
}

static void backward(struct el_worker *worker, int micro)
{
    struct pipeline *line = worker->state;
    const struct el_graph *part = shard_of(worker)->graph;
    struct flight *flight = &line->flights[micro];
    struct el_view dinputs[EL_GRAPH_EDGE_MAX];
    if (is_last(line)) issue_loss(worker, flight, micro);
    for (int i = 0; i < part->n_outputs && !is_last(line); i++)
        if (worker->graph->tensors[part->outputs[i]].is_float)
            flight->doutputs[i] = receive(worker, flight, line->stage + 1, part->outputs[i]);
    el_pass_backward(flight->pass, flight->doutputs, dinputs);
    for (int i = 0; i < part->n_inputs && line->stage > 0; i++)
        if (worker->graph->tensors[part->inputs[i]].is_float)
            send(worker, flight, line->stage - 1, part->inputs[i], dinputs[i]);
    end_flight(worker, flight);
}

/* ---- the mode ---- */

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct pipeline *line = worker->state;
    const struct el_shard *shard = shard_of(worker);
    struct el_action actions[2 * EL_MICRO_MAX];
    int n = el_schedule_fill(line->schedule, line->n_stages, line->n_micro, line->stage, actions);
    line->program = program;
    for (int p = 0; p < shard->graph->n_params; p++) line->grads[p] = shard->grads[p];
    el_shard_issue_zero_grad(shard, program);
    el_feed_issue(worker->members[0].feeds, program, &line->inputs, &line->labels);
    for (int i = 0; i < n; i++) {
        bool is_forward = actions[i].kind == EL_ACTION_FORWARD;
        el_program_piece(program, (struct el_op_piece){is_forward ? 'F' : 'B', line->stage, actions[i].micro});
        if (is_forward)
            EL_TRY(forward(worker, actions[i].micro));
        else
            backward(worker, actions[i].micro);
    }
    el_program_piece(program, (struct el_op_piece){0});
    el_shard_issue_optimizer(shard, program, line->grads);
    el_shard_free_grads(shard, program, line->grads);
    el_program_free(program, line->inputs);
    el_program_free(program, line->labels);
    return EL_OK;
}

static enum el_status setup(struct el_worker *worker)
{
    const struct el_train_config *config = worker->config;
    const struct el_layout *layout = worker->layout;
    struct pipeline *line = calloc(1, sizeof *line);
    if (!line) return el_fail_errno("%s", config->mode);
    *line = (struct pipeline){.schedule = &el_schedule_list()[config->schedule],
                              .n_stages = layout->n_stages,
                              .stage = layout->devices[worker->first].stage,
                              .n_micro = (int)config->n_micro,
                              .micro_batch = config->global_batch / config->n_micro};
    worker->state = line;
    worker->comm = el_comm_backend(worker->world);
    size_t bytes = (size_t)line->n_micro * el_dtype_bytes(config->dtype);
    if (is_last(line)) EL_TRY(el_device_alloc(shard_of(worker)->device, EL_TAG_OUTPUT, bytes, "losses", &line->losses));
    return el_edge_open(worker, line->micro_batch, MESSAGES);
}

/* The last stage's; the others have none. */
static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    const struct pipeline *line = worker->state;
    struct el_shard reader = *shard_of(worker);
    double sum = 0, one;
    for (int m = 0; m < line->n_micro && line->losses; m++) {
        EL_TRY(el_shard_read_value(&reader, line->losses, m, &one));
        sum += one;
    }
    *loss_p = sum / line->n_micro;
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    struct pipeline *line = worker->state;
    if (line) el_device_free(line->losses);
    free(line);
}

#define CUT_INTO_STAGES                                                                                                \
    .layout = el_layout_stages, .rounds = 1, .setup = setup, .issue = issue, .read_loss = read_loss,                   \
    .teardown = teardown

const struct el_mode_ops el_mode_mp = {
    .info = {.name = "mp",
             .summary = "the model cut by layers, one stage per device: one device works at a time",
             .takes = "procs cut",
             .sends = "activations at each cut, and their gradients back",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 2,
             .look = {.fill = 0xe3a857, .ink = 0xb9770e, .pattern = 3, .point = 9, .point_size = 1.8}},
    CUT_INTO_STAGES};

const struct el_mode_ops el_mode_pipeline = {
    .info = {.name = "pipeline",
             .summary = "the model cut by layers, one stage per device, with micro-batches",
             .takes = "procs cut micro schedule",
             .sends = "activations at each cut, and their gradients back, by micro-batches",
             .variants = "--schedule gpipe|--micro 6",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 2,
             .look = {.fill = 0x6aa86a, .ink = 0x2e7d32, .pattern = 3, .point = 13, .point_size = 1.8}},
    CUT_INTO_STAGES};
