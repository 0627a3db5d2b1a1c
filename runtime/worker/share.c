#include "runtime/worker/share.h"

#include "runtime/state/buffers.h"
#include "runtime/state/together.h"

/* For this device's classes; row statistics are gathered from all pieces. */
static void issue_loss_of_piece(const struct el_shard *shard, struct el_program *program, struct el_comm *pieces,
                                struct el_kernel_op *op)
{
    const struct el_slice slice = shard->graph->class_slice;
    const int n = el_comm_size(pieces);
    const size_t count = 3 * (size_t)op->args.d[0], bytes = count * el_dtype_bytes(shard->config->dtype);
    struct el_kernel_op piece = *op, join = *op;
    struct el_buffer *parts;
    el_program_alloc(program, shard->device, EL_TAG_WORKSPACE, (size_t)n * bytes, "parts of the loss", &parts);
    piece.op = EL_OP_CROSS_ENTROPY_PIECE;
    join.op = EL_OP_CROSS_ENTROPY_JOIN;
    piece.args.d[2] = join.args.d[2] = slice.first;
    piece.args.d[3] = join.args.d[3] = slice.of;
    join.args.d[4] = n;
    piece.views[2] = el_view_of(parts, (size_t)el_comm_rank(pieces) * bytes);
    piece.views[3] = (struct el_view){0};
    join.views[2] = el_view_of(parts, 0);
    join.views[3] = op->views[2];
    join.views[4] = op->views[3];
    el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &piece, NULL);
    el_comm_issue(pieces, program,
                  &(struct el_comm_op){.verb = EL_COMM_ALL_GATHER,
                                       .dtype = shard->config->dtype,
                                       .count = count,
                                       .data = piece.views[2],
                                       .result = join.views[2],
                                       .label = "cross_entropy",
                                       .phase = EL_PHASE_COMM,
                                       .join = true},
                  NULL);
    el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &join, NULL);
    el_program_free(program, parts);
}

