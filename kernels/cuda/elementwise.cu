/* Element-wise ops. Where an output may be an input (relu_backward, gelu_backward, scale) no pointer is
 * __restrict__. */
#include "kernels/cuda/common.cuh"

template <typename REAL> __global__ void relu_backward_kernel(const REAL *dy, const REAL *y, int64_t n, REAL *dx)
{
    EL_CUDA_EACH(i, n) dx[i] = y[i] > 0 ? dy[i] : 0;
}

template <typename REAL> static enum el_status relu_backward(const struct el_kernel_args *args)
{
    return launch(args, "relu_backward", args->d[0], relu_backward_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                  static_cast<const REAL *>(args->p[1]), args->d[0], static_cast<REAL *>(args->p[2]));
}

#define GELU_ROOT 0.7978845608028654 /* sqrt(2 / pi) */
#define GELU_CUBE 0.044715

/* In the type itself: many devices are slow in double. */
template <typename REAL> __device__ static inline REAL gelu_tanh(REAL x)
{
    return tanh(static_cast<REAL>(GELU_ROOT) * (x + static_cast<REAL>(GELU_CUBE) * x * x * x));
}

template <typename REAL>
__global__ void gelu_forward_kernel(const REAL *__restrict__ x, int64_t n, REAL *__restrict__ y)
{
    EL_CUDA_EACH(i, n) y[i] = x[i] / 2 * (1 + gelu_tanh(x[i]));
}

template <typename REAL> static enum el_status gelu_forward(const struct el_kernel_args *args)
{
    return launch(args, "gelu_forward", args->d[0], gelu_forward_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                  args->d[0], static_cast<REAL *>(args->p[1]));
}

template <typename REAL>
__global__ void gelu_backward_kernel(const REAL *dy, const REAL *__restrict__ x, int64_t n, REAL *dx)
{
    const REAL root = static_cast<REAL>(GELU_ROOT), cube = static_cast<REAL>(3 * GELU_CUBE);
    EL_CUDA_EACH(i, n)
    {
        REAL t = gelu_tanh(x[i]), slope = (1 - t * t) * root * (1 + cube * x[i] * x[i]);
        dx[i] = dy[i] * (1 + t + x[i] * slope) / 2;
    }
}

template <typename REAL> static enum el_status gelu_backward(const struct el_kernel_args *args)
{
    return launch(args, "gelu_backward", args->d[0], gelu_backward_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                  static_cast<const REAL *>(args->p[1]), args->d[0], static_cast<REAL *>(args->p[2]));
}

template <typename REAL>
__global__ void copy_columns_kernel(const REAL *__restrict__ x, int64_t rows, int64_t columns, int64_t ldx, int64_t ldy,
                                    bool acc, REAL *__restrict__ y)
{
    EL_CUDA_EACH(i, rows * columns)
    {
        int64_t row = i / columns, column = i % columns;
        REAL value = x[row * ldx + column], *to = &y[row * ldy + column];
        *to = acc ? *to + value : value;
    }
}

template <typename REAL> static enum el_status copy_columns(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    return launch(args, "copy_columns", d[0] * d[1], copy_columns_kernel<REAL>, static_cast<const REAL *>(args->p[0]),
                  d[0], d[1], d[2], d[3], args->s[0] != 0, static_cast<REAL *>(args->p[1]));
}

/* x, y */
template <typename REAL, int MOST> __global__ void scale_kernel(const __grid_constant__ tensors<2, MOST> all, REAL s)
{
    const auto &own = all.each[own_tensor(all)];
    const REAL *x = static_cast<const REAL *>(own.p[0]);
    REAL *y = static_cast<REAL *>(own.p[1]);
    EL_CUDA_EACH_OF(i, own) y[i] = s * x[i];
}

template <typename REAL> static enum el_status scale(const struct el_kernel_args *args)
{
    return launch_tensors(args, "scale", EL_CUDA_BOTH(scale_kernel, 2, REAL), static_cast<REAL>(args->s[0]));
}

template <typename REAL> __global__ void add_kernel(const REAL *__restrict__ x, int64_t n, REAL *__restrict__ y)
{
    EL_CUDA_EACH(i, n) y[i] += x[i];
}

template <typename REAL> static enum el_status add(const struct el_kernel_args *args)
{
    return launch(args, "add", args->d[0], add_kernel<REAL>, static_cast<const REAL *>(args->p[0]), args->d[0],
                  static_cast<REAL *>(args->p[1]));
}

template <typename REAL, int MOST> __global__ void fill_kernel(const __grid_constant__ tensors<1, MOST> all, REAL s)
{
    const auto &own = all.each[own_tensor(all)];
    EL_CUDA_EACH_OF(i, own) static_cast<REAL *>(own.p[0])[i] = s;
}

template <typename REAL> static enum el_status fill(const struct el_kernel_args *args)
{
    return launch_tensors(args, "fill", EL_CUDA_BOTH(fill_kernel, 1, REAL), static_cast<REAL>(args->s[0]));
}

EL_CUDA_RUN(relu_backward)
EL_CUDA_RUN(gelu_forward)
EL_CUDA_RUN(gelu_backward)
EL_CUDA_RUN(copy_columns)
EL_CUDA_RUN(scale)
EL_CUDA_RUN(add)
EL_CUDA_RUN(fill)
