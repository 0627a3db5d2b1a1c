/* The module el_cudnn.so: NHWC activations, KRSC weights[f,kh,kw,c]. FFT and Winograd round differently from a sum, and
 * algorithms with atomics are not deterministic: all are excluded. For f32 the math type is FMA, because cuDNN's
 * default uses TF32. */
#include <cudnn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/check.h"
#include "kernels/cuda/conv.h"

/* EL_ERR_ABSENT: unsupported here; nothing was done. */
static enum el_status check(cudnnStatus_t error, const char *call)
{
    if (error == CUDNN_STATUS_SUCCESS) return EL_OK;
#if CUDNN_MAJOR >= 9
    int oom = error == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    const int sublibrary_loading_failed = 1008; /* no name in cuDNN 9.0 and 9.1 */
    int cannot = error / 1000 == CUDNN_STATUS_NOT_SUPPORTED / 1000 || (int)error == sublibrary_loading_failed;
#else
    int oom = error == CUDNN_STATUS_ALLOC_FAILED;
    int cannot = error == CUDNN_STATUS_NOT_SUPPORTED || error == CUDNN_STATUS_ARCH_MISMATCH;
#endif
    enum el_status status = oom ? EL_ERR_OOM : cannot ? EL_ERR_ABSENT : EL_ERR_INTERNAL;
    return el_cuda_library_failed(status, call, cudnnGetErrorString(error));
}
#define EL_CUDNN_TRY(call) EL_TRY(check((call), #call))

static enum el_status open_handle(struct el_cuda_native *native)
{
    cudnnHandle_t handle;
    EL_CUDNN_TRY(cudnnCreate(&handle));
    enum el_status status = check(cudnnSetStream(handle, (cudaStream_t)native->stream), "cudnnSetStream");
    if (status == EL_OK)
        native->cudnn = handle;
    else
        cudnnDestroy(handle);
    return status;
}

static void close_handle(struct el_cuda_native *native)
{
    if (native->cudnn) cudnnDestroy(native->cudnn);
    native->cudnn = NULL;
}

enum { CANDIDATES = 16 };

struct choice {
    int algorithm;
    cudnnMathType_t math;
    size_t scratch_bytes;
};

struct plan {
    struct el_cuda_conv_cudnn base;
    enum el_cuda_conv_way way;
    cudnnTensorDescriptor_t x, y;
    cudnnFilterDescriptor_t w;
    cudnnConvolutionDescriptor_t conv;
    struct choice choice;
};

static enum el_status describe_operands(const struct el_cuda_conv *s, struct plan *conv)
{
    const cudnnTensorFormat_t format = CUDNN_TENSOR_NHWC;
    const cudnnDataType_t real = CUDNN_DATA_FLOAT;
    int b = (int)s->b, c = (int)s->c, f = (int)s->f, stride = (int)s->stride, pad = (int)s->pad;
    EL_CUDNN_TRY(cudnnCreateTensorDescriptor(&conv->x));
    EL_CUDNN_TRY(cudnnCreateTensorDescriptor(&conv->y));
    EL_CUDNN_TRY(cudnnCreateFilterDescriptor(&conv->w));
    EL_CUDNN_TRY(cudnnCreateConvolutionDescriptor(&conv->conv));
    EL_CUDNN_TRY(cudnnSetTensor4dDescriptor(conv->x, format, real, b, c, (int)s->h, (int)s->w));
    EL_CUDNN_TRY(cudnnSetTensor4dDescriptor(conv->y, format, real, b, f, (int)s->oh, (int)s->ow));
    EL_CUDNN_TRY(cudnnSetFilter4dDescriptor(conv->w, real, format, f, c, (int)s->kh, (int)s->kw));
    EL_CUDNN_TRY(
        cudnnSetConvolution2dDescriptor(conv->conv, pad, pad, stride, stride, 1, 1, CUDNN_CROSS_CORRELATION, real));
    return EL_OK;
}

struct candidate {
    int algorithm;
    cudnnStatus_t status;
    cudnnDeterminism_t determinism;
    cudnnMathType_t math;
};

#define CANDIDATES_OF(ask, type, ...)                                                                                  \
    do {                                                                                                               \
        type answers[CANDIDATES];                                                                                      \
        int n = 0;                                                                                                     \
        EL_CUDNN_TRY(ask(__VA_ARGS__, most, &n, answers));                                                             \
        for (int i = 0; i < n; i++)                                                                                    \
            list[i] = (struct candidate){(int)answers[i].algo, answers[i].status, answers[i].determinism,              \
                                         answers[i].mathType};                                                         \
        *n_p = n;                                                                                                      \
    } while (0)

