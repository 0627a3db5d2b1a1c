/* Fused, memory-bound optimizers. The host computes step-dependent values, in double. */
#include "kernels/cuda/common.cuh"

/* g, w */
template <typename REAL, int MOST>
__global__ void sgd_kernel(const __grid_constant__ tensors<2, MOST> all, typename wide_of<REAL>::type lr)
{
    typedef typename wide_of<REAL>::type wide;
    const auto &own = all.each[own_tensor(all)];
    const REAL *__restrict__ g = static_cast<const REAL *>(own.p[0]);
    REAL *__restrict__ w = static_cast<REAL *>(own.p[1]);
    EL_CUDA_EACH_OF(i, own) w[i] = rounded<REAL>(static_cast<wide>(w[i]) - lr * static_cast<wide>(g[i]));
}

template <typename REAL> static enum el_status sgd(const struct el_kernel_args *args)
{
    typedef typename wide_of<REAL>::type wide;
    return launch_tensors(args, "sgd", EL_CUDA_BOTH(sgd_kernel, 2, REAL), static_cast<wide>(args->s[0]));
}

/* g, w, m */
template <typename REAL, int MOST>
__global__ void momentum_kernel(const __grid_constant__ tensors<3, MOST> all, typename wide_of<REAL>::type lr,
                                typename wide_of<REAL>::type mu)
{
    typedef typename wide_of<REAL>::type wide;
    const auto &own = all.each[own_tensor(all)];
    const REAL *__restrict__ g = static_cast<const REAL *>(own.p[0]);
    REAL *__restrict__ w = static_cast<REAL *>(own.p[1]);
    wide *__restrict__ m = static_cast<wide *>(own.p[2]);
    EL_CUDA_EACH_OF(i, own)
    {
        wide moved = mu * m[i] + static_cast<wide>(g[i]);
        m[i] = moved;
        w[i] = rounded<REAL>(static_cast<wide>(w[i]) - lr * moved);
    }
}

template <typename REAL> static enum el_status momentum(const struct el_kernel_args *args)
{
    typedef typename wide_of<REAL>::type wide;
    return launch_tensors(args, "momentum", EL_CUDA_BOTH(momentum_kernel, 3, REAL), static_cast<wide>(args->s[0]),
                          static_cast<wide>(args->s[1]));
}

template <typename REAL> struct adam_scalars {
    REAL beta1, rest1, beta2, rest2, rate, root, eps, kept;
};

/* g, w, m, v, denominator, root. `values`: replaces `s`; NULL: none. */
template <typename REAL, int MOST>
__global__ void adam_kernel(const __grid_constant__ tensors<6, MOST> all,
                            struct adam_scalars<typename wide_of<REAL>::type> s,
                            const struct adam_scalars<typename wide_of<REAL>::type> *values)
{
    typedef typename wide_of<REAL>::type wide;
    const auto &own = all.each[own_tensor(all)];
    const REAL *__restrict__ g = static_cast<const REAL *>(own.p[0]);
    REAL *__restrict__ w = static_cast<REAL *>(own.p[1]);
    wide *__restrict__ m = static_cast<wide *>(own.p[2]), *__restrict__ v = static_cast<wide *>(own.p[3]);
    wide *__restrict__ denominator = static_cast<wide *>(own.p[4]), *__restrict__ root = static_cast<wide *>(own.p[5]);
    static_assert(sizeof all + sizeof s + 2 * sizeof values <= ARGUMENT_BYTES, "a launch takes no more");
    if (values) s = *values;
    EL_CUDA_EACH_OF(i, own)
    {
        wide gradient = static_cast<wide>(g[i]);
        wide first = s.beta1 * m[i] + s.rest1 * gradient;
        wide second = s.beta2 * v[i] + s.rest2 * gradient * gradient;
        m[i] = first;
        v[i] = second;
        wide below = sqrt(second) / s.root + s.eps;
        w[i] = rounded<REAL>(s.kept * static_cast<wide>(w[i]) - s.rate * first / below);
        if (denominator) denominator[i] = below;
        if (root) root[i] = sqrt(second);
    }
}

/* 1 - beta in double: 1 - 0.999f is wrong in its fifth digit. */
template <typename REAL> static struct adam_scalars<REAL> scalars_of(const struct el_kernel_args *args) {
    double lr = args->s[0], beta1 = args->s[1], beta2 = args->s[2];
    double t = static_cast<double>(args->step) + 1;
    struct adam_scalars<REAL> s;
    s.beta1 = static_cast<REAL>(beta1);
    s.rest1 = static_cast<REAL>(1 - beta1);
    s.beta2 = static_cast<REAL>(beta2);
    s.rest2 = static_cast<REAL>(1 - beta2);
    s.rate = static_cast<REAL>(lr / (1 - pow(beta1, t)));
    s.root = static_cast<REAL>(sqrt(1 - pow(beta2, t)));
    s.eps = static_cast<REAL>(args->s[3]);
    s.kept = static_cast<REAL>(1 - lr * args->s[4]);
    return s;
}

