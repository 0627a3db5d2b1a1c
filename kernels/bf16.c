/* bf16 rows from f32 rows (bf16.h); shapes.c gives the operands' types and sizes. */
#include "kernels/bf16.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/base/half.h"
#include "runtime/base/vector.h"

enum { ALIGN_VALUES = 16 };

EL_VECTOR static void widen(const uint16_t *restrict x, int64_t n, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = el_f32_of_bf16(x[i]);
}

EL_VECTOR static void narrow(const float *restrict x, int64_t n, uint16_t *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = el_bf16_of_f32(x[i]);
}

enum el_status el_bf16_move(const struct el_kernel_args *args, const void *x, int64_t n, bool back, void *y)
{
    (void)args;
    if (back)
        narrow(x, n, y);
    else
        widen(x, n, y);
    return EL_OK;
}

/* How an operand enters the f32 row: `fixed` values in all, and `each` per row. */
struct operand {
    int64_t fixed, each;
    size_t width;
    bool half, written; /* bf16 */
    int64_t at;         /* a half operand's place in the workspace, in values */
};

struct plan {
    const struct el_bf16_way *way;
    const struct el_kernel *row;
    enum el_op_kind op;
    int n;
    struct operand operands[EL_ARGS_POINTERS];
    int64_t rows, values; /* of a group; of all half operands together */
    struct el_kernel_args args;
};

/* Whether rows are independent: every output that sums over rows can be accumulated. */
static bool goes_by_rows(enum el_op_kind op)
{
    switch (op) {
    case EL_OP_CONV1D_FORWARD:
    case EL_OP_CONV1D_BACKWARD_DATA:
    case EL_OP_CONV1D_BACKWARD_WEIGHTS:
    case EL_OP_CONV2D_FORWARD:
    case EL_OP_CONV2D_BACKWARD_DATA:
    case EL_OP_CONV2D_BACKWARD_WEIGHTS:
    case EL_OP_LINEAR_FORWARD:
    case EL_OP_LINEAR_BACKWARD_DATA:
    case EL_OP_LINEAR_BACKWARD_WEIGHTS:
    case EL_OP_BATCH_NORM_FORWARD:
    case EL_OP_BATCH_NORM_BACKWARD:
    case EL_OP_COPY_COLUMNS:
    case EL_OP_CROSS_ENTROPY:
    case EL_OP_CROSS_ENTROPY_JOIN:
    case EL_OP_MSE:
        return false;
    default:
        return !el_op_is_of_experts(op);
    }
}

/* Takes whole rows of wider matrices. */
static void take_wider(const struct el_kernel_args *args, struct operand operands[2])
{
    for (int i = 0; i < 2; i++) operands[i].fixed = (args->d[0] - 1) * args->d[2 + i] + args->d[1];
}

static void plan_operands(const struct el_bf16_way *way, enum el_op_kind op, const struct el_kernel_args *args,
                          struct plan *plan)
{
    struct el_op_operand one[EL_ARGS_POINTERS], two[EL_ARGS_POINTERS];
    const bool by_rows = goes_by_rows(op);
    int64_t d[EL_ARGS_SIZES], each = 0;
    *plan = (struct plan){.way = way, .row = way->find(op, EL_F32), .op = op, .args = *args};
    memcpy(d, args->d, sizeof d);
    if (by_rows) d[0] = 1;
    plan->n = el_op_operands(el_op_name(op), "bf16", d, one);
    if (by_rows) d[0] = 2;
    el_op_operands(el_op_name(op), "bf16", d, two);
    for (int i = 0; i < plan->n; i++) {
        struct operand *operand = &plan->operands[i];
        int64_t count = el_operand_count(&one[i]);
        operand->each = el_operand_count(&two[i]) - count;
        operand->fixed = count - operand->each;
        operand->half = !strcmp(one[i].dtype, "bf16");
        operand->width = operand->half ? sizeof(uint16_t) : sizeof(float);
        operand->written = one[i].written;
        if (operand->half) each += operand->each;
    }
    if (op == EL_OP_COPY_COLUMNS) take_wider(args, plan->operands);
    plan->rows = args->d[0];
    if (by_rows && each * plan->rows > way->group_values)
        plan->rows = each < way->group_values ? way->group_values / each : 1;
    for (int i = 0; i < plan->n; i++) {
        struct operand *operand = &plan->operands[i];
        int64_t count = operand->fixed + operand->each * plan->rows;
        operand->at = plan->values;
        if (operand->half) plan->values += (count + ALIGN_VALUES - 1) / ALIGN_VALUES * ALIGN_VALUES;
    }
    plan->args.d[0] = plan->rows;
    plan->args.n_tensors = 0;
}

