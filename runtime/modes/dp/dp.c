/* dp: DataParallel. One host thread issues for all devices; parameters, optimizer and loss are on the master. A step:
 * load, scatter, replicate, forward, gather, loss, scatter its gradient, backward, reduce (a sum, after the whole
 * backward), optimizer, in the order, chunks and memory of torch.nn.DataParallel (docs/semantics.md). */
#include "runtime/modes/dp/dp.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/state/buffers.h"

static enum el_status make_arrays(struct el_dp *dp)
{
    size_t n = (size_t)dp->worker->graph->n_params, n_buffers = (size_t)dp->worker->graph->n_buffers;
    dp->chunk_of = calloc(n + 1, sizeof *dp->chunk_of);
    dp->place = calloc(n + 1, sizeof *dp->place);
    if (!dp->chunk_of || !dp->place) return el_fail_errno("%zu parameters", n);
    for (int m = 0; m < dp->n; m++) {
        struct el_dp_replica *replica = &dp->replica[m];
        replica->params = calloc(2 * n + n_buffers + 1, sizeof *replica->params);
        replica->chunks = calloc(3 * n + 1, sizeof(struct el_buffer *));
        if (!replica->params || !replica->chunks) return el_fail_errno("%zu parameters of a replica", n);
        replica->grads = replica->params + n;
        replica->buffers = m < el_dp_owners(dp) ? dp->worker->members[m].shard.buffers : replica->grads + n;
        replica->results = replica->chunks + n;
        replica->sums = replica->results + n;
    }
    return EL_OK;
}

/* PyTorch packs a chunk without gaps. On GPUs kernels may choose another algorithm for unaligned operands, so that
 * replicas would differ from the master: there parameters are aligned. */
static void make_chunks(struct el_dp *dp, size_t chunk_bytes)
{
    const struct el_shard *master = el_dp_master(dp);
    int n = dp->worker->graph->n_params;
    size_t at = 0, alignment = el_device_alignment(master->device, el_config_stored(dp->worker->config));
    for (int p = 0; p < n; p++) dp->place[p] = el_shard_param_bytes(master, p);
    dp->n_chunks = el_chunks_take(dp->place, n, chunk_bytes, dp->chunk_of);
    for (int p = 0; p < n; p++) {
        if (p > 0 && dp->chunk_of[p] != dp->chunk_of[p - 1]) at = 0;
        dp->place[p] = (at + alignment - 1) / alignment * alignment;
        at = dp->place[p] + el_shard_param_bytes(master, p);
    }
}

static enum el_status open_group(struct el_dp *dp)
{
    struct el_device **devices = calloc((size_t)dp->n, sizeof *devices);
    struct el_comm **comms = calloc((size_t)dp->n, sizeof *comms);
    enum el_status status = devices && comms ? EL_OK : el_fail_errno("a group of %d devices", dp->n);
    for (int m = 0; m < dp->n && status == EL_OK; m++) devices[m] = el_dp_device(dp, m);
    if (status == EL_OK) status = el_comm_open_together(devices, dp->n, comms);
    for (int m = 0; m < dp->n && status == EL_OK; m++) dp->replica[m].comm = comms[m];
    free(devices);
    free(comms);
    return status;
}

enum el_status el_dp_open(struct el_dp *dp, struct el_worker *worker, int n, size_t chunk_bytes)
{
    dp->worker = worker;
    dp->replica = calloc((size_t)n, sizeof *dp->replica);
    if (!dp->replica) return el_fail_errno("%d replicas", n);
    dp->n = n;
    dp->fix = n > 1 ? worker->config->dp_fix : 0;
    dp->feed = worker->members[0].feeds;
    for (int m = 0; m < n; m++) {
        dp->replica[m].samples = el_layout_spot(worker->layout, worker->first + m).samples;
        dp->batch += dp->replica[m].samples;
    }
    EL_TRY(make_arrays(dp));
    make_chunks(dp, chunk_bytes);
    EL_TRY(open_group(dp));
    worker->comm = el_comm_backend(dp->replica[0].comm);
    for (int m = 0; m < n; m++) {
        el_comm_name(dp->replica[m].comm, "local", worker->first);
        EL_TRY(el_worker_set_comm(worker->config, dp->replica[m].comm));
    }
    return EL_OK;
}

