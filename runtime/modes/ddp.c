/* ddp: DistributedDataParallel. Gradients are averaged in buckets during backward (reducer.h); with --bucket-mb view
 * they are views of the buckets.
 * The first step has one bucket, reduced after the whole backward, because torch does not know the order yet; the order
 * in which gradients became ready gives the later buckets. A step begins with a broadcast of rank 0's buffers. */
#include "runtime/gradients/reducer.h"
#include "runtime/layout/layout.h"
#include "runtime/modes/mode.h"
#include "runtime/state/buffers.h"
#include "runtime/worker/share.h"

struct settings {
    bool static_graph; /* PyTorch's, which overrides find_unused_parameters */
};

static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    (void)layout;
    EL_TRY(el_mode_check_graph(config));
    return EL_OK;
}

static enum el_status setup(struct el_worker *worker)
{
    const struct settings *settings = el_mode_settings(worker->config);
    struct el_reducer_spec spec = {.shard = &worker->members[0].shard,
                                   .comm = worker->world,
                                   .average = true,
                                   .views = worker->config->bucket_view,
                                   .unused = settings->static_graph        ? EL_UNUSED_STATIC
                                             : worker->config->find_unused ? EL_UNUSED_FIND
                                                                           : EL_UNUSED_FAIL,
                                   .finds = true,
                                   .overlap = worker->config->overlap};
    struct el_reducer *reducer;
    EL_TRY(el_reducer_open(&spec, &reducer));
    worker->state = reducer;
    worker->comm = el_comm_backend(worker->world);
    return el_share_send_weights(worker, worker->world);
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    struct el_shard *shard = &worker->members[0].shard;
    EL_TRY(el_reducer_group_round(worker->state, round));
    for (int p = 0; p < shard->graph->n_params && worker->config->bucket_view; p++)
        if (el_graph_trains_param(shard->graph, p)) shard->grads[p] = el_reducer_place(worker->state, p);
    return EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_share_hooks hooks = el_share_reduce_by(worker->state);
    hooks.overwrite = worker->config->bucket_view && !worker->config->keep_grads;
    if (worker->config->broadcast_buffers)
        el_buffers_issue_broadcast(worker->world, &worker->members[0].shard, program);
    return el_share_step(worker, program, &hooks);
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    EL_TRY(el_reducer_check(worker->state));
    return el_share_read_loss(&worker->members[0], loss_p);
}

static void teardown(struct el_worker *worker)
{
    el_reducer_close(worker->state);
}

static const struct el_mode_option bucket_view = {.name = "bucket-view",
                                                  .kind = EL_MODE_SWITCH,
                                                  EL_MODE_FIELD(bucket_view),
                                                  .choices = "off|on",
                                                  .initial = "off",
                                                  .label = "view"};
static const struct el_mode_option static_graph = {
    .name = "static-graph",
    .argument = "HOW",
    .help = "find parameters without gradients in the first step only, as PyTorch's static_graph; buckets are rebuilt",
    .kind = EL_MODE_SWITCH,
    EL_MODE_SETTING(struct settings, static_graph),
    .choices = "off|on",
    .initial = "off"};

static const struct el_mode_option *const options[] = {&el_mode_procs,
                                                       &el_mode_overlap,
                                                       &el_mode_comm_hook,
                                                       &el_mode_bucket_mb,
                                                       &el_mode_first_bucket_mb,
                                                       &bucket_view,
                                                       &el_mode_accumulate,
                                                       &el_mode_find_unused,
                                                       &static_graph,
                                                       &el_mode_broadcast_buffers,
                                                       &el_mode_shares,
                                                       &el_mode_share_weights,
                                                       &el_mode_graph,
                                                       NULL};

const struct el_mode_ops el_mode_ddp = {
    .info = {.name = "ddp",
             .summary = "DistributedDataParallel: a replica per process, overlapped all-reduce of buckets",
             .options = options,
             .statistics = "of each rank's share; running ones are rank 0's, sent to all at a step's start",
             .sends = "gradients (P) by all-reduce, in buckets, during backward",
             .variants = "--overlap off|--bucket-mb view|--accumulate 2|--find-unused on|--find-unused once|"
                         "--broadcast-buffers off|--shares 3,1|--shares 3,1,weights=equal",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 3, .optimizer = 3, .view = 1},
             .n_shown = 1,
             .look = {.fill = 0x5b84c4, .ink = 0x5b84c4, .pattern = 3, .point = 7, .point_size = 1.6}},
    .check = check,
    .layout = el_layout_worker_each,
    .rounds = 2,
    .setup = setup,
    .begin_round = begin_round,
    .issue = issue,
    .read_loss = read_loss,
    .teardown = teardown};
