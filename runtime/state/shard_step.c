#include "runtime/state/shard.h"

#include <stdlib.h>

#include "runtime/state/together.h"

void el_shard_issue_fill_as(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                            const char *label, enum el_dtype dtype, struct el_view x, int64_t n, double value)
{
    struct el_kernel_op op = {.head = {.label = label, .phase = phase},
                              .op = EL_OP_FILL,
                              .dtype = dtype,
                              .views = {x},
                              .args = {.d = {n}, .s = {value}}};
    el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

void el_shard_issue_fill(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                         const char *label, struct el_view x, int64_t n, double value)
{
    el_shard_issue_fill_as(shard, program, phase, label, shard->config->dtype, x, n, value);
}

void el_shard_issue_zero_grad(const struct el_shard *shard, struct el_program *program)
{
    struct el_together zeros = {.shard = shard, .program = program, .phase = EL_PHASE_OPTIMIZER, .label = "zero_grad"};
    for (int p = 0; p < shard->graph->n_params && shard->config->keep_grads; p++) {
        int64_t first, n = 0;
        if (shard->grads[p].buffer) el_shard_range(shard, EL_STATE_GRAD, p, &first, &n);
        if (n > 0) el_together_zero(&zeros, shard->grads[p], n);
    }
    el_together_end(&zeros);
}

static int64_t updated_count(const struct el_shard *shard, int p)
{
    int64_t first, count;
    el_shard_range(shard, EL_STATE_SLOT, p, &first, &count);
    return count;
}

static struct el_view place_in(const struct el_shard *shard, enum el_state what, enum el_dtype dtype, int p)
{
    int64_t first, stored, count;
    struct el_view view = shard->rows[what][p];
    el_shard_range(shard, what, p, &stored, &count);
    el_shard_range(shard, EL_STATE_SLOT, p, &first, &count);
    if (count > 0) view.offset += (size_t)(first - stored) * el_dtype_bytes(dtype);
    return view;
}

static struct el_view updated(const struct el_shard *shard, int p)
{
    return place_in(shard, EL_STATE_PARAM, el_config_stored(shard->config), p);
}

static struct el_kernel_op update_of(const struct el_shard *shard, const struct el_view *grads, int p)
{
    const struct el_train_config *config = shard->config;
    struct el_kernel_op op = {.head = {.label = shard->graph->params[p].name, .phase = EL_PHASE_OPTIMIZER},
                              .dtype = el_config_stored(config),
                              .views = {grads[p], updated(shard, p), shard->slots[0][p], shard->slots[1][p]},
                              .args.d = {updated_count(shard, p)}};
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
    case EL_OPT_ADAMW:
        op.op = EL_OP_ADAM;
        op.args.s[1] = 0.9;
        op.args.s[2] = 0.999;
        op.args.s[3] = 1e-8;
        op.args.s[4] = config->weight_decay;
        break;
    }
    return op;
}

/* Of several devices with a parameter of one copy, one counts it. */
static bool counts(const struct el_graph *graph, int p)
{
    const struct el_param *param = &graph->params[p];
    return !param->is_copy && (param->slice.of || graph->piece + graph->expert_rank == 0);
}

static void issue_norms(const struct el_shard *shard, struct el_program *program, enum el_op_kind kind,
                        const struct el_view *grads, struct el_view squares)
{
    struct el_together norms = {.shard = shard, .program = program};
    const bool sums = kind == EL_OP_SUM_SQUARES;
    for (int p = 0; p < shard->graph->n_params; p++) {
        if (!grads[p].buffer || updated_count(shard, p) == 0 || (sums && !counts(shard->graph, p))) continue;
        struct el_kernel_op op = {.head = {.label = shard->graph->params[p].name, .phase = EL_PHASE_OPTIMIZER},
                                  .op = kind,
                                  .dtype = el_config_stored(shard->config),
                                  .views = {sums ? grads[p] : squares, sums ? squares : grads[p]},
                                  .args = {.d = {updated_count(shard, p)}, .s = {shard->config->clip}}};
        el_together_add(&norms, &op);
    }
    el_together_end(&norms);
}

/* Over a model's stages or pieces; every copy adds the same, because its gradients are equal. */
static void sum_rest(const struct el_shard *shard, struct el_program *program, struct el_view squares)
{
    struct el_comm_op op = {.verb = EL_COMM_ALL_REDUCE,
                            .dtype = shard->config->dtype,
                            .count = 1,
                            .data = squares,
                            .label = "squared norm",
                            .phase = EL_PHASE_COMM,
                            .join = true};
    el_comm_issue(shard->rest, program, &op, NULL);
    if (shard->n_copies > 1)
        el_shard_issue_move(shard, program, EL_PHASE_OPTIMIZER, "divide", op.dtype, squares, op.dtype, squares, 1,
                            1.0 / shard->n_copies);
}

