/* Evaluation: a forward-only program over a split, every sample once, over all owners; and the weights of the best
 * epoch kept in host memory until the end. */
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/edge.h"
#include "runtime/parallel/session.h"

/* A batch's way through one member: all of it, or its stage. */
struct way {
    struct el_worker *worker;
    const struct el_shard *shard;
    struct el_feed *feed;
    struct el_buffer *correct; /* on the last stage, else NULL */
    int stage;
};

static void issue_count(const struct way *way, struct el_program *program, struct el_view logits,
                        struct el_buffer *labels)
{
    struct el_kernel_op op = {.head = {.label = "count_correct", .phase = EL_PHASE_LOSS},
                              .op = EL_OP_COUNT_CORRECT,
                              .dtype = way->shard->config->dtype,
                              .views = {logits, el_view_of(labels, 0), el_view_of(way->correct, 0)},
                              .args.d = {way->feed->samples, way->shard->config->model.classes}};
    el_program_kernel(program, way->shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

static enum el_status issue(const struct way *way, struct el_program *program)
{
    const struct el_shard *shard = way->shard;
    const struct el_graph *part = shard->graph;
    struct el_buffer *fed, *labels, *received;
    struct el_view inputs[EL_GRAPH_EDGE_MAX], outputs[EL_GRAPH_EDGE_MAX];
    struct el_edge before = {.peer = way->stage - 1, .batch = way->feed->samples},
                   behind = {.peer = way->stage + 1, .batch = way->feed->samples};
    el_feed_issue(way->feed, program, &fed, &labels);
    if (way->stage == 0) inputs[0] = el_view_of(fed, 0);
    for (int i = 0; i < part->n_inputs && way->stage > 0; i++)
        inputs[i] = el_edge_receive(way->worker, program, &before, part->inputs[i], &received);
    struct el_pass_spec spec = {.graph = part,
                                .device = shard->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = shard->config->dtype,
                                .batch = way->feed->samples,
                                .sample_stride = 1,
                                .params = shard->params};
    struct el_pass *pass;
    EL_TRY(el_pass_open(program, &spec, &pass));
    el_pass_forward(pass, inputs, outputs);
    for (int i = 0; i < part->n_outputs && !way->correct; i++)
        el_edge_send(way->worker, program, &behind, part->outputs[i], outputs[i], NULL);
    if (way->correct) issue_count(way, program, outputs[0], labels);
    el_pass_close(pass);
    return el_program_end(program);
}

static enum el_status count(const struct way *way, double *count_p)
{
    int32_t n = 0;
    struct el_program *program;
    if (way->correct) EL_TRY(el_device_write(el_view_of(way->correct, 0), &n, sizeof n));
    EL_TRY(el_program_create(&program));
    enum el_status status = issue(way, program);
    int64_t steps = el_loader_steps_per_epoch(way->feed->loader);
    for (int64_t i = 0; status == EL_OK && i < steps; i++) status = el_program_run(program, (uint64_t)i, NULL);
    el_program_destroy(program);
    EL_TRY(status);
    if (way->correct) EL_TRY(el_device_read(el_view_of(way->correct, 0), &n, sizeof n));
    *count_p = n;
    return EL_OK;
}

/* What a member is given of the split. Owners of the whole model share it evenly, and a batch is what they have room
 * for in training; through stages all of it goes, a micro-batch at a time. */
static void spec_feed(const struct el_run *run, int position, struct el_feed_spec *spec)
{
    const struct el_layout *layout = &run->session->layout;
    const struct el_train_config *config = run->session->config;
    if (layout->n_stages > 1) {
        spec->batch = config->global_batch / config->n_micro;
        spec->n_parts = 1;
        spec->what = el_worker_feeds(layout, layout->devices[position].stage);
        return;
    }
    for (int d = 0; d < layout->n_devices; d++) {
        if (!layout->devices[d].owns) continue;
        if (d == position) spec->part = spec->n_parts;
        spec->batch += (layout->devices[d].samples + config->n_accumulate - 1) / config->n_accumulate;
        spec->n_parts++;
    }
}

/* Correct answers that this member has counted. */
static enum el_status count_share(struct el_run *run, int member, enum el_data_split split, double *count_p)
{
    const struct el_layout *layout = &run->session->layout;
    const struct el_shard *owner = &run->worker.members[member].shard;
    int position = run->worker.first + member;
    struct el_feed feed;
    struct way way = {.worker = &run->worker, .shard = owner, .feed = &feed, .stage = layout->devices[position].stage};
    struct el_feed_spec spec = {.config = owner->config,
                                .graph = run->worker.graph,
                                .device = owner->device,
                                .dataset = run->session->place->dataset,
                                .split = split};
    spec_feed(run, position, &spec);
    struct el_ledger before = *el_device_ledger(owner->device);
    enum el_status status = el_feed_open(&feed, &spec);
    if (status == EL_OK && way.stage == layout->n_stages - 1)
        status = el_device_alloc(owner->device, EL_TAG_OUTPUT, sizeof(int32_t), "correct", &way.correct);
    if (status == EL_OK) status = count(&way, count_p);
    el_device_free(way.correct);
    el_feed_close(&feed);
    el_device_ledger_restore_peak(owner->device, &before);
    return status;
}

enum el_status el_run_evaluate(struct el_run *run, enum el_data_split split, double *accuracy_p)
{
    struct el_worker *worker = &run->worker;
    int64_t size = el_dataset_size(run->session->place->dataset, split);
    double sum = 0;
    *accuracy_p = -1;
    if (size == 0 || worker->graph->loss != EL_LOSS_CROSS_ENTROPY ||
        !el_device_computes(worker->members[0].shard.device))
        return EL_OK;
    for (int m = 0; m < worker->n_members; m++) {
        double n = 0;
        if (worker->members[m].shard.params) EL_TRY(count_share(run, m, split, &n));
        sum += n;
    }
    EL_TRY(el_worker_sum(worker, &sum, 1));
    *accuracy_p = sum / (double)size;
    return EL_OK;
}

/* Between the worker's owners and host memory; without memory it only counts the bytes. */
static enum el_status move_weights(struct el_run *run, char *weights, bool save, size_t *bytes_p)
{
    const struct el_worker *worker = &run->worker;
    size_t at = 0;
    for (int m = 0; m < worker->n_members; m++) {
        const struct el_shard *shard = &worker->members[m].shard;
        for (int p = 0; shard->params && p < shard->graph->n_params; p++) {
            size_t bytes = el_shard_param_bytes(shard, p);
            if (weights)
                EL_TRY(save ? el_device_read(shard->params[p], weights + at, bytes)
                            : el_device_write(shard->params[p], weights + at, bytes));
            at += bytes;
        }
    }
    *bytes_p = at;
    return EL_OK;
}

enum el_status el_run_save_weights(struct el_run *run, void **weights_p)
{
    size_t bytes;
    EL_TRY(move_weights(run, NULL, true, &bytes));
    if (!*weights_p) *weights_p = malloc(bytes);
    if (!*weights_p) return el_fail_errno("the best epoch's weights");
    return move_weights(run, *weights_p, true, &bytes);
}

enum el_status el_run_restore_weights(struct el_run *run, const void *weights)
{
    size_t bytes;
    return move_weights(run, (char *)(uintptr_t)weights, false, &bytes);
}
