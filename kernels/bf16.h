/* Rows of bf16 made of a table's rows of f32: operands are widened into the op's workspace, the row of f32 computes
 * there, and what it wrote is rounded back. Where an op's samples, rows or elements (d[0]) have nothing to do with each
 * other it goes by so many at a time as fit a core's cache, so that the scratch is small however large the op is.
 *
 *     static const struct el_bf16_way way = {find, 1 << 15, el_bf16_move};      whose rows of f32 are taken, and how
 *     #define EL_BF16_WAY &way
 *     EL_OP_LIST(EL_BF16_FUNCTIONS)
 *     static const struct el_kernel rows[EL_OP_COUNT] = {EL_OP_LIST(EL_BF16_ROW)};
 *
 * Ownership, threads and errors are those of a row (kernels.h). */
#pragma once

#include "kernels/kernels.h"

struct el_bf16_way {
    const struct el_kernel *(*find)(enum el_op_kind op, enum el_dtype dtype);
    int64_t group_values; /* about so many at a time, of all operands together */
    /* y[n] = x[n]: of bf16 to f32, or, `back`, the other way. */
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

/* A row's functions do not know which op's they are, so each op has its own. */
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
