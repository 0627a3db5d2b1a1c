/* manual: data parallelism by hand, as PyTorch's tutorial on distributed applications has it (average_gradients). Every
 * member has the whole model, the same initial weights by the same seed, and its share of the batch. After the whole
 * backward each parameter's gradient is summed by an all-reduce of its own, waited for, and divided by the number of
 * members: no buckets, nothing overlaps. */
#include "runtime/parallel/share.h"

static void average(void *context, struct el_program *program, struct el_view *grads)
{
    struct el_worker *worker = context;
    const struct el_shard *shard = &worker->members[0].shard;
    for (int p = 0; p < shard->graph->n_params; p++) {
        int64_t n = el_param_count(shard->graph, p);
        if (!grads[p].buffer) continue; /* nothing uses it: the tutorial's loop would fail on None */
        struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                                .dtype = worker->config->dtype,
                                .count = (size_t)n,
                                .data = grads[p],
                                .label = shard->graph->params[p].name,
                                .phase = EL_PHASE_COMM,
                                .join = true};
        el_comm_issue(worker->world, program, &op, NULL);
        el_shard_issue_scale(shard, program, EL_PHASE_REDUCE, "divide", grads[p], grads[p], n,
                             1.0 / worker->layout->n_data);
    }
}

static enum el_status setup(struct el_worker *worker)
{
    worker->comm = el_comm_backend(worker->world);
    return EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct el_share_hooks hooks = {.reduce = average, .context = worker};
    return el_share_step(worker, program, &hooks);
}

const struct el_mode_ops el_mode_manual = {
    .info = {.name = "manual",
             .summary = "one all-reduce per parameter after backward, by hand: no buckets, no overlap",
             .takes = "procs accumulate",
             .sends = "gradients (P) by all-reduce, one for each parameter, after backward",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 1,
             .look = {.fill = 0x9c7ab8, .ink = 0x6a3d9a, .pattern = 3, .point = 13, .point_size = 1.6}},
    .layout = el_layout_worker_each,
    .rounds = 1,
    .setup = setup,
    .issue = issue};
