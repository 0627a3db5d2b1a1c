/* EL_HOST_DEVICE before a `static inline` function: nvcc compiles it for the host and for the device, every other
 * compiler for the host alone. So arithmetic that kernels depend on is tested where there is no GPU. */
#ifndef EL_BASE_HOST_DEVICE_H
#define EL_BASE_HOST_DEVICE_H

#ifdef __CUDACC__
#define EL_HOST_DEVICE __host__ __device__
#else
#define EL_HOST_DEVICE
#endif

#endif