template <typename REAL>
static enum el_status adam(const struct el_kernel_args *args)
{
    typedef typename wide_of<REAL>::type wide;
    return launch_tensors(args, "adam", EL_CUDA_BOTH(adam_kernel, 6, REAL), scalars_of<wide>(args),
                          static_cast<const struct adam_scalars<wide> *>(args->step_values));
}

enum { SQUARES_A_BLOCK = 16 * EL_CUDA_THREADS };

/* x, sum */
template <typename REAL, int MOST>
__global__ void squares_kernel(const __grid_constant__ tensors<2, MOST> all, double *__restrict__ part)
{
    const auto &own = all.each[own_tensor(all)];
    const REAL *__restrict__ x = static_cast<const REAL *>(own.p[0]);
    double sum = 0;
    EL_CUDA_EACH_OF(i, own) sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    sum = block_sum(sum);
    if (threadIdx.x == 0) part[blockIdx.x] = sum;
}

template <typename REAL, int MOST>
__global__ void add_parts_kernel(const __grid_constant__ tensors<2, MOST> all, const double *__restrict__ part)
{
    for (int t = 0; t < all.n; t++) {
        const auto &own = all.each[t];
        auto *total = static_cast<typename wide_of<REAL>::type *>(own.p[1]);
        double sum = 0;
        for (unsigned i = threadIdx.x; i < own.blocks; i += blockDim.x) sum += part[own.first + i];
        sum = block_sum(sum);
        if (threadIdx.x == 0) *total = static_cast<typename wide_of<REAL>::type>(static_cast<double>(*total) + sum);
    }
}

template <typename REAL, int MOST> static enum el_status sum_squares_by(const struct el_kernel_args *args)
{
    double *part = static_cast<double *>(args->workspace);
    tensors<2, MOST> list;
    int at = 0;
    do {
        const unsigned blocks = take_tensors(args, SQUARES_A_BLOCK, &at, &list);
        EL_TRY(launch_blocks(args, "sum_squares", blocks, squares_kernel<REAL, MOST>, list, part));
        EL_TRY(launch_blocks(args, "sum_squares' parts", blocks > 0, add_parts_kernel<REAL, MOST>, list, part));
    } while (at < args->n_tensors);
    return EL_OK;
}

template <typename REAL> static enum el_status sum_squares(const struct el_kernel_args *args)
{
    return args->n_tensors ? sum_squares_by<REAL, most_tensors(2)>(args) : sum_squares_by<REAL, 1>(args);
}

template <typename REAL> static size_t parts_bytes(const struct el_kernel_args *args)
{
    size_t blocks = args->n_tensors ? 0 : el_cuda_blocks(args->d[0], SQUARES_A_BLOCK);
    for (int t = 0; t < args->n_tensors; t++) blocks += el_cuda_blocks(args->tensors[t].n, SQUARES_A_BLOCK);
    return blocks * sizeof(double);
}

/* sum, x */
template <typename REAL, int MOST>
__global__ void clip_kernel(const __grid_constant__ tensors<2, MOST> all, double limit)
{
    typedef typename wide_of<REAL>::type wide;
    const auto &own = all.each[own_tensor(all)];
    REAL *__restrict__ x = static_cast<REAL *>(own.p[1]);
    double factor = limit / (sqrt(static_cast<double>(*static_cast<const wide *>(own.p[0]))) + 1e-6);
    if (factor > 1) factor = 1; /* NaN stays */
    EL_CUDA_EACH_OF(i, own) x[i] = rounded<REAL>(static_cast<wide>(x[i]) * static_cast<wide>(factor));
}

template <typename REAL> static enum el_status clip(const struct el_kernel_args *args)
{
    return launch_tensors(args, "clip", EL_CUDA_BOTH(clip_kernel, 2, REAL), args->s[0]);
}

template <typename REAL> __global__ void max_norm_kernel(int64_t rows, int64_t n, double limit, REAL *w)
{
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        REAL *values = w + row * n;
        double squares = 0;
        for (int64_t i = threadIdx.x; i < n; i += blockDim.x)
            squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
        squares = block_sum(squares);
        if (squares <= limit * limit) continue; /* the same for the whole block */
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
EL_CUDA_RUN(momentum)
EL_CUDA_RUN(adam)
EL_CUDA_STEP_VALUES(adam, scalars_of)
EL_CUDA_RUN(sum_squares)
EL_CUDA_WORKSPACE(sum_squares, parts_bytes)
EL_CUDA_RUN(clip)
EL_CUDA_RUN(max_norm)
EL_CUDA_RUN_BF16(sgd)
EL_CUDA_RUN_BF16(momentum)
EL_CUDA_RUN_BF16(adam)
EL_CUDA_RUN_BF16(sum_squares)
EL_CUDA_RUN_BF16(clip)
