/* ddp: DistributedDataParallel. Every member has the whole model and its share of the batch; gradients are averaged
 * over members in buckets as they become ready, while backward goes on (reducer.h). With --bucket-view on they are
 * views of the buckets: backward writes there, and the optimizer reads there.
 *
 * The first step has one bucket, reduced after the whole backward, as torch does since it may not know the order yet;
 * the order in which gradients became ready then gives the buckets of all later steps: the first of 1 MiB, the others
 * up to the cap. */
#include "runtime/parallel/reducer.h"
#include "runtime/parallel/share.h"

/* Everybody begins with the first member's weights. */
static enum el_status send_weights(struct el_worker *worker)
{
    struct el_program *program;
    EL_TRY(el_program_create(&program));
    for (int p = 0; p < worker->graph->n_params; p++) {
        struct el_comm_op op = {.verb = EL_COMM_BROADCAST,
                                .dtype = worker->config->dtype,
                                .count = (size_t)el_param_count(worker->graph, p),
                                .data = worker->members[0].shard.params[p],
                                .label = worker->graph->params[p].name,
                                .phase = EL_PHASE_COMM};
        el_comm_issue(worker->world, program, &op, NULL);
    }
    enum el_status status = el_program_end(program);
    if (status == EL_OK) status = el_program_run(program, 0, NULL);
    el_program_destroy(program);
    return status;
}

static enum el_status setup(struct el_worker *worker)
{
    struct el_reducer_spec spec = {.shard = &worker->members[0].shard,
                                   .comm = worker->world,
                                   .average = true,
                                   .views = worker->config->bucket_view,
                                   .overlap = worker->config->overlap};
    struct el_reducer *reducer;
    EL_TRY(el_reducer_open(&spec, &reducer));
    worker->state = reducer;
    worker->comm = el_comm_backend(worker->world);
    return send_weights(worker);
}

static enum el_status begin_round(struct el_worker *worker, int round)
{
    const size_t whole[] = {SIZE_MAX};
    const size_t rebuilt[] = {worker->config->bucket_first_bytes, worker->config->bucket_cap_bytes};
    struct el_shard *shard = &worker->members[0].shard;
    EL_TRY(round == 0 ? el_reducer_group(worker->state, whole, 1) : el_reducer_group(worker->state, rebuilt, 2));
    for (int p = 0; p < shard->graph->n_params && worker->config->bucket_view; p++)
        shard->grads[p] = el_reducer_place(worker->state, p);
    return EL_OK;
}

static void begin(void *reducer, struct el_program *program, struct el_view *grads)
{
    el_reducer_begin(reducer, program, grads);
}

static void finish(void *reducer, struct el_program *program, struct el_view *grads)
{
    (void)program;
    (void)grads;
    el_reducer_finish(reducer);
}

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    const struct el_share_hooks hooks = {.overwrite = worker->config->bucket_view && !worker->config->keep_grads,
                                         .grad_ready = el_reducer_ready,
                                         .begin = begin,
                                         .reduce = finish,
                                         .context = worker->state};
    return el_share_step(worker, program, &hooks);
}

static void teardown(struct el_worker *worker)
{
    el_reducer_close(worker->state);
}

const struct el_mode_ops el_mode_ddp = {
    .info = {.name = "ddp",
             .summary = "DistributedDataParallel: a replica per process, overlapped all-reduce of buckets",
             .takes = "procs overlap bucket-mb first-bucket-mb bucket-view accumulate",
             .sends = "gradients (P) by all-reduce, in buckets, during backward",
             .variants = "--overlap off|--bucket-view on|--accumulate 2",
             .loss = EL_LOSS_OF_RANKS,
             .memory = {.backward = 3, .optimizer = 3, .view = 1},
             .n_shown = 1,
             .look = {.fill = 0x5b84c4, .ink = 0x5b84c4, .pattern = 3, .point = 7, .point_size = 1.6}},
    .layout = el_layout_worker_each,
    .rounds = 2,
    .setup = setup,
    .begin_round = begin_round,
    .issue = issue,
    .teardown = teardown};
