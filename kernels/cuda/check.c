/* CUDA's errors as ours. */
#include "kernels/cuda/check.h"

#include <string.h>

static int name_length(const char *call)
{
    return (int)strcspn(call, "(");
}

enum el_status el_cuda_check(cudaError_t error, const char *call)
{
    enum el_status status = EL_ERR_INTERNAL;
    if (error == cudaSuccess) return EL_OK;
    if (error == cudaErrorMemoryAllocation) status = EL_ERR_OOM;
    if (error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver || error == cudaErrorInvalidDevice)
        status = EL_ERR_ABSENT;
    return el_fail(status, "%.*s: %s (%s)", name_length(call), call, cudaGetErrorString(error),
                   cudaGetErrorName(error));
}

/* A library reports "execution failed" if an earlier kernel failed: the device's own error is the reason. */
enum el_status el_cuda_library_failed(enum el_status status, const char *call, const char *words)
{
    cudaError_t behind = cudaPeekAtLastError();
    if (behind == cudaSuccess) return el_fail(status, "%.*s: %s", name_length(call), call, words);
    return el_fail(status, "%.*s: %s, after %s (%s)", name_length(call), call, words, cudaGetErrorString(behind),
                   cudaGetErrorName(behind));
}

enum el_status el_cublas_check(cublasStatus_t error, const char *call)
{
    if (error == CUBLAS_STATUS_SUCCESS) return EL_OK;
    enum el_status status = error == CUBLAS_STATUS_ALLOC_FAILED ? EL_ERR_OOM : EL_ERR_INTERNAL;
    return el_cuda_library_failed(status, call, cublasGetStatusString(error));
}

enum el_status el_cuda_launched(const char *op)
{
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return EL_OK;
    return el_fail(EL_ERR_INTERNAL, "cuda kernel %s: %s (%s)", op, cudaGetErrorString(error), cudaGetErrorName(error));
}
