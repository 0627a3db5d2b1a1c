/* The stored layout of conv2d's weights, and the cpu table's rows, which choose by shape. */
#include "kernels/cpu/conv2d.h"

#include <string.h>

#include "kernels/cpu/cpu.h"

enum { SIDE = EL_CONV2D_SIDE, BLOCK = EL_CONV2D_BLOCK };

/* Calls `move` per 16 channels of a filter's tap: adjacent at `plain` [f, k, k, c], 16 elements apart in the stored
 * layout. */
static void each_row(const int64_t shape[4], const float *plain, const float *stored,
                     void (*move)(float *plain, float *stored))
{
    int64_t filters = shape[0], taps = shape[1] * shape[2], channels = shape[3];
    for (int64_t f = 0; f < filters; f++)
        for (int64_t tap = 0; tap < taps; tap++)
            for (int64_t c = 0; c < channels; c += SIDE) {
                int64_t block = (f / SIDE * (channels / SIDE) + c / SIDE) * taps + tap;
                move((float *)(uintptr_t)plain + (f * taps + tap) * channels + c,
                     (float *)(uintptr_t)stored + block * BLOCK + f % SIDE);
            }
}

static void pack_row(float *plain, float *stored)
{
    for (int i = 0; i < SIDE; i++) stored[i * SIDE] = plain[i];
}

static void unpack_row(float *plain, float *stored)
{
    for (int i = 0; i < SIDE; i++) plain[i] = stored[i * SIDE];
}

static void pack(const int64_t shape[4], const void *plain, void *stored)
{
    each_row(shape, plain, stored, pack_row);
}

static void unpack(const int64_t shape[4], const void *stored, void *plain)
{
    each_row(shape, plain, stored, unpack_row);
}

/* 16 by 16 blocks: all their taps stay in the L1 cache. */
static void unpack_channels_first(const int64_t shape[4], const void *stored, void *values)
{
    const int64_t taps = shape[1] * shape[2], channels = shape[3];
    const float *from = stored;
    for (int64_t f = 0; f < shape[0]; f += SIDE)
        for (int64_t c = 0; c < channels; c += SIDE, from += taps * BLOCK)
            for (int64_t row = 0; row < SIDE; row++) {
                float *to = (float *)values + ((f + row) * channels + c) * taps;
                for (int64_t tap = 0; tap < taps; tap++)
                    for (int64_t i = 0; i < SIDE; i++) to[i * taps + tap] = from[(tap * SIDE + i) * SIDE + row];
            }
}

const struct el_weights_layout *el_cpu_conv2d_layout(enum el_dtype dtype, const int64_t shape[4])
{
    static const struct el_weights_layout blocks = {.name = "OIhw16i16o",
                                                    .filters = SIDE,
                                                    .pack = pack,
                                                    .unpack = unpack,
                                                    .unpack_channels_first = unpack_channels_first};
    return dtype == EL_F32 && shape[0] % SIDE == 0 && shape[3] % SIDE == 0 ? &blocks : NULL;
}

static enum el_status slow_workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)
{
    size_t bytes = (size_t)(args->d[3] * args->d[4] * args->d[5] * args->d[5]) * sizeof(float);
    *workspace_p = (struct el_workspace){.bytes = args->k[0] ? bytes : 0};
    return EL_OK;
}

static enum el_status slow_run(enum el_op_kind op, const struct el_kernel_args *args)
{
    const struct el_kernel *reference = el_kernels_reference()->find(op, EL_F32);
    const int64_t shape[4] = {args->d[4], args->d[5], args->d[5], args->d[3]};
    int are_output = op == EL_OP_CONV2D_BACKWARD_WEIGHTS, at = are_output ? 2 : 1;
    struct el_kernel_args plain = *args;
    if (!args->k[0]) return reference->run(args);
    plain.k[0] = 0;
    plain.p[at] = args->workspace;
    if (!are_output || args->s[0] != 0) unpack(shape, args->p[at], args->workspace);
    EL_TRY(reference->run(&plain));
    if (are_output) pack(shape, args->workspace, args->p[at]);
    return EL_OK;
}

static const struct el_kernel *choose(enum el_op_kind op, const struct el_kernel_args *args)
{
    const struct el_kernel *few = el_cpu_conv2d_few(op, args);
    return few ? few : el_cpu_dnnl(op, EL_F32);
}

static enum el_status choose_workspace(enum el_op_kind op, const struct el_kernel_args *args,
                                       struct el_workspace *workspace_p)
{
    const struct el_kernel *chosen = choose(op, args);
    if (!chosen) return slow_workspace(args, workspace_p);
    *workspace_p = (struct el_workspace){0};
    return chosen->workspace ? chosen->workspace(args, workspace_p) : EL_OK;
}

static enum el_status choose_prepare(enum el_op_kind op, const struct el_kernel_args *args, void **plan_p)
{
    const struct el_kernel *chosen = choose(op, args);
    *plan_p = NULL;
    return chosen && chosen->prepare ? chosen->prepare(args, plan_p) : EL_OK;
}

static enum el_status choose_run(enum el_op_kind op, const struct el_kernel_args *args)
{
    const struct el_kernel *chosen = choose(op, args);
    return chosen ? chosen->run(args) : slow_run(op, args);
}

static void release(void *plan)
{
    if (plan) el_cpu_dnnl(EL_OP_CONV2D_FORWARD, EL_F32)->release(plan);
}

static const char *describe(const void *plan)
{
    return el_cpu_dnnl(EL_OP_CONV2D_FORWARD, EL_F32)->describe(plan);
}

#define EL_CONV2D_ROW(name, op)                                                                                        \
    static enum el_status name##_workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)        \
    {                                                                                                                  \
        return choose_workspace(op, args, workspace_p);                                                                \
    }                                                                                                                  \
    static enum el_status name##_prepare(const struct el_kernel_args *args, void **plan_p)                             \
    {                                                                                                                  \
        return choose_prepare(op, args, plan_p);                                                                       \
    }                                                                                                                  \
    static enum el_status name##_run(const struct el_kernel_args *args)                                                \
    {                                                                                                                  \
        return choose_run(op, args);                                                                                   \
    }                                                                                                                  \
    static const struct el_kernel name = {.run = name##_run,                                                           \
                                          .workspace = name##_workspace,                                               \
                                          .prepare = name##_prepare,                                                   \
                                          .release = release,                                                          \
                                          .describe = describe};
EL_CONV2D_ROW(forward, EL_OP_CONV2D_FORWARD)
EL_CONV2D_ROW(backward_data, EL_OP_CONV2D_BACKWARD_DATA)
EL_CONV2D_ROW(backward_weights, EL_OP_CONV2D_BACKWARD_WEIGHTS)

const struct el_kernel *el_cpu_conv2d(enum el_op_kind op)
{
    switch (op) {
    case EL_OP_CONV2D_FORWARD:
        return &forward;
    case EL_OP_CONV2D_BACKWARD_DATA:
        return &backward_data;
    case EL_OP_CONV2D_BACKWARD_WEIGHTS:
        return &backward_weights;
    default:
        return NULL;
    }
}
