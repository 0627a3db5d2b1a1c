/* Evaluation: a forward-only program over a split, every sample once, over all owners; and the weights of the best
 * epoch kept in host memory until the end. */
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/session.h"

static enum el_status issue(const struct el_shard *shard, struct el_feed *feed, struct el_program *program,
                            struct el_buffer *correct)
{
    struct el_buffer *inputs, *labels;
    el_feed_issue(feed, program, &inputs, &labels);
    struct el_pass_spec spec = {.graph = shard->graph,
                                .device = shard->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = shard->config->dtype,
                                .batch = feed->samples,
                                .sample_stride = 1,
                                .params = shard->params};
    struct el_pass *pass;
    EL_TRY(el_pass_open(program, &spec, &pass));
    struct el_view input = el_view_of(inputs, 0), logits;
    el_pass_forward(pass, &input, &logits);
    struct el_kernel_op op = {.head = {.label = "count_correct", .phase = EL_PHASE_LOSS},
                              .op = EL_OP_COUNT_CORRECT,
                              .dtype = shard->config->dtype,
                              .views = {logits, el_view_of(labels, 0), el_view_of(correct, 0)},
                              .args.d = {feed->samples, shard->config->model.classes}};
    el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &op, NULL);
    el_pass_close(pass);
    return el_program_end(program);
}

static enum el_status count(const struct el_shard *shard, struct el_feed *feed, struct el_buffer *correct,
                            double *count_p)
{
    int32_t n = 0;
    struct el_program *program;
    EL_TRY(el_device_write(el_view_of(correct, 0), &n, sizeof n));
    EL_TRY(el_program_create(&program));
    enum el_status status = issue(shard, feed, program, correct);
    int64_t steps = el_loader_steps_per_epoch(feed->loader);
    for (int64_t i = 0; status == EL_OK && i < steps; i++) status = el_program_run(program, (uint64_t)i, NULL);
    el_program_destroy(program);
    EL_TRY(status);
    EL_TRY(el_device_read(el_view_of(correct, 0), &n, sizeof n));
    *count_p = n;
    return EL_OK;
}

/* Correct answers of an owner's share of the split: owners have the whole model, and share it evenly. A batch is what
 * they have room for in training. */
static enum el_status count_share(const struct el_run *run, const struct el_shard *owner, int position,
                                  enum el_data_split split, double *count_p)
{
    const struct el_layout *layout = &run->session->layout;
    struct el_feed_spec spec = {.config = owner->config,
                                .graph = owner->graph,
                                .device = owner->device,
                                .dataset = run->session->place->dataset,
                                .split = split};
    struct el_feed feed;
    struct el_buffer *correct = NULL;
    for (int d = 0; d < layout->n_devices; d++) {
        if (!layout->devices[d].owns) continue;
        if (d == position) spec.part = spec.n_parts;
        spec.batch += layout->devices[d].samples;
        spec.n_parts++;
    }
    struct el_ledger before = *el_device_ledger(owner->device);
    enum el_status status = el_feed_open(&feed, &spec);
    if (status == EL_OK) status = el_device_alloc(owner->device, EL_TAG_OUTPUT, sizeof(int32_t), "correct", &correct);
    if (status == EL_OK) status = count(owner, &feed, correct, count_p);
    el_device_free(correct);
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
        const struct el_shard *shard = &worker->members[m].shard;
        double n = 0;
        if (shard->params) EL_TRY(count_share(run, shard, worker->first + m, split, &n));
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
