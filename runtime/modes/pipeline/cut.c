/* Options of modes that cut the model, and whether model and batch can be cut so. */
#include "runtime/modes/pipeline/cut.h"

#include "runtime/layout/parts.h"

const struct el_mode_option el_cut_micro = {
    .name = "micro",
    .argument = "N",
    .help = "micro-batches per step (default: the number of devices, or what FILE.csv has)",
    .kind = EL_MODE_COUNT,
    EL_MODE_FIELD(n_micro),
    .absent = "1",
    .min = 1,
    .max = EL_MICRO_MAX,
    .key = "micro_batches"};

const struct el_mode_option el_cut_schedule = {
    .name = "schedule",
    .argument = "NAME|FILE.csv",
    .help = "the order of forwards and backwards; FILE.csv: a compute table written by torch.distributed.pipelining",
    .kind = EL_MODE_FILE,
    EL_MODE_FIELD(schedule),
    .bytes = sizeof((struct el_train_config *)0)->schedule,
    .choices = "1f1b|gpipe|interleaved|zero-bubble",
    .initial = "1f1b"};

const struct el_mode_option el_cut_parts = {.name = "parts",
                                            .argument = "N",
                                            .help =
                                                "parts of the model per device (default: interleaved 2, the others 1)",
                                            .kind = EL_MODE_INT,
                                            EL_MODE_FIELD(parts),
                                            .min = 1,
                                            .max = EL_PARTS_MAX,
                                            .key = "parts_per_device"};

/* A part whose forwards are not in the order of micro-batches; -1: there is none. */
static int find_out_of_order(const struct el_schedule *schedule)
{
    int next[EL_PARTS_MAX] = {0};
    for (int d = 0; d < schedule->n_devices; d++)
        for (int i = 0; i < schedule->n_actions[d]; i++) {
            struct el_action action = schedule->actions[d][i];
            if (action.kind == EL_ACTION_FORWARD && action.micro != next[action.part]++) return action.part;
        }
    return -1;
}

/* Running statistics take micro-batches one after another, and another order gives others. */
static enum el_status check_order(const struct el_train_config *config, const struct el_parts *parts)
{
    int part = parts->model->n_buffers > 0 ? find_out_of_order(&parts->schedule) : -1;
    if (part < 0) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "--schedule %s: the forwards of part %d are not in the order of micro-batches, on which the running "
                   "statistics of %s depend",
                   config->schedule, part, config->model.name);
}

/* Whether the model can be cut as the schedule has it, and the batch too. */
enum el_status el_cut_check(struct el_train_config *config, const struct el_layout *layout)
{
    struct el_parts parts;
    enum el_status status = el_parts_open(config, layout, &parts);
    config->n_micro = parts.schedule.n_micro;
    if (status == EL_OK) status = check_order(config, &parts);
    el_parts_close(&parts);
    EL_TRY(status);
    if (config->global_batch % (layout->n[EL_AXIS_DATA] * config->n_micro) == 0) return EL_OK;
    if (layout->n[EL_AXIS_DATA] > 1)
        return el_fail(EL_ERR_INVALID,
                       "--micro %lld: a batch of %lld cannot be divided into that many equal parts in each of %d "
                       "copies of the model: change --batch",
                       (long long)config->n_micro, (long long)config->global_batch, layout->n[EL_AXIS_DATA]);
    return el_fail(EL_ERR_INVALID,
                   "--micro %lld: a batch of %lld cannot be divided into that many equal parts: change --batch",
                   (long long)config->n_micro, (long long)config->global_batch);
}
