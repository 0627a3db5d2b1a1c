/* Evaluation: a forward-only program over a split, every sample once, over all owners; and the weights of the best
 * epoch kept in host memory until the end. */
#include <stdlib.h>
#include <string.h>

#include "runtime/parallel/session.h"

static enum el_status issue(struct el_member *member, struct el_program *program, struct el_buffer *correct)
{
    struct el_buffer *inputs, *labels;
    el_member_issue_load(member, program, &inputs, &labels);
    struct el_pass_spec spec = {.graph = member->graph,
                                .device = member->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = member->config->dtype,
                                .batch = member->share,
                                .sample_stride = 1,
                                .params = member->params};
    struct el_pass *pass;
    EL_TRY(el_pass_open(program, &spec, &pass));
    struct el_kernel_op op = {
        .head = {.label = "count_correct", .phase = EL_PHASE_LOSS},
        .op = EL_OP_COUNT_CORRECT,
        .dtype = member->config->dtype,
        .views = {el_pass_forward(pass, el_view_of(inputs, 0)), el_view_of(labels, 0), el_view_of(correct, 0)},
        .args.d = {member->share, member->config->model.classes}};
    el_program_kernel(program, member->device, EL_STREAM_COMPUTE, &op, NULL);
    el_pass_close(pass);
    return el_program_end(program);
}

static enum el_status count(struct el_member *reader, struct el_buffer *correct, double *count_p)
{
    int32_t n = 0;
    struct el_program *program;
    EL_TRY(el_device_write(el_view_of(correct, 0), &n, sizeof n));
    EL_TRY(el_program_create(&program));
    enum el_status status = issue(reader, program, correct);
    int64_t steps = el_loader_steps_per_epoch(reader->loader);
    for (int64_t i = 0; status == EL_OK && i < steps; i++) status = el_program_run(program, (uint64_t)i, NULL);
    el_program_destroy(program);
    EL_TRY(status);
    EL_TRY(el_device_read(el_view_of(correct, 0), &n, sizeof n));
    *count_p = n;
    return EL_OK;
}

/* Correct answers of an owner's share of the split: owners have the whole model, and share it evenly. A batch is what
 * they have room for in training. */
static enum el_status count_share(const struct el_run *run, const struct el_member *owner, int position,
                                  enum el_data_split split, double *count_p)
{
    const struct el_layout *layout = &run->session->layout;
    struct el_member reader;
    struct el_buffer *correct = NULL;
    int rank = 0, size = 0;
    int64_t batch = 0;
    for (int d = 0; d < layout->n_devices; d++) {
        if (!layout->devices[d].owns) continue;
        if (d == position) rank = size;
        batch += layout->devices[d].samples;
        size++;
    }
    struct el_ledger before = *el_device_ledger(owner->device);
    enum el_status status = el_member_open_evaluation(&reader, owner, split, rank, size, batch);
    if (status == EL_OK) status = el_device_alloc(owner->device, EL_TAG_OUTPUT, sizeof(int32_t), "correct", &correct);
    if (status == EL_OK) status = count(&reader, correct, count_p);
    el_device_free(correct);
    el_member_close_share(&reader);
    el_device_ledger_restore_peak(owner->device, &before);
    return status;
}

enum el_status el_run_evaluate(struct el_run *run, enum el_data_split split, double *accuracy_p)
{
    struct el_worker *worker = &run->worker;
    int64_t size = el_dataset_size(run->session->place->dataset, split);
    double sum = 0;
    *accuracy_p = -1;
    if (size == 0 || worker->graph->loss != EL_LOSS_CROSS_ENTROPY || !el_device_computes(worker->members[0].device))
        return EL_OK;
    for (int m = 0; m < worker->n_members; m++) {
        double n = 0;
        if (!worker->layout->devices[worker->first + m].owns) continue;
        EL_TRY(count_share(run, &worker->members[m], worker->first + m, split, &n));
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
        const struct el_member *member = &worker->members[m];
        for (int p = 0; worker->layout->devices[worker->first + m].owns && p < member->graph->n_params; p++) {
            size_t bytes = el_member_param_bytes(member, p);
            if (weights)
                EL_TRY(save ? el_device_read(member->params[p], weights + at, bytes)
                            : el_device_write(member->params[p], weights + at, bytes));
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
