/* The convolution as matrix products, one for each of the k steps (taps) that a filter sees, straight from the plain
 * layouts.
 *
 * Channels last, the step that tap j looks at is x shifted by j rows, and the tap's weights are w with rows k*c apart:
 *     forward  y[b] (+)= x[b] from row j  times  w_j'        k products, each of b matrices
 *     data     dx[b] from row j += dy[b] times w_j           into zeros; k products, each of b matrices
 *     weights  dw_j (+)= dy' times x from row j              one product of k matrices, over the rows of all samples
 * The last runs over samples' ends, where a window would reach into the next sample: dy is padded with zeros there.
 * No element of x is copied. A window as one row of k*c values would make it one product, but its rows would overlap,
 * which cuBLAS refuses (ld < columns). */
#include "kernels/cuda/check.h"
#include "kernels/cuda/conv1d.h"

static enum el_status forward(const struct el_kernel_args *args, enum el_dtype dtype,
                              const struct el_cuda_conv_sizes *s)
{
    for (int64_t tap = 0; tap < s->k; tap++) {
        const struct el_cuda_product product = {
            .m = s->windows,
            .n = s->f,
            .k = s->c,
            .batch = s->b,
            .a = {.data = el_cuda_offset(args->p[0], tap * s->c, dtype), .ld = s->c, .stride = s->l * s->c},
            .b = {.data = el_cuda_offset(args->p[1], tap * s->c, dtype), .ld = s->k * s->c, .transposed = true},
            .c = {.data = args->p[3], .ld = s->f, .stride = s->windows * s->f},
            .acc = tap > 0};
        EL_TRY(el_cuda_multiply(args, dtype, &product));
    }
    return EL_OK;
}

static enum el_status data(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_conv_sizes *s)
{
    const struct el_cuda_native *native = args->native;
    if (args->s[0] == 0)
        EL_CUDA_TRY(cudaMemsetAsync(args->p[2], 0, (size_t)(s->b * s->l * s->c) * el_dtype_bytes(dtype),
                                    (cudaStream_t)native->stream));
    for (int64_t tap = 0; tap < s->k; tap++) {
        const struct el_cuda_product product = {
            .m = s->windows,
            .n = s->c,
            .k = s->f,
            .batch = s->b,
            .a = {.data = args->p[0], .ld = s->f, .stride = s->windows * s->f},
            .b = {.data = el_cuda_offset(args->p[1], tap * s->c, dtype), .ld = s->k * s->c},
            .c = {.data = el_cuda_offset(args->p[2], tap * s->c, dtype), .ld = s->c, .stride = s->l * s->c},
            .acc = true};
        EL_TRY(el_cuda_multiply(args, dtype, &product));
    }
    return EL_OK;
}

/* The rows after the last window are all padding, so that no tap reads behind x. */
static enum el_status weights(const struct el_kernel_args *args, enum el_dtype dtype,
                              const struct el_cuda_conv_sizes *s, void *pad)
{
    const void *dy = args->p[1];
    if (s->k > 1) {
        EL_TRY(el_cuda_pad_time(args, dtype, dy, s->b, s->l, s->windows, s->f, pad));
        dy = pad;
    }
    const struct el_cuda_product product = {.m = s->f,
                                            .n = s->c,
                                            .k = s->b > 0 ? s->b * s->l - (s->k - 1) : 0,
                                            .batch = s->k,
                                            .a = {.data = dy, .ld = s->f, .transposed = true},
                                            .b = {.data = args->p[0], .ld = s->c, .stride = s->c},
                                            .c = {.data = args->p[2], .ld = s->k * s->c, .stride = s->c},
                                            .acc = args->s[0] != 0};
    return el_cuda_multiply(args, dtype, &product);
}

enum el_status el_cuda_conv_taps(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype,
                                 void *pad)
{
    struct el_cuda_conv_sizes sizes = el_cuda_conv_sizes(args);
    if (way == EL_CONV_FORWARD) return forward(args, dtype, &sizes);
    if (way == EL_CONV_DATA) return data(args, dtype, &sizes);
    return weights(args, dtype, &sizes, pad);
}
