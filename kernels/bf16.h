/* bf16 rows made from a table's f32 rows: widens operands into the workspace, runs the f32 row, rounds its outputs; if
 * rows (d[0]) are independent, in groups that fit a core's cache.
 *
 *     static const struct el_bf16_way way = {find, 1 << 15, el_bf16_move};
 *     #define EL_BF16_WAY &way
 *     EL_OP_LIST(EL_BF16_FUNCTIONS)
 *     static const struct el_kernel rows[EL_OP_COUNT] = {EL_OP_LIST(EL_BF16_ROW)}; */
#pragma once

#include "kernels/kernels.h"

struct el_bf16_way {
    const struct el_kernel *(*find)(enum el_op_kind op, enum el_dtype dtype);
    int64_t group_values; /* values of all operands in a group, about */
    /* y[n] = x[n], bf16 to f32; `back`: f32 to bf16. */
    enum el_status (*move)(const struct el_kernel_args *args, const void *x, int64_t n, bool back, void *y);
};

/* On the host. */
enum el_status el_bf16_move(const struct el_kernel_args *args, const void *x, int64_t n, bool back, void *y);

enum el_status el_bf16_workspace(const struct el_bf16_way *way, enum el_op_kind op, const struct el_kernel_args *args,
                                 struct el_workspace *workspace_p);
enum el_status el_bf16_prepare(const struct el_bf16_way *way, enum el_op_kind op, const struct el_kernel_args *args,
                               void **plan_p);
enum el_status el_bf16_run(const struct el_kernel_args *args);
void el_bf16_release(void *plan);

/* Per op, because a row's functions do not get the op's kind. */
#define EL_BF16_FUNCTIONS(op, name)                                                                                    \
    static enum el_status name##_workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)        \
    {                                                                                                                  \
        return el_bf16_workspace(EL_BF16_WAY, op, args, workspace_p);                                                  \
    }                                                                                                                  \
    static enum el_status name##_prepare(const struct el_kernel_args *args, void **plan_p)                             \
    {                                                                                                                  \
        return el_bf16_prepare(EL_BF16_WAY, op, args, plan_p);                                                         \
    }                                                                                                                  \
    static bool name##_step_values(const struct el_kernel_args *args, void *values)                                    \
    {                                                                                                                  \
        const struct el_kernel *row = (EL_BF16_WAY)->find(op, EL_F32);                                                 \
        return row->step_values && row->step_values(args, values);                                                     \
    }
#define EL_BF16_ROW(op, name)                                                                                          \
    [op] = {.run = el_bf16_run,                                                                                        \
            .workspace = name##_workspace,                                                                             \
            .prepare = name##_prepare,                                                                                 \
            .release = el_bf16_release,                                                                                \
            .step_values = name##_step_values},
