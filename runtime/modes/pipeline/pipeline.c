/* mp and pipeline: the model cut into consecutive parts, one a device, or several. Values cross the cuts forward, their
 * gradients back (flight.h). mp sends the whole batch through at once, so that one device works at a time; pipeline
 * cuts it into micro-batches, and in which order each device goes through them is its schedule's. */
#include <stdlib.h>

#include "runtime/gradients/reducer.h"
#include "runtime/modes/mode.h"
#include "runtime/modes/pipeline/edge.h"
#include "runtime/modes/pipeline/flight.h"
#include "runtime/state/buffers.h"
#include "runtime/worker/share.h"

struct pipeline {
    struct el_line line;
    struct el_reducer *reducer; /* over the copies of this stage; NULL: there is one */
};

/* Gradients are averaged over the copies of a stage as ddp does it: in buckets, while backward goes on. */
static enum el_status open_reducer(struct el_worker *worker, struct pipeline *pipeline)
{
    if (!worker->group[EL_AXIS_DATA]) return EL_OK;
    struct el_reducer_spec spec = {.shard = &worker->members[0].shard,
                                   .comm = worker->group[EL_AXIS_DATA],
                                   .average = true,
                                   .overlap = worker->config->overlap};
    EL_TRY(el_reducer_open(&spec, &pipeline->reducer));
    pipeline->line.grad_ready = el_reducer_ready;
    pipeline->line.context = pipeline->reducer;
    return EL_OK;
}

static enum el_status setup(struct el_worker *worker)
{
    struct pipeline *pipeline = worker->state = calloc(1, sizeof *pipeline);
    if (!pipeline) return el_fail_errno("%s", worker->config->mode);
    worker->comm = el_comm_backend(worker->world);
    EL_TRY(el_line_open(worker, &pipeline->line));
    return open_reducer(worker, pipeline);
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    struct pipeline *pipeline = worker->state;
    return pipeline->reducer ? el_reducer_group_round(pipeline->reducer, round) : EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct pipeline *pipeline = worker->state;
    struct el_line *line = &pipeline->line;
    const struct el_shard *shard = &worker->members[0].shard;
    const struct el_schedule *schedule = &worker->parts->schedule;
    int stage = el_layout_spot(worker->layout, worker->first).at[EL_AXIS_STAGE];
    struct el_buffer *inputs, *labels;
    if (pipeline->reducer && worker->config->broadcast_buffers)
        el_buffers_issue_broadcast(worker->group[EL_AXIS_DATA], shard, 0, program);
    if (pipeline->reducer) el_reducer_begin(pipeline->reducer, program, shard->issued);
    el_shard_issue_zero_grad(shard, program);
    el_feed_issue(worker->members[0].feeds, program, &inputs, &labels);
    el_line_begin(line, program, inputs, labels);
    for (int i = 0; i < schedule->n_actions[stage]; i++) {
        struct el_action action = schedule->actions[stage][i];
        el_program_piece(program, (struct el_op_piece){el_action_letter(action.kind), action.part, action.micro});
        EL_TRY(el_line_do(line, action));
    }
    el_program_piece(program, (struct el_op_piece){0});
    if (pipeline->reducer) el_reducer_finish(pipeline->reducer);
    el_edge_issue_sums(worker, program, shard->issued);
    el_share_sum_pieces(worker, program, shard->issued);
    el_shard_issue_optimizer(shard, program, shard->issued);
    el_shard_free_grads(shard, program, shard->issued);
    el_program_free(program, inputs);
    el_program_free(program, labels);
    return EL_OK;
}

/* Of the device that has the last part; the others have none. */
static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    const struct el_line *line = &((struct pipeline *)worker->state)->line;
    double sum = 0, one;
    for (int m = 0; m < line->n_micro && line->losses; m++) {
        EL_TRY(el_shard_read_value(&worker->members[0].shard, line->losses, m, &one));
        sum += one;
    }
    *loss_p = sum / line->n_micro;
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    struct pipeline *pipeline = worker->state;
    if (!pipeline) return;
    el_reducer_close(pipeline->reducer);
    el_line_close(&pipeline->line);
    free(pipeline);
}

/* ---- options ---- */

static const struct el_mode_option option_micro = {
    .name = "micro",
    .argument = "N",
    .help = "micro-batches per step (default: the number of devices, or what FILE.csv has)",
    .kind = EL_MODE_COUNT,
    EL_MODE_FIELD(n_micro),
    .absent = "1",
    .min = 1,
    .max = EL_MICRO_MAX,
    .key = "micro_batches"};

static const struct el_mode_option option_schedule = {
    .name = "schedule",
    .argument = "NAME|FILE.csv",
    .help = "the order of forwards and backwards; FILE.csv: a compute table written by torch.distributed.pipelining",
    .kind = EL_MODE_FILE,
    EL_MODE_FIELD(schedule),
    .bytes = sizeof((struct el_train_config *)0)->schedule,
    .choices = "1f1b|gpipe|interleaved|zero-bubble",
    .initial = "1f1b"};

static const struct el_mode_option option_parts = {
    .name = "parts",
    .argument = "N",
    .help = "parts of the model per device (default: interleaved 2, the others 1)",
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

/* Whether the model can be cut as the schedule has it, and the batch too; fills in n_micro. */
static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    struct el_parts parts;
    enum el_status status = el_parts_open(config, layout, false, &parts);
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

#define COPIES_AND_CUT                                                                                                 \
    &el_mode_procs, &el_mode_cut, &el_mode_mesh, &el_mode_overlap, &el_mode_cast_hook, &el_mode_bucket_mb,             \
        &el_mode_first_bucket_mb, &el_mode_broadcast_buffers, &el_mode_sequence_parallel
#define CUT_INTO_STAGES                                                                                                \
    .check = check, .layout = el_layout_stages, .rounds = 2, .setup = setup, .begin_round = begin_round,               \
    .issue = issue, .read_loss = read_loss, .teardown = teardown

const struct el_mode_ops el_mode_mp = {
    .info = {.name = "mp",
             .summary = "the model cut by layers, one stage per device: one device works at a time",
             .axes = 1U << EL_AXIS_DATA | 1U << EL_AXIS_STAGE | 1U << EL_AXIS_TENSOR,
             .options = (const struct el_mode_option *const[]){COPIES_AND_CUT, NULL},
             .statistics = "of the batch",
             .sends = "activations at each cut, and their gradients back",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 2,
             .look = {.fill = 0xe3a857, .ink = 0xb9770e, .pattern = 3, .point = 15, .point_size = 1.8}},
    CUT_INTO_STAGES};

const struct el_mode_ops el_mode_pipeline = {
    .info = {.name = "pipeline",
             .summary = "the model cut by layers, one or several parts per device, with micro-batches",
             .axes = 1U << EL_AXIS_DATA | 1U << EL_AXIS_STAGE | 1U << EL_AXIS_TENSOR,
             .options = (const struct el_mode_option *const[]){COPIES_AND_CUT, &option_micro, &option_schedule,
                                                               &option_parts, NULL},
             .statistics = "of each micro-batch; running ones take them one after another",
             .sends = "activations at each cut, and their gradients back, by micro-batches",
             .variants = "--schedule gpipe|--schedule interleaved|--schedule zero-bubble|--micro 6|--mesh dp=2",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 2,
             .look = {.fill = 0x6aa86a, .ink = 0x2e7d32, .pattern = 3, .point = 13, .point_size = 1.8}},
    CUT_INTO_STAGES};
