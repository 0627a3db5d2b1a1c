/* The emulator's run time and cuBLAS: memory is the host's, a product is three loops, and arguments that the libraries
 * refuse are refused (leading dimensions shorter than a column, sizes below zero). */
#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <string.h>

cudaError_t cudaGetLastError(void)
{
    return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "out of memory" : "an emulated error";
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaErrorEmulated";
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)stream;
    memset(to, value, bytes);
    return cudaSuccess;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "an emulated status";
}

static int refused(cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n, int64_t k, int64_t lda,
                   int64_t ldb, int64_t ldc, int64_t batch)
{
    int64_t rows_a = op_a == CUBLAS_OP_N ? m : k, rows_b = op_b == CUBLAS_OP_N ? k : n;
    if (m < 0 || n < 0 || k < 0 || batch < 0) return 1;
    return lda < (rows_a > 1 ? rows_a : 1) || ldb < (rows_b > 1 ? rows_b : 1) || ldc < (m > 1 ? m : 1);
}

/* Matrices are stored column by column. */
#define GEMM(name, real)                                                                                               \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,   \
                        int64_t k, const real *alpha, const real *a, int64_t lda, long long int stride_a,              \
                        const real *b, int64_t ldb, long long int stride_b, const real *beta, real *c, int64_t ldc,    \
                        long long int stride_c, int64_t batch)                                                         \
    {                                                                                                                  \
        (void)handle;                                                                                                  \
        if (refused(op_a, op_b, m, n, k, lda, ldb, ldc, batch)) return CUBLAS_STATUS_INVALID_VALUE;                    \
        for (; batch > 0; batch--, a += stride_a, b += stride_b, c += stride_c)                                        \
            for (int64_t j = 0; j < n; j++)                                                                            \
                for (int64_t i = 0; i < m; i++) {                                                                      \
                    double sum = 0;                                                                                    \
                    for (int64_t p = 0; p < k; p++)                                                                    \
                        sum += (double)(op_a == CUBLAS_OP_N ? a[p * lda + i] : a[i * lda + p]) *                       \
                               (double)(op_b == CUBLAS_OP_N ? b[j * ldb + p] : b[p * ldb + j]);                        \
                    real *to = &c[j * ldc + i];                                                                        \
                    *to = (real)(*beta == 0 ? *alpha * sum : *alpha * sum + *beta * (double)*to);                      \
                }                                                                                                      \
        return CUBLAS_STATUS_SUCCESS;                                                                                  \
    }

GEMM(cublasSgemmStridedBatched_64, float)
GEMM(cublasDgemmStridedBatched_64, double)
