/* manual: data parallelism by hand (average_gradients of PyTorch's tutorial on distributed applications): after
 * backward a blocking all-reduce per gradient, without buckets or overlap. With --sync param parameters are averaged
 * instead, after each member's optimizer step. */
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

/* Means over the members, in place. What has no gradient is left out: the tutorial's loop would fail on its None; and
 * what is frozen, which is the same everywhere. */
static void average(struct el_worker *worker, struct el_program *program, const struct el_view *views)
{
    const struct el_shard *shard = &worker->members[0].shard;
    for (int p = 0; p < shard->graph->n_params; p++) {
        int64_t n = el_param_count(shard->graph, p);
        if (!views[p].buffer || shard->graph->params[p].frozen) continue;
        struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                .dtype = el_config_stored(worker->config),
                                .count = (size_t)n,
                                .data = views[p],
                                .label = shard->graph->params[p].name,
                                .phase = EL_PHASE_COMM,
                                .join = true};
        el_comm_issue(worker->world, program, &op, NULL);
        el_shard_issue_move(shard, program, EL_PHASE_REDUCE, "divide", op.dtype, views[p], op.dtype, views[p], n,
                            1.0 / worker->layout->n[EL_AXIS_DATA]);
    }
}

static void average_gradients(void *worker, struct el_program *program, struct el_view *grads)
{
    average(worker, program, grads);
}

static void average_parameters(void *context, struct el_program *program)
{
    struct el_worker *worker = context;
    average(worker, program, worker->members[0].shard.params);
}

static enum el_status setup(struct el_worker *worker)
{
    worker->comm = el_comm_backend(worker->world);
    return EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const bool params = worker->config->sync_params;
    const struct el_share_hooks hooks = {
        .reduce = params ? NULL : average_gradients, .updated = params ? average_parameters : NULL, .context = worker};
    return el_share_step(worker, program, &hooks);
}

/* A mean of parameters differs from a step by the mean of gradients, with any weights. */
static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    (void)layout;
    if (!config->sync_params || !config->by_samples) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--shares weights=samples is of gradients, and --sync param averages parameters: "
                                   "give --shares weights=equal, or leave --sync out");
}

static const struct el_mode_option sync = {.name = "sync",
                                           .argument = "WHAT",
                                           .help = "average gradients before the optimizer's step, or parameters "
                                                   "after it",
                                           .kind = EL_MODE_SWITCH,
                                           EL_MODE_FIELD(sync_params),
                                           .choices = "grad|param",
                                           .initial = "grad"};

const struct el_mode_ops el_mode_manual = {
    .info = {.name = "manual",
             .summary = "one all-reduce per parameter after backward, by hand: no buckets, no overlap",
             .options = (const struct el_mode_option *const[]){&el_mode_procs, &el_mode_accumulate, &sync,
                                                               &el_mode_shares, &el_mode_share_weights, NULL},
             .statistics = "of each rank's share; each rank has running ones of its own",
             .sends = "gradients (P) by all-reduce, one for each parameter, after backward",
             .variants = "--sync param|--shares 3,1",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 1,
             .one_type = true,
             .look = {.fill = 0x9c7ab8, .ink = 0x6a3d9a, .pattern = 3, .point = 13, .point_size = 1.6}},
    .check = check,
    .layout = el_layout_worker_each,
    .rounds = 1,
    .setup = setup,
    .issue = issue};
