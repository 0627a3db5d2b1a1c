/* The convolution's rows. In f32 cuDNN does it where it is there and has an algorithm that fits; else, and in f64, it
 * is a product a tap. The bias, its ReLU and its gradient are kernels of ours either way. */
#include "kernels/cuda/conv1d.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/typed.h"

enum { CUDNN_ALIGNMENT = 16 };

/* What prepare() chose. */
struct plan {
    struct el_cuda_conv_cudnn *cudnn; /* NULL: a product a tap */
    char text[160];
};

/* The workspace: first the stretches of the bias' gradient, then what the chosen way needs. */
struct layout {
    size_t scratch, bytes;
};

static struct layout layout_of(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype)
{
    struct el_cuda_conv_sizes s = el_cuda_conv_sizes(args);
    struct layout layout = {0, 0};
    size_t taps = 0, cudnn = 0;
    if (way == EL_CONV_WEIGHTS) {
        layout.scratch = el_cuda_align(el_cuda_sum_rows_bytes(s.b * s.windows, s.f));
        taps = el_cuda_conv_pad_bytes(&s, dtype);
    }
#ifdef EL_HAVE_CUDNN
    if (dtype == EL_F32) cudnn = el_cuda_conv_cudnn_bytes(&s);
#endif
    layout.bytes = layout.scratch + (taps > cudnn ? taps : cudnn);
    return layout;
}

/* cuDNN may load several numbers at once; views of a flat buffer lie anywhere. */
static bool is_aligned(enum el_cuda_conv_way way, const struct el_kernel_args *args)
{
    uintptr_t all = (uintptr_t)args->p[0] | (uintptr_t)args->p[1] | (uintptr_t)args->workspace;
    all |= (uintptr_t)args->p[way == EL_CONV_FORWARD ? 3 : 2];
    return all % CUDNN_ALIGNMENT == 0;
}

static enum el_status prepare(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype,
                              void **plan_p)
{
    const struct el_cuda_native *native = args->native;
    const char *why = dtype == EL_F64 ? "f64" : "no cuDNN";
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) return el_fail(EL_ERR_HOST_MEMORY, "cuda conv1d: no memory for a plan");
    if (dtype == EL_F32 && native->cudnn && !is_aligned(way, args))
        why = "operands that are not aligned";
    else if (dtype == EL_F32 && native->cudnn && el_cuda_conv_cudnn_make(way, args, &plan->cudnn) != EL_OK)
        why = el_error_message();
    if (plan->cudnn)
        snprintf(plan->text, sizeof plan->text, "%s", el_cuda_conv_cudnn_text(plan->cudnn));
    else
        snprintf(plan->text, sizeof plan->text, "cuBLAS, a product a tap (%s)", why);
    *plan_p = plan;
    return EL_OK;
}

static void release(void *plan_or_null)
{
    struct plan *plan = plan_or_null;
    if (!plan) return;
    el_cuda_conv_cudnn_destroy(plan->cudnn);
    free(plan);
}

static const char *describe(const void *plan)
{
    return ((const struct plan *)plan)->text;
}

static enum el_status convolve(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype)
{
    const struct plan *plan = args->plan;
    void *scratch = (char *)args->workspace + layout_of(way, args, dtype).scratch;
    if (plan->cudnn) return el_cuda_conv_cudnn_run(plan->cudnn, args, scratch);
    return el_cuda_conv_taps(way, args, dtype, scratch);
}

static enum el_status run_forward(const struct el_kernel_args *args, enum el_dtype dtype)
{
    struct el_cuda_conv_sizes s = el_cuda_conv_sizes(args);
    EL_TRY(convolve(EL_CONV_FORWARD, args, dtype));
    return el_cuda_bias(args, dtype, s.b * s.windows, s.f, args->p[2], args->s[0] != 0, args->p[3]);
}

static enum el_status run_data(const struct el_kernel_args *args, enum el_dtype dtype)
{
    return convolve(EL_CONV_DATA, args, dtype);
}

static enum el_status run_weights(const struct el_kernel_args *args, enum el_dtype dtype)
{
    struct el_cuda_conv_sizes s = el_cuda_conv_sizes(args);
    EL_TRY(convolve(EL_CONV_WEIGHTS, args, dtype));
    return el_cuda_sum_rows(args, dtype, args->p[1], s.b * s.windows, s.f, args->s[0] != 0, args->workspace,
                            args->p[3]);
}

/* A row for one way and one type. */
#define CONV_ROW(way, name, type, dtype)                                                                               \
    static enum el_status name##_workspace_##type(const struct el_kernel_args *args, struct el_workspace *workspace_p) \
    {                                                                                                                  \
        *workspace_p = (struct el_workspace){.bytes = layout_of(way, args, dtype).bytes};                              \
        return EL_OK;                                                                                                  \
    }                                                                                                                  \
    static enum el_status name##_prepare_##type(const struct el_kernel_args *args, void **plan_p)                      \
    {                                                                                                                  \
        return prepare(way, args, dtype, plan_p);                                                                      \
    }                                                                                                                  \
    static enum el_status name##_##type(const struct el_kernel_args *args)                                             \
    {                                                                                                                  \
        return run_##name(args, dtype);                                                                                \
    }

CONV_ROW(EL_CONV_FORWARD, forward, f32, EL_F32)
CONV_ROW(EL_CONV_FORWARD, forward, f64, EL_F64)
CONV_ROW(EL_CONV_DATA, data, f32, EL_F32)
CONV_ROW(EL_CONV_DATA, data, f64, EL_F64)
CONV_ROW(EL_CONV_WEIGHTS, weights, f32, EL_F32)
CONV_ROW(EL_CONV_WEIGHTS, weights, f64, EL_F64)

#define CONV_KERNEL(name, type)                                                                                        \
    {                                                                                                                  \
        .run = name##_##type, .workspace = name##_workspace_##type, .prepare = name##_prepare_##type,                  \
        .release = release, .describe = describe                                                                       \
    }

_Static_assert(EL_OP_CONV1D_BACKWARD_DATA - EL_OP_CONV1D_FORWARD == EL_CONV_DATA &&
                   EL_OP_CONV1D_BACKWARD_WEIGHTS - EL_OP_CONV1D_FORWARD == EL_CONV_WEIGHTS,
               "the table finds a row by its op's place");

const struct el_kernel el_cuda_conv1d_rows[3][2] = {
    [EL_CONV_FORWARD] = {[EL_F32] = CONV_KERNEL(forward, f32), [EL_F64] = CONV_KERNEL(forward, f64)},
    [EL_CONV_DATA] = {[EL_F32] = CONV_KERNEL(data, f32), [EL_F64] = CONV_KERNEL(data, f64)},
    [EL_CONV_WEIGHTS] = {[EL_F32] = CONV_KERNEL(weights, f32), [EL_F64] = CONV_KERNEL(weights, f64)},
};
