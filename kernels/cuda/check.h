/* Turns errors of CUDA's libraries into ours, with the failed call's name.
 *
 *     EL_CUDA_TRY(cudaMemsetAsync(p, 0, bytes, stream));       returns EL_ERR_... from the calling function
 *     kernel<<<...>>>(...);  return el_cuda_launched("adam"); */
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "runtime/base/status.h"

/* EL_OK, or an error with the call's name: "cudaMalloc: out of memory (cudaErrorMemoryAllocation)". No memory:
 * EL_ERR_OOM; no driver or device: EL_ERR_ABSENT; else EL_ERR_INTERNAL. */
enum el_status el_cuda_check(cudaError_t error, const char *call);
enum el_status el_cublas_check(cublasStatus_t status, const char *call);
/* The same with the library's message. */
enum el_status el_cuda_library_failed(enum el_status status, const char *call, const char *words);

/* Whether the launch of `op` was accepted. Does not clear the error: the next synchronisation must see one that a
 * kernel left. */
enum el_status el_cuda_launched(const char *op);
#ifdef __cplusplus
}
#endif

#define EL_CUDA_TRY(call)   EL_TRY(el_cuda_check((call), #call))
#define EL_CUBLAS_TRY(call) EL_TRY(el_cublas_check((call), #call))
