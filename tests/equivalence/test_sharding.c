/* Parameters, their gradients and the optimizer's slots stored by ranges: a trial of what sharded modes will do. Each
 * of two devices has a half of every array and a half of the batch. The hook before a node gathers its parameters, the
 * one after it frees them; a gradient is reduced and scattered, and each device updates its own range. Losses are
 * single's, and each device holds a half of the state. */
#include "tests/test.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/worker/share.h"
#include "tests/equivalence/case_dataset.h"
#include "tests/equivalence/cases.h"
#include "tests/own_place.h"

enum { RANKS = 2, STEPS = 20, STEPS_SANITIZED = 4, PARAMS_MAX = 8, WIDTH = sizeof(double) };

static const struct el_case cases[] = {{"mlp", EL_OPT_SGD, 0, 24}, {"mlp", EL_OPT_ADAM, 0, 22}};

struct rank {
    const struct el_train_config *config;
    const struct el_graph *graph;
    struct el_device *device;
    struct el_comm *comm;
    int number;
    struct el_shard shard;
    struct el_program *program;
    struct el_view params[PARAMS_MAX]; /* gathered, for the node in work */
    struct el_view grads[PARAMS_MAX], own_grads[PARAMS_MAX];
    double losses[STEPS];
    size_t param_bytes, slot_bytes;
    enum el_status status;
};

/* Elements of a device's range; the last one's is filled up to it where arrays travel. */
static int64_t piece_of(const struct rank *rank, int p)
{
    return (el_param_count(rank->graph, p) + RANKS - 1) / RANKS;
}

static struct el_view room(struct rank *rank, int64_t n)
{
    struct el_buffer *buffer;
    el_program_alloc(rank->program, rank->device, EL_TAG_WORKSPACE, (size_t)n * WIDTH, "in one piece", &buffer);
    return el_view_of(buffer, 0);
}

static void copy(struct rank *rank, struct el_view to, struct el_view from, int64_t n)
{
    const struct el_op_head head = {.label = "copy", .phase = EL_PHASE_COMM};
    el_program_copy(rank->program, rank->device, EL_STREAM_COMPUTE, &head, to, from, (size_t)n * WIDTH, NULL);
}

static void issue(struct rank *rank, enum el_comm_verb verb, int p, struct el_view data, struct el_view result)
{
    struct el_comm_op op = {.verb = verb,
                            .dtype = EL_F64,
                            .count = (size_t)piece_of(rank, p),
                            .data = data,
                            .result = result,
                            .phase = EL_PHASE_COMM,
                            .join = true};
    el_comm_issue(rank->comm, rank->program, &op, NULL);
}

static void gather(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct rank *rank = context;
    (void)program;
    (void)phase;
    for (int i = 0; i < node->n_params; i++) {
        int p = node->params[i];
        int64_t first, count, piece = piece_of(rank, p);
        struct el_view whole = room(rank, piece * RANKS), own = whole;
        own.offset += (size_t)(rank->number * piece) * WIDTH;
        el_shard_range(&rank->shard, EL_STATE_PARAM, p, &first, &count);
        copy(rank, own, rank->shard.params[p], count);
        issue(rank, EL_COMM_ALL_GATHER, p, own, whole);
        rank->params[p] = whole;
    }
}

static void forget(void *context, struct el_program *program, const struct el_node *node, enum el_phase phase)
{
    struct rank *rank = context;
    (void)phase;
    for (int i = 0; i < node->n_params; i++) {
        el_program_free(program, rank->params[node->params[i]].buffer);
        rank->params[node->params[i]] = (struct el_view){0};
    }
}

static void scatter(void *context, int p)
{
    struct rank *rank = context;
    int64_t piece = piece_of(rank, p);
    struct el_view filled = room(rank, piece * RANKS);
    rank->own_grads[p] = room(rank, piece);
    el_shard_issue_fill(&rank->shard, rank->program, EL_PHASE_REDUCE, "fill", filled, piece * RANKS, 0);
    copy(rank, filled, rank->grads[p], el_param_count(rank->graph, p));
    el_program_free(rank->program, rank->grads[p].buffer);
    rank->grads[p] = (struct el_view){0};
    issue(rank, EL_COMM_REDUCE_SCATTER, p, filled, rank->own_grads[p]);
    el_program_free(rank->program, filled.buffer);
    el_shard_issue_scale(&rank->shard, rank->program, EL_PHASE_REDUCE, "mean", rank->own_grads[p], rank->own_grads[p],
                         piece, 1.0 / RANKS);
}

static enum el_status issue_step(struct rank *rank, struct el_feed *feed)
{
    struct el_share_pass pass = {.shard = &rank->shard,
                                 .feed = feed,
                                 .params = rank->params,
                                 .grads = rank->grads,
                                 .scale = 1,
                                 .loss = el_view_of(rank->shard.loss, 0),
                                 .grad_ready = scatter,
                                 .context = rank,
                                 .env = {.before_node = gather, .after_node = forget, .context = rank}};
    EL_TRY(el_program_create(&rank->program));
    EL_TRY(el_share_issue(rank->program, &pass));
    el_shard_issue_optimizer(&rank->shard, rank->program, rank->own_grads);
    for (int p = 0; p < rank->graph->n_params; p++) el_program_free(rank->program, rank->own_grads[p].buffer);
    el_share_end(rank->program, &pass);
    return el_program_end(rank->program);
}

