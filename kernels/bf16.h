/* Rows of bf16 made of rows of f32: operands are widened into the op's workspace, the row of f32 computes there, and
 * what it wrote is rounded back. Where an op's samples, rows or elements (d[0]) have nothing to do with each other it
 * goes by so many at a time as fit a core's cache, so that the scratch is small however large the op is.
 *
 *     #define EL_BF16_FIND find                    whose rows of f32 are taken
 *     EL_OP_LIST(EL_BF16_FUNCTIONS)
 *     static const struct el_kernel rows[EL_OP_COUNT] = {EL_OP_LIST(EL_BF16_ROW)};
 *
 * Ownership, threads and errors are those of a row (kernels.h). */
#pragma once

#include "kernels/kernels.h"

typedef const struct el_kernel *el_bf16_find(enum el_op_kind op, enum el_dtype dtype);

enum el_status el_bf16_workspace(el_bf16_find *find, enum el_op_kind op, const struct el_kernel_args *args,
                                 struct el_workspace *workspace_p);
enum el_status el_bf16_prepare(el_bf16_find *find, enum el_op_kind op, const struct el_kernel_args *args,
                               void **plan_p);
enum el_status el_bf16_run(const struct el_kernel_args *args);
void el_bf16_release(void *plan);

/* A row's functions do not know which op's they are, so each op has its own. */
#define EL_BF16_FUNCTIONS(op, name)                                                                                    \
    static enum el_status name##_workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)        \
    {                                                                                                                  \
        return el_bf16_workspace(EL_BF16_FIND, op, args, workspace_p);                                                 \
    }                                                                                                                  \
    static enum el_status name##_prepare(const struct el_kernel_args *args, void **plan_p)                             \
    {                                                                                                                  \
        return el_bf16_prepare(EL_BF16_FIND, op, args, plan_p);                                                        \
    }
#define EL_BF16_ROW(op, name)                                                                                          \
    [op] = {.run = el_bf16_run, .workspace = name##_workspace, .prepare = name##_prepare, .release = el_bf16_release},
