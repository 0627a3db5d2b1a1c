/* A stream's library handles, and the libraries found. */
#include "kernels/cuda/native.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "kernels/cuda/check.h"
#include "kernels/cuda/conv.h"
#include "runtime/base/module.h"

/* The default math is f32; TF32 only on request. No bf16 partial sums: a product is rounded once. Atomics stay off (the
 * default), because they are not deterministic. */
static enum el_status set_up_cublas(cublasHandle_t handle, const struct el_cuda_native *native)
{
    EL_CUBLAS_TRY(cublasSetStream(handle, (cudaStream_t)native->stream));
    const int math = native->tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_DEFAULT_MATH;
    EL_CUBLAS_TRY(cublasSetMathMode(handle, (cublasMath_t)(math | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)));
    EL_CUBLAS_TRY(cublasSetAtomicsMode(handle, CUBLAS_ATOMICS_NOT_ALLOWED));
    return EL_OK;
}

static pthread_mutex_t slots_lock = PTHREAD_MUTEX_INITIALIZER;
static bool slots[EL_CUDA_SLOTS];

static enum el_status take_slot(struct el_cuda_native *native)
{
    pthread_mutex_lock(&slots_lock);
    int slot = 0;
    while (slot < EL_CUDA_SLOTS && slots[slot]) slot++;
    if (slot < EL_CUDA_SLOTS) slots[slot] = true;
    pthread_mutex_unlock(&slots_lock);
    native->slot = slot;
    return slot < EL_CUDA_SLOTS ? EL_OK
                                : el_fail(EL_ERR_INVALID, "cuda:%d: a process has at most %d devices on its GPUs",
                                          native->device, EL_CUDA_SLOTS);
}

enum el_status el_cuda_native_open_cublas(struct el_cuda_native *native)
{
    cublasHandle_t handle;
    EL_CUBLAS_TRY(cublasCreate(&handle));
    enum el_status status = set_up_cublas(handle, native);
    if (status == EL_OK) status = take_slot(native);
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

/* cuDNN, in a module of its own because it is optional. */

__attribute__((weak)) const struct el_cuda_cudnn *el_cuda_cudnn_module(void);
static const struct el_cuda_cudnn *cudnn;
static char missing[400];
static pthread_once_t cudnn_once = PTHREAD_ONCE_INIT;

static void find_cudnn(void)
{
    const void *table = el_cuda_cudnn_module ? el_cuda_cudnn_module() : NULL;
    if (table || el_module_table("cudnn", "el_cuda_cudnn_module", &table) == EL_OK)
        cudnn = table;
    else
        snprintf(missing, sizeof missing, "%.350s: convolutions are done by cuBLAS", el_error_message());
}

const struct el_cuda_cudnn *el_cuda_cudnn(void)
{
    pthread_once(&cudnn_once, find_cudnn);
    return cudnn;
}

const char *el_cuda_cudnn_missing(void)
{
    return el_cuda_cudnn() ? NULL : missing;
}

enum el_status el_cuda_native_open_cudnn(struct el_cuda_native *native)
{
    return el_cuda_cudnn() ? cudnn->open(native) : EL_OK;
}

void el_cuda_native_close(struct el_cuda_native *native)
{
    if (native->cudnn) cudnn->close(native);
    if (native->cublas) {
        cublasDestroy(native->cublas);
        pthread_mutex_lock(&slots_lock);
        slots[native->slot] = false;
        pthread_mutex_unlock(&slots_lock);
    }
    native->cublas = NULL;
    if (native->cublas_workspace) cudaFree(native->cublas_workspace);
    native->cublas_workspace = NULL;
}

static char libraries[96];
static pthread_once_t libraries_once = PTHREAD_ONCE_INIT;

static void read_versions(void)
{
    int cuda = 0, major = 0, minor = 0, patch = 0;
    size_t version = el_cuda_cudnn() ? cudnn->version() : 0;
    if (cudaRuntimeGetVersion(&cuda) != cudaSuccess) { /* CUDA 11 needs a driver for it */
        cudaGetLastError();
        cuda = CUDART_VERSION;
    }
    bool known = !cublasGetProperty(MAJOR_VERSION, &major) && !cublasGetProperty(MINOR_VERSION, &minor) &&
                 !cublasGetProperty(PATCH_LEVEL, &patch);
    int used =
        snprintf(libraries, sizeof libraries, known ? "CUDA %d.%d, cuBLAS %d.%d.%d" : "CUDA %d.%d, cuBLAS unknown",
                 cuda / 1000, cuda % 1000 / 10, major, minor, patch);
    if (version)
        snprintf(libraries + used, sizeof libraries - (size_t)used, ", cuDNN %zu.%zu.%zu", version / 10000,
                 version / 100 % 100, version % 100);
}

const char *el_cuda_libraries(void)
{
    pthread_once(&libraries_once, read_versions);
    return libraries;
}