/* torch.nn.utils.clip_grad_norm_. */
static void clip(const struct el_shard *shard, struct el_program *program, const struct el_view *grads)
{
    struct el_buffer *buffer;
    if (shard->config->clip == 0) return;
    el_program_alloc(program, shard->device, EL_TAG_WORKSPACE, el_dtype_bytes(shard->config->dtype), "squared norm",
                     &buffer);
    struct el_view squares = el_view_of(buffer, 0);
    el_shard_issue_fill(shard, program, EL_PHASE_OPTIMIZER, "zero the norm", squares, 1, 0);
    issue_norms(shard, program, EL_OP_SUM_SQUARES, grads, squares);
    if (shard->rest) sum_rest(shard, program, squares);
    issue_norms(shard, program, EL_OP_CLIP, grads, squares);
    el_program_free(program, buffer);
}

/* Adam's temporaries in PyTorch, which our kernel fills: the denominator; in the loop over parameters also the square
 * root. */
enum { TEMPORARIES = 2, FIRST_TEMPORARY = 4 };

static bool has_temporary(const struct el_train_config *config, int t)
{
    return config->optimizer >= EL_OPT_ADAM && (t == 0 || config->foreach != EL_FOREACH_ON);
}

static void alloc_temporaries(const struct el_shard *shard, struct el_program *program, int p,
                              struct el_buffer *buffers[TEMPORARIES])
{
    static const char *const names[TEMPORARIES] = {"adam's denominator", "adam's square root"};
    for (int t = 0; t < TEMPORARIES; t++) {
        buffers[t] = NULL;
        if (!has_temporary(shard->config, t)) continue;
        size_t bytes = (size_t)updated_count(shard, p) * el_dtype_bytes(shard->config->dtype);
        el_program_alloc(program, shard->device, EL_TAG_WORKSPACE, bytes, names[t], &buffers[t]);
    }
}

static void free_temporaries(struct el_program *program, struct el_buffer *buffers[TEMPORARIES])
{
    for (int t = 0; t < TEMPORARIES; t++) el_program_free(program, buffers[t]);
}

static void limit_norms(const struct el_shard *shard, struct el_program *program, const struct el_view *grads)
{
    for (int p = 0; p < shard->graph->n_params; p++) {
        const struct el_param *param = &shard->graph->params[p];
        if (!grads[p].buffer || updated_count(shard, p) == 0 || param->max_norm <= 0) continue;
        int64_t row = el_param_count(shard->graph, p) / param->shape.d[0];
        struct el_kernel_op limit = {.head = {.label = "max_norm", .phase = EL_PHASE_OPTIMIZER},
                                     .op = EL_OP_MAX_NORM,
                                     .dtype = el_config_stored(shard->config),
                                     .views = {updated(shard, p)},
                                     .args = {.d = {updated_count(shard, p) / row, row}, .s = {param->max_norm}}};
        el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &limit, NULL);
    }
}

static void cast_updated(const struct el_shard *shard, struct el_program *program, const struct el_view *grads)
{
    const enum el_dtype from = el_config_stored(shard->config), to = el_config_computed(shard->config);
    struct el_together casts = {
        .shard = shard, .program = program, .phase = EL_PHASE_OPTIMIZER, .label = "cast parameters"};
    for (int p = 0; p < shard->graph->n_params && el_shard_computed(shard) != shard->params; p++)
        if (grads[p].buffer && updated_count(shard, p) > 0)
            el_together_move(&casts, from, updated(shard, p), to, place_in(shard, EL_STATE_CAST, to, p),
                             updated_count(shard, p), 1);
    el_together_end(&casts);
}

void el_shard_issue_optimizer(const struct el_shard *shard, struct el_program *program, const struct el_view *grads)
{
    struct el_together updates = {.shard = shard, .program = program};
    const bool together = el_together_is_on(shard);
    int n = shard->graph->n_params;
    struct el_buffer *(*temporaries)[TEMPORARIES] = calloc((size_t)n + 1, sizeof *temporaries);
    if (!temporaries) {
        el_program_fail(program, el_fail_errno("%d parameters", n));
        return;
    }
    clip(shard, program, grads);
    for (int p = 0; p < n; p++) {
        if (!grads[p].buffer || updated_count(shard, p) == 0) continue;
        struct el_kernel_op op = update_of(shard, grads, p);
        alloc_temporaries(shard, program, p, temporaries[p]);
        for (int t = 0; t < TEMPORARIES; t++) op.views[FIRST_TEMPORARY + t] = el_view_of(temporaries[p][t], 0);
        el_together_add(&updates, &op);
        if (!together) free_temporaries(program, temporaries[p]);
    }
    el_together_end(&updates);
    for (int p = 0; p < n && together; p++) free_temporaries(program, temporaries[p]);
    limit_norms(shard, program, grads);
    cast_updated(shard, program, grads);
    free(temporaries);
}

void el_shard_free_grads(const struct el_shard *shard, struct el_program *program, const struct el_view *grads)
{
    for (int p = 0; p < shard->graph->n_params; p++) {
        if (grads[p].buffer != shard->grads[p].buffer) el_program_free(program, grads[p].buffer);
    }
}
