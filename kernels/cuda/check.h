/* Errors of CUDA's libraries become ours here and nowhere else: each macro names the call that failed.
 *
 *     EL_CUDA_TRY(cudaMemsetAsync(p, 0, bytes, stream));       returns EL_ERR_... from the function it stands in
 *     kernel<<<...>>>(...);  return el_cuda_launched("adam");
 */
#pragma once

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif
#include "runtime/base/status.h"

/* EL_OK, or the failure kept with the call's text up to its bracket: "cudaMalloc: out of memory
 * (cudaErrorMemoryAllocation)". Too little memory is EL_ERR_OOM, a missing driver or device EL_ERR_ABSENT, all else
 * EL_ERR_INTERNAL. */
enum el_status el_cuda_check(cudaError_t error, const char *call);
enum el_status el_cublas_check(cublasStatus_t status, const char *call);
/* A library's failure in its own words. */
enum el_status el_cuda_library_failed(enum el_status status, const char *call, const char *words);

/* Whether the launch just made was accepted; `op` names it. It leaves the error where it is: one that a kernel left
 * behind stays to be seen by the next synchronisation. */
enum el_status el_cuda_launched(const char *op);
#ifdef __cplusplus
}
#endif

#define EL_CUDA_TRY(call)   EL_TRY(el_cuda_check((call), #call))
#define EL_CUBLAS_TRY(call) EL_TRY(el_cublas_check((call), #call))