void el_share_issue_loss(const struct el_shard *shard, struct el_program *program, struct el_comm *pieces,
                         struct el_view logits, struct el_view labels, struct el_view dlogits, int64_t batch,
                         struct el_view loss)
{
    bool mse = shard->graph->loss == EL_LOSS_MSE;
    struct el_kernel_op op = {.head = {.label = mse ? "mse" : "cross_entropy", .phase = EL_PHASE_LOSS},
                              .op = mse ? EL_OP_MSE : EL_OP_CROSS_ENTROPY,
                              .dtype = el_graph_output_dtype(shard->graph, shard->config->dtype),
                              .views = {logits, labels, loss, dlogits},
                              .args.d = {batch * shard->graph->labels, shard->graph->classes}};
    if (shard->graph->class_slice.of)
        issue_loss_of_piece(shard, program, pieces, &op);
    else
        el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

enum el_status el_share_issue(struct el_program *program, struct el_share_pass *pass)
{
    const struct el_shard *shard = pass->shard;
    const struct el_train_config *config = shard->config;
    const struct el_feed *feed = pass->feed;
    int64_t samples = pass->samples ? pass->samples : feed->samples;
    struct el_buffer *buffer;
    el_feed_issue(pass->feed, program, &pass->inputs, &pass->labels);
    struct el_pass_spec spec = {.graph = feed->graphs ? feed->graph : shard->graph,
                                .device = shard->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = config->dtype,
                                .batch = samples,
                                .sample_weight = pass->scale / (double)samples,
                                .sample_first = feed->first + pass->first * feed->stride,
                                .sample_stride = feed->stride,
                                .seed = config->seed,
                                .training = true,
                                .params = pass->params ? pass->params : el_shard_computed(shard),
                                .buffers = pass->buffers ? pass->buffers : shard->buffers,
                                .grads = pass->grads,
                                .full_grads = !pass->computed_grads && el_config_stored(config) == config->dtype,
                                .overwrite = pass->overwrite,
                                .grad_ready = pass->grad_ready,
                                .context = pass->context,
                                .env = pass->env};
    spec.env.routed = el_view_of(shard->routed, 0);
    EL_TRY(el_pass_open(program, &spec, &pass->pass));
    struct el_view input = el_view_of(pass->inputs, (size_t)pass->first * el_feed_sample_bytes(feed)), logits;
    el_pass_forward(pass->pass, &input, &logits);
    int64_t n = samples * el_graph_output_count(shard->graph);
    const enum el_dtype dtype = el_graph_output_dtype(shard->graph, config->dtype);
    el_program_alloc(program, shard->device, EL_TAG_OUTPUT, (size_t)n * el_dtype_bytes(dtype), "gradient of the output",
                     &buffer);
    struct el_view gradient = el_view_of(buffer, 0);
    struct el_view labels = el_view_of(pass->labels, (size_t)pass->first * el_graph_label_bytes(shard->graph));
    struct el_comm *pieces = pass->env.group ? pass->env.group[EL_AXIS_TENSOR] : NULL;
    el_share_issue_loss(shard, program, pieces, logits, labels, gradient, samples, pass->loss);
    if (pass->scale != 1)
        el_shard_issue_move(shard, program, EL_PHASE_LOSS, "divide", dtype, gradient, dtype, gradient, n, pass->scale);
    el_pass_backward(pass->pass, &gradient, NULL);
    el_program_free(program, buffer);
    return EL_OK;
}

void el_share_end(struct el_program *program, struct el_share_pass *pass)
{
    el_pass_close(pass->pass);
    el_program_free(program, pass->inputs);
    el_program_free(program, pass->labels);
}

/* Elements of a gradient summed here: with sharded state the device's own part. */
static int64_t partial_count(const struct el_shard *shard, const struct el_view *grads, int p)
{
    int64_t first, count;
    if (!shard->graph->params[p].is_partial || !grads[p].buffer) return 0;
    el_shard_range(shard, EL_STATE_SLOT, p, &first, &count);
    return count;
}

static void copy_partial(const struct el_shard *shard, struct el_program *program, const struct el_view *grads,
                         struct el_buffer *sums, bool back)
{
    const enum el_dtype dtype = el_config_stored(shard->config);
    struct el_together copies = {.shard = shard,
                                 .program = program,
                                 .phase = EL_PHASE_REDUCE,
                                 .label = back ? "copy from sums" : "copy to sums"};
    size_t at = 0;
    for (int p = 0; p < shard->graph->n_params; p++) {
        const int64_t count = partial_count(shard, grads, p);
        if (count == 0) continue;
        const struct el_view place = el_view_of(sums, at);
        el_together_move(&copies, dtype, back ? place : grads[p], dtype, back ? grads[p] : place, count, 1);
        at += (size_t)count * el_dtype_bytes(dtype);
    }
    el_together_end(&copies);
}

void el_share_sum_pieces(struct el_worker *worker, struct el_program *program, const struct el_view *grads)
{
    const struct el_shard *shard = &worker->members[0].shard;
    struct el_buffer *sums;
    const enum el_dtype dtype = el_config_stored(shard->config);
    size_t count = 0;
    for (int p = 0; p < shard->graph->n_params; p++) count += (size_t)partial_count(shard, grads, p);
    if (count == 0) return;
    el_program_alloc(program, shard->device, EL_TAG_WORKSPACE, count * el_dtype_bytes(dtype), "gradients of tokens",
                     &sums);
    copy_partial(shard, program, grads, sums, false);
    el_comm_issue(worker->group[EL_AXIS_TENSOR], program,
                  &(struct el_comm_op){.verb = EL_COMM_ALL_REDUCE,
                                       .dtype = dtype,
                                       .count = count,
                                       .data = el_view_of(sums, 0),
                                       .label = "gradients of tokens",
                                       .phase = EL_PHASE_COMM,
                                       .join = true},
                  NULL);
    copy_partial(shard, program, grads, sums, true);
    el_program_free(program, sums);
}

/* Micro-step k's weight in the mean over workers: 1 / n_accumulate, or by samples. */
static double share_weight(const struct el_worker *worker, int k)
{
    const struct el_train_config *config = worker->config;
    if (!config->by_samples) return 1.0 / (double)config->n_accumulate;
    return (double)(worker->members[0].feeds[k].samples * worker->layout->n_workers) / (double)config->global_batch;
}

double el_share_weight_of_worker(const struct el_worker *worker)
{
    double weight = 0;
    if (!worker->config->by_samples || worker->layout->n_workers == 1) return 1;
    for (int k = 0; k < worker->config->n_accumulate; k++) weight += share_weight(worker, k);
    return weight;
}

enum el_status el_share_read_loss(const struct el_member *member, double *loss_p)
{
    const struct el_train_config *config = member->shard.config;
    double sum = 0, samples = 0, one;
    if (!config->by_samples) return el_shard_read_loss(&member->shard, loss_p);
    for (int k = 0; k < config->n_accumulate; k++) {
        EL_TRY(el_shard_read_value(&member->shard, member->shard.loss, k, &one));
        sum += one * (double)member->feeds[k].samples;
        samples += (double)member->feeds[k].samples;
    }
    *loss_p = sum / samples;
    return EL_OK;
}

static void begin(void *reducer, struct el_program *program, struct el_view *grads)
{
    el_reducer_begin(reducer, program, grads);
}

static void finish(void *reducer, struct el_program *program, struct el_view *grads)
{
    (void)program;
    (void)grads;
    el_reducer_finish(reducer);
}

struct el_share_hooks el_share_reduce_by(struct el_reducer *reducer)
{
    return (struct el_share_hooks){
        .grad_ready = el_reducer_ready, .begin = begin, .reduce = finish, .context = reducer};
}

static struct el_share_pass micro_step(struct el_worker *worker, const struct el_share_hooks *hooks,
                                       struct el_view *grads, int k)
{
    struct el_member *member = &worker->members[0];
    const struct el_train_config *config = worker->config;
    return (struct el_share_pass){.shard = &member->shard,
                                  .feed = &member->feeds[k],
                                  .grads = grads,
                                  .params = hooks->params,
                                  .computed_grads = hooks->computed_grads,
                                  .overwrite = hooks->overwrite && (k == 0 || hooks->each),
                                  .env = {.group = worker->group,
                                          .before_node = hooks->before_node,
                                          .after_node = hooks->after_node,
                                          .context = hooks->context},
                                  .scale = share_weight(worker, k),
                                  .loss = el_view_of(member->shard.loss, (size_t)k * el_dtype_bytes(config->dtype)),
                                  .grad_ready = hooks->each || k == config->n_accumulate - 1 ? hooks->grad_ready : NULL,
                                  .context = hooks->context};
}

enum el_status el_share_step(struct el_worker *worker, struct el_program *program, const struct el_share_hooks *hooks)
{
    static const struct el_share_hooks none;
    struct el_shard *shard = &worker->members[0].shard;
    struct el_view *grads = shard->issued;
    struct el_share_pass pass;
    int last = (int)worker->config->n_accumulate - 1;
    if (!hooks) hooks = &none;
    for (int p = 0; p < shard->graph->n_params; p++) grads[p] = shard->grads[p];
    if (hooks->begin) hooks->begin(hooks->context, program, grads);
    el_shard_issue_zero_grad(shard, program);
    for (int k = 0; k <= last; k++) {
        pass = micro_step(worker, hooks, grads, k);
        EL_TRY(el_share_issue(program, &pass));
        if (k < last) el_share_end(program, &pass);
    }
    if (hooks->reduce) hooks->reduce(hooks->context, program, grads);
    el_share_sum_pieces(worker, program, grads);
    el_shard_issue_optimizer(shard, program, grads);
    if (hooks->updated) hooks->updated(hooks->context, program);
    el_shard_free_grads(shard, program, grads);
    el_share_end(program, &pass);
    return EL_OK;
}

enum el_status el_share_send_weights(struct el_worker *worker, struct el_comm *comm)
{
    const struct el_shard *shard = &worker->members[0].shard;
    struct el_program *program;
    if (el_comm_size(comm) == 1 || el_device_is_simulated(shard->device)) return EL_OK;
    EL_TRY(el_program_create(&program));
    for (int i = 0; i < 2 * shard->graph->n_params; i++) {
        const int p = i / 2;
        struct el_comm_op op = {.verb = EL_COMM_BROADCAST,
                                .dtype = i % 2 ? el_config_computed(worker->config) : el_config_stored(worker->config),
                                .count = (size_t)el_param_count(shard->graph, p),
                                .data = (i % 2 ? shard->casts : shard->params)[p],
                                .label = shard->graph->params[p].name,
                                .phase = EL_PHASE_COMM};
        if (op.data.buffer) el_comm_issue(comm, program, &op, NULL);
    }
    el_buffers_issue_broadcast(comm, shard, program);
    enum el_status status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return status;
}
