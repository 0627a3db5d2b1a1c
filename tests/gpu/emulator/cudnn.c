/* The emulator's cuDNN: convolutions by their definition, on host memory. Its heuristics put first what may not be
 * taken: Winograd, one that is not deterministic, one that is not supported, one that wants too much scratch; and they
 * name a math type that turns to f16. What is taken shows in the result: an algorithm that may not be taken gives
 * nothing, and only with FMA are operands as they came. Descriptors that do not fit each other are refused, and scratch
 * is written to its end. */
#include <cudnn.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

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

int el_emulated_cudnn_descriptors, el_emulated_cudnn_convolutions, el_emulated_cudnn_has_none;

const char *cudnnGetErrorString(cudnnStatus_t status)
{
    return status == CUDNN_STATUS_BAD_PARAM ? "CUDNN_STATUS_BAD_PARAM" : "an emulated status";
}

static cudnnStatus_t create(void **descriptor_p, size_t bytes)
{
    *descriptor_p = calloc(1, bytes);
    if (!*descriptor_p) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    el_emulated_cudnn_descriptors++;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t destroy(void *descriptor)
{
    free(descriptor);
    el_emulated_cudnn_descriptors--;
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

/* Forward, 0, 1 and 2 sum plainly; backward 1 alone. */
static cudnnStatus_t ask(struct op op, int most, int *n_p, cudnnConvolutionFwdAlgoPerf_t *answers)
{
    const cudnnMathType_t coarse = CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION;
    const cudnnConvolutionFwdAlgoPerf_t list[] = {
        {CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD, CUDNN_STATUS_SUCCESS, 0, CUDNN_DETERMINISTIC, coarse},
        {TAKEN, CUDNN_STATUS_SUCCESS, 0, CUDNN_NON_DETERMINISTIC, coarse},
        {UNSUPPORTED, CUDNN_STATUS_NOT_SUPPORTED, 0, CUDNN_DETERMINISTIC, coarse},
        {GREEDY, CUDNN_STATUS_SUCCESS, 0, CUDNN_DETERMINISTIC, coarse},
        {TAKEN, CUDNN_STATUS_SUCCESS, SCRATCH_BYTES, CUDNN_DETERMINISTIC, coarse}};
    int n = (int)(sizeof list / sizeof list[0]) - (el_emulated_cudnn_has_none != 0);
    if (!fits(&op) || most < n) return CUDNN_STATUS_BAD_PARAM;
    memcpy(answers, list, (size_t)n * sizeof *answers);
    *n_p = n;
    return CUDNN_STATUS_SUCCESS;
}

static cudnnStatus_t scratch_of(struct op op, int algorithm, size_t *bytes_p)
{
    if (!fits(&op)) return CUDNN_STATUS_BAD_PARAM;
    if (algorithm == UNSUPPORTED) return CUDNN_STATUS_NOT_SUPPORTED;
    *bytes_p = algorithm == GREEDY ? SIZE_MAX / 2 : SCRATCH_BYTES;
    return CUDNN_STATUS_SUCCESS;
}

/* The operand as the math type sees it: 24 bits of mantissa with FMA, 11 else. */
static double seen(const struct op *op, float value)
{
    int exponent;
    double mantissa = frexp((double)value, &exponent);
    if (op->conv->math == CUDNN_FMA_MATH) return (double)value;
    return ldexp(rint(mantissa * 2048) / 2048, exponent);
}

/* Adds up all products a[.] * b[.] of the output that `which` names: 0 x, 1 w, 2 y. */
static void products(const struct op *op, int which, const float *a, const float *b, double *sum)
{
    const struct el_emulated_tensor *x = op->x, *y = op->y;
    const struct el_emulated_filter *w = op->w;
    for (int64_t out = 0; out < (int64_t)y->n * y->h * y->w * y->c; out++)
        for (int64_t tap = 0; tap < (int64_t)w->h * w->w * w->c; tap++) {
            int64_t k = out % y->c, c = tap % w->c, place = out / y->c;
            int64_t row = place / y->w % y->h * op->conv->stride - op->conv->pad + tap / w->c / w->w;
            int64_t column = place % y->w * op->conv->stride - op->conv->pad + tap / w->c % w->w;
            if (row < 0 || row >= x->h || column < 0 || column >= x->w) continue;
            int64_t at[3] = {((place / y->w / y->h * x->h + row) * x->w + column) * x->c + c,
                             k * w->h * w->w * w->c + tap, out};
            int64_t first = at[which == 0 ? 1 : 0], second = at[which == 2 ? 1 : 2];
            sum[at[which]] += seen(op, a[first]) * seen(op, b[second]);
        }
}

/* to = alpha * sums + beta * to; a and b in the order x, w, y. */
static cudnnStatus_t convolve(struct op op, int which, const void *a, const void *b, int algorithm, void *scratch,
                              size_t scratch_bytes, const float *alpha, const float *beta, float *to)
{
    const int64_t elements[] = {(int64_t)op.x->n * op.x->h * op.x->w * op.x->c,
                                (int64_t)op.w->k * op.w->h * op.w->w * op.w->c,
                                (int64_t)op.y->n * op.y->h * op.y->w * op.y->c};
    if (!fits(&op) || algorithm != TAKEN || scratch_bytes != SCRATCH_BYTES) return CUDNN_STATUS_BAD_PARAM;
    memset(scratch, 0x5a, scratch_bytes);
    double *sum = calloc((size_t)elements[which], sizeof *sum);
    if (!sum) return CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
    products(&op, which, a, b, sum);
    for (int64_t i = 0; i < elements[which]; i++) /* what is not added to is not read */
        to[i] = (float)(*alpha * sum[i] + (*beta == 0 ? 0 : *beta * (double)to[i]));
    free(sum);
    el_emulated_cudnn_convolutions++;
    return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetConvolutionForwardAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                     cudnnFilterDescriptor_t w, cudnnConvolutionDescriptor_t conv,
                                                     cudnnTensorDescriptor_t y, int most, int *n_p,
                                                     cudnnConvolutionFwdAlgoPerf_t *answers)
{
    (void)handle;
    return ask((struct op){x, y, w, conv}, most, n_p, answers);
}

cudnnStatus_t cudnnGetConvolutionBackwardDataAlgorithm_v7(cudnnHandle_t handle, cudnnFilterDescriptor_t w,
                                                          cudnnTensorDescriptor_t dy, cudnnConvolutionDescriptor_t conv,
                                                          cudnnTensorDescriptor_t dx, int most, int *n_p,
                                                          cudnnConvolutionBwdDataAlgoPerf_t *answers)
{
    (void)handle;
    return ask((struct op){dx, dy, w, conv}, most, n_p, answers);
}

cudnnStatus_t cudnnGetConvolutionBackwardFilterAlgorithm_v7(cudnnHandle_t handle, cudnnTensorDescriptor_t x,
                                                            cudnnTensorDescriptor_t dy,
                                                            cudnnConvolutionDescriptor_t conv,
                                                            cudnnFilterDescriptor_t dw, int most, int *n_p,
                                                            cudnnConvolutionBwdFilterAlgoPerf_t *answers)
{
    (void)handle;
    return ask((struct op){x, dy, dw, conv}, most, n_p, answers);
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
    (void)handle;
    return convolve((struct op){x_of, y_of, w_of, conv}, 2, x, w, algo, scratch, scratch_bytes, alpha, beta, y);
}

cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t handle, const void *alpha, cudnnFilterDescriptor_t w_of,
                                           const void *w, cudnnTensorDescriptor_t dy_of, const void *dy,
                                           cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdDataAlgo_t algo,
                                           void *scratch, size_t scratch_bytes, const void *beta,
                                           cudnnTensorDescriptor_t dx_of, void *dx)
{
    (void)handle;
    return convolve((struct op){dx_of, dy_of, w_of, conv}, 0, w, dy, algo, scratch, scratch_bytes, alpha, beta, dx);
}

cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t handle, const void *alpha, cudnnTensorDescriptor_t x_of,
                                             const void *x, cudnnTensorDescriptor_t dy_of, const void *dy,
                                             cudnnConvolutionDescriptor_t conv, cudnnConvolutionBwdFilterAlgo_t algo,
                                             void *scratch, size_t scratch_bytes, const void *beta,
                                             cudnnFilterDescriptor_t dw_of, void *dw)
{
    (void)handle;
    return convolve((struct op){x_of, dy_of, dw_of, conv}, 1, x, dy, algo, scratch, scratch_bytes, alpha, beta, dw);
}