static enum el_status train_rank(struct rank *rank)
{
    const unsigned split = 1U << EL_STATE_PARAM | 1U << EL_STATE_GRAD | 3U << EL_STATE_SLOT;
    const struct el_shard_spec own = {rank->config, rank->graph, rank->device, true, split, rank->number, RANKS};
    const struct el_feed_spec input = {.config = rank->config,
                                       .graph = rank->graph,
                                       .device = rank->device,
                                       .dataset = dataset,
                                       .split = EL_SPLIT_TRAIN,
                                       .batch = rank->config->global_batch,
                                       .part = rank->number,
                                       .n_parts = RANKS};
    struct el_feed feed = {0};
    enum el_status status = el_shard_open(&rank->shard, &own);
    rank->param_bytes = el_device_ledger(rank->device)->live_by_tag[EL_TAG_PARAM];
    rank->slot_bytes = el_device_ledger(rank->device)->live_by_tag[EL_TAG_OPTIMIZER];
    if (status == EL_OK) status = el_feed_open(&feed, &input);
    if (status == EL_OK) status = issue_step(rank, &feed);
    for (int64_t i = 0; i < rank->config->steps && status == EL_OK; i++) {
        status = el_feed_begin(&feed, (uint64_t)i);
        if (status == EL_OK) status = el_program_run(rank->program, (uint64_t)i, NULL);
        if (status == EL_OK) status = el_shard_read_loss(&rank->shard, &rank->losses[i]);
    }
    if (status != EL_OK) el_comm_abort(rank->comm);
    el_program_destroy(rank->program);
    el_feed_close(&feed);
    return status;
}

static void *run(void *context)
{
    struct rank *rank = context;
    rank->status = train_rank(rank);
    return NULL;
}

/* Of both together: each array's elements once. */
static void hold_state(const struct rank ranks[RANKS])
{
    const struct el_graph *graph = ranks[0].graph;
    size_t all = (size_t)el_graph_param_count(graph) * WIDTH;
    int slots = ranks[0].config->optimizer == EL_OPT_ADAM ? 2 : 0;
    assert_int_equal(ranks[0].param_bytes + ranks[1].param_bytes, all);
    assert_int_equal(ranks[0].slot_bytes + ranks[1].slot_bytes, (size_t)slots * all);
    assert_in_range(ranks[0].param_bytes, all / 2, all / 2 + (size_t)graph->n_params * WIDTH);
}

static void train_in_halves(const struct el_case *c, const struct el_train_result *single)
{
    struct el_train_config config;
    struct own_place own;
    struct el_graph *graph;
    struct el_comm *comms[RANKS];
    struct rank ranks[RANKS];
    pthread_t threads[RANKS];
    assert_int_equal(el_case_config(c, "ddp", RANKS, &config), EL_OK);
    config.steps = single->n_steps;
    config.keep_grads = false;
    assert_int_equal(el_model_build(&config.model, &graph), EL_OK);
    assert_true(graph->n_params <= PARAMS_MAX);
    open_place("cpu", RANKS, el_kernels_reference(), dataset, &own);
    assert_int_equal(el_comm_open_local(own.place.devices, RANKS, comms), EL_OK);
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (struct rank){
            .config = &config, .graph = graph, .device = own.place.devices[r], .comm = comms[r], .number = r};
        assert_int_equal(pthread_create(&threads[r], NULL, run, &ranks[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) pthread_join(threads[r], NULL);
    for (int r = 0; r < RANKS; r++) assert_int_equal(ranks[r].status, EL_OK);
    for (int64_t i = 0; i < config.steps; i++)
        if (!(fabs((ranks[0].losses[i] + ranks[1].losses[i]) / RANKS - single->loss[i]) <= CASE_TOLERANCE))
            fail_msg("%s, step %d: %.17g and %.17g, not %.17g", c->model, (int)i, ranks[0].losses[i],
                     ranks[1].losses[i], single->loss[i]);
    hold_state(ranks);
    for (int r = 0; r < RANKS; r++) {
        el_shard_close(&ranks[r].shard);
        el_comm_close(comms[r]);
    }
    close_place(&own);
    el_graph_destroy(graph);
}

static void halves_of_everything_give_singles_losses(void **state)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct el_train_config config;
        struct el_train_result single;
        assert_int_equal(el_case_config(&cases[i], "single", 1, &config), EL_OK);
        config.steps = is_sanitized() ? STEPS_SANITIZED : STEPS;
        train_watched(&config, "cpu", dataset, NULL, NULL, &single);
        train_in_halves(&cases[i], &single);
        el_train_result_free(&single);
    }
}

RUN_TESTS(open_all, close_all, halves_of_everything_give_singles_losses)
