/* Between types: casts, what bf16 has of its own, since it is wanted without a workspace, and all that f16 has. */
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

/* What is taken for x. */
template <typename TO> __device__ static inline typename wide_of<TO>::type taken(typename wide_of<TO>::type x)
{
    return x;
}

template <> __device__ inline float taken<f16>(float x)
{
    return rounded<f16>(x);
}

/* y = s * x, added to what is there with `acc`. y may be x. */
template <typename FROM, typename TO> __global__ void cast_kernel(const FROM *x, int64_t n, double s, bool acc, TO *y)
{
    EL_CUDA_EACH(i, n)
    {
        typedef typename wide_of<TO>::type wide;
        const wide value = static_cast<wide>(s) * taken<TO>(static_cast<wide>(x[i]));
        y[i] = rounded<TO>(acc ? static_cast<wide>(y[i]) + value : value);
    }
}

template <typename FROM, typename TO>
static enum el_status cast_from(const struct el_kernel_args *args, const void *x, int64_t n, double s, bool acc,
                                void *y)
{
    return launch(args, "cast", n, cast_kernel<FROM, TO>, static_cast<const FROM *>(x), n, s, acc,
                  static_cast<TO *>(y));
}

template <typename TO> static enum el_status cast(const struct el_kernel_args *args)
{
    const int64_t n = args->d[0];
    const bool acc = args->s[1] != 0;
    if (args->k[0] == EL_BF16) return cast_from<bf16, TO>(args, args->p[0], n, args->s[0], acc, args->p[1]);
    if (args->k[0] == EL_F16) return cast_from<f16, TO>(args, args->p[0], n, args->s[0], acc, args->p[1]);
    if (args->k[0] == EL_F64) return cast_from<double, TO>(args, args->p[0], n, args->s[0], acc, args->p[1]);
    return cast_from<float, TO>(args, args->p[0], n, args->s[0], acc, args->p[1]);
}

template <typename REAL> __global__ void fill_kernel(int64_t n, double s, REAL *y)
{
    EL_CUDA_EACH(i, n) y[i] = rounded<REAL>(static_cast<typename wide_of<REAL>::type>(s));
}

EL_CUDA_RUN(cast)

extern "C" enum el_status el_cuda_cast_bf16(const struct el_kernel_args *args)
{
    return cast<bf16>(args);
}

extern "C" enum el_status el_cuda_cast_f16(const struct el_kernel_args *args)
{
    return cast<f16>(args);
}

extern "C" enum el_status el_cuda_fill_f16(const struct el_kernel_args *args)
{
    return launch(args, "fill", args->d[0], fill_kernel<f16>, args->d[0], args->s[0], static_cast<f16 *>(args->p[0]));
}

extern "C" enum el_status el_cuda_scale_bf16(const struct el_kernel_args *args)
{
    return cast_from<bf16, bf16>(args, args->p[0], args->d[0], args->s[0], false, args->p[1]);
}

extern "C" enum el_status el_cuda_add_bf16(const struct el_kernel_args *args)
{
    return cast_from<bf16, bf16>(args, args->p[0], args->d[0], 1, true, args->p[1]);
}

extern "C" enum el_status el_cuda_fill_bf16(const struct el_kernel_args *args)
{
    return launch(args, "fill", args->d[0], fill_kernel<bf16>, args->d[0], args->s[0], static_cast<bf16 *>(args->p[0]));
}

extern "C" enum el_status el_cuda_bf16_move(const struct el_kernel_args *args, const void *x, int64_t n, bool back,
                                            void *y)
{
    return back ? cast_from<float, bf16>(args, x, n, 1, false, y) : cast_from<bf16, float>(args, x, n, 1, false, y);
}