static enum el_status ask_heuristics(cudnnHandle_t handle, const struct plan *conv, int most,
                                     struct candidate list[CANDIDATES], int *n_p)
{
    if (conv->way == EL_CONV_FORWARD)
        CANDIDATES_OF(cudnnGetConvolutionForwardAlgorithm_v7, cudnnConvolutionFwdAlgoPerf_t, handle, conv->x, conv->w,
                      conv->conv, conv->y);
    else if (conv->way == EL_CONV_DATA)
        CANDIDATES_OF(cudnnGetConvolutionBackwardDataAlgorithm_v7, cudnnConvolutionBwdDataAlgoPerf_t, handle, conv->w,
                      conv->y, conv->conv, conv->x);
    else
        CANDIDATES_OF(cudnnGetConvolutionBackwardFilterAlgorithm_v7, cudnnConvolutionBwdFilterAlgoPerf_t, handle,
                      conv->x, conv->y, conv->conv, conv->w);
    return EL_OK;
}

/* Also cuDNN's way to say that an algorithm is unsupported. */
static cudnnStatus_t scratch_of(cudnnHandle_t handle, const struct plan *conv, int algorithm, size_t *bytes_p)
{
    switch (conv->way) {
    case EL_CONV_FORWARD:
        return cudnnGetConvolutionForwardWorkspaceSize(handle, conv->x, conv->w, conv->conv, conv->y,
                                                       (cudnnConvolutionFwdAlgo_t)algorithm, bytes_p);
    case EL_CONV_DATA:
        return cudnnGetConvolutionBackwardDataWorkspaceSize(handle, conv->w, conv->y, conv->conv, conv->x,
                                                            (cudnnConvolutionBwdDataAlgo_t)algorithm, bytes_p);
    default:
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(handle, conv->x, conv->y, conv->conv, conv->w,
                                                              (cudnnConvolutionBwdFilterAlgo_t)algorithm, bytes_p);
    }
}

static bool sums_plainly(enum el_cuda_conv_way way, int algorithm)
{
    if (way == EL_CONV_DATA) return algorithm == CUDNN_CONVOLUTION_BWD_DATA_ALGO_1;
    if (way == EL_CONV_WEIGHTS) return algorithm == CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1;
    return algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM ||
           algorithm == CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM ||
           algorithm == CUDNN_CONVOLUTION_FWD_ALGO_GEMM;
}

static enum el_status choose(cudnnHandle_t handle, bool tf32, size_t most_bytes, int most, struct plan *conv)
{
    struct candidate list[CANDIDATES];
    int n = 0;
    EL_TRY(ask_heuristics(handle, conv, most, list, &n));
    for (int i = 0; i < n; i++) {
        size_t bytes = 0;
        if (list[i].status != CUDNN_STATUS_SUCCESS || list[i].determinism != CUDNN_DETERMINISTIC) continue;
        if (!sums_plainly(conv->way, list[i].algorithm)) continue;
        /* The heuristics may name another math type; the one set here is used. */
        cudnnMathType_t math = tf32 ? list[i].math : CUDNN_FMA_MATH;
        /* This one may convert f32 to f16; the default goes to TF32 at most. */
        if (math == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) math = CUDNN_DEFAULT_MATH;
        EL_CUDNN_TRY(cudnnSetConvolutionMathType(conv->conv, math));
        if (scratch_of(handle, conv, list[i].algorithm, &bytes) != CUDNN_STATUS_SUCCESS || bytes > most_bytes) continue;
        conv->choice = (struct choice){list[i].algorithm, math, bytes};
        return EL_OK;
    }
    return el_fail(EL_ERR_ABSENT, "cuDNN: none of %d algorithms is deterministic, plain and within %zu bytes", n,
                   most_bytes);
}

/* Choices for the life of the process: the heuristics take 1 ms, networks repeat convolutions, and a check of many
 * trainings reopens its devices. */
enum { KEY = 13 };
struct known {
    int64_t key[KEY];
    struct choice choice;
    struct known *next;
};
static _Atomic(struct known *) all_known;

static bool recall(const int64_t key[KEY], struct choice *choice_p)
{
    const struct known *known = atomic_load(&all_known);
    while (known && memcmp(known->key, key, sizeof known->key) != 0) known = known->next;
    if (known) *choice_p = known->choice;
    return known;
}

static void remember(const int64_t key[KEY], const struct choice *choice)
{
    struct known *known = malloc(sizeof *known);
    if (!known) return;
    memcpy(known->key, key, sizeof known->key);
    known->choice = *choice;
    known->next = atomic_load(&all_known);
    while (!atomic_compare_exchange_weak(&all_known, &known->next, known)) continue;
}

/* cuDNN counts in int. */
static bool fits(const struct el_cuda_conv *s)
{
    int64_t x = s->h * s->w * s->c, y = s->oh * s->ow * s->f;
    return s->b > 0 && s->kh * s->kw * s->c <= INT_MAX / s->f && (x > y ? x : y) <= INT_MAX / s->b;
}

