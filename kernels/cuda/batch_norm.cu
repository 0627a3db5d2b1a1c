/* Batch norm: two sums per channel and what follows from them, then a pass over the elements. Forward sums x - x[0] and
 * its square in one pass; the shift avoids cancellation in the variance. */
#include "kernels/cuda/channel_sums.cuh"

template <typename REAL> struct from_first {
    enum { N = 2 };
    const REAL *x;
    __device__ void operator()(int64_t, int64_t channel, int64_t at, double *values) const
    {
        values[0] = static_cast<double>(x[at]) - static_cast<double>(x[channel]);
        values[1] = values[0] * values[0];
    }
};

template <typename REAL> __device__ static inline REAL incoming(const REAL *dy, const REAL *y_or_null, int64_t at)
{
    return y_or_null && !(y_or_null[at] > 0) ? static_cast<REAL>(0) : dy[at];
}

template <typename REAL> struct gradient_terms {
    enum { N = 2 };
    const REAL *dy, *x, *y, *mean;
    __device__ void operator()(int64_t, int64_t channel, int64_t at, double *values) const
    {
        values[0] = static_cast<double>(incoming(dy, y, at));
        values[1] = values[0] * (static_cast<double>(x[at]) - static_cast<double>(mean[channel]));
    }
};

/* Sums of the stretches; backward also the totals behind them. */
template <typename REAL> static size_t batch_norm_forward_bytes(const struct el_kernel_args *args)
{
    return el_cuda_sum_rows_bytes(args->d[0], args->d[1], 2);
}

template <typename REAL> static size_t batch_norm_backward_bytes(const struct el_kernel_args *args)
{
    return el_cuda_sum_rows_bytes(args->d[0], args->d[1], 2) + static_cast<size_t>(2 * args->d[1]) * sizeof(double);
}

template <typename REAL> struct moments {
    const REAL *x;
    int64_t n, c;
    double eps, momentum;
    REAL *running_mean, *running_variance, *saved;
    __device__ void operator()(int64_t i, const double *sums) const
    {
        double count = static_cast<double>(n), off = sums[0] / count, variance = sums[1] / count - off * off;
        if (variance < 0) variance = 0;
        double mean = static_cast<double>(x[i]) + off, unbiased = variance * count / (count - 1);
        saved[i] = static_cast<REAL>(mean);
        saved[c + i] = static_cast<REAL>(1 / sqrt(variance + eps));
        running_mean[i] = static_cast<REAL>((1 - momentum) * static_cast<double>(running_mean[i]) + momentum * mean);
        running_variance[i] =
            static_cast<REAL>((1 - momentum) * static_cast<double>(running_variance[i]) + momentum * unbiased);
    }
};

/* A channel's mean, and its rstd or (eps >= 0) its variance. */
template <typename REAL> struct normaliser {
    const REAL *scale, *shift, *residual, *mean, *spread;
    double eps;
    bool relu;
};

template <typename REAL>
__global__ void normalise_kernel(const REAL *__restrict__ x, struct normaliser<REAL> by, int64_t items, int64_t c,
                                 REAL *__restrict__ y)
{
    EL_CUDA_EACH(i, items)
    {
        int64_t channel = i % c;
        REAL rstd = by.spread[channel];
        if (by.eps >= 0) rstd = static_cast<REAL>(1 / sqrt(static_cast<double>(rstd) + by.eps));
        REAL value = by.scale[channel] * (x[i] - by.mean[channel]) * rstd + by.shift[channel];
        if (by.residual) value += by.residual[i];
        y[i] = by.relu && value < 0 ? static_cast<REAL>(0) : value;
    }
}

template <typename REAL>
static enum el_status normalise(const struct el_kernel_args *args, const char *op, const REAL *mean, const REAL *spread,
                                double eps, bool relu)
{
    int64_t c = args->d[1], items = args->d[0] * c;
    const struct normaliser<REAL> by = {
        static_cast<const REAL *>(args->p[1]), static_cast<const REAL *>(args->p[2]),
            static_cast<const REAL *>(args->p[3]), mean, spread, eps, relu
    };
    return launch(args, op, items, normalise_kernel<REAL>, static_cast<const REAL *>(args->p[0]), by, items, c,
                  static_cast<REAL *>(args->p[6]));
}

