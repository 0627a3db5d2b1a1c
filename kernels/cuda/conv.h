/* Convolutions, over time and over images. In f32 cuDNN does them where it is there and has an algorithm that fits;
 * else, and in f64, they are products by cuBLAS. Which of the two is chosen once an op, in prepare() (conv.c). */
#pragma once

#include "kernels/cuda/layer.h"
#include "kernels/cuda/native.h"

/* In the order of the ops. */
enum el_cuda_conv_way { EL_CONV_FORWARD, EL_CONV_DATA, EL_CONV_WEIGHTS };

/* One op: x[b,h,w,c], weights[f,kh,kw,c], y[b,oh,ow,f]. Time is an image's width, its height 1. */
struct el_cuda_conv {
    enum el_cuda_conv_way way;
    int64_t b, h, w, c, f, kh, kw, stride, pad, oh, ow;
    void *in[2], *out; /* forward: x, weights -> y; data: dy, weights -> dx; weights: x, dy -> dw */
    bool acc;
};

/* The way without cuDNN, a product over columns (conv_columns.c), and the scratch that it uses. */
size_t el_cuda_conv_columns_bytes(const struct el_cuda_conv *conv, enum el_dtype dtype);
enum el_status el_cuda_conv_columns_run(const struct el_kernel_args *args, const struct el_cuda_conv *conv,
                                        enum el_dtype dtype, void *scratch);

/* What cuDNN may use as scratch: as much as one copy of each operand in a layout of its own, and a MiB. An algorithm
 * that wants more is not taken. */
static inline size_t el_cuda_conv_cudnn_bytes(const struct el_cuda_conv *s)
{
    size_t elements = (size_t)(s->b * s->h * s->w * s->c + s->f * s->kh * s->kw * s->c + s->b * s->oh * s->ow * s->f);
    return elements * sizeof(float) + ((size_t)1 << 20);
}

/* The table of the module el_cudnn.so. A plan is cuDNN's descriptors and the algorithm that its heuristics put first
 * among those that give the same bits in every run, want `most_bytes` of scratch or less, and keep the precision asked
 * for. The operands' addresses are not used. Errors: EL_ERR_ABSENT with the reason, when there is none. */
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
/* The module's one symbol; tests of the kernels alone have it linked to them. */
const struct el_cuda_cudnn *el_cuda_cudnn_module(void);

/* The windows' values as rows of a matrix, for `samples` samples: columns[samples * oh * ow, kh * kw * c], 0 where a
 * tap is outside; and back: dx (+)= the sum over all that stand for a pixel, in the order of taps. */
enum el_status el_cuda_columns(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_conv *conv,
                               int64_t samples, const void *x, void *columns);
enum el_status el_cuda_add_columns(const struct el_kernel_args *args, enum el_dtype dtype,
                                   const struct el_cuda_conv *conv, int64_t samples, const void *columns, void *dx);

/* Samples whose columns are made at once: as many as fit 64 MiB, one at least. Emulated, few: then they are made in
 * several goes. */
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
