/* tp: tensor parallelism (Shoeybi et al., "Megatron-LM", 2019). Each device has some heads and some inner outputs of
 * each block. A branch's output is summed over devices forward, its input's gradient backward: four all-reduces of
 * [batch, tokens, width] per block. The embedding, also the head, is cut by tokens. Layer norms and positions are
 * whole; with --sequence-parallel on each device computes 1/n of the tokens (Korthikanti et al., 2022), and an
 * all-reduce becomes a reduce-scatter and an all-gather. With --mesh dp=N gradients are averaged over N copies in
 * buckets, as in ddp. */
#include "runtime/gradients/reducer.h"
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    return el_parts_check_pieces(config, layout);
}

static enum el_status setup(struct el_worker *worker)
{
    struct el_reducer_spec spec = {.shard = &worker->members[0].shard,
                                   .comm = worker->group[EL_AXIS_DATA],
                                   .average = true,
                                   .overlap = worker->config->overlap};
    struct el_reducer *reducer;
    worker->comm = el_comm_backend(worker->world);
    if (!spec.comm || el_comm_size(spec.comm) == 1) return EL_OK;
    EL_TRY(el_reducer_open(&spec, &reducer));
    worker->state = reducer;
    return EL_OK;
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    return worker->state ? el_reducer_group_round(worker->state, round) : EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct el_share_hooks hooks = el_share_reduce_by(worker->state);
    return el_share_step(worker, program, worker->state ? &hooks : NULL);
}

static void teardown(struct el_worker *worker)
{
    el_reducer_close(worker->state);
}

static const struct el_mode_option *const options[] = {&el_mode_procs,
                                                       &el_mode_mesh,
                                                       &el_mode_overlap,
                                                       &el_mode_comm_hook,
                                                       &el_mode_bucket_mb,
                                                       &el_mode_first_bucket_mb,
                                                       &el_mode_accumulate,
                                                       &el_mode_sequence_parallel,
                                                       NULL};

const struct el_mode_ops el_mode_tp = {
    .info = {.name = "tp",
             .summary = "the model cut across its layers: heads and inner layers by device, sums within a block",
             .axes = 1U << EL_AXIS_DATA | 1U << EL_AXIS_TENSOR,
             .options = options,
             .statistics = "of the batch",
             .sends = "activations of each block, summed twice, and their gradients, twice; with "
                      "--sequence-parallel on scattered and gathered, and twice gathered again",
             .variants = "--mesh dp=2|--sequence-parallel on",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 1,
             .look = {.fill = 0xc98a9e, .ink = 0x8c1d40, .pattern = 3, .point = 11, .point_size = 1.7}},
    .check = check,
    .layout = el_layout_across,
    .rounds = 2,
    .setup = setup,
    .begin_round = begin_round,
    .issue = issue,
    .teardown = teardown};
