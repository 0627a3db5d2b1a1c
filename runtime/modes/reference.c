/* reference: a mode's expected result on one device, for tests and the gate. Each rank's share (or micro-step) goes
 * forward and backward by itself; gradients add up to the mean over ranks of each rank's mean. If ranks average
 * parameters (--sync param), each has a model. A share may consist of pieces (el_train_config): dp's chunks if replicas
 * have the loss or statistics, and micro-batches. Each rank has its own running statistics, which may start each step
 * as rank 0's. */
#include <stdlib.h>

#include "runtime/modes/mode.h"
#include "runtime/state/buffers.h"
#include "runtime/worker/share.h"

struct state {
    int n_ranks, n_micro, n_pieces;
    struct el_feed *feeds; /* [n_ranks * n_micro]: rank r's micro-step k is r + k n_ranks */
    struct el_buffer *losses;
    struct el_shard *shards;   /* [n_ranks], if ranks average parameters: their models, except the first */
    struct el_buffer *storage; /* buffers of ranks without a model of their own; NULL: none */
    struct el_view *views;     /* [n_ranks][n_buffers]: of ranks 1, 2, ..., and buffers changed in vain */
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

static const struct el_view *buffers_of(const struct el_worker *worker, int rank)
{
    const struct state *state = worker->state;
    if (rank == 0 || state->shards || !state->views) return shard_of(worker, rank)->buffers;
    return state->views + (size_t)(rank - 1) * (size_t)worker->graph->n_buffers;
}

static enum el_status open_shards(struct el_worker *worker)
{
    struct state *state = worker->state;
    const struct el_shard *first = &worker->members[0].shard;
    state->shards = calloc((size_t)state->n_ranks, sizeof *state->shards);
    if (!state->shards) return el_fail_errno("reference");
    const struct el_shard_spec spec = {
        .config = worker->config, .graph = first->graph, .device = first->device, .owns = true};
    for (int r = 1; r < state->n_ranks; r++) EL_TRY(el_shard_open(&state->shards[r], &spec));
    return EL_OK;
}

static enum el_status open_buffers(struct el_worker *worker)
{
    struct state *state = worker->state;
    const struct el_shard *first = &worker->members[0].shard;
    size_t bytes = el_buffers_bytes(first->graph, worker->config->dtype), n = (size_t)state->n_ranks;
    if (bytes == 0) return EL_OK;
    void *values = malloc(bytes);
    state->views = calloc(n * (size_t)first->graph->n_buffers, sizeof *state->views);
    enum el_status status = values && state->views ? EL_OK : el_fail_errno("reference");
    if (status == EL_OK)
        status = el_device_alloc(first->device, EL_TAG_BUFFER, n * bytes, "other ranks' buffers", &state->storage);
    if (status == EL_OK) status = el_device_read(first->buffers[0], values, bytes);
    for (size_t i = 0; i < n && status == EL_OK; i++) {
        struct el_view begin = el_view_of(state->storage, i * bytes);
        status = el_device_write(begin, values, bytes);
        el_buffers_view(first->graph, worker->config->dtype, begin, state->views + i * (size_t)first->graph->n_buffers);
    }
    free(values);
    return status;
}

static enum el_status setup(struct el_worker *worker)
{
    const struct el_train_config *config = worker->config;
    struct state *state = worker->state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("reference");
    *state = (struct state){.n_ranks = config->n_devices,
                            .n_micro = (int)config->n_accumulate,
                            .n_pieces = config->n_pieces > 1 ? config->n_pieces : 1};
    state->feeds = calloc((size_t)n_shares(state), sizeof *state->feeds);
    if (!state->feeds) return el_fail_errno("reference");
    struct el_feed_spec spec = worker->members[0].feeds->spec;
    spec.n_parts = n_shares(state);
    if (state->n_ranks == config->shares.n) spec.shares = config->shares;
    for (spec.part = 0; spec.part < n_shares(state); spec.part++) EL_TRY(el_feed_open(&state->feeds[spec.part], &spec));
    if (config->sync_params) EL_TRY(open_shards(worker));
    EL_TRY(open_buffers(worker));
    size_t bytes = (size_t)(n_shares(state) * state->n_pieces) * el_dtype_bytes(config->dtype);
    return el_device_alloc(spec.device, EL_TAG_OUTPUT, bytes, "losses", &state->losses);
}

static int64_t samples_of(const struct state *state, int share, int piece)
{
    const struct el_feed *feed = &state->feeds[share];
    return el_layout_piece(&feed->spec.config->shares, feed->samples, state->n_pieces, piece);
}

/* A share's weight in the step's mean. */
static double weight_of_share(const struct el_worker *worker, int share)
{
    const struct state *state = worker->state;
    if (!worker->config->by_samples) return 1.0 / n_shares(state);
    return (double)state->feeds[share].samples / (double)worker->config->global_batch;
}

/* A piece's weight in the share's mean: by samples, or equal if replicas have the loss. */
static double weight_of(const struct el_worker *worker, int share, int piece)
{
    const struct state *state = worker->state;
    int n = 0;
    if (!worker->config->loss_in_replica || worker->config->by_samples)
        return (double)samples_of(state, share, piece) / (double)state->feeds[share].samples;
    for (int i = 0; i < state->n_pieces; i++) n += samples_of(state, share, i) > 0;
    return 1.0 / n;
}

static enum el_status issue_piece(struct el_worker *worker, struct el_program *program, int share, int piece)
{
    struct state *state = worker->state;
    int rank = share % state->n_ranks;
    const struct el_shard *shard = shard_of(worker, rank);
    size_t number = (size_t)(share * state->n_pieces + piece);
    bool in_vain = piece > 0 && !worker->config->pieces_in_order;
    struct el_share_pass pass = {.shard = shard,
                                 .feed = &state->feeds[share],
                                 .samples = samples_of(state, share, piece),
                                 .grads = shard->grads,
                                 .buffers = buffers_of(worker, in_vain ? state->n_ranks : rank),
                                 .scale = weight_of(worker, share, piece) * weight_of_share(worker, share) *
                                          (state->shards ? state->n_ranks : 1),
                                 .loss = el_view_of(state->losses, number * el_dtype_bytes(shard->config->dtype))};
    if (pass.samples == 0) return EL_OK;
    for (int i = 0; i < piece; i++) pass.first += samples_of(state, share, i);
    EL_TRY(el_share_issue(program, &pass));
    el_share_end(program, &pass);
    return EL_OK;
}

static void send_buffers(struct el_worker *worker, struct el_program *program)
{
    const struct el_shard *first = &worker->members[0].shard;
    size_t bytes = el_buffers_bytes(first->graph, worker->config->dtype);
    for (int r = 1; r < worker->config->n_devices && bytes > 0; r++)
        el_program_copy(program, first->device, EL_STREAM_COMPUTE,
                        &(struct el_op_head){.label = "copy buffers", .phase = EL_PHASE_COMM}, buffers_of(worker, r)[0],
                        first->buffers[0], bytes, NULL);
}

static void add(const struct el_shard *shard, struct el_program *program, struct el_view x, struct el_view y, int64_t n)
{
    struct el_kernel_op op = {.head = {.label = "add", .phase = EL_PHASE_REDUCE},
                              .op = EL_OP_ADD,
                              .dtype = el_config_stored(shard->config),
                              .views = {x, y},
                              .args.d = {n}};
    el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

static void average(const struct el_worker *worker, struct el_program *program, enum el_state what)
{
    const struct state *state = worker->state;
    const struct el_shard *first = shard_of(worker, 0);
    const enum el_dtype dtype = el_config_stored(worker->config);
    for (int p = 0; p < first->graph->n_params; p++) {
        int64_t n = el_param_count(first->graph, p);
        struct el_view mean = first->rows[what][p];
        if (first->graph->params[p].frozen || !mean.buffer) continue;
        for (int r = 1; r < state->n_ranks; r++) add(first, program, shard_of(worker, r)->rows[what][p], mean, n);
        el_shard_issue_move(first, program, EL_PHASE_REDUCE, "divide", dtype, mean, dtype, mean, n,
                            1.0 / state->n_ranks);
        for (int r = 1; r < state->n_ranks; r++)
            el_shard_issue_move(first, program, EL_PHASE_REDUCE, "copy", dtype, mean, dtype,
                                shard_of(worker, r)->rows[what][p], n, 1);
    }
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct state *state = worker->state;
    int n_models = state->shards ? state->n_ranks : 1;
    if (!worker->config->keep_grads) return el_fail(EL_ERR_INVALID, "reference: gradients must be kept");
    for (int r = 0; r < n_models; r++) el_shard_issue_zero_grad(shard_of(worker, r), program);
    if (worker->config->broadcast_buffers) send_buffers(worker, program);
    for (int i = 0; i < n_shares(state) * state->n_pieces; i++)
        EL_TRY(issue_piece(worker, program, i / state->n_pieces, i % state->n_pieces));
    for (int r = 0; r < n_models; r++) {
        const struct el_shard *shard = shard_of(worker, r);
        el_shard_issue_optimizer(shard, program, shard->grads);
    }
    if (state->shards) average(worker, program, EL_STATE_PARAM);
    return EL_OK;
}

static struct el_feed *feed_of(struct el_worker *worker, int i)
{
    const struct state *state = worker->state;
    return i < n_shares(state) ? &state->feeds[i] : NULL;
}

static enum el_status read_loss(struct el_worker *worker, double *loss_p)
{
    struct state *state = worker->state;
    double sum = 0, one;
    for (int i = 0; i < n_shares(state) * state->n_pieces; i++) {
        int share = i / state->n_pieces, piece = i % state->n_pieces;
        if (samples_of(state, share, piece) == 0) continue;
        EL_TRY(el_shard_read_value(&worker->members[0].shard, state->losses, i, &one));
        sum += weight_of(worker, share, piece) * weight_of_share(worker, share) * one;
    }
    *loss_p = sum;
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    struct state *state = worker->state;
    if (!state) return;
    for (int i = 0; state->feeds && i < n_shares(state); i++) el_feed_close(&state->feeds[i]);
    for (int r = 1; state->shards && r < state->n_ranks; r++) el_shard_close(&state->shards[r]);
    el_device_free(state->losses);
    el_device_free(state->storage);
    free(state->views);
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
    .feed = feed_of,
    .read_loss = read_loss,
    .buffers = buffers_of,
    .teardown = teardown};
