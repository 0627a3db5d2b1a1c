/* What makes a gradient small for the wire: an orthonormal basis of few columns. */
#include "kernels/cuda/common.cuh"

/* x_i . x_j, for every thread of the block. */
template <typename REAL> __device__ static double product(const REAL *x, int64_t n, int64_t r, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
        sum += static_cast<double>(x[k * r + i]) * static_cast<double>(x[k * r + j]);
    return block_sum(sum);
}

/* One block: columns follow on one another, and each thread has the same rows of all of them. */
template <typename REAL> __global__ void orthogonalize_kernel(int64_t n, int64_t r, REAL *x)
{
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < 2 * i; j++) {
            double along = product(x, n, r, i, j % i);
            for (int64_t k = threadIdx.x; k < n; k += blockDim.x)
                x[k * r + i] = static_cast<REAL>(static_cast<double>(x[k * r + i]) -
                                                 along * static_cast<double>(x[k * r + j % i]));
        }
        double norm = sqrt(product(x, n, r, i, i));
        for (int64_t k = threadIdx.x; k < n && norm > 0; k += blockDim.x)
            x[k * r + i] = static_cast<REAL>(static_cast<double>(x[k * r + i]) / norm);
    }
}

template <typename REAL> static enum el_status orthogonalize(const struct el_kernel_args *args)
{
    return launch_blocks(args, "orthogonalize", 1, orthogonalize_kernel<REAL>, args->d[0], args->d[1],
                         static_cast<REAL *>(args->p[0]));
}

EL_CUDA_RUN(orthogonalize)