static enum el_status fill(const struct el_cuda_native *native, const struct el_cuda_conv *conv, size_t most_bytes,
                           struct plan *plan)
{
    const int64_t key[KEY] = {
        native->device, native->tf32, conv->way, (int64_t)most_bytes, conv->b,  conv->h, conv->w, conv->c,
        conv->f,        conv->kh,     conv->kw,  conv->stride,        conv->pad};
    if (!fits(conv)) return el_fail(EL_ERR_ABSENT, "cuDNN: sizes beyond an int");
    EL_TRY(describe_operands(conv, plan));
    if (!recall(key, &plan->choice)) {
        EL_CUDNN_TRY(cudnnSetConvolutionMathType(plan->conv, native->tf32 ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH));
        enum el_status status = choose(native->cudnn, native->tf32, most_bytes, 1, plan);
        if (status == EL_ERR_ABSENT) status = choose(native->cudnn, native->tf32, most_bytes, CANDIDATES, plan);
        EL_TRY(status);
        remember(key, &plan->choice);
    }
    const char *override = getenv("NVIDIA_TF32_OVERRIDE"); /* 0: the libraries never use TF32 */
    const bool f32 = plan->choice.math == CUDNN_FMA_MATH || (override && !strcmp(override, "0"));
    plan->base.scratch_bytes = plan->choice.scratch_bytes;
    snprintf(plan->base.text, sizeof plan->base.text, "cuDNN %s algorithm %d, %s, %zu bytes of scratch",
             (const char *[]){"forward", "data", "weights"}[plan->way], plan->choice.algorithm, f32 ? "f32" : "tf32",
             plan->choice.scratch_bytes);
    return check(cudnnSetConvolutionMathType(plan->conv, plan->choice.math), "cudnnSetConvolutionMathType");
}

static void destroy(struct el_cuda_conv_cudnn *base)
{
    struct plan *plan = (struct plan *)base;
    if (plan->conv) cudnnDestroyConvolutionDescriptor(plan->conv);
    if (plan->w) cudnnDestroyFilterDescriptor(plan->w);
    if (plan->y) cudnnDestroyTensorDescriptor(plan->y);
    if (plan->x) cudnnDestroyTensorDescriptor(plan->x);
    free(plan);
}

static enum el_status make(const struct el_cuda_native *native, const struct el_cuda_conv *conv, size_t most_bytes,
                           struct el_cuda_conv_cudnn **plan_p)
{
    struct plan *plan = calloc(1, sizeof *plan);
    if (!plan) return el_fail(EL_ERR_HOST_MEMORY, "cuDNN: no memory for a convolution's plan");
    plan->way = conv->way;
    enum el_status status = fill(native, conv, most_bytes, plan);
    if (status == EL_OK)
        *plan_p = &plan->base;
    else
        destroy(&plan->base);
    return status;
}

static enum el_status run(const struct el_cuda_conv_cudnn *base, const struct el_cuda_native *native,
                          const struct el_cuda_conv *conv, void *scratch)
{
    const struct plan *plan = (const struct plan *)base;
    const float alpha = 1, beta = conv->acc;
    if (plan->way == EL_CONV_FORWARD)
        EL_CUDNN_TRY(cudnnConvolutionForward(native->cudnn, &alpha, plan->x, conv->in[0], plan->w, conv->in[1],
                                             plan->conv, (cudnnConvolutionFwdAlgo_t)plan->choice.algorithm, scratch,
                                             plan->choice.scratch_bytes, &beta, plan->y, conv->out));
    else if (plan->way == EL_CONV_DATA)
        EL_CUDNN_TRY(cudnnConvolutionBackwardData(native->cudnn, &alpha, plan->w, conv->in[1], plan->y, conv->in[0],
                                                  plan->conv, (cudnnConvolutionBwdDataAlgo_t)plan->choice.algorithm,
                                                  scratch, plan->choice.scratch_bytes, &beta, plan->x, conv->out));
    else
        EL_CUDNN_TRY(cudnnConvolutionBackwardFilter(native->cudnn, &alpha, plan->x, conv->in[0], plan->y, conv->in[1],
                                                    plan->conv, (cudnnConvolutionBwdFilterAlgo_t)plan->choice.algorithm,
                                                    scratch, plan->choice.scratch_bytes, &beta, plan->w, conv->out));
    return EL_OK;
}

const struct el_cuda_cudnn *el_cuda_cudnn_module(void)
{
    static const struct el_cuda_cudnn module = {.version = cudnnGetVersion,
                                                .open = open_handle,
                                                .close = close_handle,
                                                .make = make,
                                                .run = run,
                                                .destroy = destroy};
    return &module;
}
