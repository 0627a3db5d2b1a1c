/* The maximum over time: a block takes 32 channels of a sample; each of its eight warps takes every eighth step; then
 * the warps' maxima are joined. */
#include "kernels/cuda/common.cuh"

template <typename REAL>
__global__ void max_time_forward_kernel(const REAL *__restrict__ x, int64_t tiles, int64_t batch, int64_t length,
                                        int64_t filters, REAL *__restrict__ y, int32_t *__restrict__ at)
{
    __shared__ REAL value[WARPS_A_BLOCK][EL_CUDA_WARP];
    __shared__ int64_t place[WARPS_A_BLOCK][EL_CUDA_WARP];
    int lane = threadIdx.x % EL_CUDA_WARP, warp = threadIdx.x / EL_CUDA_WARP;
    for (int64_t tile = blockIdx.x; tile < batch * tiles; tile += gridDim.x) {
        int64_t b = tile / tiles, f = tile % tiles * EL_CUDA_WARP + lane, best_at = -1;
        REAL best = 0;
        if (f < filters)
            for (int64_t t = warp; t < length; t += WARPS_A_BLOCK) {
                REAL seen = x[(b * length + t) * filters + f];
                if (el_cuda_max_replaces(seen, t, best, best_at)) best = seen, best_at = t;
            }
        value[warp][lane] = best;
        place[warp][lane] = best_at;
        __syncthreads();
        if (warp == 0 && f < filters) {
            for (int other = 1; other < WARPS_A_BLOCK; other++)
                if (el_cuda_max_replaces(value[other][lane], place[other][lane], best, best_at))
                    best = value[other][lane], best_at = place[other][lane];
            y[b * filters + f] = best;
            at[b * filters + f] = static_cast<int32_t>(best_at);
        }
        __syncthreads(); /* before the next tile reuses the places */
    }
}

template <typename REAL> static enum el_status max_time_forward(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    int64_t tiles = el_cuda_ceil_div(d[2], EL_CUDA_WARP);
    return launch_blocks(args, "max_time_forward", el_cuda_blocks(d[0] * tiles, 1), max_time_forward_kernel<REAL>,
                         static_cast<const REAL *>(args->p[0]), tiles, d[0], d[1], d[2],
                         static_cast<REAL *>(args->p[1]), static_cast<int32_t *>(args->p[2]));
}

template <typename REAL>
__global__ void max_time_backward_kernel(const REAL *__restrict__ dy, const int32_t *__restrict__ at, int64_t n,
                                         int64_t length, int64_t filters, REAL *__restrict__ dx)
{
    EL_CUDA_EACH(i, n)
    {
        int64_t f = i % filters, row = i / filters, from = row / length * filters + f;
        dx[i] = at[from] == row % length ? dy[from] : 0;
    }
}

template <typename REAL> static enum el_status max_time_backward(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    int64_t n = d[0] * d[1] * d[2];
    return launch(args, "max_time_backward", n, max_time_backward_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                  static_cast<const int32_t *>(args->p[1]), n, d[1], d[2], static_cast<REAL *>(args->p[2]));
}

EL_CUDA_RUN(max_time_forward)
EL_CUDA_RUN(max_time_backward)
