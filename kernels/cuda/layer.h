/* What the layers (linear, convolutions) share: matrix products by cuBLAS on row-major matrices, and the small kernels
 * round them. `dtype` is EL_F32, EL_F64 or EL_BF16; everything is enqueued on the stream of args->native. */
#pragma once

#include "kernels/cuda/shape.h"
#include "kernels/kernels.h"

/* A matrix of the product, row-major: rows `ld` elements apart, `batch` matrices `stride` elements apart. */
struct el_cuda_matrix {
    const void *data;
    int64_t ld, stride;
    bool transposed; /* it is stored as its transpose */
};

/* c[m,n] (+)= a[m,k] b[k,n], `batch` times. */
struct el_cuda_product {
    int64_t m, n, k, batch;
    struct el_cuda_matrix a, b, c;
    bool acc;
    enum el_dtype out; /* of c, where a and b are of bf16: that, or f32 */
};

/* With no rows, columns or matrices nothing is done. */
enum el_status el_cuda_multiply(const struct el_kernel_args *args, enum el_dtype dtype,
                                const struct el_cuda_product *product);

/* The address `count` elements behind `data`. */
static inline void *el_cuda_offset(const void *data, int64_t count, enum el_dtype dtype)
{
    return (char *)data + (size_t)count * el_dtype_bytes(dtype);
}

/* y[rows, n] = x[rows, n] (NULL: 0) + bias[n] or NULL, then max(., 0) of it with `relu`. y may be x. */
enum el_status el_cuda_bias(const struct el_kernel_args *args, enum el_dtype dtype, int64_t rows, int64_t n,
                            const void *x, const void *bias, bool relu, void *y);

/* y[n] (+)= the sum of the rows of x[rows, n]. `part` has el_cuda_sum_rows_bytes(). */
enum el_status el_cuda_sum_rows(const struct el_kernel_args *args, enum el_dtype dtype, const void *x, int64_t rows,
                                int64_t n, bool acc, void *part, void *y);

/* sum_rows takes up to 64 stretches of rows side by side, each of 64 rows at least, then their sums in order: sizes
 * alone decide the order. */
enum { EL_CUDA_STRETCHES_MAX = 64, EL_CUDA_STRETCH_ROWS = 64 };

static inline int64_t el_cuda_stretches(int64_t rows)
{
    int64_t wanted = el_cuda_ceil_div(rows, EL_CUDA_STRETCH_ROWS), most = EL_CUDA_STRETCHES_MAX;
    if (wanted < 1) return 1;
    return wanted < most ? wanted : most;
}

static inline size_t el_cuda_sum_rows_bytes(int64_t rows, int64_t n)
{
    return (size_t)(el_cuda_stretches(rows) * n) * sizeof(double);
}
