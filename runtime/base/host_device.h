/* EL_HOST_DEVICE before a `static inline` function: nvcc compiles it for the host and for the device, every other
 * compiler for the host alone. So arithmetic that kernels depend on is tested where there is no GPU. */
#pragma once

#ifdef __CUDACC__
#define EL_HOST_DEVICE __host__ __device__
#else
#define EL_HOST_DEVICE
#endif
