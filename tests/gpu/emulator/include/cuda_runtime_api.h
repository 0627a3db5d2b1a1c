/* The few names of CUDA's run time that kernels/cuda uses, for the emulator's build. Values and signatures are CUDA's.
 */
#ifndef EL_TESTS_EMULATED_CUDA_RUNTIME_API_H
#define EL_TESTS_EMULATED_CUDA_RUNTIME_API_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorInvalidDevice = 101,
} cudaError_t;

typedef struct el_emulated_stream *cudaStream_t;

cudaError_t cudaGetLastError(void);
const char *cudaGetErrorString(cudaError_t error);
const char *cudaGetErrorName(cudaError_t error);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
