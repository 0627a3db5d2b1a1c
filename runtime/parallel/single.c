/* single: one device, no wrapper. The base line of every efficiency, and what the other modes must equal. */
#include "runtime/parallel/mode.h"
#include "runtime/parallel/share.h"

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_shard *shard = &worker->members[0].shard;
    struct el_view grads[EL_GRAPH_PARAMS_MAX];
    struct el_share_pass pass = {
        .shard = shard, .feed = &worker->members[0].feed, .grads = grads, .scale = 1, .loss = shard->loss};
    for (int p = 0; p < worker->graph->n_params; p++) grads[p] = shard->grads[p];
    el_shard_issue_zero_grad(shard, program);
    EL_TRY(el_share_issue(program, &pass));
    el_shard_issue_optimizer(shard, program, grads);
    el_shard_free_grads(shard, program, grads);
    el_share_end(program, &pass);
    return EL_OK;
}

const struct el_mode_ops el_mode_single = {
    .info = {.name = "single",
             .summary = "one device, no wrapper: the baseline",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 1,
             .look = {.fill = 0xc8c8c8, .ink = 0x707070, .pattern = 3, .point = 5, .point_size = 1.6}},
    .layout = el_layout_one_device,
    .rounds = 1,
    .issue = issue};
