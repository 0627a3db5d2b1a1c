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
#include "kernels/cuda/conv.h"

static enum el_status forward(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_conv *s)
{
    for (int64_t tap = 0; tap < s->kw; tap++) {
        const struct el_cuda_product product = {
            .m = s->ow,
            .n = s->f,
            .k = s->c,
            .batch = s->b,
            .a = {.data = el_cuda_offset(s->in[0], tap * s->c, dtype), .ld = s->c, .stride = s->w * s->c},
            .b = {.data = el_cuda_offset(s->in[1], tap * s->c, dtype), .ld = s->kw * s->c, .transposed = true},
            .c = {.data = s->out, .ld = s->f, .stride = s->ow * s->f},
            .acc = tap > 0};
        EL_TRY(el_cuda_multiply(args, dtype, &product));
    }
    return EL_OK;
}

static enum el_status data(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_conv *s)
{
    const struct el_cuda_native *native = args->native;
    if (!s->acc)
        EL_CUDA_TRY(cudaMemsetAsync(s->out, 0, (size_t)(s->b * s->w * s->c) * el_dtype_bytes(dtype),
                                    (cudaStream_t)native->stream));
    for (int64_t tap = 0; tap < s->kw; tap++) {
        const struct el_cuda_product product = {
            .m = s->ow,
            .n = s->c,
            .k = s->f,
            .batch = s->b,
            .a = {.data = s->in[0], .ld = s->f, .stride = s->ow * s->f},
            .b = {.data = el_cuda_offset(s->in[1], tap * s->c, dtype), .ld = s->kw * s->c},
            .c = {.data = el_cuda_offset(s->out, tap * s->c, dtype), .ld = s->c, .stride = s->w * s->c},
            .acc = true};
        EL_TRY(el_cuda_multiply(args, dtype, &product));
    }
    return EL_OK;
}

/* The rows after the last window are all padding, so that no tap reads behind x. */
static enum el_status weights(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_conv *s,
                              void *pad)
{
    const void *dy = s->in[1];
    if (s->kw > 1) {
        EL_TRY(el_cuda_pad_time(args, dtype, dy, s->b, s->w, s->ow, s->f, pad));
        dy = pad;
    }
    const struct el_cuda_product product = {.m = s->f,
                                            .n = s->c,
                                            .k = s->b > 0 ? s->b * s->w - (s->kw - 1) : 0,
                                            .batch = s->kw,
                                            .a = {.data = dy, .ld = s->f, .transposed = true},
                                            .b = {.data = s->in[0], .ld = s->c, .stride = s->c},
                                            .c = {.data = s->out, .ld = s->kw * s->c, .stride = s->c},
                                            .acc = s->acc};
    return el_cuda_multiply(args, dtype, &product);
}

static enum el_status run(const struct el_kernel_args *args, const struct el_cuda_conv *conv, enum el_dtype dtype,
                          void *pad)
{
    if (conv->way == EL_CONV_FORWARD) return forward(args, dtype, conv);
    if (conv->way == EL_CONV_DATA) return data(args, dtype, conv);
    return weights(args, dtype, conv, pad);
}

/* dy with w steps a sample instead of ow; nothing where they are the same. */
static size_t bytes(const struct el_cuda_conv *s, enum el_dtype dtype)
{
    bool padded = s->way == EL_CONV_WEIGHTS && s->kw > 1;
    return padded ? (size_t)(s->b * s->w * s->f) * el_dtype_bytes(dtype) : 0;
}

const struct el_cuda_conv_plain el_cuda_conv_taps = {.text = "a product a tap", .bytes = bytes, .run = run};
