/* cuDNN: convolutions by their definition, on the handle's stream. But for weights, its heuristics put first what may
 * not be taken: Winograd, one that is not deterministic, one that is not supported, one that wants too much scratch;
 * and they name a math type that turns to f16. What is taken shows in the result: an algorithm that may not be taken
 * gives nothing, and only with FMA are operands as they came. Descriptors that do not fit each other are refused, and
 * scratch is written to its end. */
#include <cudnn.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cards/cards.h"

enum { HANDLE_BYTES = 1 << 20 }; /* what a handle takes of the card */

struct cudnnContext {
    cudaStream_t stream;
    int device;
};

struct el_emulated_tensor {
    int n, c, h, w;
};
struct el_emulated_filter {
    int k, c, h, w;
};
struct el_emulated_convolution {
    int pad, stride;
    cudnnMathType_t math;
};

enum { UNSUPPORTED = 2, GREEDY = 0, TAKEN = 1, SCRATCH_BYTES = 4096 };

static atomic_int descriptors, convolutions, useless, refusal;

int cards_cudnn_descriptors(void)
{
    return atomic_load(&descriptors);
}

int cards_cudnn_convolutions(void)
{
    return atomic_load(&convolutions);
}

void cards_cudnn_set_useless(bool is_useless)
{
    atomic_store(&useless, is_useless);
}

void cards_cudnn_set_refusal(int status)
{
    atomic_store(&refusal, status);
}

/* A rule's code is CUDA's, or from 1000 upwards a status of cuDNN's own. */
static cudnnStatus_t status_of(int code)
{
    if (code >= CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED) return (cudnnStatus_t)code;
    if (code == cudaErrorMemoryAllocation) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    return code == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle_p)
{
    int device = cards_thread_device(), code = cards_library_take(device, HANDLE_BYTES);
    if (code != cudaSuccess) return status_of(code);
    struct cudnnContext *handle = calloc(1, sizeof *handle);
    if (!handle) abort();
    handle->device = device;
    *handle_p = handle;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    cards_library_give(handle->device, HANDLE_BYTES);
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    if (stream && cards_stream_device(stream) != handle->device) return CUDNN_STATUS_BAD_PARAM;
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion(void)
{
    return 91900;
}

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "an emulated status";
}

