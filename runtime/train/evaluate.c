/* Evaluation: a forward-only program over a split, every sample once, over all owners; and the weights of the best
 * epoch kept in host memory until the end. */
#include <stdlib.h>
#include <string.h>

#include "runtime/modes/pipeline/edge.h"
#include "runtime/state/buffers.h"
#include "runtime/train/session.h"
#include "runtime/worker/copies.h"

/* A batch's way through one member: through all of the model, or the parts that it holds. */
struct way {
    struct el_worker *worker;
    const struct el_shard *shard;
    struct el_feed *feed;
    struct el_held held;
    struct el_buffer *correct; /* where the last part is, else NULL */
};

static void issue_count(const struct way *way, struct el_program *program, struct el_view logits,
                        struct el_buffer *labels)
{
    struct el_kernel_op op = {.head = {.label = "count_correct", .phase = EL_PHASE_LOSS},
                              .op = EL_OP_COUNT_CORRECT,
                              .dtype = way->shard->config->dtype,
                              .views = {logits, el_view_of(labels, 0), el_view_of(way->correct, 0)},
                              .args.d = {way->feed->samples * way->shard->graph->labels, way->shard->graph->classes}};
    el_program_kernel(program, way->shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

/* Where a batch is between two parts: inputs of the one that comes. */
struct place {
    struct el_program *program;
    struct el_buffer *fed, *labels;
    struct el_view *values, *outputs; /* [n_tensors] of the model: no edge has more */
};

static void receive_values(const struct way *way, const struct el_held_part *part, struct place *place)
{
    struct el_buffer *received;
    struct el_edge from = {.peer = part->before, .batch = way->feed->samples};
    if (part->before == EL_HELD_NOBODY) place->values[0] = el_view_of(place->fed, 0);
    for (int i = 0; i < part->graph->n_inputs && part->before >= 0; i++)
        place->values[i] = el_edge_receive(way->worker, place->program, &from, part->graph->inputs[i], &received);
}

static void send_values(const struct way *way, const struct el_held_part *part, const struct place *place)
{
    struct el_edge to = {.peer = part->behind, .batch = way->feed->samples};
    for (int i = 0; i < part->graph->n_outputs && part->behind >= 0; i++)
        el_edge_send(way->worker, place->program, &to, part->graph->outputs[i], place->values[i], NULL);
}

static enum el_status go_through(const struct way *way, const struct el_held_part *part, struct place *place,
                                 struct el_pass **pass_p)
{
    struct el_pass_spec spec = {.graph = part->graph,
                                .device = way->shard->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = way->shard->config->dtype,
                                .batch = way->feed->samples,
                                .sample_stride = 1,
                                .params = part->params,
                                .buffers = part->buffers};
    EL_TRY(el_pass_open(place->program, &spec, pass_p));
    receive_values(way, part, place);
    el_pass_forward(*pass_p, place->values, place->outputs);
    memcpy(place->values, place->outputs, (size_t)part->graph->n_outputs * sizeof *place->outputs);
    send_values(way, part, place);
    return EL_OK;
}

/* Outputs live until the end: the next part may be on this device, or a message on its way. */
static enum el_status issue(const struct way *way, struct el_program *program)
{
    struct el_pass *passes[EL_PARTS_MAX] = {NULL};
    size_t n_tensors = (size_t)way->worker->graph->n_tensors;
    struct place place = {.program = program, .values = calloc(2 * n_tensors, sizeof *place.values)};
    enum el_status status = EL_OK;
    if (!place.values) return el_fail_errno("values between parts");
    place.outputs = place.values + n_tensors;
    el_feed_issue(way->feed, program, &place.fed, &place.labels);
    for (int i = 0; i < way->held.n && status == EL_OK; i++)
        status = go_through(way, &way->held.parts[i], &place, &passes[i]);
    if (way->correct && status == EL_OK) issue_count(way, program, place.values[0], place.labels);
    for (int i = 0; i < way->held.n; i++) el_pass_close(passes[i]);
    free(place.values);
    EL_TRY(status);
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
    if (layout->n[EL_AXIS_STAGE] > 1) {
        spec->batch = config->global_batch / config->n_micro;
        spec->part = el_layout_spot(layout, position).feed;
        spec->n_parts = layout->n[EL_AXIS_DATA];
        spec->what = el_worker_feeds(&run->session->parts, el_layout_spot(layout, position).at[EL_AXIS_STAGE]);
        return;
    }
    for (int d = 0; d < layout->n_devices; d++) {
        if (!el_layout_spot(layout, d).owns) continue;
        if (d == position) spec->part = spec->n_parts;
        spec->batch += (el_layout_spot(layout, d).samples + config->n_accumulate - 1) / config->n_accumulate;
        spec->n_parts++;
    }
    if (spec->n_parts == layout->n_feeds) spec->shares = el_layout_feed_shares(layout);
}

/* Correct answers that this member has counted. */
static enum el_status count_share(struct el_run *run, int member, enum el_data_split split, double *count_p)
{
    const struct el_shard *owner = &run->worker.members[member].shard;
    struct el_feed feed;
    struct el_buffer *buffers = NULL;
    struct way way = {.worker = &run->worker, .shard = owner, .feed = &feed};
    struct el_feed_spec spec = {.config = owner->config,
                                .graph = run->worker.graph,
                                .device = owner->device,
                                .dataset = run->session->place->dataset,
                                .split = split};
    spec_feed(run, run->worker.first + member, &spec);
    struct el_ledger before = *el_device_ledger(owner->device);
    enum el_status status = el_feed_open(&feed, &spec);
    if (status == EL_OK) status = el_held_open(&run->worker, member, &way.held);
    if (status == EL_OK) status = el_copies_take_first(&run->worker, member, &way.held, &buffers);
    if (status == EL_OK && way.held.parts[way.held.n - 1].behind == EL_HELD_NOBODY)
        status = el_device_alloc(owner->device, EL_TAG_OUTPUT, sizeof(int32_t), "correct", &way.correct);
    if (status == EL_OK) status = count(&way, count_p);
    el_device_free(way.correct);
    el_device_free(buffers);
    el_held_close(&way.held);
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

/* Weights and buffers, between the worker's owners and host memory; without memory it only counts the bytes. */
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
        size_t bytes = shard->params ? el_buffers_bytes(shard->graph, shard->config->dtype) : 0;
        if (weights && bytes > 0)
            EL_TRY(save ? el_device_read(shard->buffers[0], weights + at, bytes)
                        : el_device_write(shard->buffers[0], weights + at, bytes));
        at += bytes;
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
