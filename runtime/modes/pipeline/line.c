/* A device's step in a line of stages: its row's actions and what surrounds them (flight.h). */
#include "runtime/modes/pipeline/flight.h"
#include "runtime/state/buffers.h"

enum el_status el_line_step(struct el_line *line, struct el_program *program)
{
    struct el_worker *worker = line->worker;
    const struct el_share_hooks *hooks = &line->hooks;
    const struct el_shard *shard = &worker->members[0].shard;
    const struct el_schedule *schedule = &worker->parts->schedule;
    const int stage = el_layout_spot(worker->layout, worker->first).at[EL_AXIS_STAGE];
    struct el_buffer *inputs, *labels;
    for (int p = 0; p < shard->graph->n_params; p++) shard->issued[p] = shard->grads[p];
    if (hooks->begin) hooks->begin(hooks->context, program, shard->issued);
    el_shard_issue_zero_grad(shard, program);
    el_feed_issue(worker->members[0].feeds, program, &inputs, &labels);
    el_line_begin(line, program, inputs, labels);
    for (int i = 0; i < schedule->n_actions[stage]; i++) {
        struct el_action action = schedule->actions[stage][i];
        el_program_piece(program, (struct el_op_piece){el_action_letter(action.kind), action.part, action.micro});
        EL_TRY(el_line_do(line, action));
    }
    el_program_piece(program, (struct el_op_piece){0});
    if (hooks->reduce) hooks->reduce(hooks->context, program, shard->issued);
    el_edge_issue_sums(worker, program, shard->issued);
    el_share_sum_pieces(worker, program, shard->issued);
    el_shard_issue_optimizer(shard, program, shard->issued);
    if (hooks->updated) hooks->updated(hooks->context, program);
    el_shard_free_grads(shard, program, shard->issued);
    el_program_free(program, inputs);
    el_program_free(program, labels);
    return EL_OK;
}

enum el_status el_line_read_loss(const struct el_line *line, double *loss_p)
{
    double sum = 0, one;
    for (int m = 0; m < line->n_micro && line->losses; m++) {
        EL_TRY(el_shard_read_value(&line->worker->members[0].shard, line->losses, m, &one));
        sum += one;
    }
    *loss_p = sum / line->n_micro;
    return EL_OK;
}

/* A part whose forwards are not in the order of micro-batches; -1: none. */
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

/* Running statistics depend on the order of micro-batches. */
static enum el_status check_order(const struct el_train_config *config, const struct el_parts *parts)
{
    int part = parts->model->n_buffers > 0 ? find_out_of_order(&parts->schedule) : -1;
    if (part < 0) return EL_OK;
    return el_fail(EL_ERR_INVALID,
                   "--schedule %s: the forwards of part %d are not in the order of micro-batches, on which the running "
                   "statistics of %s depend",
                   config->schedule, part, config->model.name);
}

enum el_status el_line_check(struct el_train_config *config, const struct el_layout *layout)
{
    struct el_parts parts;
    enum el_status status = el_parts_open(config, layout, false, &parts);
    config->n_micro = parts.schedule.n_micro;
    if (status == EL_OK) status = check_order(config, &parts);
    el_parts_close(&parts);
    EL_TRY(status);
    if (config->global_batch % (layout->n_feeds * config->n_micro) == 0) return EL_OK;
    if (layout->n_feeds > 1)
        return el_fail(
            EL_ERR_INVALID,
            "--schedule micro=%lld: a batch of %lld cannot be divided into that many equal parts in each of %d "
            "copies of the model: change --batch",
            (long long)config->n_micro, (long long)config->global_batch, layout->n_feeds);
    return el_fail(
        EL_ERR_INVALID,
        "--schedule micro=%lld: a batch of %lld cannot be divided into that many equal parts: change --batch",
        (long long)config->n_micro, (long long)config->global_batch);
}