void el_dp_close(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) el_comm_close(dp->replica[m].comm);
    for (int m = 0; m < dp->n; m++) {
        el_reducer_close(dp->replica[m].reducer);
        free(dp->replica[m].params);
        free(dp->replica[m].chunks);
    }
    free(dp->replica);
    free(dp->chunk_of);
    free(dp->place);
    el_device_free(dp->losses);
}

static enum el_status open_reducers(struct el_dp *dp)
{
    bool to_all = el_dp_fixed(dp, EL_DP_FIX_UPDATE);
    for (int m = 0; m < dp->n && el_dp_fixed(dp, EL_DP_FIX_OVERLAP); m++) {
        struct el_reducer_spec spec = {.shard = &dp->worker->members[m].shard,
                                       .comm = dp->replica[m].comm,
                                       .across = to_all ? NULL : dp->worker->worlds[m],
                                       .end = to_all ? EL_REDUCER_ALL : EL_REDUCER_FIRST,
                                       .average = to_all,
                                       .overlap = true};
        EL_TRY(el_reducer_open(&spec, &dp->replica[m].reducer));
        dp->replica[m].context = dp->replica[m].reducer;
        dp->grad_ready = el_reducer_ready;
    }
    return EL_OK;
}

static enum el_status setup(struct el_worker *worker)
{
    struct el_dp *dp = worker->state = calloc(1, sizeof *dp);
    if (!dp) return el_fail_errno("dp");
    EL_TRY(el_dp_open(dp, worker, worker->layout->n[EL_AXIS_DATA], EL_DP_CHUNK_BYTES));
    EL_TRY(open_reducers(dp));
    return el_dp_open_loss(dp, el_dp_output_device(worker->config), worker->config->loss_in_replica);
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    const struct el_dp *dp = worker->state;
    for (int m = 0; m < dp->n; m++)
        if (dp->replica[m].reducer) EL_TRY(el_reducer_group_round(dp->replica[m].reducer, round));
    return EL_OK;
}

/* parallel_apply makes and joins one thread per replica and step. */
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

/* Before the program is closed: passes mark frees in it. */
static void close_passes(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) {
        el_pass_close(dp->replica[m].pass);
        dp->replica[m].pass = NULL;
    }
}

enum el_status el_dp_forward(struct el_dp *dp)
{
    const struct el_train_config *config = dp->worker->config;
    int64_t before = 0;
    for (int m = 0; m < dp->n; m++) {
        const struct el_feed *feed = el_dp_feed_of(dp, m);
        struct el_pass_spec spec = {.graph = feed->graph,
                                    .device = el_dp_device(dp, m),
                                    .stream = EL_STREAM_COMPUTE,
                                    .dtype = config->dtype,
                                    .batch = dp->replica[m].samples,
                                    .sample_weight = el_dp_sample_weight(dp, m),
                                    .sample_first = feed->first + before * feed->stride,
                                    .sample_stride = feed->stride,
                                    .seed = config->seed,
                                    .training = true,
                                    .params = dp->replica[m].params,
                                    .buffers = dp->replica[m].buffers,
                                    .grads = dp->replica[m].grads,
                                    .grad_ready = dp->grad_ready,
                                    .context = dp->replica[m].context,
                                    .env.routed = el_view_of(dp->worker->members[m].shard.routed, 0)};
        struct el_call_op thread = {
            .head = {.label = "thread", .phase = EL_PHASE_FORWARD}, .op_class = EL_CLASS_HOST, .run = make_thread};
        if (dp->n > 1 && !el_dp_fixed(dp, EL_DP_FIX_THREADS))
            el_program_call(dp->program, el_dp_device(dp, m), EL_STREAM_COMPUTE, &thread, NULL);
        enum el_status status = el_pass_open(dp->program, &spec, &dp->replica[m].pass);
        if (status != EL_OK) {
            close_passes(dp);
            return status;
        }
        el_pass_forward(dp->replica[m].pass, &dp->replica[m].inputs, &dp->replica[m].outputs);
        if (!el_dp_fixed(dp, EL_DP_FIX_INPUTS)) before += dp->replica[m].samples;
    }
    return EL_OK;
}

