/* ddp: DistributedDataParallel. Every member has the whole model and its share of the batch; gradients are divided by
 * the world size, put into buckets as they become ready, and summed by all-reduce on the communication stream while
 * backward goes on.
 *
 * The first step has one bucket, reduced after the whole backward, as torch does since it may not know the order yet;
 * the order in which gradients became ready then gives the buckets of all later steps: the first of 1 MiB, the others
 * up to the cap. */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/parallel/buckets.h"
#include "runtime/parallel/mode.h"

struct bucket {
    struct el_buffer *buffer;
    int64_t count;  /* elements */
    int n_pending;  /* gradients that have not arrived, while a step is issued */
    int reduced_op; /* the all-reduce of the step being issued */
};

struct state {
    int order[EL_GRAPH_PARAMS_MAX]; /* parameters as their gradients became ready, or as registered before that is known
                                     */
    int n_ready;
    int group[EL_GRAPH_PARAMS_MAX];      /* of parameter p */
    int64_t offset[EL_GRAPH_PARAMS_MAX]; /* of parameter p in its bucket, in elements */
    int n_buckets;
    struct bucket buckets[EL_GRAPH_PARAMS_MAX];
    /* The step being issued. */
    struct el_worker *worker;
    struct el_program *program;
    struct el_view grads[EL_GRAPH_PARAMS_MAX];
    int next_bucket; /* all-reduces are launched in bucket order, so that all ranks launch the same */
};

static void free_buckets(struct state *state)
{
    for (int b = 0; b < state->n_buckets; b++) el_device_free(state->buckets[b].buffer);
    state->n_buckets = 0;
}

static enum el_status setup(struct el_worker *worker)
{
    struct el_member *member = &worker->members[0];
    struct state *state = calloc(1, sizeof *state);
    if (!state) return el_fail_errno("ddp");
    worker->state = state;
    worker->comm = el_comm_backend(worker->world);
    state->worker = worker;
    for (int p = 0; p < worker->graph->n_params; p++) state->order[p] = p;
    struct el_program *program;
    EL_TRY(el_program_create(&program));
    for (int p = 0; p < worker->graph->n_params; p++) {
        struct el_comm_op op = {.verb = EL_COMM_BROADCAST,
                                .dtype = worker->config->dtype,
                                .count = (size_t)el_param_count(worker->graph, p),
                                .data = member->params[p],
                                .label = worker->graph->params[p].name,
                                .phase = EL_PHASE_COMM};
        el_comm_issue(worker->world, program, &op, NULL);
    }
    enum el_status status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return status;
}

static void assign(struct el_worker *worker, struct state *state, int round)
{
    const struct el_train_config *config = worker->config;
    const size_t whole[] = {SIZE_MAX}, rebuilt[] = {config->bucket_first_bytes, config->bucket_cap_bytes};
    size_t bytes[EL_GRAPH_PARAMS_MAX];
    int group[EL_GRAPH_PARAMS_MAX];
    int n = worker->graph->n_params;
    for (int p = 0; p < n; p++) bytes[p] = el_member_param_bytes(&worker->members[0], p);
    state->n_buckets =
        el_buckets_assign(bytes, state->order, n, round == 0 ? whole : rebuilt, round == 0 ? 1 : 2, group);
    for (int b = 0; b < state->n_buckets; b++) state->buckets[b] = (struct bucket){0};
    for (int i = 0; i < n; i++) {
        int p = state->order[i];
        state->group[p] = group[i];
        state->offset[p] = state->buckets[group[i]].count;
        state->buckets[group[i]].count += el_param_count(worker->graph, p);
    }
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    struct state *state = worker->state;
    struct el_member *member = &worker->members[0];
    free_buckets(state);
    assign(worker, state, round);
    int n = state->n_buckets;
    for (state->n_buckets = 0; state->n_buckets < n; state->n_buckets++) {
        struct bucket *bucket = &state->buckets[state->n_buckets];
        size_t bytes = (size_t)bucket->count * el_dtype_bytes(worker->config->dtype);
        EL_TRY(el_device_alloc(member->device, EL_TAG_BUCKET, bytes, "bucket", &bucket->buffer));
    }
    return EL_OK;
}

