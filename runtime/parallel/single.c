/* single: one device, no wrapper. The base line of every efficiency, and what the other modes must equal. */
#include "runtime/parallel/mode.h"

static enum el_status issue(struct el_worker *worker, struct el_program *program, int round)
{
    (void)round;
    struct el_member *member = &worker->members[0];
    struct el_buffer *inputs, *labels, *dlogits;
    struct el_view grads[EL_GRAPH_PARAMS_MAX];
    for (int p = 0; p < worker->graph->n_params; p++) grads[p] = member->grads[p];
    el_member_issue_zero_grad(member, program);
    el_member_issue_load(member, program, &inputs, &labels);
    struct el_pass_spec spec = {.graph = worker->graph,
                                .device = member->device,
                                .stream = EL_STREAM_COMPUTE,
                                .dtype = worker->config->dtype,
                                .batch = member->share,
                                .sample_stride = 1,
                                .seed = worker->config->seed,
                                .training = true,
                                .params = member->params,
                                .grads = grads,
                                .accumulate = worker->config->keep_grads};
    struct el_pass *pass;
    EL_TRY(el_pass_open(program, &spec, &pass));
    struct el_view logits = el_pass_forward(pass, el_view_of(inputs, 0));
    size_t bytes = (size_t)(member->share * worker->config->model.classes) * el_dtype_bytes(worker->config->dtype);
    el_program_alloc(program, member->device, EL_TAG_OUTPUT, bytes, "gradient of the output", &dlogits);
    el_member_issue_loss(member, program, logits, el_view_of(labels, 0), el_view_of(dlogits, 0), member->share,
                         el_view_of(member->loss, 0));
    el_pass_backward(pass, el_view_of(dlogits, 0));
    el_program_free(program, dlogits);
    el_member_issue_optimizer(member, program, grads);
    el_member_free_grads(member, program, grads);
    el_pass_close(pass);
    el_program_free(program, inputs);
    el_program_free(program, labels);
    return EL_OK;
}

const struct el_mode_ops el_mode_single = {.info = {.name = "single",
                                                    .summary = "one device, no wrapper: the base line",
                                                    .controller = true,
                                                    .one_device = true},
                                           .rounds = 1,
                                           .issue = issue};
