/* The convolution's two ways: by cuDNN, and by cuBLAS with a product a tap. conv1d.c chooses once an op, in prepare().
 */
#ifndef EL_KERNELS_CUDA_CONV1D_H
#define EL_KERNELS_CUDA_CONV1D_H

#include "kernels/cuda/layer.h"
#include "kernels/cuda/native.h"

/* In the order of the ops. */
enum el_cuda_conv_way { EL_CONV_FORWARD, EL_CONV_DATA, EL_CONV_WEIGHTS };

/* The sizes of an op: x[b,l,c], w[f,k,c], y[b,windows,f]. */
struct el_cuda_conv_sizes {
    int64_t b, l, c, f, k, windows;
};

static inline struct el_cuda_conv_sizes el_cuda_conv_sizes(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    return (struct el_cuda_conv_sizes){
        .b = d[0], .l = d[1], .c = d[2], .f = d[3], .k = d[4], .windows = d[1] - d[4] + 1};
}

/* What cuDNN may use as scratch: as much as one copy of each operand in a layout of its own, and a MiB. It is a rule of
 * sizes, since workspace() has no device to ask; an algorithm that wants more is not taken. */
static inline size_t el_cuda_conv_cudnn_bytes(const struct el_cuda_conv_sizes *s)
{
    size_t elements = (size_t)(s->b * s->l * s->c + s->f * s->k * s->c + s->b * s->windows * s->f);
    return elements * sizeof(float) + ((size_t)1 << 20);
}

/* The products a tap. The op's own bias is not theirs. `pad` has el_cuda_conv_pad_bytes(), for the weights' gradient.
 */
enum el_status el_cuda_conv_taps(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype,
                                 void *pad);

/* dy with l steps a sample instead of `windows`; nothing where they are the same. */
static inline size_t el_cuda_conv_pad_bytes(const struct el_cuda_conv_sizes *s, enum el_dtype dtype)
{
    return s->k > 1 ? (size_t)(s->b * s->l * s->f) * el_dtype_bytes(dtype) : 0;
}

/* cuDNN's descriptors and the algorithm that its heuristics put first among those that give the same bits in every run,
 * fit the scratch and keep the precision asked for. Errors: EL_ERR_ABSENT with the reason, when there is none. */
struct el_cuda_conv_cudnn;
enum el_status el_cuda_conv_cudnn_make(enum el_cuda_conv_way way, const struct el_kernel_args *args,
                                       struct el_cuda_conv_cudnn **conv_p);
enum el_status el_cuda_conv_cudnn_run(const struct el_cuda_conv_cudnn *conv, const struct el_kernel_args *args,
                                      void *scratch);
void el_cuda_conv_cudnn_destroy(struct el_cuda_conv_cudnn *conv);
const char *el_cuda_conv_cudnn_text(const struct el_cuda_conv_cudnn *conv);

#endif
