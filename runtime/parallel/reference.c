/* reference: what an SPMD mode must equal, computed on one device. Each rank's share goes forward and backward by
 * itself, its loss's gradient divided by the number of ranks, and the gradients add up: the mean over ranks of each
 * rank's mean. With one share it is plain training. Not offered on the command line: it is the yardstick of tests and
 * of the gate before timing. */
#include <stdlib.h>

#include "runtime/parallel/mode.h"

struct state {
    struct el_member shares[EL_MEMBERS_MAX]; /* only loaders and host buffers are used */
    struct el_buffer *losses[EL_MEMBERS_MAX];
};

static enum el_status setup(struct el_worker *worker)
{
    struct state *state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("reference");
    worker->state = state;
    struct el_member *member = &worker->members[0];
    for (int r = 0; r < worker->config->n_devices; r++) {
        EL_TRY(el_member_open_share(&state->shares[r], member, r, worker->config->n_devices));
        EL_TRY(el_device_alloc(member->device, EL_TAG_OUTPUT, el_dtype_bytes(worker->config->dtype), "loss",
                               &state->losses[r]));
    }
    return EL_OK;
}

static enum el_status issue_share(struct el_worker *worker, struct el_program *program, int r)
{
    struct state *state = worker->state;
    struct el_member *member = &worker->members[0];
    struct el_share_pass pass = {.share = &state->shares[r],
                                 .grads = member->grads,
                                 .scale = 1.0 / worker->config->n_devices,
                                 .loss = state->losses[r]};
    EL_TRY(el_member_issue_gradients(member, program, &pass));
    el_member_end_gradients(program, &pass);
    return EL_OK;
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_member *member = &worker->members[0];
    if (!worker->config->keep_grads) return el_fail(EL_ERR_INVALID, "reference: gradients must be kept");
    el_member_issue_zero_grad(member, program);
    for (int r = 0; r < worker->config->n_devices; r++) EL_TRY(issue_share(worker, program, r));
    el_member_issue_optimizer(member, program, member->grads);
    return EL_OK;
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    struct state *state = worker->state;
    struct el_member reader = worker->members[0];
    double sum = 0, one;
    for (int r = 0; r < worker->config->n_devices; r++) {
        reader.loss = state->losses[r];
        EL_TRY(el_member_read_loss(&reader, &one));
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
        el_member_close(&state->shares[r]);
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
