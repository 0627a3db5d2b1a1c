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

template <typename REAL> struct parameter_terms {
    const REAL *dy, *x, *saved;
    int64_t c;
    __device__ double normalised(int64_t at) const
    {
        const REAL *row = saved + at / c * 2;
        return (static_cast<double>(x[at]) - static_cast<double>(row[0])) * static_cast<double>(row[1]);
    }
    __device__ void operator()(int64_t at, int64_t, double *one, double *two) const
    {
        *one = static_cast<double>(dy[at]);
        *two = *one * normalised(at);
    }
};

template <typename REAL>
__global__ void layer_norm_parameters_kernel(const double *__restrict__ part, int64_t c, int64_t stretches, bool acc,
                                             REAL *__restrict__ dscale, REAL *__restrict__ dshift)
{
    EL_CUDA_EACH(i, c)
    {
        double shift = all_stretches(part, stretches, 2 * c, i), scale = all_stretches(part, stretches, 2 * c, c + i);
        dshift[i] = static_cast<REAL>(acc ? static_cast<double>(dshift[i]) + shift : shift);
        dscale[i] = static_cast<REAL>(acc ? static_cast<double>(dscale[i]) + scale : scale);
    }
}

/* With g = dy * scale and h the normalised x: dx = rstd * (g - mean(g) - h * mean(g * h)). */
template <typename REAL>
__global__ void layer_norm_input_kernel(struct parameter_terms<REAL> of, const REAL *__restrict__ scale, int64_t n,
                                        bool acc, REAL *__restrict__ dx)
{
    int lane = threadIdx.x % EL_CUDA_WARP;
    EL_CUDA_EACH_WARP(i, n)
    {
        int64_t first = i * of.c;
        double plain = 0, times_h = 0, count = static_cast<double>(of.c),
               rstd = static_cast<double>(of.saved[2 * i + 1]);
        for (int64_t j = lane; j < of.c; j += EL_CUDA_WARP) {
            double g = static_cast<double>(of.dy[first + j]) * static_cast<double>(scale[j]);
            plain += g;
            times_h += g * of.normalised(first + j);
        }
        plain = warp_sum(plain) / count;
        times_h = warp_sum(times_h) / count;
        for (int64_t j = lane; j < of.c; j += EL_CUDA_WARP) {
            double g = static_cast<double>(of.dy[first + j]) * static_cast<double>(scale[j]);
            double value = rstd * (g - plain - of.normalised(first + j) * times_h);
            dx[first + j] = static_cast<REAL>(acc ? static_cast<double>(dx[first + j]) + value : value);
        }
    }
}

template <typename REAL> static enum el_status layer_norm_backward(const struct el_kernel_args *args)
{
    int64_t n = args->d[0], c = args->d[1];
    const struct parameter_terms<REAL> of = {
        static_cast<const REAL *>(args->p[0]), static_cast<const REAL *>(args->p[1]),
            static_cast<const REAL *>(args->p[3]), c
    };
    EL_TRY(channel_sums(args, "layer_norm_backward's sums", of));
    EL_TRY(launch(args, "layer_norm_backward's parameters", c, layer_norm_parameters_kernel<REAL>,
                  static_cast<const double *>(args->workspace), c, el_cuda_stretches(n), args->s[1] != 0,
                  static_cast<REAL *>(args->p[5]), static_cast<REAL *>(args->p[6])));
    return launch_warps(args, "layer_norm_backward", n, layer_norm_input_kernel<REAL>, of,
                        static_cast<const REAL *>(args->p[2]), n, args->s[0] != 0, static_cast<REAL *>(args->p[4]));
}

template <typename REAL> static size_t layer_norm_backward_bytes(const struct el_kernel_args *args)
{
    return channel_sums_bytes(args);
}

EL_CUDA_RUN(layer_norm_forward)
EL_CUDA_RUN(layer_norm_backward)
EL_CUDA_WORKSPACE(layer_norm_backward, layer_norm_backward_bytes)
