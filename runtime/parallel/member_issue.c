/* The parts of a step that all modes share, as ops on the member's compute stream. */
#include "runtime/parallel/member.h"

void el_member_issue_scale(struct el_member *member, struct el_program *program, enum el_phase phase, const char *label,
                           struct el_view x, struct el_view y, int64_t n, double scale)
{
    struct el_kernel_op op = {.head = {.label = label, .phase = phase},
                              .op = EL_OP_SCALE,
                              .dtype = member->config->dtype,
                              .views = {x, y},
                              .args = {.d = {n}, .s = {scale}}};
    el_program_kernel(program, member->device, EL_STREAM_COMPUTE, &op, NULL);
}

void el_member_issue_zero_grad(struct el_member *member, struct el_program *program)
{
    if (!member->config->keep_grads) return;
    for (int p = 0; p < member->graph->n_params; p++) {
        struct el_kernel_op op = {.head = {.label = "zero_grad", .phase = EL_PHASE_OPTIMIZER},
                                  .op = EL_OP_FILL,
                                  .dtype = member->config->dtype,
                                  .views = {member->grads[p]},
                                  .args = {.d = {el_param_count(member->graph, p)}, .s = {0}}};
        el_program_kernel(program, member->device, EL_STREAM_COMPUTE, &op, NULL);
    }
}

/* Runs on the compute stream's thread, as a loader without workers does. */
static enum el_status load(const struct el_call_args *args)
{
    struct el_member *member = args->context;
    return el_loader_fill(member->loader, args->step, member->host_inputs, member->host_labels);
}

void el_member_issue_load(struct el_member *member, struct el_program *program, struct el_buffer **inputs_p,
                          struct el_buffer **labels_p)
{
    size_t input_bytes = (size_t)member->share * el_member_input_bytes(member);
    size_t label_bytes = (size_t)member->share * sizeof(int32_t);
    el_program_alloc(program, member->device, EL_TAG_INPUT, input_bytes, "inputs", inputs_p);
    el_program_alloc(program, member->device, EL_TAG_INPUT, label_bytes, "labels", labels_p);
    struct el_call_op call = {.head = {.label = "load", .phase = EL_PHASE_DATA},
                              .op_class = EL_CLASS_HOST,
                              .run = load,
                              .context = member,
                              .bytes = (double)(input_bytes + label_bytes)};
    el_program_call(program, member->device, EL_STREAM_COMPUTE, &call, NULL);
    el_program_copy(program, member->device, EL_STREAM_COMPUTE,
                    &(struct el_op_head){.label = "inputs", .phase = EL_PHASE_H2D}, el_view_of(*inputs_p, 0),
                    el_view_host(member->host_inputs), input_bytes, NULL);
    el_program_copy(program, member->device, EL_STREAM_COMPUTE,
                    &(struct el_op_head){.label = "labels", .phase = EL_PHASE_H2D}, el_view_of(*labels_p, 0),
                    el_view_host(member->host_labels), label_bytes, NULL);
}

void el_member_issue_loss(struct el_member *member, struct el_program *program, struct el_view logits,
                          struct el_view labels, struct el_view dlogits, int64_t batch, struct el_view loss)
{
    bool mse = member->graph->loss == EL_LOSS_MSE;
    struct el_kernel_op op = {.head = {.label = mse ? "mse" : "cross_entropy", .phase = EL_PHASE_LOSS},
                              .op = mse ? EL_OP_MSE : EL_OP_CROSS_ENTROPY,
                              .dtype = member->config->dtype,
                              .views = {logits, labels, loss, dlogits},
                              .args.d = {batch, member->config->model.classes}};
    el_program_kernel(program, member->device, EL_STREAM_COMPUTE, &op, NULL);
}

enum el_status el_member_issue_gradients(struct el_member *member, struct el_program *program,
                                         struct el_share_pass *pass)
{
    const struct el_train_config *config = member->config;
    const struct el_member *share = pass->share;
    struct el_buffer *buffer;
    el_member_issue_load(pass->share, program, &pass->inputs, &pass->labels);
    struct el_pass_spec spec = {.graph = member->graph,
                                .device = member->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = config->dtype,
                                .batch = share->share,
                                .sample_first = share->rank,
                                .sample_stride = share->size,
                                .seed = config->seed,
                                .training = true,
                                .params = member->params,
                                .grads = pass->grads,
                                .grad_ready = pass->grad_ready,
                                .context = pass->context};
    EL_TRY(el_pass_open(program, &spec, &pass->pass));
    struct el_view logits = el_pass_forward(pass->pass, el_view_of(pass->inputs, 0));
    int64_t n = share->share * config->model.classes;
    el_program_alloc(program, member->device, EL_TAG_OUTPUT, (size_t)n * el_dtype_bytes(config->dtype),
                     "gradient of the output", &buffer);
    struct el_view gradient = el_view_of(buffer, 0);
    el_member_issue_loss(member, program, logits, el_view_of(pass->labels, 0), gradient, share->share,
                         el_view_of(pass->loss, 0));
    if (pass->scale != 1) {
        el_member_issue_scale(member, program, EL_PHASE_LOSS, "divide", gradient, gradient, n, pass->scale);
    }
    el_pass_backward(pass->pass, gradient);
    el_program_free(program, buffer);
    return EL_OK;
}

