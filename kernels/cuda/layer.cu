/* Small kernels around matrix products: bias and ReLU, the sum of rows. */
#include "kernels/cuda/common.cuh"

extern "C" {
#include "kernels/cuda/layer.h"
}

/* y may be x. */
template <typename REAL>
__global__ void bias_kernel(int64_t rows, int64_t n, const REAL *x, const REAL *__restrict__ bias, bool relu, REAL *y)
{
    EL_CUDA_EACH(i, rows * n)
    {
        typedef typename wide_of<REAL>::type wide;
        const wide value = x ? static_cast<wide>(x[i]) : 0, sum = bias ? value + static_cast<wide>(bias[i % n]) : value;
        y[i] = rounded<REAL>(relu && sum < 0 ? 0 : sum);
    }
}

template <typename REAL>
static enum el_status bias_of(const struct el_kernel_args *args, int64_t rows, int64_t n, const void *x,
                              const void *bias, bool relu, void *y)
{
    return launch(args, "bias", rows * n, bias_kernel<REAL>, rows, n, static_cast<const REAL *>(x),
                  static_cast<const REAL *>(bias), relu, static_cast<REAL *>(y));
}

enum el_status el_cuda_bias(const struct el_kernel_args *args, enum el_dtype dtype, int64_t rows, int64_t n,
                            const void *x, const void *bias, bool relu, void *y)
{
    if (x == y && !bias && !relu) return EL_OK;
    if (dtype == EL_BF16) return bias_of<bf16>(args, rows, n, x, bias, relu, y);
    return dtype == EL_F64 ? bias_of<double>(args, rows, n, x, bias, relu, y)
                           : bias_of<float>(args, rows, n, x, bias, relu, y);
}

/* A block takes 32 columns of a stretch; each of its eight warps sums every eighth row, then their sums are added in
 * order. */
template <typename REAL>
__global__ void sum_stretches_kernel(const REAL *__restrict__ x, int64_t rows, int64_t n, int64_t tiles,
                                     int64_t stretches, double *__restrict__ part)
{
    __shared__ double sums[WARPS_A_BLOCK][EL_CUDA_WARP];
    int lane = threadIdx.x % EL_CUDA_WARP, warp = threadIdx.x / EL_CUDA_WARP;
    int64_t stretch_rows = el_cuda_ceil_div(rows, stretches);
    for (int64_t block = blockIdx.x; block < tiles * stretches; block += gridDim.x) {
        int64_t column = block % tiles * EL_CUDA_WARP + lane, stretch = block / tiles;
        int64_t end = stretch_rows * (stretch + 1) < rows ? stretch_rows * (stretch + 1) : rows;
        double sum = 0;
        if (column < n)
            for (int64_t row = stretch_rows * stretch + warp; row < end; row += WARPS_A_BLOCK)
                sum += static_cast<double>(x[row * n + column]);
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && column < n) {
            for (int other = 1; other < WARPS_A_BLOCK; other++) sum += sums[other][lane];
            part[stretch * n + column] = sum;
        }
        __syncthreads(); /* before the next tile reuses `sums` */
    }
}

template <typename REAL>
__global__ void add_stretches_kernel(const double *__restrict__ part, int64_t stretches, int64_t n, bool acc,
                                     REAL *__restrict__ y)
{
    EL_CUDA_EACH(i, n)
    {
        double sum = acc ? static_cast<double>(y[i]) : 0;
        for (int64_t stretch = 0; stretch < stretches; stretch++) sum += part[stretch * n + i];
        y[i] = static_cast<REAL>(sum);
    }
}

template <typename FROM, typename REAL>
static enum el_status sum_rows(const struct el_kernel_args *args, const void *x, int64_t rows, int64_t n, bool acc,
                               void *part_or_space, void *y)
{
    double *part = static_cast<double *>(part_or_space);
    int64_t tiles = el_cuda_ceil_div(n, EL_CUDA_WARP), stretches = el_cuda_stretches(rows);
    EL_TRY(launch_blocks(args, "the stretches of a sum of rows", el_cuda_blocks(tiles * stretches, 1),
                         sum_stretches_kernel<FROM>, static_cast<const FROM *>(x), rows, n, tiles, stretches, part));
    return launch(args, "a sum of rows", n, add_stretches_kernel<REAL>, part, stretches, n, acc,
                  static_cast<REAL *>(y));
}

enum el_status el_cuda_sum_rows(const struct el_kernel_args *args, enum el_dtype dtype, const void *x, int64_t rows,
                                int64_t n, bool acc, void *part, void *y)
{
    if (dtype == EL_BF16) return sum_rows<bf16, float>(args, x, rows, n, acc, part, y);
    return dtype == EL_F64 ? sum_rows<double, double>(args, x, rows, n, acc, part, y)
                           : sum_rows<float, float>(args, x, rows, n, acc, part, y);
}
