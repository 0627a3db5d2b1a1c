/* The linear layer by cuBLAS on the plain layouts; bias, ReLU and the bias' gradient by kernels of ours. */
#include "kernels/cuda/layer.h"
#include "kernels/cuda/typed.h"

/* y[b,o] = x[b,i] w'[i,o] + bias */
static enum el_status linear_forward(const struct el_kernel_args *args, enum el_dtype dtype)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    const struct el_cuda_product product = {.m = b,
                                            .n = o,
                                            .k = i,
                                            .batch = 1,
                                            .a = {.data = args->p[0], .ld = i},
                                            .b = {.data = args->p[1], .ld = i, .transposed = true},
                                            .c = {.data = args->p[3], .ld = o}};
    EL_TRY(el_cuda_multiply(args, dtype, &product));
    return el_cuda_bias(args, dtype, b, o, args->p[2], args->s[0] != 0, args->p[3]);
}

/* dx[b,i] = dy[b,o] w[o,i] */
static enum el_status linear_backward_data(const struct el_kernel_args *args, enum el_dtype dtype)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    const struct el_cuda_product product = {.m = b,
                                            .n = i,
                                            .k = o,
                                            .batch = 1,
                                            .a = {.data = args->p[0], .ld = o},
                                            .b = {.data = args->p[1], .ld = i},
                                            .c = {.data = args->p[2], .ld = i},
                                            .acc = args->s[0] != 0};
    return el_cuda_multiply(args, dtype, &product);
}

/* dw[o,i] = dy'[o,b] x[b,i] */
static enum el_status linear_backward_weights(const struct el_kernel_args *args, enum el_dtype dtype)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    bool acc = args->s[0] != 0;
    const struct el_cuda_product product = {.m = o,
                                            .n = i,
                                            .k = b,
                                            .batch = 1,
                                            .a = {.data = args->p[1], .ld = o, .transposed = true},
                                            .b = {.data = args->p[0], .ld = i},
                                            .c = {.data = args->p[2], .ld = i},
                                            .acc = acc};
    EL_TRY(el_cuda_multiply(args, dtype, &product));
    return el_cuda_sum_rows(args, dtype, args->p[1], b, o, acc, args->workspace, args->p[3]);
}

static size_t backward_weights_bytes(const struct el_kernel_args *args, enum el_dtype dtype)
{
    (void)dtype;
    return el_cuda_sum_rows_bytes(args->d[0], args->d[2]);
}

EL_CUDA_TYPED_RUN(linear_forward)
EL_CUDA_TYPED_RUN(linear_backward_data)
EL_CUDA_TYPED_RUN(linear_backward_weights)
EL_CUDA_TYPED_WORKSPACE(linear_backward_weights, backward_weights_bytes)
