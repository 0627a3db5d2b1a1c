/* The libraries' handles of a stream, and which libraries there are. */
#include "kernels/cuda/native.h"

#include <stdbool.h>
#include <stdio.h>

#include "kernels/cuda/check.h"

/* Default math is f32 throughout; TF32 is asked for by name. Atomics stay off (their default): they would give other
 * bits in every run. */
static enum el_status set_up_cublas(cublasHandle_t handle, const struct el_cuda_native *native)
{
    EL_CUBLAS_TRY(cublasSetStream(handle, (cudaStream_t)native->stream));
    EL_CUBLAS_TRY(cublasSetMathMode(handle, native->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH));
    EL_CUBLAS_TRY(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED));
    return EL_OK;
}

enum el_status el_cuda_native_open_cublas(struct el_cuda_native *native)
{
    cublasHandle_t handle;
    EL_CUBLAS_TRY(cublasCreate(&handle));
    enum el_status status = set_up_cublas(handle, native);
    if (status == EL_OK)
        native->cublas = handle;
    else
        cublasDestroy(handle);
    return status;
}

enum el_status el_cuda_native_give_cublas(struct el_cuda_native *native, size_t bytes)
{
    if (native->cublas_workspace) return EL_OK;
    EL_CUDA_TRY(cudaMalloc(&native->cublas_workspace, bytes));
    return el_cublas_check(cublasSetWorkspace((cublasHandle_t)native->cublas, native->cublas_workspace, bytes),
                           "cublasSetWorkspace");
}

#ifdef EL_HAVE_CUDNN

enum el_status el_cuda_native_open_cudnn(struct el_cuda_native *native)
{
    cudnnHandle_t handle;
    EL_CUDNN_TRY(cudnnCreate(&handle));
    enum el_status status = el_cudnn_check(cudnnSetStream(handle, (cudaStream_t)native->stream), "cudnnSetStream");
    if (status == EL_OK)
        native->cudnn = handle;
    else
        cudnnDestroy(handle);
    return status;
}

const char *el_cuda_cudnn_missing(void)
{
    return NULL;
}

static void close_cudnn(struct el_cuda_native *native)
{
    if (native->cudnn) cudnnDestroy(native->cudnn);
    native->cudnn = NULL;
}

static size_t cudnn_version(void)
{
    return cudnnGetVersion();
}

#else

enum el_status el_cuda_native_open_cudnn(struct el_cuda_native *native)
{
    (void)native;
    return EL_OK;
}

const char *el_cuda_cudnn_missing(void)
{
    return "cuDNN was missing when evenload was built: convolutions are done by cuBLAS";
}

static void close_cudnn(struct el_cuda_native *native)
{
    (void)native;
}

static size_t cudnn_version(void)
{
    return 0;
}

#endif

void el_cuda_native_close(struct el_cuda_native *native)
{
    close_cudnn(native);
    if (native->cublas) cublasDestroy(native->cublas);
    native->cublas = NULL;
    if (native->cublas_workspace) cudaFree(native->cublas_workspace);
    native->cublas_workspace = NULL;
}

/* Written once, by the loader. */
static char libraries[96];

__attribute__((constructor)) static void read_versions(void)
{
    int cuda = 0, major = 0, minor = 0, patch = 0;
    size_t cudnn = cudnn_version();
    if (cudaRuntimeGetVersion(&cuda) != cudaSuccess) { /* CUDA 11's needs a driver */
        cudaGetLastError();
        cuda = CUDART_VERSION;
    }
    bool known = !cublasGetProperty(MAJOR_VERSION, &major) && !cublasGetProperty(MINOR_VERSION, &minor) &&
                 !cublasGetProperty(PATCH_LEVEL, &patch);
    int used =
        snprintf(libraries, sizeof libraries, known ? "CUDA %d.%d, cuBLAS %d.%d.%d" : "CUDA %d.%d, cuBLAS unknown",
                 cuda / 1000, cuda % 1000 / 10, major, minor, patch);
    if (cudnn)
        snprintf(libraries + used, sizeof libraries - (size_t)used, ", cuDNN %zu.%zu.%zu", cudnn / 10000,
                 cudnn / 100 % 100, cudnn % 100);
}

const char *el_cuda_libraries(void)
{
    return libraries;
}
