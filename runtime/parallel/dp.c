/* dp: DataParallel. One host thread issues for all devices; the parameters, the optimizer and the loss live on the
 * master, and every step the model is sent out and the gradients are brought back: load, scatter, replicate, forward on
 * each, gather, loss, scatter its gradient, backward on each, reduce (a sum, after the whole backward), optimizer. The
 * order, the chunking and the moments of memory follow torch.nn.DataParallel (docs/semantics.md); the parts of a step
 * stand in dp_replicate.c, dp_loss.c and dp_reduce.c. */
#include "runtime/parallel/dp.h"

#include <pthread.h>
#include <stdlib.h>

/* What is there by parameter, or by chunk, of which there are at most as many. */
static enum el_status make_arrays(struct el_dp *dp)
{
    size_t n = (size_t)dp->worker->graph->n_params;
    dp->chunk_of = calloc(n, sizeof *dp->chunk_of);
    dp->place = calloc(n, sizeof *dp->place);
    dp->results = calloc(2 * n, sizeof(struct el_buffer *));
    if (!dp->chunk_of || !dp->place || !dp->results) return el_fail_errno("%zu parameters", n);
    dp->sums = dp->results + n;
    for (int m = 0; m < dp->n; m++) {
        dp->params[m] = calloc(2 * n, sizeof *dp->params[m]);
        dp->replicas[m] = calloc(n, sizeof(struct el_buffer *));
        if (!dp->params[m] || !dp->replicas[m]) return el_fail_errno("%zu parameters of a replica", n);
        dp->grads[m] = dp->params[m] + n;
    }
    dp->buffers[0] = el_dp_master(dp)->buffers;
    for (int m = 1; m < dp->n; m++) {
        dp->buffers[m] = calloc((size_t)dp->worker->graph->n_buffers + 1, sizeof *dp->buffers[m]);
        if (!dp->buffers[m]) return el_fail_errno("%d buffers of a replica", dp->worker->graph->n_buffers);
    }
    return EL_OK;
}

static void make_chunks(struct el_dp *dp, size_t chunk_bytes)
{
    const struct el_shard *master = el_dp_master(dp);
    int n = dp->worker->graph->n_params;
    size_t at = 0;
    for (int p = 0; p < n; p++) dp->place[p] = el_shard_param_bytes(master, p);
    dp->n_chunks = el_chunks_take(dp->place, n, chunk_bytes, dp->chunk_of);
    for (int p = 0; p < n; p++) {
        if (p > 0 && dp->chunk_of[p] != dp->chunk_of[p - 1]) at = 0;
        dp->place[p] = at;
        at += el_shard_param_bytes(master, p);
    }
}

enum el_status el_dp_open(struct el_dp *dp, struct el_worker *worker, int n, size_t chunk_bytes)
{
    struct el_device *devices[EL_MEMBERS_MAX];
    dp->worker = worker;
    dp->n = n;
    dp->feed = worker->members[0].feeds;
    dp->batch = dp->feed->samples;
    for (int m = 0; m < n; m++) dp->sizes[m] = worker->layout->devices[worker->first + m].samples;
    EL_TRY(make_arrays(dp));
    make_chunks(dp, chunk_bytes);
    for (int m = 0; m < n; m++) devices[m] = worker->members[m].shard.device;
    EL_TRY(el_comm_open_together(devices, n, dp->comms));
    worker->comm = el_comm_backend(dp->comms[0]);
    for (int m = 0; m < n; m++) {
        el_comm_name(dp->comms[m], "local", worker->first);
        EL_TRY(el_worker_set_comm(worker->config, dp->comms[m]));
    }
    return EL_OK;
}

void el_dp_close(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) el_comm_close(dp->comms[m]);
    for (int m = 1; m < dp->n; m++) free(dp->buffers[m]);
    for (int m = 0; m < dp->n; m++) {
        free(dp->params[m]);
        free(dp->replicas[m]);
    }
    free(dp->chunk_of);
    free(dp->place);
    free(dp->results);
    el_device_free(dp->losses);
}

