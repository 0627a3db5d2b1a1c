/* ep: expert parallelism (Lepikhin et al., "GShard", 2020). As in ddp each device has a share of the batch and all of
 * the model, except that of each layer's experts it has some. Tokens go to their experts' devices and back by
 * all-to-alls, two forward and two backward, with two small ones for their number and weights. Gradients of experts are
 * complete on their device, and averaged over copies with --mesh dp=N; all others over all devices, in buckets. */
#include <stdlib.h>

#include "runtime/gradients/reducer.h"
#include "runtime/modes/mode.h"
#include "runtime/worker/share.h"

struct state {
    struct el_reducer *shared, *experts; /* NULL: one rank; one copy */
};

static void resolve(struct el_train_config *config)
{
    struct el_layout layout;
    el_layout_experts(config, 0, &layout);
    config->model.expert_ranks = layout.n[EL_AXIS_EXPERT];
}

static enum el_status check(struct el_train_config *config, const struct el_layout *layout)
{
    const int64_t shares = layout->n_devices * (int64_t)config->n_accumulate;
    if (config->global_batch % shares)
        return el_fail(EL_ERR_INVALID,
                       "--batch %lld: does not divide evenly among %lld shares, which exchange as many tokens each: "
                       "change it, or --devices",
                       (long long)config->global_batch, (long long)shares);
    return el_parts_check_pieces(config, layout);
}

static enum el_status setup(struct el_worker *worker)
{
    struct state *state = worker->state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("a worker of ep");
    struct el_reducer_spec spec = {.shard = &worker->members[0].shard,
                                   .comm = worker->world,
                                   .of = EL_REDUCER_OF_WHOLE,
                                   .average = true,
                                   .overlap = worker->config->overlap};
    worker->comm = el_comm_backend(worker->world);
    if (el_comm_size(worker->world) == 1) return EL_OK;
    EL_TRY(el_reducer_open(&spec, &state->shared));
    spec.of = EL_REDUCER_OF_SLICES;
    spec.comm = worker->group[EL_AXIS_DATA];
    return worker->layout->n[EL_AXIS_DATA] > 1 ? el_reducer_open(&spec, &state->experts) : EL_OK;
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    struct state *state = worker->state;
    if (state->shared) EL_TRY(el_reducer_group_round(state->shared, round));
    return state->experts ? el_reducer_group_round(state->experts, round) : EL_OK;
}

static void begin(void *context, struct el_program *program, struct el_view *grads)
{
    struct state *state = context;
    el_reducer_begin(state->shared, program, grads);
    if (state->experts) el_reducer_begin(state->experts, program, grads);
}

static void ready(void *context, int param)
{
    struct state *state = context;
    if (el_reducer_takes(state->shared, param))
        el_reducer_ready(state->shared, param);
    else if (state->experts)
        el_reducer_ready(state->experts, param);
}

static void finish(void *context, struct el_program *program, struct el_view *grads)
{
    struct state *state = context;
    (void)program;
    (void)grads;
    el_reducer_finish(state->shared);
    if (state->experts) el_reducer_finish(state->experts);
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct el_share_hooks hooks = {
        .grad_ready = ready, .begin = begin, .reduce = finish, .context = worker->state};
    const struct state *state = worker->state;
    return el_share_step(worker, program, state->shared ? &hooks : NULL);
}

static void teardown(struct el_worker *worker)
{
    struct state *state = worker->state;
    if (state) el_reducer_close(state->shared);
    if (state) el_reducer_close(state->experts);
    free(state);
}

static const struct el_mode_option *const options[] = {&el_mode_procs,      &el_mode_mesh,
                                                       &el_mode_overlap,    &el_mode_comm_hook,
                                                       &el_mode_bucket_mb,  &el_mode_first_bucket_mb,
                                                       &el_mode_accumulate, NULL};

const struct el_mode_ops el_mode_ep = {
    .info = {.name = "ep",
             .summary = "experts over devices: tokens go to their experts and back by all-to-all; else as ddp",
             .axes = 1U << EL_AXIS_DATA | 1U << EL_AXIS_EXPERT,
             .options = options,
             .statistics = "of each rank's share",
             .sends = "tokens to their experts and back, forward and backward; gradients of all but experts by "
                      "all-reduce, in buckets, during backward",
             .variants = "--mesh dp=2|--overlap off|--accumulate 2",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 3, .optimizer = 3},
             .n_shown = 1,
             .look = {.fill = 0x8fb08c, .ink = 0x3b6e3b, .pattern = 3, .point = 5, .point_size = 1.5}},
    .resolve = resolve,
    .check = check,
    .layout = el_layout_experts,
    .rounds = 2,
    .setup = setup,
    .begin_round = begin_round,
    .issue = issue,
    .teardown = teardown};
