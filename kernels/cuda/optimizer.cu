/* Fused optimizers: one pass over gradients, parameters and state; they are bound by memory. What depends on the step
 * is worked out by the host, in double. */
#include "kernels/cuda/common.cuh"
#include "kernels/rate.h"

/* Of kernels that take it: `values`, in the place of `lr`; NULL: none. */
template <typename REAL> static REAL rate_of(const struct el_kernel_args *args)
{
    return static_cast<REAL>(el_rate(args, args->s[0], args->s[1]));
}

template <typename REAL>
__global__ void sgd_kernel(const REAL *__restrict__ g, int64_t n, REAL lr, const REAL *values, REAL *__restrict__ w)
{
    if (values) lr = *values;
    EL_CUDA_EACH(i, n) w[i] -= lr * g[i];
}

template <typename REAL> static enum el_status sgd(const struct el_kernel_args *args)
{
    return launch(args, "sgd", args->d[0], sgd_kernel<REAL>, static_cast<const REAL *>(args->p[0]), args->d[0],
                  rate_of<REAL>(args), static_cast<const REAL *>(args->step_values), static_cast<REAL *>(args->p[1]));
}

template <typename REAL>
__global__ void momentum_kernel(const REAL *__restrict__ g, int64_t n, REAL lr, const REAL *values, REAL mu,
                                REAL *__restrict__ w, REAL *__restrict__ m)
{
    if (values) lr = *values;
    EL_CUDA_EACH(i, n)
    {
        REAL moved = mu * m[i] + g[i];
        m[i] = moved;
        w[i] -= lr * moved;
    }
}

template <typename REAL> static enum el_status momentum(const struct el_kernel_args *args)
{
    return launch(args, "momentum", args->d[0], momentum_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                  args->d[0], rate_of<REAL>(args), static_cast<const REAL *>(args->step_values),
                  static_cast<REAL>(args->s[2]), static_cast<REAL *>(args->p[1]), static_cast<REAL *>(args->p[2]));
}

template <typename REAL> struct adam_scalars {
    REAL beta1, rest1, beta2, rest2, rate, root, eps, kept;
};

/* `values`: in the place of `s`; NULL: none. */
template <typename REAL>
__global__ void adam_kernel(const REAL *__restrict__ g, int64_t n, struct adam_scalars<REAL> s,
                            const struct adam_scalars<REAL> *values, REAL *__restrict__ w, REAL *__restrict__ m,
                            REAL *__restrict__ v, REAL *__restrict__ denominator, REAL *__restrict__ root)
{
    if (values) s = *values;
    EL_CUDA_EACH(i, n)
    {
        REAL gradient = g[i];
        REAL first = s.beta1 * m[i] + s.rest1 * gradient;
        REAL second = s.beta2 * v[i] + s.rest2 * gradient * gradient;
        m[i] = first;
        v[i] = second;
        REAL below = sqrt(second) / s.root + s.eps;
        w[i] = s.kept * w[i] - s.rate * first / below;
        if (denominator) denominator[i] = below;
        if (root) root[i] = sqrt(second);
    }
}

/* 1 - beta in double: 1 - 0.999f is wrong in its fifth digit. */
template <typename REAL> static struct adam_scalars<REAL> scalars_of(const struct el_kernel_args *args) {
    double lr = el_rate(args, args->s[0], args->s[1]), beta1 = args->s[2], beta2 = args->s[3];
    double t = static_cast<double>(args->step) + 1;
    struct adam_scalars<REAL> s;
    s.beta1 = static_cast<REAL>(beta1);
    s.rest1 = static_cast<REAL>(1 - beta1);
    s.beta2 = static_cast<REAL>(beta2);
    s.rest2 = static_cast<REAL>(1 - beta2);
    s.rate = static_cast<REAL>(lr / (1 - pow(beta1, t)));
    s.root = static_cast<REAL>(sqrt(1 - pow(beta2, t)));
    s.eps = static_cast<REAL>(args->s[4]);
    s.kept = static_cast<REAL>(1 - lr * args->s[5]);
    return s;
}

