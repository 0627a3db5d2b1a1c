/* reference: what an SPMD mode must equal, computed on one device. Each rank's share goes forward and backward by
 * itself, its loss's gradient divided by the number of ranks, and the gradients add up: the mean over ranks of each
 * rank's mean. With one share it is plain training. Not offered on the command line: it is the yardstick of tests and
 * of the gate before timing. */
#include <stdlib.h>

#include "runtime/parallel/mode.h"
#include "runtime/parallel/share.h"

struct state {
    struct el_feed feeds[EL_MEMBERS_MAX]; /* one a share */
    struct el_buffer *losses[EL_MEMBERS_MAX];
};

static enum el_status setup(struct el_worker *worker)
{
    struct state *state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("reference");
    worker->state = state;
    struct el_feed_spec spec = worker->members[0].feed.spec;
    spec.n_parts = worker->config->n_devices;
    for (spec.part = 0; spec.part < spec.n_parts; spec.part++) {
        int r = spec.part;
        EL_TRY(el_feed_open(&state->feeds[r], &spec));
        EL_TRY(el_device_alloc(spec.device, EL_TAG_OUTPUT, el_dtype_bytes(worker->config->dtype), "loss",
                               &state->losses[r]));
    }
    return EL_OK;
}

static enum el_status issue_share(struct el_worker *worker, struct el_program *program, int r)
{
    struct state *state = worker->state;
    const struct el_shard *shard = &worker->members[0].shard;
    struct el_share_pass pass = {.shard = shard,
                                 .feed = &state->feeds[r],
                                 .grads = shard->grads,
                                 .scale = 1.0 / worker->config->n_devices,
                                 .loss = state->losses[r]};
    EL_TRY(el_share_issue(program, &pass));
    el_share_end(program, &pass);
    return EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct el_shard *shard = &worker->members[0].shard;
    if (!worker->config->keep_grads) return el_fail(EL_ERR_INVALID, "reference: gradients must be kept");
    el_shard_issue_zero_grad(shard, program);
    for (int r = 0; r < worker->config->n_devices; r++) EL_TRY(issue_share(worker, program, r));
    el_shard_issue_optimizer(shard, program, shard->grads);
    return EL_OK;
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    struct state *state = worker->state;
    struct el_shard reader = worker->members[0].shard;
    double sum = 0, one;
    for (int r = 0; r < worker->config->n_devices; r++) {
        reader.loss = state->losses[r];
        EL_TRY(el_shard_read_loss(&reader, &one));
        sum += one;
    }
    *loss_p = sum / worker->config->n_devices;
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    struct state *state = worker->state;
    for (int r = 0; state && r < worker->config->n_devices; r++) {
        el_device_free(state->losses[r]);
        el_feed_close(&state->feeds[r]);
    }
    free(state);
}

const struct el_mode_ops el_mode_reference = {
    .info = {.name = "reference", .summary = "the mean of the shares' means, on one device", .loss = EL_LOSS_OF_RANKS},
    .hidden = true,
    .layout = el_layout_one_device,
    .rounds = 1,
    .setup = setup,
    .issue = issue,
    .read_loss = read_loss,
    .teardown = teardown};
