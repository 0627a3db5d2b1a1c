/* Evaluation: a forward-only program over a split, every sample once, over all ranks; and the weights of the best epoch
 * kept in host memory until the end. A controller evaluates on its master alone. */
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

enum el_status el_run_evaluate(struct el_run *run, enum el_data_split split, double *accuracy_p)
{
    struct el_member *member = &run->worker.members[0], reader;
    int64_t size = el_dataset_size(member->dataset, split);
    *accuracy_p = -1;
    if (size == 0 || run->session->graph->loss != EL_LOSS_CROSS_ENTROPY || !el_device_computes(member->device))
        return EL_OK;
    struct el_ledger before = *el_device_ledger(member->device);
    struct el_buffer *correct = NULL;
    double n = 0;
    enum el_status status = el_member_open_evaluation(&reader, member, split);
    if (status == EL_OK) status = el_device_alloc(member->device, EL_TAG_OUTPUT, sizeof(int32_t), "correct", &correct);
    if (status == EL_OK) status = count(&reader, correct, &n);
    el_device_free(correct);
    el_member_close_share(&reader);
    el_device_ledger_restore_peak(member->device, &before);
    EL_TRY(status);
    if (!run->session->mode->info.controller) EL_TRY(el_member_sum(member, &n, 1));
    *accuracy_p = n / (double)size;
    return EL_OK;
}

static enum el_status move_weights(struct el_run *run, char *weights, bool save)
{
    struct el_member *member = &run->worker.members[0];
    for (int p = 0; p < run->session->graph->n_params; p++) {
        size_t bytes = el_member_param_bytes(member, p);
        EL_TRY(save ? el_device_read(member->params[p], weights, bytes)
                    : el_device_write(member->params[p], weights, bytes));
        weights += bytes;
    }
    return EL_OK;
}

enum el_status el_run_save_weights(struct el_run *run, void **weights_p)
{
    size_t bytes = (size_t)el_graph_param_count(run->session->graph) * el_dtype_bytes(run->session->config->dtype);
    if (!*weights_p) *weights_p = malloc(bytes);
    if (!*weights_p) return el_fail_errno("the best epoch's weights");
    return move_weights(run, *weights_p, true);
}

enum el_status el_run_restore_weights(struct el_run *run, const void *weights)
{
    return move_weights(run, (char *)(uintptr_t)weights, false);
}