template <typename REAL>
static enum el_status adam(const struct el_kernel_args *args)
{
    return launch(args, "adam", args->d[0], adam_kernel<REAL>, static_cast<const REAL *>(args->p[0]), args->d[0],
                  scalars_of<REAL>(args), static_cast<const struct adam_scalars<REAL> *>(args->step_values),
                  static_cast<REAL *>(args->p[1]), static_cast<REAL *>(args->p[2]), static_cast<REAL *>(args->p[3]),
                  static_cast<REAL *>(args->p[4]), static_cast<REAL *>(args->p[5]));
}

/* What a block of the sum takes at least. */
enum { SQUARES_A_BLOCK = 16 * EL_CUDA_THREADS };

template <typename REAL>
__global__ void squares_kernel(const REAL *__restrict__ x, int64_t n, double *__restrict__ part)
{
    double sum = 0;
    EL_CUDA_EACH(i, n) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

/* One block. */
template <typename REAL> __global__ void add_parts_kernel(const double *__restrict__ part, int64_t n, REAL *sum)
{
    double all = 0;
    for (int64_t i = threadIdx.x; i < n; i += blockDim.x) all += part[i];
    all = block_sum(all);
    if (threadIdx.x == 0) *sum = static_cast<REAL>(static_cast<double>(*sum) + all);
}

template <typename REAL> static enum el_status sum_squares(const struct el_kernel_args *args)
{
    unsigned blocks = el_cuda_blocks(args->d[0], SQUARES_A_BLOCK);
    double *part = static_cast<double *>(args->workspace); /* [blocks] */
    EL_TRY(launch_blocks(args, "sum_squares", blocks, squares_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                         args->d[0], part));
    return launch_blocks(args, "sum_squares' parts", 1, add_parts_kernel<REAL>, part, static_cast<int64_t>(blocks),
                         static_cast<REAL *>(args->p[1]));
}

template <typename REAL> static size_t parts_bytes(const struct el_kernel_args *args)
{
    return el_cuda_blocks(args->d[0], SQUARES_A_BLOCK) * sizeof(double);
}

template <typename REAL>
__global__ void clip_kernel(const REAL *__restrict__ sum, int64_t n, double limit, REAL *__restrict__ x)
{
    double factor = limit / (sqrt(static_cast<double>(*sum)) + 1e-6);
    if (factor > 1) factor = 1; /* NaN stays */
    EL_CUDA_EACH(i, n) x[i] *= static_cast<REAL>(factor);
}

template <typename REAL> static enum el_status clip(const struct el_kernel_args *args)
{
    return launch(args, "clip", args->d[0], clip_kernel<REAL>, static_cast<const REAL *>(args->p[0]), args->d[0],
                  args->s[0], static_cast<REAL *>(args->p[1]));
}

/* A block a row. */
template <typename REAL> __global__ void max_norm_kernel(int64_t rows, int64_t n, double limit, REAL *w)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        REAL *values = w + row * n;
        double squares = 0;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        squares = block_sum(squares);
        if (squares <= limit * limit) continue; /* the same for all of the block */
        double factor = limit / sqrt(squares);
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            values[i] = static_cast<REAL>(factor * static_cast<double>(values[i]));
    }
}

template <typename REAL> static enum el_status max_norm(const struct el_kernel_args *args)
{
    return launch_blocks(args, "max_norm", el_cuda_blocks(args->d[0], 1), max_norm_kernel<REAL>, args->d[0], args->d[1],
                         args->s[0], static_cast<REAL *>(args->p[0]));
}

EL_CUDA_RUN(sgd)
EL_CUDA_STEP_VALUES(sgd, rate_of, el_rate_changes)
EL_CUDA_RUN(momentum)
EL_CUDA_STEP_VALUES(momentum, rate_of, el_rate_changes)
EL_CUDA_RUN(adam)
EL_CUDA_STEP_VALUES(adam, scalars_of, depends_always)
EL_CUDA_RUN(sum_squares)
EL_CUDA_WORKSPACE(sum_squares, parts_bytes)
EL_CUDA_RUN(clip)
EL_CUDA_RUN(max_norm)
