/* Two sums per channel over the rows of [d[0], d[1]], by stretches of rows, at the start of the workspace. TERMS gives
 * an element's terms. */
#pragma once

#include "kernels/cuda/common.cuh"

extern "C" {
#include "kernels/cuda/layer.h"
}

/* part[stretch][2][c]: a block takes 32 channels of one stretch; each of its eight warps takes every eighth row. */
template <typename TERMS>
__global__ void channel_sums_kernel(TERMS terms, int64_t rows, int64_t c, int64_t tiles, int64_t stretches,
                                    double *__restrict__ part)
{
    __shared__ double ones[WARPS_A_BLOCK][EL_CUDA_WARP], twos[WARPS_A_BLOCK][EL_CUDA_WARP];
    int lane = threadIdx.x % EL_CUDA_WARP, warp = threadIdx.x / EL_CUDA_WARP;
    int64_t stretch_rows = el_cuda_ceil_div(rows, stretches);
    for (int64_t block = blockIdx.x; block < tiles * stretches; block += gridDim.x) {
        int64_t channel = block % tiles * EL_CUDA_WARP + lane, stretch = block / tiles;
        int64_t end = stretch_rows * (stretch + 1) < rows ? stretch_rows * (stretch + 1) : rows;
        double one = 0, two = 0;
        if (channel < c)
            for (int64_t row = stretch_rows * stretch + warp; row < end; row += WARPS_A_BLOCK) {
                double first, second;
                terms(row * c + channel, channel, &first, &second);
                one += first;
                two += second;
            }
        ones[warp][lane] = one;
        twos[warp][lane] = two;
        __syncthreads();
        if (warp == 0 && channel < c) {
            for (int other = 1; other < WARPS_A_BLOCK; other++) one += ones[other][lane], two += twos[other][lane];
            part[stretch * 2 * c + channel] = one;
            part[stretch * 2 * c + c + channel] = two;
        }
        __syncthreads(); /* before the next tile reuses the places */
    }
}

static inline size_t channel_sums_bytes(const struct el_kernel_args *args)
{
    return el_cuda_sum_rows_bytes(args->d[0], 2 * args->d[1]);
}

template <typename TERMS>
static enum el_status channel_sums(const struct el_kernel_args *args, const char *op, TERMS terms)
{
    int64_t rows = args->d[0], c = args->d[1];
    int64_t tiles = el_cuda_ceil_div(c, EL_CUDA_WARP), stretches = el_cuda_stretches(rows);
    return launch_blocks(args, op, el_cuda_blocks(tiles * stretches, 1), channel_sums_kernel<TERMS>, terms, rows, c,
                         tiles, stretches, static_cast<double *>(args->workspace));
}

/* One channel's, in order. */
__device__ static inline double all_stretches(const double *part, int64_t stretches, int64_t stride, int64_t at)
{
    double sum = 0;
    for (int64_t stretch = 0; stretch < stretches; stretch++) sum += part[stretch * stride + at];
    return sum;
}
