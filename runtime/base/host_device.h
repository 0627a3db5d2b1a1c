/* Marks a `static inline` function that nvcc compiles for host and device, so that kernels' arithmetic is tested
 * without a GPU. */
#pragma once

#ifdef __CUDACC__
#define EL_HOST_DEVICE __host__ __device__
#else
#define EL_HOST_DEVICE
#endif
