/* single: one device, no wrapper. The base line of every efficiency, and what the other modes must equal. */
#include "runtime/parallel/mode.h"

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_member *member = &worker->members[0];
    struct el_view grads[EL_GRAPH_PARAMS_MAX];
    for (int p = 0; p < worker->graph->n_params; p++) grads[p] = member->grads[p];
    struct el_share_pass pass = {.share = member, .grads = grads, .scale = 1, .loss = member->loss};
    el_member_issue_zero_grad(member, program);
    EL_TRY(el_member_issue_gradients(member, program, &pass));
    el_member_issue_optimizer(member, program, grads);
    el_member_free_grads(member, program, grads);
    el_member_end_gradients(program, &pass);
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
