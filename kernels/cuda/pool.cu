/* Pools over images: max with a thread per output, its gradient with a thread per element of dx that searches its
 * windows; mean with eight warps per tile of 32 channels. */
#include "kernels/cuda/common.cuh"
#include "kernels/window.h"

template <typename REAL>
__global__ void max_pool_forward_kernel(const REAL *__restrict__ x, struct el_window s, int64_t items,
                                        REAL *__restrict__ y, int32_t *__restrict__ at)
{
    EL_CUDA_EACH(i, items)
    {
        int64_t c = i % s.c, place = i / s.c, best_at = -1;
        struct el_window_taps rows = el_window_taps(place / s.ow % s.oh, s.h, s.k, s.stride, s.pad);
        struct el_window_taps columns = el_window_taps(place % s.ow, s.w, s.k, s.stride, s.pad);
        const REAL *sample = x + place / (s.oh * s.ow) * s.h * s.w * s.c + c;
        REAL best = 0;
        for (int64_t ky = rows.begin; ky < rows.end; ky++)
            for (int64_t kx = columns.begin; kx < columns.end; kx++) {
                REAL seen = sample[((rows.at + ky) * s.w + columns.at + kx) * s.c];
                if (best_at < 0 || seen > best) best = seen, best_at = ky * s.k + kx;
            }
        y[i] = best;
        at[i] = static_cast<int32_t>(best_at);
    }
}

template <typename REAL> static enum el_status max_pool_forward(const struct el_kernel_args *args)
{
    const struct el_window s = el_window_of_pool(args->d);
    int64_t items = s.b * s.oh * s.ow * s.c;
    return launch(args, "max_pool_forward", items, max_pool_forward_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                  s, items, static_cast<REAL *>(args->p[1]), static_cast<int32_t *>(args->p[2]));
}

template <typename REAL>
__global__ void max_pool_backward_kernel(const REAL *__restrict__ dy, const int32_t *__restrict__ at,
                                         struct el_window s, int64_t items, REAL *__restrict__ dx)
{
    EL_CUDA_EACH(i, items)
    {
        int64_t c = i % s.c, column = i / s.c % s.w, row = i / (s.c * s.w) % s.h, sample = i / (s.c * s.w * s.h);
        double sum = 0;
        for (int64_t ky = 0; ky < s.k; ky++) {
            int64_t oy = el_window_place_of(row, ky, s.oh, s.stride, s.pad);
            if (oy < 0) continue;
            for (int64_t kx = 0; kx < s.k; kx++) {
                int64_t ox = el_window_place_of(column, kx, s.ow, s.stride, s.pad);
                int64_t from = ((sample * s.oh + oy) * s.ow + ox) * s.c + c;
                if (ox >= 0 && at[from] == ky * s.k + kx) sum += static_cast<double>(dy[from]);
            }
        }
        dx[i] = static_cast<REAL>(sum);
    }
}

template <typename REAL> static enum el_status max_pool_backward(const struct el_kernel_args *args)
{
    const struct el_window s = el_window_of_pool(args->d);
    int64_t items = s.b * s.h * s.w * s.c;
    return launch(args, "max_pool_backward", items, max_pool_backward_kernel<REAL>,
                  static_cast<const REAL *>(args->p[0]), static_cast<const int32_t *>(args->p[1]), s, items,
                  static_cast<REAL *>(args->p[2]));
}

template <typename REAL>
__global__ void mean_pool_forward_kernel(const REAL *__restrict__ x, int64_t tiles, int64_t batch, int64_t pixels,
                                         int64_t channels, REAL *__restrict__ y)
{
    __shared__ double sums[WARPS_A_BLOCK][EL_CUDA_WARP];
    int lane = threadIdx.x % EL_CUDA_WARP, warp = threadIdx.x / EL_CUDA_WARP;
    for (int64_t tile = blockIdx.x; tile < batch * tiles; tile += gridDim.x) {
        int64_t b = tile / tiles, c = tile % tiles * EL_CUDA_WARP + lane;
        double sum = 0;
        if (c < channels)
            for (int64_t pixel = warp; pixel < pixels; pixel += WARPS_A_BLOCK)
                sum += static_cast<double>(x[(b * pixels + pixel) * channels + c]);
        sums[warp][lane] = sum;
        __syncthreads();
        if (warp == 0 && c < channels) {
            for (int other = 1; other < WARPS_A_BLOCK; other++) sum += sums[other][lane];
            y[b * channels + c] = static_cast<REAL>(sum / static_cast<double>(pixels));
        }
        __syncthreads(); /* before the next tile reuses `sums` */
    }
}

template <typename REAL> static enum el_status mean_pool_forward(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    int64_t tiles = el_cuda_ceil_div(d[2], EL_CUDA_WARP);
    return launch_blocks(args, "mean_pool_forward", el_cuda_blocks(d[0] * tiles, 1), mean_pool_forward_kernel<REAL>,
                         static_cast<const REAL *>(args->p[0]), tiles, d[0], d[1], d[2],
                         static_cast<REAL *>(args->p[1]));
}

template <typename REAL>
__global__ void mean_pool_backward_kernel(const REAL *__restrict__ dy, int64_t items, int64_t pixels, int64_t channels,
                                          bool acc, REAL *__restrict__ dx)
{
    EL_CUDA_EACH(i, items)
    {
        REAL share = dy[i / (pixels * channels) * channels + i % channels] / static_cast<REAL>(pixels);
        dx[i] = acc ? dx[i] + share : share;
    }
}

template <typename REAL> static enum el_status mean_pool_backward(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    int64_t items = d[0] * d[1] * d[2];
    return launch(args, "mean_pool_backward", items, mean_pool_backward_kernel<REAL>,
                  static_cast<const REAL *>(args->p[0]), items, d[1], d[2], args->s[0] != 0,
                  static_cast<REAL *>(args->p[1]));
}

EL_CUDA_RUN(max_pool_forward)
EL_CUDA_RUN(max_pool_backward)
EL_CUDA_RUN(mean_pool_forward)
EL_CUDA_RUN(mean_pool_backward)
