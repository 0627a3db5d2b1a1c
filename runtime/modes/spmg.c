/* spmg: single-process multi-GPU, DistributedDataParallel of PyTorch up to 1.8 with several devices per process (no
 * device_ids). A process takes its share of the batch through its devices as dp does, with the loss on the first.
 * Gradients are summed over replicas and averaged over processes in buckets during backward; the optimizer runs on each
 * process's first device, which owns the model. Replicas live across steps and receive its parameters at each step's
 * start.
 * Reduction is flat, over all devices (1.1 to 1.8), or hierarchical: to each process's first device, and across those
 * (1.0). */
#include <stdlib.h>

#include "runtime/gradients/reducer.h"
#include "runtime/modes/dp/dp.h"
#include "runtime/modes/mode.h"
#include "runtime/state/buffers.h"
#include "runtime/state/together.h"

/* DistributedDataParallel's broadcast_bucket_size. */
enum { CHUNK_BYTES = 250 << 20 };

struct kept {
    struct el_view *params, *grads;
    struct el_buffer *buffers;
};

struct spmg {
    struct el_dp dp;
    struct kept *kept;
};

static enum el_status hold(const struct el_shard *shard, enum el_tag tag, struct el_view **views_p)
{
    struct el_view *views = *views_p = calloc((size_t)shard->graph->n_params + 1, sizeof *views);
    if (!views) return el_fail_errno("%d parameters of a replica", shard->graph->n_params);
    for (int p = 0; p < shard->graph->n_params; p++) {
        struct el_buffer *buffer;
        if (tag == EL_TAG_GRAD && shard->graph->params[p].frozen) continue;
        EL_TRY(
            el_device_alloc(shard->device, tag, el_shard_param_bytes(shard, p), shard->graph->params[p].name, &buffer));
        views[p] = el_view_of(buffer, 0);
    }
    return EL_OK;
}

static void release(const struct el_graph *graph, struct el_view *views)
{
    for (int p = 0; p < graph->n_params && views; p++) el_device_free(views[p].buffer);
    free(views);
}

struct settings {
    bool hierarchical; /* each process's first device sums across processes, for its process */
};

static enum el_status open_member(struct el_worker *worker, int m)
{
    const struct el_train_config *config = worker->config;
    const struct settings *settings = el_mode_settings(config);
    struct spmg *spmg = worker->state;
    struct el_reducer_spec spec = {.shard = &worker->members[m].shard,
                                   .comm = spmg->dp.replica[m].comm,
                                   .across = worker->worlds[m],
                                   .end = settings->hierarchical ? EL_REDUCER_FIRST : EL_REDUCER_ALL,
                                   .average = true,
                                   .unused = config->find_unused ? EL_UNUSED_FIND : EL_UNUSED_FAIL,
                                   .finds = true,
                                   .overlap = config->overlap};
    EL_TRY(el_reducer_open(&spec, &spmg->dp.replica[m].reducer));
    spmg->dp.replica[m].context = spmg->dp.replica[m].reducer;
    if (m == 0) return EL_OK;
    EL_TRY(hold(spec.shard, EL_TAG_REPLICA, &spmg->kept[m].params));
    EL_TRY(hold(spec.shard, EL_TAG_GRAD, &spmg->kept[m].grads));
    if (worker->graph->n_buffers == 0) return EL_OK;
    EL_TRY(el_device_alloc(spec.shard->device, EL_TAG_REPLICA, el_buffers_bytes(worker->graph, config->dtype),
                           "replica's buffers", &spmg->kept[m].buffers));
    el_buffers_view(worker->graph, config->dtype, el_view_of(spmg->kept[m].buffers, 0), spmg->dp.replica[m].buffers);
    return EL_OK;
}

/* Replicas start with the first device's, in a step of its own. */
static enum el_status send_first_buffers(struct el_dp *dp)
{
    EL_TRY(el_program_create(&dp->program));
    el_dp_send_buffers(dp);
    enum el_status status = el_program_end(dp->program);
    if (status == EL_OK) status = el_program_run(dp->program, 0, NULL);
    el_program_destroy(dp->program);
    return status;
}

static enum el_status setup(struct el_worker *worker)
{
    struct spmg *spmg = worker->state = calloc(1, sizeof *spmg);
    if (spmg) spmg->kept = calloc((size_t)worker->n_members, sizeof *spmg->kept);
    if (!spmg || !spmg->kept) return el_fail_errno("spmg");
    EL_TRY(el_dp_open(&spmg->dp, worker, worker->n_members, CHUNK_BYTES));
    spmg->dp.grad_ready = el_reducer_ready;
    for (int m = 0; m < worker->n_members; m++) EL_TRY(open_member(worker, m));
    if (worker->layout->n_workers > 1) worker->comm = el_comm_backend(worker->world);
    EL_TRY(el_share_send_weights(worker, worker->world));
    return worker->graph->n_buffers > 0 ? send_first_buffers(&spmg->dp) : EL_OK;
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    struct spmg *spmg = worker->state;
    for (int m = 0; m < worker->n_members; m++) EL_TRY(el_reducer_group_round(spmg->dp.replica[m].reducer, round));
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    struct spmg *spmg = worker->state;
    if (!spmg) return;
    for (int m = 0; m < worker->n_members && spmg->kept; m++) {
        el_device_free(spmg->kept[m].buffers);
        release(worker->graph, spmg->kept[m].params);
        release(worker->graph, spmg->kept[m].grads);
    }
    el_dp_close(&spmg->dp);
    free(spmg->kept);
    free(spmg);
}

