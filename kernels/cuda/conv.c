/* The convolutions' rows: the choice between cuDNN and columns, kept in a plan. conv1d's bias, ReLU and bias gradient
 * are our kernels. */
#include "kernels/cuda/conv.h"

#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"
#include "kernels/window.h"

struct plan {
    struct el_cuda_conv_cudnn *cudnn; /* NULL: columns */
    char text[160];
};

static struct el_cuda_conv conv_of(enum el_op_kind op, const struct el_kernel_args *args)
{
    const bool over_time = op < EL_OP_CONV2D_FORWARD;
    const enum el_cuda_conv_way way =
        (enum el_cuda_conv_way)(op - (over_time ? EL_OP_CONV1D_FORWARD : EL_OP_CONV2D_FORWARD));
    struct el_cuda_conv conv = {.way = way,
                                .in = {args->p[0], args->p[1]},
                                .out = args->p[over_time && way == EL_CONV_FORWARD ? 3 : 2],
                                .acc = way != EL_CONV_FORWARD && args->s[0] != 0};
    if (over_time) {
        const int64_t *d = args->d;
        conv.b = d[0], conv.w = d[1], conv.c = d[2], conv.f = d[3], conv.kw = d[4], conv.ow = d[1] - d[4] + 1;
        conv.h = conv.kh = conv.oh = conv.stride = 1;
    } else {
        const struct el_window s = el_window_of_conv2d(args->d);
        conv.b = s.b, conv.h = s.h, conv.w = s.w, conv.c = s.c, conv.f = s.f, conv.kh = conv.kw = s.k;
        conv.stride = s.stride, conv.pad = s.pad, conv.oh = s.oh, conv.ow = s.ow;
    }
    return conv;
}

static size_t bias_bytes(enum el_op_kind op, const struct el_cuda_conv *conv)
{
    if (op != EL_OP_CONV1D_BACKWARD_WEIGHTS) return 0;
    return el_cuda_align(el_cuda_sum_rows_bytes(conv->b * conv->ow, conv->f, 1));
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool ask_cudnn(const struct el_cuda_native *native, const struct el_cuda_conv *conv, size_t *bytes_p)
{
    struct el_cuda_conv_cudnn *cudnn = NULL;
    if (!native->cudnn || el_cuda_cudnn()->make(native, conv, el_cuda_conv_cudnn_bytes(conv), &cudnn) != EL_OK)
        return false;
    *bytes_p = cudnn->scratch_bytes;
    el_cuda_cudnn()->destroy(cudnn);
    return true;
}

/* Enough for either way, because cuDNN may still refuse at run time: the chosen way's scratch, the rest is an
 * allowance. Without a device to ask, cuDNN's maximum. */
static enum el_status workspace(enum el_op_kind op, const struct el_kernel_args *args, enum el_dtype dtype,
                                struct el_workspace *workspace_p)
{
    const struct el_cuda_conv conv = conv_of(op, args);
    size_t used = el_cuda_conv_columns_bytes(&conv, dtype), all = used, asked;
    if (dtype == EL_F32 && !args->native && el_cuda_cudnn()) {
        all = larger(all, el_cuda_conv_cudnn_bytes(&conv));
        used = 0;
    }
    if (dtype == EL_F32 && args->native && ask_cudnn(args->native, &conv, &asked)) {
        all = larger(all, asked);
        used = asked;
    }
    *workspace_p = (struct el_workspace){.bytes = bias_bytes(op, &conv) + all, .allowance_bytes = all - used};
    return EL_OK;
}

/* cuDNN may load several numbers at once; views of a flat buffer can be at any address. */
static bool is_aligned(const struct el_kernel_args *args, const struct el_cuda_conv *conv)
{
    uintptr_t all = (uintptr_t)conv->in[0] | (uintptr_t)conv->in[1] | (uintptr_t)conv->out;
    all |= (uintptr_t)args->workspace;
    return all % EL_CUDA_ALIGNMENT == 0;
}

static void take_columns(struct plan *plan, const char *why)
{
    snprintf(plan->text, sizeof plan->text, "cuBLAS, a product over columns (%s)", why);
    if (plan->cudnn) el_cuda_cudnn()->destroy(plan->cudnn);
    plan->cudnn = NULL;
}

static enum el_status prepare(enum el_op_kind op, const struct el_kernel_args *args, enum el_dtype dtype, void **plan_p)
{
    const struct el_cuda_native *native = args->native;
    const struct el_cuda_conv conv = conv_of(op, args);
    const bool asked = dtype == EL_F32 && native->cudnn;
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) return el_fail(EL_ERR_HOST_MEMORY, "cuda convolution: no memory for a plan");
    if (!asked)
        take_columns(plan, dtype == EL_F64 ? "f64" : "no cuDNN");
    else if (!is_aligned(args, &conv))
        take_columns(plan, "operands that are not aligned");
    else if (el_cuda_cudnn()->make(native, &conv, el_cuda_conv_cudnn_bytes(&conv), &plan->cudnn) != EL_OK)
        take_columns(plan, el_error_message());
    else if (plan->cudnn->scratch_bytes > args->workspace_bytes - bias_bytes(op, &conv))
        take_columns(plan, "cuDNN: an algorithm that wants more scratch than it asked for");
    else
        snprintf(plan->text, sizeof plan->text, "%s", plan->cudnn->text);
    *plan_p = plan;
    return EL_OK;
}