void el_dp_backward(struct el_dp *dp)
{
    for (int m = 0; m < dp->n; m++) {
        el_pass_backward(dp->replica[m].pass, &dp->replica[m].doutputs, NULL);
        if (!el_dp_fixed(dp, EL_DP_FIX_UPDATE)) continue;
        el_program_free(dp->program, dp->replica[m].doutputs.buffer);
        dp->replica[m].doutputs = (struct el_view){0};
    }
}

void el_dp_end(struct el_dp *dp)
{
    close_passes(dp);
    el_dp_free_loss(dp);
    for (int m = 1; m < dp->n; m++) el_program_free(dp->program, dp->replica[m].inputs.buffer);
}

/* Otherwise a failed device leaves the others waiting in a collective. */
static void abort_group(void *context)
{
    struct el_dp *dp = context;
    el_comm_abort(dp->replica[0].comm);
}

static void begin_micro_step(struct el_dp *dp, int k)
{
    dp->micro = k;
    dp->feed = &dp->worker->members[0].feeds[k];
    if (el_dp_fixed(dp, EL_DP_FIX_INPUTS)) return; /* one micro-step: as in the layout */
    dp->batch = dp->feed->samples;
    for (int m = 0; m < dp->n; m++)
        dp->replica[m].samples =
            el_layout_piece(&dp->worker->layout->shares, dp->batch, dp->worker->layout->n_devices, m);
}

/* All but the optimizer. The batch stays, like a training loop's variables. */
static enum el_status micro_step(struct el_dp *dp)
{
    el_dp_feed(dp);
    el_dp_replicate(dp);
    el_dp_replicate_buffers(dp);
    for (int m = 0; m < dp->n; m++)
        if (dp->replica[m].reducer) el_reducer_begin(dp->replica[m].reducer, dp->program, dp->replica[m].grads);
    EL_TRY(el_dp_forward(dp));
    el_dp_loss(dp);
    el_dp_backward(dp);
    el_dp_reduce(dp);
    if (!el_dp_fixed(dp, EL_DP_FIX_UPDATE)) el_dp_end(dp);
    el_dp_free_params(dp);
    return EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_dp *dp = worker->state;
    dp->program = program;
    el_program_on_failure(program, abort_group, dp);
    for (int m = 0; m < dp->n && el_dp_fixed(dp, EL_DP_FIX_REPLICAS); m++)
        el_buffers_issue_broadcast(dp->replica[m].comm, &worker->members[m].shard, program);
    for (int m = 0; m < el_dp_owners(dp); m++) el_shard_issue_zero_grad(&worker->members[m].shard, program);
    for (int k = 0; k < worker->config->n_accumulate; k++) {
        if (k > 0) el_dp_free_batch(dp);
        begin_micro_step(dp, k);
        EL_TRY(micro_step(dp));
    }
    for (int m = 0; m < el_dp_owners(dp); m++)
        el_shard_issue_optimizer(&worker->members[m].shard, program, worker->members[m].shard.issued);
    el_dp_free_grads(dp);
    /* All ranks keep their buffers until the step ends, because their training loops own them. */
    if (el_dp_fixed(dp, EL_DP_FIX_UPDATE)) el_dp_end(dp);
    el_dp_free_batch(dp);
    return EL_OK;
}

void el_dp_mute(struct el_dp *dp, bool muted)
{
    for (int m = 0; m < dp->n; m++) el_comm_mute(dp->replica[m].comm, muted);
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
             .one_process = true,
             .one_type = true,
             .options = el_dp_options,
             .statistics = "of each replica's chunk; running ones are replica 0's",
             .sends = "P to each replica and its gradients back, by chunks; inputs out, outputs back",
             .variants = "--loss-in device=1|--loss-in replica|--dp-fix inputs,update,overlap|--dp-fix all|"
                         "--shares 3,1|--shares 3,1 --loss-in replica|--shares 3,1 --dp-fix all",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 3, .optimizer = 2, .kept = 1, .others = 2},
             .n_shown = 2,
             .look = {.fill = 0xcc5500, .ink = 0xcc5500, .pattern = 5, .point = 9, .point_size = 2.2}},
    .resolve = el_dp_resolve,
    .check = el_dp_check,
    .layout = el_dp_layout,
    .rounds = 2,
    .setup = setup,
    .begin_round = begin_round,
    .issue = issue,
    .read_loss = read_loss,
    .mute = mute,
    .teardown = teardown};
