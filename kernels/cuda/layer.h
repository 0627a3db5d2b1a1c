/* What linear layers and convolutions share: cuBLAS products of row-major matrices, and small kernels around them.
 * `dtype` is EL_F32, EL_F64 or EL_BF16; everything is enqueued on the stream of args->native. */
#pragma once

#include "kernels/cuda/shape.h"
#include "kernels/kernels.h"

/* Row-major: rows `ld` elements apart, `batch` matrices `stride` elements apart. */
struct el_cuda_matrix {
    const void *data;
    int64_t ld, stride;
    bool transposed;
};

/* c[m,n] (+)= a[m,k] b[k,n], `batch` times. */
struct el_cuda_product {
    int64_t m, n, k, batch;
    struct el_cuda_matrix a, b, c;
    bool acc;
    enum el_dtype out; /* type of c; for bf16 operands bf16 or f32 */
};

/* Empty products do nothing. */
enum el_status el_cuda_multiply(const struct el_kernel_args *args, enum el_dtype dtype,
                                const struct el_cuda_product *product);

static inline void *el_cuda_offset(const void *data, int64_t count, enum el_dtype dtype)
{
    return (char *)data + (size_t)count * el_dtype_bytes(dtype);
}

/* y[rows, n] = x[rows, n] (NULL: 0) + bias[n] (NULL: 0), then max(., 0) with `relu`. y may be x. */
enum el_status el_cuda_bias(const struct el_kernel_args *args, enum el_dtype dtype, int64_t rows, int64_t n,
                            const void *x, const void *bias, bool relu, void *y);

/* y[n] (+)= the sum of the rows of x[rows, n]. The op's workspace: el_cuda_sum_rows_bytes(). */
enum el_status el_cuda_sum_rows(const struct el_kernel_args *args, enum el_dtype dtype, const void *x, int64_t rows,
                                int64_t n, bool acc, void *y);

/* Sums over rows take stretches in parallel, of at least 64 rows, as many as fill a card with blocks of 32 columns, and
 * add their sums in order. */
enum { EL_CUDA_STRETCHES_MAX = 256, EL_CUDA_STRETCH_ROWS = 64, EL_CUDA_SUM_BLOCKS = 2048 };

static inline int64_t el_cuda_stretches(int64_t rows, int64_t n)
{
    int64_t wanted = el_cuda_ceil_div(rows, EL_CUDA_STRETCH_ROWS);
    int64_t most = EL_CUDA_SUM_BLOCKS / (el_cuda_ceil_div(n, EL_CUDA_WARP) + 1);
    if (most > EL_CUDA_STRETCHES_MAX) most = EL_CUDA_STRETCHES_MAX;
    if (wanted > most) wanted = most;
    return wanted < 1 ? 1 : wanted;
}

/* `values` sums of each of n columns. */
static inline size_t el_cuda_sum_rows_bytes(int64_t rows, int64_t n, int values)
{
    return (size_t)(el_cuda_stretches(rows, n) * n * values) * sizeof(double);
}