static enum el_status convolve(const struct el_kernel_args *args, const struct el_cuda_conv *conv, enum el_dtype dtype,
                               void *scratch)
{
    struct plan *plan = args->plan;
    if (plan->cudnn) {
        enum el_status status = el_cuda_cudnn()->run(plan->cudnn, args->native, conv, scratch);
        if (status != EL_ERR_ABSENT) return status;
        /* cuDNN accepted in prepare() but cannot run (missing library, unknown device). Nothing is done yet: from now
         * on by columns. */
        take_columns(plan, el_error_message());
    }
    return el_cuda_conv_columns_run(args, conv, dtype, scratch);
}

static enum el_status run(enum el_op_kind op, const struct el_kernel_args *args, enum el_dtype dtype)
{
    const struct el_cuda_conv conv = conv_of(op, args);
    const int64_t rows = conv.b * conv.ow;
    EL_TRY(convolve(args, &conv, dtype, (char *)args->workspace + bias_bytes(op, &conv)));
    if (op == EL_OP_CONV1D_FORWARD)
        return el_cuda_bias(args, dtype, rows, conv.f, args->p[3], args->p[2], args->s[0] != 0, args->p[3]);
    if (op != EL_OP_CONV1D_BACKWARD_WEIGHTS) return EL_OK;
    return el_cuda_sum_rows(args, dtype, args->p[1], rows, conv.f, conv.acc, args->p[3]);
}

static void release(void *plan_or_null)
{
    struct plan *plan = plan_or_null;
    if (plan && plan->cudnn) el_cuda_cudnn()->destroy(plan->cudnn);
    free(plan);
}

static const char *describe(const void *plan)
{
    return ((const struct plan *)plan)->text;
}

#define FUNCTIONS(op, name, type, dtype)                                                                               \
    static enum el_status name##_workspace_##type(const struct el_kernel_args *args, struct el_workspace *workspace_p) \
    {                                                                                                                  \
        return workspace(op, args, dtype, workspace_p);                                                                \
    }                                                                                                                  \
    static enum el_status name##_prepare_##type(const struct el_kernel_args *args, void **plan_p)                      \
    {                                                                                                                  \
        return prepare(op, args, dtype, plan_p);                                                                       \
    }                                                                                                                  \
    static enum el_status name##_##type(const struct el_kernel_args *args)                                             \
    {                                                                                                                  \
        return run(op, args, dtype);                                                                                   \
    }
#define BOTH_TYPES(op, name) FUNCTIONS(op, name, f32, EL_F32) FUNCTIONS(op, name, f64, EL_F64)
#define KERNEL(name, type)                                                                                             \
    {                                                                                                                  \
        .run = name##_##type, .workspace = name##_workspace_##type, .prepare = name##_prepare_##type,                  \
        .release = release, .describe = describe                                                                       \
    }
#define ROW(op, name) [op - EL_OP_CONV1D_FORWARD] = {[EL_F32] = KERNEL(name, f32), [EL_F64] = KERNEL(name, f64)},
#define OPS(X)                                                                                                         \
    X(EL_OP_CONV1D_FORWARD, conv1d_forward)                                                                            \
    X(EL_OP_CONV1D_BACKWARD_DATA, conv1d_data)                                                                         \
    X(EL_OP_CONV1D_BACKWARD_WEIGHTS, conv1d_weights)                                                                   \
    X(EL_OP_CONV2D_FORWARD, conv2d_forward)                                                                            \
    X(EL_OP_CONV2D_BACKWARD_DATA, conv2d_data)                                                                         \
    X(EL_OP_CONV2D_BACKWARD_WEIGHTS, conv2d_weights)
OPS(BOTH_TYPES)
const struct el_kernel el_cuda_conv_rows[EL_CUDA_CONV_OPS][2] = {OPS(ROW)};
_Static_assert(EL_OP_CONV1D_BACKWARD_DATA - EL_OP_CONV1D_FORWARD == EL_CONV_DATA &&
                   EL_OP_CONV1D_BACKWARD_WEIGHTS - EL_OP_CONV1D_FORWARD == EL_CONV_WEIGHTS &&
                   EL_OP_CONV2D_BACKWARD_DATA - EL_OP_CONV2D_FORWARD == EL_CONV_DATA &&
                   EL_OP_CONV2D_BACKWARD_WEIGHTS - EL_OP_CONV2D_FORWARD == EL_CONV_WEIGHTS &&
                   EL_OP_CONV2D_FORWARD > EL_OP_CONV1D_FORWARD,
               "a way is its op's place in its family");
