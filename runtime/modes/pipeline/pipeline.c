/* mp and pipeline: the model cut into consecutive parts, one or several per device (flight.h). mp sends the whole batch
 * through, so that one device works at a time; pipeline sends micro-batches in the schedule's order. */
#include <stdlib.h>

#include "runtime/gradients/reducer.h"
#include "runtime/modes/mode.h"
#include "runtime/modes/pipeline/flight.h"
#include "runtime/state/buffers.h"

struct pipeline {
    struct el_line line;
    struct el_reducer *reducer; /* over the copies of this stage; NULL: only one */
};

static enum el_status open_reducer(struct el_worker *worker, struct pipeline *pipeline)
{
    if (!worker->group[EL_AXIS_DATA]) return EL_OK;
    struct el_reducer_spec spec = {.shard = &worker->members[0].shard,
                                   .comm = worker->group[EL_AXIS_DATA],
                                   .average = true,
                                   .overlap = worker->config->overlap};
    EL_TRY(el_reducer_open(&spec, &pipeline->reducer));
    pipeline->line.hooks = el_share_reduce_by(pipeline->reducer);
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
    if (pipeline->reducer && worker->config->broadcast_buffers)
        el_buffers_issue_broadcast(worker->group[EL_AXIS_DATA], &worker->members[0].shard, program);
    return el_line_step(&pipeline->line, program);
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    return el_line_read_loss(&((struct pipeline *)worker->state)->line, loss_p);
}

static void teardown(struct el_worker *worker)
{
    struct pipeline *pipeline = worker->state;
    if (!pipeline) return;
    el_reducer_close(pipeline->reducer);
    el_line_close(&pipeline->line);
    free(pipeline);
}

static const struct el_mode_option option_parts = {
    .name = "parts",
    .argument = "N",
    .help = "parts of the model per device (default: interleaved 2, the others 1)",
    .kind = EL_MODE_INT,
    EL_MODE_FIELD(parts),
    .min = 1,
    .max = EL_PARTS_MAX,
    .key = "parts_per_device"};

#define COPIES_AND_CUT                                                                                                 \
    &el_mode_procs, &el_mode_cut, &el_mode_mesh, &el_mode_overlap, &el_mode_comm_hook, &el_mode_bucket_mb,             \
        &el_mode_first_bucket_mb, &el_mode_broadcast_buffers, &el_mode_sequence_parallel
#define CUT_INTO_STAGES                                                                                                \
    .check = el_line_check, .layout = el_layout_stages, .rounds = 2, .setup = setup, .begin_round = begin_round,       \
    .issue = issue, .read_loss = read_loss, .teardown = teardown

const struct el_mode_ops el_mode_mp = {
    .info = {.name = "mp",
             .summary = "the model cut by layers, one stage per device; only one device works at a time",
             .axes = 1U << EL_AXIS_DATA | 1U << EL_AXIS_STAGE | 1U << EL_AXIS_TENSOR,
             .options = (const struct el_mode_option *const[]){COPIES_AND_CUT, NULL},
             .statistics = "of the batch",
             .sends = "activations at each cut, and their gradients back",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 2,
             .look = {.fill = 0xe3a857, .ink = 0xb9770e, .pattern = 3, .point = 13, .point_size = 1.8}},
    CUT_INTO_STAGES};

const struct el_mode_ops el_mode_pipeline = {
    .info = {.name = "pipeline",
             .summary = "the model cut by layers, one or several parts per device, with micro-batches",
             .axes = 1U << EL_AXIS_DATA | 1U << EL_AXIS_STAGE | 1U << EL_AXIS_TENSOR,
             .options = (const struct el_mode_option *const[]){COPIES_AND_CUT, &el_mode_micro, &el_mode_schedule,
                                                               &option_parts, NULL},
             .statistics = "of each micro-batch; running ones take them one after another",
             .sends = "activations at each cut, and their gradients back, by micro-batches",
             .variants =
                 "--schedule gpipe|--schedule interleaved|--schedule zero-bubble|--schedule micro=6|--mesh dp=2",
             .loss = EL_LOSS_OF_BATCH,
             .memory = {.backward = 2, .optimizer = 2},
             .n_shown = 2,
             .look = {.fill = 0x6aa86a, .ink = 0x2e7d32, .pattern = 3, .point = 15, .point_size = 1.7}},
    CUT_INTO_STAGES};