/* Launches bucket b's all-reduce; what comes after it on the compute stream does not wait. */
static void reduce_bucket(struct state *state, int b)
{
    struct bucket *bucket = &state->buckets[b];
    char label[32];
    snprintf(label, sizeof label, "all_reduce bucket %d", b);
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .dtype = state->worker->config->dtype,
                            .count = (size_t)bucket->count,
                            .data = el_view_of(bucket->buffer, 0),
                            .label = label,
                            .phase = EL_PHASE_COMM};
    bucket->reduced_op = -1;
    el_comm_issue(state->worker->world, state->program, &op, &bucket->reduced_op);
}

static struct el_view place_in_bucket(const struct state *state, int p)
{
    size_t bytes = el_dtype_bytes(state->worker->config->dtype);
    return el_view_of(state->buckets[state->group[p]].buffer, (size_t)state->offset[p] * bytes);
}

/* A gradient is complete: into its bucket, divided; then all buckets that are complete, in order. */
static void grad_ready(void *context, int p)
{
    struct state *state = context;
    struct el_member *member = &state->worker->members[0];
    if (state->n_ready < state->worker->graph->n_params) state->order[state->n_ready++] = p;
    el_member_issue_scale(member, state->program, EL_PHASE_REDUCE, "copy to bucket", state->grads[p],
                          place_in_bucket(state, p), el_param_count(state->worker->graph, p),
                          1.0 / state->worker->layout->n_data);
    state->buckets[state->group[p]].n_pending--;
    if (!state->worker->config->overlap) return;
    while (state->next_bucket < state->n_buckets && state->buckets[state->next_bucket].n_pending == 0) {
        reduce_bucket(state, state->next_bucket++);
    }
}

/* Waits for every bucket in order and copies the sums back to the gradients. */
static void finalize(struct state *state)
{
    struct el_member *member = &state->worker->members[0];
    while (state->next_bucket < state->n_buckets) reduce_bucket(state, state->next_bucket++);
    for (int b = 0; b < state->n_buckets; b++) {
        el_program_wait(state->program, member->device, EL_STREAM_COMPUTE, state->buckets[b].reduced_op);
        for (int p = 0; p < state->worker->graph->n_params; p++) {
            if (state->group[p] != b) continue;
            el_member_issue_scale(member, state->program, EL_PHASE_REDUCE, "copy from bucket",
                                  place_in_bucket(state, p), state->grads[p], el_param_count(state->worker->graph, p),
                                  1);
        }
    }
}

static void begin_issue(struct el_worker *worker, struct el_program *program)
{
    struct state *state = worker->state;
    state->program = program;
    state->n_ready = 0;
    state->next_bucket = 0;
    for (int b = 0; b < state->n_buckets; b++) state->buckets[b].n_pending = 0;
    for (int p = 0; p < worker->graph->n_params; p++) {
        state->buckets[state->group[p]].n_pending++;
        state->grads[p] = worker->members[0].grads[p];
    }
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct state *state = worker->state;
    struct el_member *member = &worker->members[0];
    struct el_share_pass pass = {.share = member,
                                 .grads = state->grads,
                                 .scale = 1,
                                 .loss = member->loss,
                                 .grad_ready = grad_ready,
                                 .context = state};
    begin_issue(worker, program);
    el_member_issue_zero_grad(member, program);
    EL_TRY(el_member_issue_gradients(member, program, &pass));
    finalize(state);
    el_member_issue_optimizer(member, program, state->grads);
    el_member_free_grads(member, program, state->grads);
    el_member_end_gradients(program, &pass);
    return EL_OK;
}

static void teardown(struct el_worker *worker)
{
    if (worker->state) free_buckets(worker->state);
    free(worker->state);
}

const struct el_mode_ops el_mode_ddp = {
    .info = {.name = "ddp",
             .summary = "DistributedDataParallel: a replica per process, overlapped all-reduce of buckets",
             .takes = "procs overlap bucket-mb first-bucket-mb",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 3, .optimizer = 3},
             .n_shown = 1,
             .look = {.fill = 0x5b84c4, .ink = 0x5b84c4, .pattern = 3, .point = 7, .point_size = 1.6}},
    .layout = el_layout_worker_each,
    .rounds = 2,
    .setup = setup,
    .begin_round = begin_round,
    .issue = issue,
    .teardown = teardown};
