/* reference: what an SPMD mode must equal, computed on one device. Each rank's share goes forward and backward by
 * itself, its loss's gradient divided by the number of ranks, and the gradients add up: the mean over ranks of each
 * rank's mean. Micro-steps of a rank are shares too. With one share it is plain training. Not offered on the command
 * line: it is the yardstick of tests and of the gate before timing. */
#include <stdlib.h>

#include "runtime/parallel/mode.h"
#include "runtime/parallel/share.h"

struct state {
    int n_shares;
    struct el_feed *feeds;    /* [n_shares] */
    struct el_buffer *losses; /* [n_shares] */
};

static enum el_status setup(struct el_worker *worker)
{
    struct state *state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("reference");
    worker->state = state;
    state->n_shares = worker->config->n_devices * (int)worker->config->n_accumulate;
    state->feeds = calloc((size_t)state->n_shares, sizeof *state->feeds);
    if (!state->feeds) return el_fail_errno("reference");
    struct el_feed_spec spec = worker->members[0].feeds->spec;
    spec.n_parts = state->n_shares;
    for (spec.part = 0; spec.part < spec.n_parts; spec.part++) EL_TRY(el_feed_open(&state->feeds[spec.part], &spec));
    size_t bytes = (size_t)state->n_shares * el_dtype_bytes(worker->config->dtype);
    return el_device_alloc(spec.device, EL_TAG_OUTPUT, bytes, "losses", &state->losses);
}

static enum el_status issue_share(struct el_worker *worker, struct el_program *program, int r)
{
    struct state *state = worker->state;
    const struct el_shard *shard = &worker->members[0].shard;
    struct el_share_pass pass = {.shard = shard,
                                 .feed = &state->feeds[r],
                                 .grads = shard->grads,
                                 .scale = 1.0 / state->n_shares,
                                 .loss = el_view_of(state->losses, (size_t)r * el_dtype_bytes(shard->config->dtype))};
    EL_TRY(el_share_issue(program, &pass));
    el_share_end(program, &pass);
    return EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct state *state = worker->state;
    const struct el_shard *shard = &worker->members[0].shard;
    if (!worker->config->keep_grads) return el_fail(EL_ERR_INVALID, "reference: gradients must be kept");
    el_shard_issue_zero_grad(shard, program);
    for (int r = 0; r < state->n_shares; r++) EL_TRY(issue_share(worker, program, r));
    el_shard_issue_optimizer(shard, program, shard->grads);
    return EL_OK;
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    struct state *state = worker->state;
    double sum = 0, one;
    for (int r = 0; r < state->n_shares; r++) {
        EL_TRY(el_shard_read_value(&worker->members[0].shard, state->losses, r, &one));
        sum += one;
    }
    *loss_p = sum / state->n_shares;
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    struct state *state = worker->state;
    if (!state) return;
    for (int r = 0; state->feeds && r < state->n_shares; r++) el_feed_close(&state->feeds[r]);
    el_device_free(state->losses);
    free(state->feeds);
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
