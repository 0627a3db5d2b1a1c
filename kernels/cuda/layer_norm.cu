/* Layer norm: a warp per row; the gradients of scale and shift are sums over rows (channel_sums.cuh). */
#include "kernels/cuda/channel_sums.cuh"

template <typename REAL>
__global__ void layer_norm_forward_kernel(const REAL *__restrict__ x, const REAL *__restrict__ scale,
                                          const REAL *__restrict__ shift, int64_t n, int64_t c, double eps,
                                          REAL *__restrict__ y, REAL *__restrict__ saved)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(i, n)
    {
        const REAL *row = x + i * c;
        double mean = 0, variance = 0;
        for (int64_t j = lane; j < c; j += EL_CUDA_WARP) mean += static_cast<double>(row[j]);
        mean = warp_sum(mean) / static_cast<double>(c);
        for (int64_t j = lane; j < c; j += EL_CUDA_WARP) {
            double off = static_cast<double>(row[j]) - mean;
            variance += off * off;
        }
        double rstd = 1 / sqrt(warp_sum(variance) / static_cast<double>(c) + eps);
        for (int64_t j = lane; j < c; j += EL_CUDA_WARP) {
            double h = (static_cast<double>(row[j]) - mean) * rstd;
            y[i * c + j] = static_cast<REAL>(static_cast<double>(scale[j]) * h + static_cast<double>(shift[j]));
        }
        if (lane == 0) saved[2 * i] = static_cast<REAL>(mean), saved[2 * i + 1] = static_cast<REAL>(rstd);
    }
}

template <typename REAL> static enum el_status layer_norm_forward(const struct el_kernel_args *args)
{
    return launch_warps(args, "layer_norm_forward", args->d[0], layer_norm_forward_kernel<REAL>,
                        static_cast<const REAL *>(args->p[0]), static_cast<const REAL *>(args->p[1]),
                        static_cast<const REAL *>(args->p[2]), args->d[0], args->d[1], args->s[0],
                        static_cast<REAL *>(args->p[3]), static_cast<REAL *>(args->p[4]));
}

/* What the gradients are made of; the parameters' are sums of these terms. */
template <typename REAL> struct gradients {
    enum { N = 2 };
    const REAL *dy, *x, *scale, *saved;
    int64_t n, c;
    __device__ double normalised(int64_t row, int64_t at) const
    {
        return (static_cast<double>(x[at]) - static_cast<double>(saved[2 * row])) *
               static_cast<double>(saved[2 * row + 1]);
    }
    __device__ void operator()(int64_t row, int64_t, int64_t at, double *values) const
    {
        values[0] = static_cast<double>(dy[at]);
        values[1] = values[0] * normalised(row, at);
    }
};

template <typename REAL> struct parameters {
    bool acc;
    REAL *dscale, *dshift;
    __device__ void operator()(int64_t i, const double *sums) const
    {
        dshift[i] = static_cast<REAL>(acc ? static_cast<double>(dshift[i]) + sums[0] : sums[0]);
        dscale[i] = static_cast<REAL>(acc ? static_cast<double>(dscale[i]) + sums[1] : sums[1]);
    }
};

/* With g = dy * scale and h the normalised x: dx = rstd * (g - mean(g) - h * mean(g * h)). A warp's row. */
template <typename REAL>
__device__ static inline void input_row(const struct gradients<REAL> &of, int64_t i, bool acc, REAL *__restrict__ dx)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    int64_t first = i * of.c;
    double plain = 0, times_h = 0, count = static_cast<double>(of.c), rstd = static_cast<double>(of.saved[2 * i + 1]);
    for (int64_t j = lane; j < of.c; j += EL_CUDA_WARP) {
        double g = static_cast<double>(of.dy[first + j]) * static_cast<double>(of.scale[j]);
        plain += g;
        times_h += g * of.normalised(i, first + j);
    }
    plain = warp_sum(plain) / count;
    times_h = warp_sum(times_h) / count;
    for (int64_t j = lane; j < of.c; j += EL_CUDA_WARP) {
        double g = static_cast<double>(of.dy[first + j]) * static_cast<double>(of.scale[j]);
        double value = rstd * (g - plain - of.normalised(i, first + j) * times_h);
        dx[first + j] = static_cast<REAL>(acc ? static_cast<double>(dx[first + j]) + value : value);
    }
}

/* The first blocks take rows, the others channels. */
template <typename REAL>
__global__ void layer_norm_backward_kernel(struct gradients<REAL> of, struct parameters<REAL> to,
                                           struct channel_sums_plan plan, int row_blocks, bool acc, REAL *dx)
{
    int block = static_cast<int>(blockIdx.x), warp = static_cast<int>(threadIdx.x) / EL_CUDA_WARP;
    if (block >= row_blocks)
        sum_channels(of, to, plan, block - row_blocks, static_cast<int>(gridDim.x) - row_blocks);
    else
        for (int64_t i = static_cast<int64_t>(block) * WARPS_A_BLOCK + warp; i < of.n;
             i += static_cast<int64_t>(row_blocks) * WARPS_A_BLOCK)
            input_row(of, i, acc, dx);
}

template <typename REAL> static enum el_status layer_norm_backward(const struct el_kernel_args *args)
{
    int64_t n = args->d[0], c = args->d[1];
    const struct gradients<REAL> of = {
        static_cast<const REAL *>(args->p[0]), static_cast<const REAL *>(args->p[1]),
            static_cast<const REAL *>(args->p[2]), static_cast<const REAL *>(args->p[3]), n, c
    };
    const struct parameters<REAL> to = {
        args->s[1] != 0, static_cast<REAL *>(args->p[5]), static_cast<REAL *>(args->p[6])
    };
    const struct channel_sums_plan plan = channel_sums_plan_of(args, n, c);
    const int row_blocks = static_cast<int>(el_cuda_blocks(n, WARPS_A_BLOCK));
    return launch_blocks(args, "layer_norm_backward", static_cast<unsigned>(row_blocks) + channel_sums_blocks(plan),
                         layer_norm_backward_kernel<REAL>, of, to, plan, row_blocks, args->s[0] != 0,
                         static_cast<REAL *>(args->p[4]));
}

template <typename REAL> static size_t layer_norm_backward_bytes(const struct el_kernel_args *args)
{
    return el_cuda_sum_rows_bytes(args->d[0], args->d[1], 2);
}

EL_CUDA_RUN(layer_norm_forward)
EL_CUDA_RUN(layer_norm_backward)
EL_CUDA_WORKSPACE(layer_norm_backward, layer_norm_backward_bytes)
