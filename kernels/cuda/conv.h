/* conv1d and conv2d. prepare() chooses once per op: in f32 cuDNN, if it is there and has a fitting algorithm; else, and
 * in f64, cuBLAS products. */
#pragma once

#include "kernels/cuda/layer.h"
#include "kernels/cuda/native.h"

enum el_cuda_conv_way { EL_CONV_FORWARD, EL_CONV_DATA, EL_CONV_WEIGHTS };

/* One op: x[b,h,w,c], weights[f,kh,kw,c], y[b,oh,ow,f]. Time is an image's width, with height 1. */
struct el_cuda_conv {
    enum el_cuda_conv_way way;
    int64_t b, h, w, c, f, kh, kw, stride, pad, oh, ow;
    void *in[2], *out; /* forward: x, weights -> y; data: dy, weights -> dx; weights: x, dy -> dw */
    bool acc;
};

/* By products over columns (conv_columns.c), and its scratch. */
size_t el_cuda_conv_columns_bytes(const struct el_cuda_conv *conv, enum el_dtype dtype);
enum el_status el_cuda_conv_columns_run(const struct el_kernel_args *args, const struct el_cuda_conv *conv,
                                        enum el_dtype dtype, void *scratch);

/* cuDNN's scratch limit: one copy of each operand and a MiB. */
static inline size_t el_cuda_conv_cudnn_bytes(const struct el_cuda_conv *s)
{
    size_t elements = (size_t)(s->b * s->h * s->w * s->c + s->f * s->kh * s->kw * s->c + s->b * s->oh * s->ow * s->f);
    return elements * sizeof(float) + ((size_t)1 << 20);
}

/* The table of the module el_cudnn.so. A plan has the first algorithm of cuDNN's heuristics that is deterministic,
 * needs at most `most_bytes` and keeps the precision, independent of addresses. Errors: EL_ERR_ABSENT with the reason,
 * if there is none. */
struct el_cuda_conv_cudnn {
    size_t scratch_bytes;
    char text[96];
};
struct el_cuda_cudnn {
    size_t (*version)(void);
    enum el_status (*open)(struct el_cuda_native *native);
    void (*close)(struct el_cuda_native *native);
    enum el_status (*make)(const struct el_cuda_native *native, const struct el_cuda_conv *conv, size_t most_bytes,
                           struct el_cuda_conv_cudnn **plan_p);
    enum el_status (*run)(const struct el_cuda_conv_cudnn *plan, const struct el_cuda_native *native,
                          const struct el_cuda_conv *conv, void *scratch);
    void (*destroy)(struct el_cuda_conv_cudnn *plan);
};
/* Opens the module at first use. NULL: it is missing (el_cuda_cudnn_missing). */
const struct el_cuda_cudnn *el_cuda_cudnn(void);
/* The module's only symbol; kernel tests link it directly. */
const struct el_cuda_cudnn *el_cuda_cudnn_module(void);

/* im2col of `samples` samples: columns[samples * oh * ow, kh * kw * c], 0 for taps outside; and back: dx (+)= the sum
 * of a pixel's values in the order of taps. */
enum el_status el_cuda_columns(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_conv *conv,
                               int64_t samples, const void *x, void *columns);
enum el_status el_cuda_add_columns(const struct el_kernel_args *args, enum el_dtype dtype,
                                   const struct el_cuda_conv *conv, int64_t samples, const void *columns, void *dx);

/* Samples per group of columns: as many as fit 64 MiB, at least one. Few when emulated, to test several groups. */
#ifdef EL_CUDA_EMULATED
enum { EL_CUDA_COLUMNS_BYTES = 1 << 12 };
#else
enum { EL_CUDA_COLUMNS_BYTES = 1 << 26 };
#endif

static inline int64_t el_cuda_columns_samples(const struct el_cuda_conv *s, enum el_dtype dtype)
{
    int64_t bytes = s->oh * s->ow * s->kh * s->kw * s->c * (int64_t)el_dtype_bytes(dtype);
    int64_t samples = bytes > 0 ? EL_CUDA_COLUMNS_BYTES / bytes : s->b;
    if (samples < 1) return 1;
    return samples < s->b ? samples : s->b;
}
