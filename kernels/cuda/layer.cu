/* Small kernels around matrix products: bias and ReLU, the sum of rows. */
#include "kernels/cuda/channel_sums.cuh"

/* y may be x. */
template <typename REAL>
__global__ void bias_kernel(int64_t rows, int64_t n, const REAL *x, const REAL *__restrict__ bias, bool relu, REAL *y)
{
    EL_CUDA_EACH(i, rows * n)
    {
        typedef typename wide_of<REAL>::type wide;
        const wide value = x ? static_cast<wide>(x[i]) : 0, sum = bias ? value + static_cast<wide>(bias[i % n]) : value;
        y[i] = rounded<REAL>(relu && sum < 0 ? 0 : sum);
    }
}

template <typename REAL>
static enum el_status bias_of(const struct el_kernel_args *args, int64_t rows, int64_t n, const void *x,
                              const void *bias, bool relu, void *y)
{
    return launch(args, "bias", rows * n, bias_kernel<REAL>, rows, n, static_cast<const REAL *>(x),
                  static_cast<const REAL *>(bias), relu, static_cast<REAL *>(y));
}

enum el_status el_cuda_bias(const struct el_kernel_args *args, enum el_dtype dtype, int64_t rows, int64_t n,
                            const void *x, const void *bias, bool relu, void *y)
{
    if (x == y && !bias && !relu) return EL_OK;
    if (dtype == EL_BF16) return bias_of<bf16>(args, rows, n, x, bias, relu, y);
    return dtype == EL_F64 ? bias_of<double>(args, rows, n, x, bias, relu, y)
                           : bias_of<float>(args, rows, n, x, bias, relu, y);
}

template <typename REAL> struct element {
    enum { N = 1 };
    const REAL *x;
    __device__ void operator()(int64_t, int64_t, int64_t at, double *value) const
    {
        *value = static_cast<double>(x[at]);
    }
};

template <typename REAL> struct stored {
    bool acc;
    REAL *y;
    __device__ void operator()(int64_t i, const double *sum) const
    {
        y[i] = static_cast<REAL>(acc ? static_cast<double>(y[i]) + *sum : *sum);
    }
};

template <typename FROM, typename REAL>
static enum el_status sum_rows(const struct el_kernel_args *args, const void *x, int64_t rows, int64_t n, bool acc,
                               void *y)
{
    return channel_sums(args, "a sum of rows", rows, n, element<FROM>{static_cast<const FROM *>(x)},
                        stored<REAL>{acc, static_cast<REAL *>(y)});
}

enum el_status el_cuda_sum_rows(const struct el_kernel_args *args, enum el_dtype dtype, const void *x, int64_t rows,
                                int64_t n, bool acc, void *y)
{
    if (dtype == EL_BF16) return sum_rows<bf16, float>(args, x, rows, n, acc, y);
    return dtype == EL_F64 ? sum_rows<double, double>(args, x, rows, n, acc, y)
                           : sum_rows<float, float>(args, x, rows, n, acc, y);
}
