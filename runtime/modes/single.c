/* single: one device; the baseline of efficiencies and of correctness. */
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    return el_share_step(worker, program, NULL);
}

static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    (void)layout;
    return el_mode_check_graph(config);
}

static const struct el_mode_option beside = {.name = "beside", .kind = EL_MODE_ELSEWHERE};
const struct el_mode_ops el_mode_single = {
    .info = {.name = "single",
             .summary = "one device, no wrapper: the baseline",
             .one_process = true,
             .variants = "--precision bf16",
             .options = (const struct el_mode_option *const[]){&el_mode_accumulate, &beside, &el_mode_graph, NULL},
             .statistics = "of the batch",
             .sends = "nothing",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 1,
             .look = {.fill = 0xc8c8c8, .ink = 0x707070, .pattern = 3, .point = 5, .point_size = 1.6}},
    .check = check,
    .layout = el_layout_one_device,
    .rounds = 1,
    .issue = issue};
