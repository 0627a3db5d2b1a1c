/* single: one device, no wrapper. The base line of every efficiency, and what the other modes must equal. */
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    return el_share_step(worker, program, NULL);
}

/* What a graph cannot have in the middle of a step, and what is not what it would seem. */
static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    const char *reason = NULL;
    (void)layout;
    if (config->control == EL_CONTROL_RECORD)
        reason = "--control record: recorded steps are no graph, so that their difference is not the recorder's";
    if (config->loading.pageable) reason = "--pin-memory off: a graph copies from pinned memory alone";
    if (config->loading.transfer == EL_TRANSFER_BLOCKING)
        reason = "--non-blocking off: within a graph the host waits for no copy";
    if (config->loading.transfer == EL_TRANSFER_AHEAD)
        reason = "--non-blocking ahead: a batch is made before the graph is launched, not beside it";
    if (!config->device_graph || !reason) return EL_OK;
    return el_fail(EL_ERR_INVALID, "--graph on and %s: leave one of them out", reason);
}

static const struct el_mode_option beside = {.name = "beside", .kind = EL_MODE_ELSEWHERE};
static const struct el_mode_option graph = {.name = "graph",
                                            .argument = "HOW",
                                            .help = "on GPUs: launch a step's work at once as a CUDA graph; recorded "
                                                    "steps are queued op by op (it has never run on a card)",
                                            .kind = EL_MODE_SWITCH,
                                            EL_MODE_FIELD(device_graph),
                                            .choices = "off|on",
                                            .initial = "off",
                                            .label = "graph"};

const struct el_mode_ops el_mode_single = {
    .info = {.name = "single",
             .summary = "one device, no wrapper: the baseline",
             .one_process = true,
             .options = (const struct el_mode_option *const[]){&el_mode_accumulate, &beside, &graph, NULL},
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