template <typename REAL> static enum el_status batch_norm_forward(const struct el_kernel_args *args)
{
    int64_t n = args->d[0], c = args->d[1];
    const REAL *x = static_cast<const REAL *>(args->p[0]);
    REAL *saved = static_cast<REAL *>(args->p[7]);
    EL_TRY(el_batch_norm_check(n));
    const struct moments<REAL> moments = {
        x, n, c, args->s[0], args->s[1], static_cast<REAL *>(args->p[4]), static_cast<REAL *>(args->p[5]), saved
    };
    EL_TRY(channel_sums(args, "batch_norm_forward's moments", n, c, from_first<REAL>{x}, moments));
    return normalise<REAL>(args, "batch_norm_forward", saved, saved + c, -1, args->s[2] != 0);
}

template <typename REAL> static enum el_status batch_norm_inference(const struct el_kernel_args *args)
{
    return normalise<REAL>(args, "batch_norm_inference", static_cast<const REAL *>(args->p[4]),
                           static_cast<const REAL *>(args->p[5]), args->s[0], args->s[1] != 0);
}

template <typename REAL> struct parameter_gradients {
    const REAL *saved;
    int64_t c;
    bool acc;
    double *total;
    REAL *dscale, *dshift;
    __device__ void operator()(int64_t i, const double *sums) const
    {
        double plain = sums[0], times_x = sums[1] * static_cast<double>(saved[c + i]);
        total[i] = plain;
        total[c + i] = times_x;
        dshift[i] = static_cast<REAL>(acc ? static_cast<double>(dshift[i]) + plain : plain);
        dscale[i] = static_cast<REAL>(acc ? static_cast<double>(dscale[i]) + times_x : times_x);
    }
};

/* dresidual may be dy: the same thread reads an element before it writes it. */
template <typename REAL>
__global__ void spread_kernel(const REAL *dy, const REAL *__restrict__ x, const REAL *__restrict__ y,
                              const REAL *__restrict__ scale, const REAL *__restrict__ saved,
                              const double *__restrict__ total, int64_t n, int64_t c, bool acc, REAL *__restrict__ dx,
                              REAL *dresidual)
{
    EL_CUDA_EACH(i, n * c)
    {
        int64_t channel = i % c;
        REAL g = incoming(dy, y, i), rstd = saved[c + channel], normalised = (x[i] - saved[channel]) * rstd;
        REAL plain = static_cast<REAL>(total[channel] / static_cast<double>(n));
        REAL times_x = static_cast<REAL>(total[c + channel] / static_cast<double>(n));
        dx[i] = scale[channel] * rstd * (g - plain - normalised * times_x);
        if (dresidual) dresidual[i] = acc ? dresidual[i] + g : g;
    }
}

template <typename REAL> static enum el_status batch_norm_backward(const struct el_kernel_args *args)
{
    int64_t n = args->d[0], c = args->d[1];
    const REAL *dy = static_cast<const REAL *>(args->p[0]), *x = static_cast<const REAL *>(args->p[1]);
    const REAL *y = static_cast<const REAL *>(args->p[2]), *saved = static_cast<const REAL *>(args->p[4]);
    double *total = static_cast<double *>(args->workspace) + el_cuda_stretches(n, c) * 2 * c;
    const struct parameter_gradients<REAL> parameters = {
        saved, c, args->s[0] != 0, total, static_cast<REAL *>(args->p[6]), static_cast<REAL *>(args->p[7])
    };
    EL_TRY(channel_sums(args, "batch_norm_backward's parameters", n, c, gradient_terms<REAL>{dy, x, y, saved},
                        parameters));
    return launch(args, "batch_norm_backward", n * c, spread_kernel<REAL>, dy, x, y,
                  static_cast<const REAL *>(args->p[3]), saved, static_cast<const double *>(total), n, c,
                  args->s[1] != 0, static_cast<REAL *>(args->p[5]), static_cast<REAL *>(args->p[8]));
}

EL_CUDA_RUN(batch_norm_forward)
EL_CUDA_RUN(batch_norm_inference)
EL_CUDA_RUN(batch_norm_backward)
EL_CUDA_WORKSPACE(batch_norm_forward, batch_norm_forward_bytes)
EL_CUDA_WORKSPACE(batch_norm_backward, batch_norm_backward_bytes)