static enum el_status setup(struct el_worker *worker)
{
    struct el_dp *dp = worker->state = calloc(1, sizeof *dp);
    if (!dp) return el_fail_errno("dp");
    EL_TRY(el_dp_open(dp, worker, worker->layout->n_data, EL_DP_CHUNK_BYTES));
    return el_dp_open_loss(dp, worker->config->output_device, worker->config->loss_in_replica);
}

/* parallel_apply makes one thread a replica and step, and joins it; what the replica does is on its own stream anyway.
 */
static void *replica_thread(void *argument)
{
    return argument;
}

static enum el_status make_thread(const struct el_call_args *args)
{
    (void)args;
    pthread_t thread;
    int error = pthread_create(&thread, NULL, replica_thread, NULL);
    if (error) return el_fail(EL_ERR_HOST_MEMORY, "dp: a replica's thread could not be made (error %d)", error);
    pthread_join(thread, NULL);
    return EL_OK;
}

void el_dp_copy(struct el_dp *dp, enum el_phase phase, const char *label, int to, struct el_view destination, int from,
                struct el_view source, size_t bytes)
{
    struct el_device *receiver = el_dp_device(dp, to);
    el_program_wait(dp->program, receiver, EL_STREAM_COMPUTE,
                    el_program_last(dp->program, el_dp_device(dp, from), EL_STREAM_COMPUTE));
    el_program_copy(dp->program, receiver, EL_STREAM_COMPUTE, &(struct el_op_head){.label = label, .phase = phase},
                    destination, source, bytes, NULL);
}

/* The master keeps its chunk where it is: chunk 0 is a view. */
void el_dp_scatter_inputs(struct el_dp *dp, struct el_buffer *inputs)
{
    size_t sample = el_feed_sample_bytes(dp->feed), at = 0;
    for (int m = 0; m < dp->n; m++) {
        size_t bytes = (size_t)dp->sizes[m] * sample;
        dp->inputs[m] = el_view_of(inputs, at);
        at += bytes;
        if (m == 0) continue;
        struct el_buffer *chunk;
        el_program_alloc(dp->program, el_dp_device(dp, m), EL_TAG_INPUT, bytes, "inputs", &chunk);
        el_dp_copy(dp, EL_PHASE_SCATTER, "scatter inputs", m, el_view_of(chunk, 0), 0, dp->inputs[m], bytes);
        dp->inputs[m] = el_view_of(chunk, 0);
    }
}

/* Before the program goes: passes mark what they free in it. */
static void close_passes(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) {
        el_pass_close(dp->passes[m]);
        dp->passes[m] = NULL;
    }
}

enum el_status el_dp_forward(struct el_dp *dp)
{
    const struct el_train_config *config = dp->worker->config;
    const struct el_feed_spec *feed = &dp->feed->spec;
    int64_t first = feed->part;
    for (int m = 0; m < dp->n; m++) {
        struct el_pass_spec spec = {.graph = dp->worker->graph,
                                    .device = el_dp_device(dp, m),
                                    .stream = EL_STREAM_COMPUTE,
                                    .dtype = config->dtype,
                                    .batch = dp->sizes[m],
                                    .sample_first = first,
                                    .sample_stride = feed->n_parts,
                                    .seed = config->seed,
                                    .training = true,
                                    .params = dp->params[m],
                                    .buffers = dp->buffers[m],
                                    .grads = dp->grads[m],
                                    .grad_ready = dp->grad_ready,
                                    .context = dp->contexts[m]};
        struct el_call_op thread = {
            .head = {.label = "thread", .phase = EL_PHASE_FORWARD}, .op_class = EL_CLASS_HOST, .run = make_thread};
        if (dp->n > 1) el_program_call(dp->program, el_dp_device(dp, m), EL_STREAM_COMPUTE, &thread, NULL);
        enum el_status status = el_pass_open(dp->program, &spec, &dp->passes[m]);
        if (status != EL_OK) {
            close_passes(dp);
            return status;
        }
        el_pass_forward(dp->passes[m], &dp->inputs[m], &dp->outputs[m]);
        first += dp->sizes[m] * feed->n_parts;
    }
    return EL_OK;
}