enum el_status el_bf16_workspace(const struct el_bf16_way *way, enum el_op_kind op, const struct el_kernel_args *args,
                                 struct el_workspace *workspace_p)
{
    struct plan plan;
    struct el_workspace own = {0};
    plan_operands(way, op, args, &plan);
    if (plan.row->workspace) EL_TRY(plan.row->workspace(&plan.args, &own));
    own.bytes += (size_t)plan.values * sizeof(float);
    *workspace_p = own;
    return EL_OK;
}

enum el_status el_bf16_prepare(const struct el_bf16_way *way, enum el_op_kind op, const struct el_kernel_args *args,
                               void **plan_p)
{
    struct plan *plan = malloc(sizeof *plan);
    if (!plan) return el_fail_errno("%s of bf16", el_op_name(op));
    plan_operands(way, op, args, plan);
    plan->args.workspace = (float *)args->workspace + plan->values;
    for (int i = 0; i < plan->n; i++)
        if (plan->operands[i].half && args->p[i]) plan->args.p[i] = (float *)args->workspace + plan->operands[i].at;
    enum el_status status = plan->row->prepare ? plan->row->prepare(&plan->args, &plan->args.plan) : EL_OK;
    if (status == EL_OK)
        *plan_p = plan;
    else
        free(plan);
    return status;
}

static void go_on(enum el_op_kind op, struct el_kernel_args *args)
{
    if (op == EL_OP_SUM_ROWS || op == EL_OP_EMBEDDING_BACKWARD) args->s[0] = 1;
    if (op == EL_OP_LAYER_NORM_BACKWARD) args->s[1] = 1;
}

static enum el_status move(const struct plan *plan, const struct el_kernel_args *args, const struct el_kernel_args *own,
                           int64_t first, bool back)
{
    for (int i = 0; i < plan->n; i++) {
        const struct operand *operand = &plan->operands[i];
        int64_t count = operand->fixed + operand->each * own->d[0];
        if (!operand->half || !args->p[i]) continue;
        uint16_t *half = (uint16_t *)args->p[i] + first * operand->each;
        if (!back)
            EL_TRY(plan->way->move(args, half, count, false, own->p[i]));
        else if (operand->written)
            EL_TRY(plan->way->move(args, own->p[i], count, true, half));
    }
    return EL_OK;
}

enum el_status el_bf16_run(const struct el_kernel_args *args)
{
    const struct plan *plan = args->plan;
    struct el_kernel_args own = plan->args;
    own.step = args->step;
    own.step_values = args->step_values;
    own.native = args->native;
    for (int64_t first = 0; first < args->d[0]; first += plan->rows) {
        own.d[0] = args->d[0] - first < plan->rows ? args->d[0] - first : plan->rows;
        if (plan->op == EL_OP_DROPOUT) own.d[2] = args->d[2] + first * args->d[3];
        for (int i = 0; i < plan->n; i++)
            if (!plan->operands[i].half && args->p[i])
                own.p[i] = (char *)args->p[i] + (size_t)(first * plan->operands[i].each) * plan->operands[i].width;
        EL_TRY(move(plan, args, &own, first, false));
        EL_TRY(plan->row->run(&own));
        EL_TRY(move(plan, args, &own, first, true));
        go_on(plan->op, &own);
    }
    return EL_OK;
}

void el_bf16_release(void *plan_or_null)
{
    struct plan *plan = plan_or_null;
    if (plan && plan->row->release) plan->row->release(plan->args.plan);
    free(plan);
}
