/* Casts, bf16 ops that need no workspace, and f16. */
#include "kernels/cuda/common.cuh"

#include "runtime/base/half.h"

struct f16 {
    uint16_t bits;
    __device__ operator float() const
    {
        return el_f32_of_f16(bits);
    }
};

template <> struct wide_of<f16> {
    typedef float type;
};

template <> __device__ inline f16 rounded<f16>(float value)
{
    f16 half;
    half.bits = el_f16_of_f32(value);
    return half;
}

template <typename TO> __device__ static inline typename wide_of<TO>::type taken(typename wide_of<TO>::type x)
{
    return x;
}

template <> __device__ inline float taken<f16>(float x)
{
    return rounded<f16>(x);
}

/* x, y = s * x, added with `acc`. y may be x. */
template <typename FROM, typename TO, int MOST>
__global__ void cast_kernel(const __grid_constant__ tensors<2, MOST> all, double s, bool acc)
{
    typedef typename wide_of<TO>::type wide;
    const auto &own = all.each[own_tensor(all)];
    const FROM *x = static_cast<const FROM *>(own.p[0]);
    TO *y = static_cast<TO *>(own.p[1]);
    EL_CUDA_EACH_OF(i, own)
    {
        const wide value = static_cast<wide>(s) * taken<TO>(static_cast<wide>(x[i]));
        y[i] = rounded<TO>(acc ? static_cast<wide>(y[i]) + value : value);
    }
}

template <typename FROM, typename TO>
static enum el_status cast_from(const struct el_kernel_args *args, double s, bool acc)
{
    return launch_tensors(args, "cast", EL_CUDA_BOTH(cast_kernel, 2, FROM, TO), s, acc);
}

template <typename TO> static enum el_status cast(const struct el_kernel_args *args)
{
    const bool acc = args->s[1] != 0;
    if (args->k[0] == EL_BF16) return cast_from<bf16, TO>(args, args->s[0], acc);
    if (args->k[0] == EL_F16) return cast_from<f16, TO>(args, args->s[0], acc);
    if (args->k[0] == EL_F64) return cast_from<double, TO>(args, args->s[0], acc);
    return cast_from<float, TO>(args, args->s[0], acc);
}

template <typename REAL, int MOST> __global__ void fill_kernel(const __grid_constant__ tensors<1, MOST> all, double s)
{
    const auto &own = all.each[own_tensor(all)];
    REAL *y = static_cast<REAL *>(own.p[0]);
    EL_CUDA_EACH_OF(i, own) y[i] = rounded<REAL>(static_cast<typename wide_of<REAL>::type>(s));
}

template <typename REAL> static enum el_status fill(const struct el_kernel_args *args)
{
    return launch_tensors(args, "fill", EL_CUDA_BOTH(fill_kernel, 1, REAL), args->s[0]);
}

EL_CUDA_RUN(cast)
EL_CUDA_RUN_BF16(cast)
EL_CUDA_RUN_BF16(fill)

extern "C" enum el_status el_cuda_cast_f16(const struct el_kernel_args *args)
{
    return cast<f16>(args);
}

extern "C" enum el_status el_cuda_fill_f16(const struct el_kernel_args *args)
{
    return fill<f16>(args);
}

extern "C" enum el_status el_cuda_scale_bf16(const struct el_kernel_args *args)
{
    return cast_from<bf16, bf16>(args, args->s[0], false);
}

extern "C" enum el_status el_cuda_add_bf16(const struct el_kernel_args *args)
{
    return cast_from<bf16, bf16>(args, 1, true);
}

extern "C" enum el_status el_cuda_bf16_move(const struct el_kernel_args *args, const void *x, int64_t n, bool back,
                                            void *y)
{
    struct el_kernel_args own = *args;
    own.p[0] = const_cast<void *>(x);
    own.p[1] = y;
    own.d[0] = n;
    return back ? cast_from<float, bf16>(&own, 1, false) : cast_from<bf16, float>(&own, 1, false);
}