static cudnnStatus_t create(void **descriptor_p, size_t bytes)
{
    *descriptor_p = calloc(1, bytes);
    if (!*descriptor_p) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    atomic_fetch_add(&descriptors, 1);
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(void *descriptor)
{
    free(descriptor);
    atomic_fetch_sub(&descriptors, 1);
    return CUDNN_STATUS_SUCCESS;
}

#define DESCRIPTOR(Name, name)                                                                                         \
    cudnnStatus_t cudnnCreate##Name##Descriptor(cudnn##Name##Descriptor_t *descriptor_p)                               \
    {                                                                                                                  \
        void *descriptor;                                                                                              \
        cudnnStatus_t status = create(&descriptor, sizeof(struct el_emulated_##name));                                 \
        *descriptor_p = descriptor;                                                                                    \
        return status;                                                                                                 \
    }                                                                                                                  \
    cudnnStatus_t cudnnDestroy##Name##Descriptor(cudnn##Name##Descriptor_t descriptor)                                 \
    {                                                                                                                  \
        return destroy(descriptor);                                                                                    \
    }
DESCRIPTOR(Tensor, tensor)
DESCRIPTOR(Filter, filter)
DESCRIPTOR(Convolution, convolution)

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t tensor, cudnnTensorFormat_t format,
                                         cudnnDataType_t type, int n, int c, int h, int w)
{
    if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT || n < 1 || c < 1 || h < 1 || w < 1)
        return CUDNN_STATUS_BAD_PARAM;
    *tensor = (struct el_emulated_tensor){n, c, h, w};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t filter, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int k, int c, int h, int w)
{
    if (format != CUDNN_TENSOR_NHWC || type != CUDNN_DATA_FLOAT || k < 1 || c < 1 || h < 1 || w < 1)
        return CUDNN_STATUS_BAD_PARAM;
    *filter = (struct el_emulated_filter){k, c, h, w};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t conv, int pad_h, int pad_w, int u, int v,
                                              int dilation_h, int dilation_w, cudnnConvolutionMode_t mode,
                                              cudnnDataType_t type)
{
    if (pad_h != pad_w || u != v || pad_h < 0 || u < 1 || dilation_h != 1 || dilation_w != 1)
        return CUDNN_STATUS_BAD_PARAM;
    if (mode != CUDNN_CROSS_CORRELATION || type != CUDNN_DATA_FLOAT) return CUDNN_STATUS_BAD_PARAM;
    *conv = (struct el_emulated_convolution){.pad = pad_h, .stride = u};
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t conv, cudnnMathType_t math)
{
    conv->math = math;
    return CUDNN_STATUS_SUCCESS;
}

/* All descriptors of an op, and the operands as [n, h, w, c]. */
struct op {
    const struct el_emulated_tensor *x, *y;
    const struct el_emulated_filter *w;
    const struct el_emulated_convolution *conv;
};

static int fits(const struct op *op)
{
    const struct el_emulated_tensor *x = op->x, *y = op->y;
    const struct el_emulated_filter *w = op->w;
    int pad = op->conv->pad, stride = op->conv->stride;
    return x->n == y->n && x->c == w->c && y->c == w->k && y->h == (x->h + 2 * pad - w->h) / stride + 1 &&
           y->w == (x->w + 2 * pad - w->w) / stride + 1;
}

/* Forward, 0, 1 and 2 sum plainly; backward 1 alone. `best_first`: the other way round. */
static cudnnStatus_t ask(cudnnHandle_t handle, struct op op, bool best_first, int most, int *n_p,
                         cudnnConvolutionFwdAlgoPerf_t *answers)
{
    const cudnnMathType_t coarse = CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    const cudnnConvolutionFwdAlgoPerf_t list[] = {
        {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_STATUS_SUCCESS, 0, CUDNN_DETERMINISTIC, coarse},
        {TAKEN, CUDNN_STATUS_SUCCESS, 0, CUDNN_NON_DETERMINISTIC, coarse},
        {UNSUPPORTED, CUDNN_STATUS_NOT_SUPPORTED, 0, CUDNN_DETERMINISTIC, coarse},
        {GREEDY, CUDNN_STATUS_SUCCESS, 0, CUDNN_DETERMINISTIC, coarse},
        {TAKEN, CUDNN_STATUS_SUCCESS, SCRATCH_BYTES, CUDNN_DETERMINISTIC, coarse}};
    int code = 0, none = atomic_load(&useless) || cards_fails("cudnnAlgorithms", handle->device, &code);
    int n = (int)(sizeof list / sizeof list[0]) - none;
    cards_dawdle("heuristic");
    if (!fits(&op) || most < 1) return CUDNN_STATUS_BAD_PARAM;
    *n_p = most < n ? most : n;
    for (int i = 0; i < *n_p; i++) answers[i] = list[best_first ? n - 1 - i : i];
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t scratch_of(struct op op, int algorithm, size_t *bytes_p)
{
    if (!fits(&op)) return CUDNN_STATUS_BAD_PARAM;
    if (algorithm == UNSUPPORTED) return CUDNN_STATUS_NOT_SUPPORTED;
    *bytes_p = algorithm == GREEDY ? SIZE_MAX / 2 : SCRATCH_BYTES;
    return CUDNN_STATUS_SUCCESS;
}

/* A convolution on its way through the stream; the descriptors as they were at the call. `which` is computed: 0 x,
 * 1 w, 2 y; the operands are the other two, in this order. */
struct work {
    struct el_emulated_tensor x, y;
    struct el_emulated_filter w;
    struct el_emulated_convolution conv;
    cudaStream_t stream;
    int which;
    const float *a, *b;
    float *to;
    char *scratch;
    const float *alpha, *beta; /* the host's, at the call */
    double factor[2];
};

/* How many elements an operand has. */
static int64_t count(const struct work *work, int which)
{
    const struct el_emulated_tensor *t = which == 0 ? &work->x : &work->y;
    if (which == 1) return (int64_t)work->w.k * work->w.h * work->w.w * work->w.c;
    return (int64_t)t->n * t->h * t->w * t->c;
}

/* The operand as the math type sees it: 24 bits of mantissa with FMA, 11 else. */
static double seen(const struct work *work, float value)
{
    int exponent;
    if (work->conv.math == CUDNN_FMA_MATH) return (double)value;
    double mantissa = frexp((double)value, &exponent);
    return ldexp(rint(mantissa * 2048) / 2048, exponent);
}

static double *read_operand(const struct work *work, int which, const float *from)
{
    int64_t n = count(work, which);
    double *all = calloc((size_t)n + 1, sizeof *all);
    if (!all) abort();
    for (int64_t i = 0; from && i < n; i++) all[i] = seen(work, from[i]);
    return all;
}

/* One output's place and one tap: x, w and y from there on, over the channels of x. */
static void add_products(int which, double *x, double *w, double *y, int c)
{
    double sum = 0;
    if (which == 0)
        for (int i = 0; i < c; i++) x[i] += w[i] * *y;
    else if (which == 1)
        for (int i = 0; i < c; i++) w[i] += x[i] * *y;
    else
        for (int i = 0; i < c; i++) sum += x[i] * w[i];
    if (which == 2) *y += sum;
}

/* All products of the output's place `place`, for every tap and filter. */
static void add_place(const struct work *work, int64_t place, double *all[3])
{
    const struct el_emulated_tensor *x = &work->x, *y = &work->y;
    const struct el_emulated_filter *w = &work->w;
    int64_t column = place % y->w, row = place / y->w % y->h, n = place / y->w / y->h;
    for (int tap = 0; tap < w->h * w->w; tap++) {
        int64_t i = row * work->conv.stride - work->conv.pad + tap / w->w;
        int64_t j = column * work->conv.stride - work->conv.pad + tap % w->w;
        if (i < 0 || i >= x->h || j < 0 || j >= x->w) continue;
        for (int64_t k = 0; k < y->c; k++)
            add_products(work->which, &all[0][((n * x->h + i) * x->w + j) * x->c],
                         &all[1][(k * w->h * w->w + tap) * w->c], &all[2][place * y->c + k], x->c);
    }
}

/* to = alpha * sums + beta * to */
static void compute(const struct work *work)
{
    const float *operands[3] = {work->a, work->which == 0 ? work->a : work->b, work->b};
    double *all[3];
    operands[work->which] = NULL;
    for (int i = 0; i < 3; i++) all[i] = read_operand(work, i, operands[i]);
    memset(work->scratch, 0x5a, SCRATCH_BYTES);
    for (int64_t place = 0; place < (int64_t)work->y.n * work->y.h * work->y.w; place++) add_place(work, place, all);
    for (int64_t i = 0; i < count(work, work->which); i++) { /* what is not added to is not read */
        double before = work->factor[1] == 0 ? 0 : work->factor[1] * (double)work->to[i];
        work->to[i] = (float)(work->factor[0] * all[work->which][i] + before);
    }
    for (int i = 0; i < 3; i++) free(all[i]);
}

static bool is_on(const struct work *work, const void *address)
{
    return cards_device_of(address, NULL) == cards_stream_device(work->stream);
}

static int run(void *argument)
{
    struct work *work = argument;
    int code = cudaSuccess;
    bool ending = cards_is_ending(work->stream);
    if (work->stream && !ending &&
        !(is_on(work, work->a) && is_on(work, work->b) && is_on(work, work->to) && is_on(work, work->scratch)))
        code = cudaErrorIllegalAddress;
    if (code == cudaSuccess && !ending) compute(work);
    return code;
}

static cudnnStatus_t convolve(cudnnHandle_t handle, struct op op, int algorithm, size_t scratch_bytes,
                              const struct work *wanted)
{
    static const char names[3];
    int code = cudaErrorLaunchFailure;
    if (!fits(&op) || algorithm != TAKEN || scratch_bytes != SCRATCH_BYTES) return CUDNN_STATUS_BAD_PARAM;
    if (cards_fails("cudnnConvolution", handle->device, &code)) return status_of(code);
    if (atomic_load(&refusal)) return (cudnnStatus_t)atomic_load(&refusal);
    struct work *work = malloc(sizeof *work);
    if (!work) abort();
    *work = *wanted;
    work->x = *op.x, work->y = *op.y, work->w = *op.w, work->conv = *op.conv;
    work->stream = handle->stream;
    work->factor[0] = (double)*wanted->alpha * (wanted->which == 1 && cards_is_wrong("cudnn") ? 1.03 : 1),
    work->factor[1] = (double)*wanted->beta;
    code = cards_launch(work->stream, &names[work->which], 0, run, free, work);
    if (code != cudaSuccess) free(work);
    atomic_fetch_add(&convolutions, 1);
    return status_of(code);
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
                                                     cudnnTensorDescriptor_t y, int most, int *n_p,
                                                     cudnnConvolutionFwdAlgoPerf_t *answers)
{
    return ask(handle, (struct op){x, y, w, conv}, false, most, n_p, answers);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t conv,
                                                          cudnnTensorDescriptor_t dx, int most, int *n_p,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *answers)
{
    return ask(handle, (struct op){dx, dy, w, conv}, false, most, n_p, answers);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t dy,
                                                            cudnnConvolutionDescriptor_t conv,
                                                            cudnnFilterDescriptor_t dw, int most, int *n_p,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *answers)
{
    return ask(handle, (struct op){x, dy, dw, conv}, true, most, n_p, answers);
}

cudnnStatus_t cudnnGetConvolutionForwardWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                      cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
                                                      cudnnTensorDescriptor_t y, cudnnConvolutionFwdAlgo_t algo,
                                                      size_t *bytes_p)
{
    (void)handle;
    return scratch_of((struct op){x, y, w, conv}, algo, bytes_p);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataWorkspaceSize(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                           cudnnTensorDescriptor_t dy,
                                                           cudnnConvolutionDescriptor_t conv,
                                                           cudnnTensorDescriptor_t dx,
                                                           cudnnConvolutionBwdDataAlgo_t algo, size_t *bytes_p)
{
    (void)handle;
    return scratch_of((struct op){dx, dy, w, conv}, algo, bytes_p);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterWorkspaceSize(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                             cudnnTensorDescriptor_t dy,
                                                             cudnnConvolutionDescriptor_t conv,
                                                             cudnnFilterDescriptor_t dw,
                                                             cudnnConvolutionBwdFilterAlgo_t algo, size_t *bytes_p)
{
    (void)handle;
    return scratch_of((struct op){x, dy, dw, conv}, algo, bytes_p);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_of,
                                      const void *x, cudnnFilterDescriptor_t w_of, const void *w,
                                      cudnnConvolutionDescriptor_t conv, cudnnConvolutionFwdAlgo_t algo, void *scratch,
                                      size_t scratch_bytes, const void *beta, cudnnTensorDescriptor_t y_of, void *y)
{
    return convolve(
        handle, (struct op){x_of, y_of, w_of, conv}, algo, scratch_bytes,
        &(struct work){.which = 2, .a = x, .b = w, .to = y, .scratch = scratch, .alpha = alpha, .beta = beta});
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t w_of,
                                           const void *w, cudnnTensorDescriptor_t dy_of, const void *dy,
                                           cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *scratch, size_t scratch_bytes, const void *beta,
                                           cudnnTensorDescriptor_t dx_of, void *dx)
{
    return convolve(
        handle, (struct op){dx_of, dy_of, w_of, conv}, algo, scratch_bytes,
        &(struct work){.which = 0, .a = w, .b = dy, .to = dx, .scratch = scratch, .alpha = alpha, .beta = beta});
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_of,
                                             const void *x, cudnnTensorDescriptor_t dy_of, const void *dy,
                                             cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *scratch, size_t scratch_bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_of, void *dw)
{
    return convolve(
        handle, (struct op){x_of, dy_of, dw_of, conv}, algo, scratch_bytes,
        &(struct work){.which = 1, .a = x, .b = dy, .to = dw, .scratch = scratch, .alpha = alpha, .beta = beta});
}
