/* single: one device, no wrapper. The base line of every efficiency, and what the other modes must equal. */
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    return el_share_step(worker, program, NULL);
}

const struct el_mode_ops el_mode_single = {
    .info = {.name = "single",
             .summary = "one device, no wrapper: the baseline",
             .takes = "accumulate beside graph",
             .statistics = "of the batch",
             .sends = "nothing",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 1,
             .look = {.fill = 0xc8c8c8, .ink = 0x707070, .pattern = 3, .point = 5, .point_size = 1.6}},
    .layout = el_layout_one_device,
    .rounds = 1,
    .issue = issue};