static void take_params(struct spmg *spmg, int m)
{
    struct el_dp *dp = &spmg->dp;
    const struct el_shard *shard = &dp->worker->members[m].shard;
    struct el_together copies = {
        .shard = shard, .program = dp->program, .phase = EL_PHASE_REPLICATE, .label = "copy parameter"};
    struct el_together zeros = {
        .shard = shard, .program = dp->program, .phase = EL_PHASE_REPLICATE, .label = "zero_grad"};
    for (int p = 0; p < shard->graph->n_params; p++) {
        const int64_t n = el_param_count(shard->graph, p);
        el_together_copy(&copies, dp->replica[m].params[p], spmg->kept[m].params[p], n);
        if (spmg->kept[m].grads[p].buffer) el_together_zero(&zeros, spmg->kept[m].grads[p], n);
        dp->replica[m].params[p] = spmg->kept[m].params[p];
        dp->replica[m].grads[p] = spmg->kept[m].grads[p];
    }
    el_together_end(&copies);
    el_together_end(&zeros);
}

static void sync_params(struct spmg *spmg)
{
    struct el_dp *dp = &spmg->dp;
    const struct el_shard *first = el_dp_master(dp);
    el_dp_replicate(dp);
    for (int m = 1; m < dp->n; m++) take_params(spmg, m);
    el_dp_free_params(dp);
    for (int p = 0; p < first->graph->n_params; p++) dp->replica[0].grads[p] = first->grads[p];
    if (!dp->worker->config->broadcast_buffers) return;
    el_buffers_issue_broadcast(dp->worker->world, first, dp->program);
    el_dp_send_buffers(dp);
}

static void abort_all(void *context)
{
    struct spmg *spmg = context;
    el_comm_abort(spmg->dp.replica[0].comm);
    el_worker_abort(spmg->dp.worker);
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct spmg *spmg = worker->state;
    struct el_dp *dp = &spmg->dp;
    const struct el_shard *first = el_dp_master(dp);
    dp->program = program;
    el_program_on_failure(program, abort_all, spmg);
    for (int m = 0; m < dp->n; m++) el_reducer_begin(spmg->dp.replica[m].reducer, program, dp->replica[m].grads);
    el_shard_issue_zero_grad(first, program);
    sync_params(spmg);
    el_dp_feed(dp);
    EL_TRY(el_dp_forward(dp));
    el_dp_loss(dp);
    el_dp_backward(dp);
    for (int m = 0; m < dp->n; m++) el_reducer_finish(spmg->dp.replica[m].reducer);
    el_dp_end(dp);
    el_shard_issue_optimizer(first, program, dp->replica[0].grads);
    el_shard_free_grads(first, program, dp->replica[0].grads);
    el_dp_free_batch(dp);
    return EL_OK;
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    const struct spmg *spmg = worker->state;
    for (int m = 0; m < worker->n_members; m++) EL_TRY(el_reducer_check(spmg->dp.replica[m].reducer));
    return el_shard_read_loss(&worker->members[0].shard, loss_p);
}

static void mute(struct el_worker *worker, bool muted)
{
    struct spmg *spmg = worker->state;
    el_dp_mute(&spmg->dp, muted);
    for (int m = 0; m < worker->n_members; m++) el_comm_mute(worker->worlds[m], muted);
}

static const struct el_mode_option reduce = {
    .name = "reduce",
    .argument = "HOW",
    .help = "sum gradients over all devices (flat), or within each process and then over the processes' first devices "
            "(hierarchical)",
    .kind = EL_MODE_SWITCH,
    EL_MODE_SETTING(struct settings, hierarchical),
    .choices = "flat|hierarchical",
    .initial = "flat"};

static const struct el_mode_option *const options[] = {
    &el_mode_procs, &el_mode_overlap, &el_mode_comm_hook,   &el_mode_bucket_mb,         &el_mode_first_bucket_mb,
    &el_mode_mesh,  &reduce,          &el_mode_find_unused, &el_mode_broadcast_buffers, NULL};

const struct el_mode_ops el_mode_spmg = {
    .info = {.name = "spmg",
             .summary = "DDP up to PyTorch 1.8: several devices per process, a thread per replica",
             .axes = 1U << EL_AXIS_DATA,
             .many_a_rank = true,
             .one_type = true,
             .options = options,
             .statistics = "of each device's chunk; running ones are the first device's, sent to all at a step's start",
             .sends = "as ddp among all devices, and P to each replica at a step's start; inputs out, outputs back",
             .variants =
                 "--overlap off|--reduce hierarchical|--mesh dp=2|--mesh dp=2 --reduce hierarchical|--find-unused on|"
                 "--broadcast-buffers off",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 3, .optimizer = 3, .kept = 1, .others = 4},
             .n_shown = 2,
             .look = {.fill = 0xd46a9f, .ink = 0xa8326e, .pattern = 3, .point = 11, .point_size = 1.8}},
    .layout = el_layout_worker_several,
    .rounds = 2,
    .setup = setup,
    .begin_round = begin_round,
    .issue = issue,
    .read_loss = read_loss,
    .mute = mute,
    .teardown = teardown};