void el_member_end_gradients(struct el_program *program, struct el_share_pass *pass)
{
    el_pass_close(pass->pass);
    el_program_free(program, pass->inputs);
    el_program_free(program, pass->labels);
}

/* Row layouts of the optimizer kernels: kernels.h. */
static struct el_kernel_op update_of(const struct el_member *member, const struct el_view *grads, int p)
{
    const struct el_train_config *config = member->config;
    struct el_kernel_op op = {.head = {.label = member->graph->params[p].name, .phase = EL_PHASE_OPTIMIZER},
                              .dtype = config->dtype,
                              .views = {grads[p], member->params[p], member->slots[0][p], member->slots[1][p]},
                              .args.d = {el_param_count(member->graph, p)}};
    op.args.s[0] = config->lr;
    switch (config->optimizer) {
    case EL_OPT_SGD:
        op.op = EL_OP_SGD;
        break;
    case EL_OPT_MOMENTUM:
        op.op = EL_OP_MOMENTUM;
        op.args.s[1] = config->momentum;
        break;
    case EL_OPT_ADAM:
        op.op = EL_OP_ADAM;
        op.args.s[1] = 0.9;
        op.args.s[2] = 0.999;
        op.args.s[3] = 1e-8;
        break;
    }
    return op;
}

/* What PyTorch's Adam computes into tensors of its own, and our kernel into these: the denominator; with the loop over
 * parameters the square root too, which it is divided from. */
enum { TEMPORARIES = 2, FIRST_TEMPORARY = 4 };

static bool has_temporary(const struct el_train_config *config, int t)
{
    return config->optimizer == EL_OPT_ADAM && (t == 0 || config->foreach != EL_FOREACH_ON);
}

static void alloc_temporaries(struct el_member *member, struct el_program *program, int p,
                              struct el_buffer *buffers[TEMPORARIES])
{
    static const char *const names[TEMPORARIES] = {"adam's denominator", "adam's square root"};
    for (int t = 0; t < TEMPORARIES; t++) {
        buffers[t] = NULL;
        if (!has_temporary(member->config, t)) continue;
        el_program_alloc(program, member->device, EL_TAG_WORKSPACE, el_member_param_bytes(member, p), names[t],
                         &buffers[t]);
    }
}

static void free_temporaries(struct el_program *program, struct el_buffer *buffers[TEMPORARIES])
{
    for (int t = 0; t < TEMPORARIES; t++) el_program_free(program, buffers[t]);
}

void el_member_issue_optimizer(struct el_member *member, struct el_program *program, const struct el_view *grads)
{
    struct el_buffer *temporaries[EL_GRAPH_PARAMS_MAX][TEMPORARIES];
    bool together = member->config->foreach == EL_FOREACH_ON;
    int n = member->graph->n_params;
    for (int p = 0; p < n && together; p++) alloc_temporaries(member, program, p, temporaries[p]);
    for (int p = 0; p < n; p++) {
        struct el_kernel_op op = update_of(member, grads, p);
        if (!together) alloc_temporaries(member, program, p, temporaries[p]);
        for (int t = 0; t < TEMPORARIES; t++) op.views[FIRST_TEMPORARY + t] = el_view_of(temporaries[p][t], 0);
        el_program_kernel(program, member->device, EL_STREAM_COMPUTE, &op, NULL);
        if (!together) free_temporaries(program, temporaries[p]);
        const struct el_param *param = &member->graph->params[p];
        if (param->max_norm <= 0) continue;
        struct el_kernel_op limit = {
            .head = {.label = "max_norm", .phase = EL_PHASE_OPTIMIZER},
            .op = EL_OP_MAX_NORM,
            .dtype = member->config->dtype,
            .views = {member->params[p]},
            .args = {.d = {param->shape.d[0], el_param_count(member->graph, p) / param->shape.d[0]},
                     .s = {param->max_norm}}};
        el_program_kernel(program, member->device, EL_STREAM_COMPUTE, &limit, NULL);
    }
    for (int p = 0; p < n && together; p++) free_temporaries(program, temporaries[p]);
}

void el_member_free_grads(struct el_member *member, struct el_program *program, const struct el_view *grads)
{
    for (int p = 0; p < member->graph->n_params; p++) {
        if (grads[p].buffer != member->grads[p].buffer) el_program_free(program, grads[p].buffer);
    }
}