void el_dp_backward(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) el_pass_backward(dp->passes[m], &dp->doutputs[m], NULL);
}

void el_dp_end(struct el_dp *dp)
{
    close_passes(dp);
    el_dp_free_loss(dp);
    for (int m = 1; m < dp->n; m++) el_program_free(dp->program, dp->inputs[m].buffer);
}

/* A failed device must not leave the others waiting for its part of a collective. */
static void abort_group(void *context)
{
    struct el_dp *dp = context;
    el_comm_abort(dp->comms[0]);
}

static void begin_micro_step(struct el_dp *dp, int k)
{
    dp->micro = k;
    dp->feed = &dp->worker->members[0].feeds[k];
    dp->batch = dp->feed->samples;
    for (int m = 0; m < dp->n; m++) dp->sizes[m] = el_layout_chunk(dp->batch, dp->worker->layout->n_devices, m);
}

/* All but the optimizer. The batch stays, as a training loop's variables do. */
static enum el_status micro_step(struct el_dp *dp, struct el_buffer **inputs_p, struct el_buffer **labels_p,
                                 struct el_view *grads)
{
    el_feed_issue(dp->feed, dp->program, inputs_p, labels_p);
    el_dp_bring_labels(dp, *labels_p);
    el_dp_scatter_inputs(dp, *inputs_p);
    el_dp_replicate(dp);
    el_dp_replicate_buffers(dp);
    EL_TRY(el_dp_forward(dp));
    el_dp_loss(dp);
    el_dp_backward(dp);
    el_dp_reduce(dp, grads);
    el_dp_end(dp);
    el_dp_free_params(dp);
    return EL_OK;
}

static void free_batch(struct el_dp *dp, struct el_buffer *inputs, struct el_buffer *labels)
{
    el_program_free(dp->program, dp->gathered);
    el_program_free(dp->program, inputs);
    el_program_free(dp->program, labels);
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_dp *dp = worker->state;
    const struct el_shard *master = el_dp_master(dp);
    struct el_view *grads = master->issued;
    struct el_buffer *inputs = NULL, *labels = NULL;
    dp->program = program;
    el_program_on_failure(program, abort_group, dp);
    el_shard_issue_zero_grad(master, program);
    for (int k = 0; k < worker->config->n_accumulate; k++) {
        if (k > 0) free_batch(dp, inputs, labels);
        begin_micro_step(dp, k);
        EL_TRY(micro_step(dp, &inputs, &labels, grads));
    }
    el_shard_issue_optimizer(master, program, grads);
    el_dp_free_grads(dp, grads);
    free_batch(dp, inputs, labels);
    return EL_OK;
}

/* The copies of inputs and outputs go on: without them there would be nothing to compute. */
void el_dp_mute(struct el_dp *dp, bool muted)
{
    for (int m = 0; m < dp->n; m++) el_comm_mute(dp->comms[m], muted);
}

static void mute(struct el_worker *worker, bool muted)
{
    el_dp_mute(worker->state, muted);
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    return el_dp_read_loss(worker->state, loss_p);
}

static void teardown(struct el_worker *worker)
{
    if (worker->state) el_dp_close(worker->state);
    free(worker->state);
}

const struct el_mode_ops el_mode_dp = {
    .info = {.name = "dp",
             .summary = "DataParallel: one process, one master, a thread per replica",
             .takes = "output-device loss-in accumulate",
             .statistics = "of each replica's chunk; running ones are replica 0's",
             .sends = "P to each replica and its gradients back, by chunks; inputs out, outputs back",
             .variants = "--output-device 1|--loss-in replica",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 3, .optimizer = 2, .kept = 1, .others = 2},
             .n_shown = 2,
             .look = {.fill = 0xcc5500, .ink = 0xcc5500, .pattern = 5, .point = 9, .point_size = 2.2}},
    .layout = el_layout_one_worker,
    .rounds = 1,
    .setup = setup,
    .issue = issue,
    .read_loss = read_loss,
    .mute = mute,
    .teardown = teardown};
