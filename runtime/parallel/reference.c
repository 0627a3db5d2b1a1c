/* reference: what an SPMD mode must equal, computed on one device. Each rank's share goes forward and backward by
 * itself, its loss's gradient divided by the number of ranks, and the gradients add up: the mean over ranks of each
 * rank's mean. Micro-steps of a rank are shares too. With one share it is plain training. Where ranks average
 * parameters (manual's --sync param) each has a model of its own, and they are averaged after every step. Where dp's
 * replicas have the loss, shares are dp's chunks. Not offered on the command line: it is the yardstick of tests and of
 * the gate before timing. */
#include <stdlib.h>

#include "runtime/parallel/mode.h"
#include "runtime/parallel/share.h"

struct state {
    int n_ranks, n_micro;
    bool has_chunks;          /* of dp: of each micro-step */
    struct el_feed *feeds;    /* [n_ranks * n_micro]: micro-step k of rank r has number r + k n_ranks */
    struct el_buffer *losses; /* likewise */
    struct el_shard *shards;  /* [n_ranks], where ranks average parameters: their models, but the first one's */
};

static int n_shares(const struct state *state)
{
    return state->n_ranks * state->n_micro;
}

static const struct el_shard *shard_of(const struct el_worker *worker, int rank)
{
    const struct state *state = worker->state;
    return rank > 0 && state->shards ? &state->shards[rank] : &worker->members[0].shard;
}

static enum el_status open_shards(struct el_worker *worker)
{
    struct state *state = worker->state;
    const struct el_shard *first = &worker->members[0].shard;
    state->shards = calloc((size_t)state->n_ranks, sizeof *state->shards);
    if (!state->shards) return el_fail_errno("reference");
    for (int r = 1; r < state->n_ranks; r++)
        EL_TRY(el_shard_open(&state->shards[r], worker->config, first->graph, first->device, true));
    return EL_OK;
}

static enum el_status setup(struct el_worker *worker)
{
    struct el_layout chunks;
    struct state *state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("reference");
    worker->state = state;
    *state = (struct state){.n_ranks = worker->config->n_devices, .n_micro = (int)worker->config->n_accumulate};
    state->has_chunks = worker->config->loss_in_replica;
    el_layout_one_worker(worker->config, 1, &chunks);
    if (state->has_chunks) state->n_ranks = chunks.n_data;
    state->feeds = calloc((size_t)n_shares(state), sizeof *state->feeds);
    if (!state->feeds) return el_fail_errno("reference");
    struct el_feed_spec spec = worker->members[0].feeds->spec;
    spec.n_parts = state->has_chunks ? state->n_micro : n_shares(state);
    for (int i = 0; i < n_shares(state); i++) {
        spec.part = state->has_chunks ? i / state->n_ranks : i;
        EL_TRY(el_feed_open(&state->feeds[i], &spec));
    }
    if (worker->config->sync_params) EL_TRY(open_shards(worker));
    size_t bytes = (size_t)n_shares(state) * el_dtype_bytes(worker->config->dtype);
    return el_device_alloc(spec.device, EL_TAG_OUTPUT, bytes, "losses", &state->losses);
}

static enum el_status issue_share(struct el_worker *worker, struct el_program *program, int rank, int micro)
{
    struct state *state = worker->state;
    const struct el_shard *shard = shard_of(worker, rank);
    int number = rank + micro * state->n_ranks;
    struct el_share_pass pass = {.shard = shard,
                                 .feed = &state->feeds[number],
                                 .grads = shard->grads,
                                 .scale = 1.0 / (state->shards ? state->n_micro : n_shares(state)),
                                 .loss =
                                     el_view_of(state->losses, (size_t)number * el_dtype_bytes(shard->config->dtype))};
    int64_t batch = pass.feed->samples;
    for (int r = 0; r < rank && state->has_chunks; r++)
        pass.first += el_layout_chunk(batch, worker->config->n_devices, r);
    if (state->has_chunks) pass.samples = el_layout_chunk(batch, worker->config->n_devices, rank);
    EL_TRY(el_share_issue(program, &pass));
    el_share_end(program, &pass);
    return EL_OK;
}

static void add(const struct el_shard *shard, struct el_program *program, struct el_view x, struct el_view y, int64_t n)
{
    struct el_kernel_op op = {.head = {.label = "add", .phase = EL_PHASE_REDUCE},
                              .op = EL_OP_ADD,
                              .dtype = shard->config->dtype,
                              .views = {x, y},
                              .args.d = {n}};
    el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

static void average_params(const struct el_worker *worker, struct el_program *program)
{
    const struct state *state = worker->state;
    const struct el_shard *first = shard_of(worker, 0);
    for (int p = 0; p < first->graph->n_params; p++) {
        int64_t n = el_param_count(first->graph, p);
        struct el_view mean = first->params[p];
        for (int r = 1; r < state->n_ranks; r++) add(first, program, shard_of(worker, r)->params[p], mean, n);
        el_shard_issue_scale(first, program, EL_PHASE_REDUCE, "divide", mean, mean, n, 1.0 / state->n_ranks);
        for (int r = 1; r < state->n_ranks; r++)
            el_shard_issue_scale(first, program, EL_PHASE_REDUCE, "copy", mean, shard_of(worker, r)->params[p], n, 1);
    }
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct state *state = worker->state;
    int n_models = state->shards ? state->n_ranks : 1;
    if (!worker->config->keep_grads) return el_fail(EL_ERR_INVALID, "reference: gradients must be kept");
    for (int r = 0; r < n_models; r++) el_shard_issue_zero_grad(shard_of(worker, r), program);
    for (int i = 0; i < n_shares(state); i++)
        EL_TRY(issue_share(worker, program, i % state->n_ranks, i / state->n_ranks));
    for (int r = 0; r < n_models; r++) {
        const struct el_shard *shard = shard_of(worker, r);
        el_shard_issue_optimizer(shard, program, shard->grads);
    }
    if (state->shards) average_params(worker, program);
    return EL_OK;
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    struct state *state = worker->state;
    double sum = 0, one;
    for (int i = 0; i < n_shares(state); i++) {
        EL_TRY(el_shard_read_value(&worker->members[0].shard, state->losses, i, &one));
        sum += one;
    }
    *loss_p = sum / n_shares(state);
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    struct state *state = worker->state;
    if (!state) return;
    for (int i = 0; state->feeds && i < n_shares(state); i++) el_feed_close(&state->feeds[i]);
    for (int r = 1; state->shards && r < state->n_ranks; r++) el_shard_close(&state->shards[r]);
    el_device_free(state->losses);
    free(state->shards);
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
