/* The few names of cuBLAS that kernels/cuda uses, for the emulator's build. Values and signatures are cuBLAS's. */
#ifndef EL_TESTS_EMULATED_CUBLAS_V2_H
#define EL_TESTS_EMULATED_CUBLAS_V2_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
} cublasStatus_t;

typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 } cublasOperation_t;
typedef struct el_emulated_cublas *cublasHandle_t;

const char *cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                            int64_t m, int64_t n, int64_t k, const float *alpha, const float *a,
                                            int64_t lda, long long int stride_a, const float *b, int64_t ldb,
                                            long long int stride_b, const float *beta, float *c, int64_t ldc,
                                            long long int stride_c, int64_t batch);
cublasStatus_t cublasDgemmStridedBatched_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                            int64_t m, int64_t n, int64_t k, const double *alpha, const double *a,
                                            int64_t lda, long long int stride_a, const double *b, int64_t ldb,
                                            long long int stride_b, const double *beta, double *c, int64_t ldc,
                                            long long int stride_c, int64_t batch);

#ifdef __cplusplus
}
#endif

#endif
