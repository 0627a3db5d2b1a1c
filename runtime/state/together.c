/* One op for many tensors, for devices limited by launches. */
#include "runtime/state/together.h"

#include <stdlib.h>
#include <string.h>

static struct el_kernel_op move_of(enum el_phase phase, const char *label, enum el_dtype from, struct el_view x,
                                   enum el_dtype to, struct el_view y, int64_t n, double scale)
{
    return (struct el_kernel_op){.head = {.label = label, .phase = phase},
                                 .op = from == to ? EL_OP_SCALE : EL_OP_CAST,
                                 .dtype = to,
                                 .views = {x, y},
                                 .args = {.d = {n}, .s = {scale}, .k = {from == to ? 0 : from}}};
}

void el_shard_issue_move(const struct el_shard *shard, struct el_program *program, enum el_phase phase,
                         const char *label, enum el_dtype from, struct el_view x, enum el_dtype to, struct el_view y,
                         int64_t n, double scale)
{
    struct el_kernel_op op = move_of(phase, label, from, x, to, y, n, scale);
    el_program_kernel(program, shard->device, EL_STREAM_COMPUTE, &op, NULL);
}

bool el_together_is_on(const struct el_shard *shard)
{
    return shard->config->foreach == EL_FOREACH_ON;
}

void el_together_add(struct el_together *together, const struct el_kernel_op *op)
{
    const struct el_shard *shard = together->shard;
    if (!el_together_is_on(shard)) {
        el_program_kernel(together->program, shard->device, EL_STREAM_COMPUTE, op, NULL);
        return;
    }
    int n = together->op.n_tensors;
    if (!together->tensors) together->tensors = calloc((size_t)shard->graph->n_params, sizeof *together->tensors);
    if (!together->tensors) {
        el_program_fail(together->program, el_fail_errno("%d parameters", shard->graph->n_params));
        return;
    }
    together->op = *op;
    together->op.head.label = together->label;
    together->op.n_tensors = n + 1;
    memcpy(together->tensors[n].views, op->views, sizeof together->tensors[n].views);
    together->tensors[n].n = op->args.d[0];
}

void el_together_move(struct el_together *together, enum el_dtype from, struct el_view x, enum el_dtype to,
                      struct el_view y, int64_t n, double scale)
{
    struct el_kernel_op op = move_of(together->phase, together->label, from, x, to, y, n, scale);
    el_together_add(together, &op);
}

void el_together_copy(struct el_together *together, struct el_view x, struct el_view y, int64_t n)
{
    const struct el_shard *shard = together->shard;
    const enum el_dtype dtype = el_config_stored(shard->config);
    const struct el_op_head head = {.label = together->label, .phase = together->phase};
    if (el_together_is_on(shard))
        el_together_move(together, dtype, x, dtype, y, n, 1);
    else
        el_program_copy(together->program, shard->device, EL_STREAM_COMPUTE, &head, y, x,
                        (size_t)n * el_dtype_bytes(dtype), NULL);
}

void el_together_zero(struct el_together *together, struct el_view x, int64_t n)
{
    const struct el_kernel_op op = {.head = {.label = together->label, .phase = together->phase},
                                    .op = EL_OP_FILL,
                                    .dtype = el_config_stored(together->shard->config),
                                    .views = {x},
                                    .args = {.d = {n}}};
    el_together_add(together, &op);
}

void el_together_end(struct el_together *together)
{
    together->op.tensors = together->tensors;
    if (together->op.n_tensors > 0)
        el_program_kernel(together->program, together->shard->device, EL_STREAM_COMPUTE, &together->op, NULL);
    free(together->tensors);
}
