/* cuBLAS: a product is three loops on the handle's stream, summed in double. What the library refuses is refused
 * (leading dimensions shorter than a column, sizes below zero), and operands have to lie on the handle's card. The
 * outputs of a batch may not overlap: with the library they give anything, here they are refused. */
#include <cublas_v2.h>
#include <math.h>
#include <stdlib.h>

#include "runtime/base/half.h"
#include "tests/cards/cards.h"

enum { HANDLE_BYTES = 1 << 20 }; /* its workspace on the card */

struct cublasContext {
    cudaStream_t stream;
    int device;
    bool tf32, splits, owns_workspace; /* its own is the user's: without one a capture would have to allocate */
};

static cublasStatus_t status_of(int code)
{
    if (code == cudaErrorMemoryAllocation) return CUBLAS_STATUS_ALLOC_FAILED;
    return code == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

cublasStatus_t cublasCreate(cublasHandle_t *handle_p)
{
    int device = cards_thread_device(), code = cards_library_take(device, HANDLE_BYTES);
    if (code != cudaSuccess) return status_of(code);
    struct cublasContext *handle = calloc(1, sizeof *handle);
    if (!handle) abort();
    handle->device = device;
    *handle_p = handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    cards_library_give(handle->device, HANDLE_BYTES);
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    if (stream && cards_stream_device(stream) != handle->device) return CUBLAS_STATUS_INVALID_VALUE;
    handle->stream = stream;
    handle->owns_workspace = false;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes)
{
    enum { ALIGNMENT = 256 };
    size_t left = 0;
    if (handle->stream && (cards_device_of(workspace, &left) != handle->device || left < bytes))
        return CUBLAS_STATUS_INVALID_VALUE;
    if ((uintptr_t)workspace % ALIGNMENT != 0 || bytes == 0) return CUBLAS_STATUS_INVALID_VALUE;
    handle->owns_workspace = true;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    handle->tf32 = (mode & 15) == CUBLAS_TF32_TENSOR_OP_MATH;
    handle->splits = !(mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode)
{
    (void)handle;
    return mode == CUBLAS_ATOMICS_NOT_ALLOWED ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasGetProperty(libraryPropertyType type, int *value_p)
{
    *value_p = type == MAJOR_VERSION ? 13 : type == MINOR_VERSION ? 1 : 0;
    return CUBLAS_STATUS_SUCCESS;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_INVALID_VALUE:
        return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ALLOC_FAILED:
        return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
        return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
        return "CUBLAS_STATUS_SUCCESS";
    }
}

/* c[m,n] of op_a(a)[m,k] and op_b(b)[k,n], all stored column by column; `batch` of them. */
struct product {
    cudaStream_t stream;
    bool a_is_t, b_is_t, tf32, is_f64, halves, gives_halves, swapped; /* halves: of bf16 */
    bool splits; /* parts of its sums are rounded to halves, as the library may unless it is told not to */
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    double alpha, beta;
    const void *a, *b;
    void *c;
};

/* Whether the outputs of a batch lie apart: one behind the other, or side by side in the same columns. */
static bool is_apart(const struct product *p)
{
    bool behind = p->stride_c >= (p->n - 1) * p->ldc + p->m;
    return p->batch <= 1 || behind || (p->stride_c >= p->m && (p->batch - 1) * p->stride_c + p->m <= p->ldc);
}

static cublasStatus_t refused(const struct product *p)
{
    int64_t rows_a = p->a_is_t ? p->k : p->m, rows_b = p->b_is_t ? p->n : p->k;
    if (p->m < 0 || p->n < 0 || p->k < 0 || p->batch < 0) return CUBLAS_STATUS_INVALID_VALUE;
    if (p->lda < (rows_a > 1 ? rows_a : 1) || p->ldb < (rows_b > 1 ? rows_b : 1) || p->ldc < (p->m > 1 ? p->m : 1))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!is_apart(p)) return CUBLAS_STATUS_INVALID_VALUE;
    return CUBLAS_STATUS_SUCCESS;
}

/* Ten bits of mantissa beside the first, as TF32 has them. */
static double as_tf32(double value)
{
    int exponent;
    double mantissa = frexp(value, &exponent);
    return ldexp(rint(mantissa * 2048) / 2048, exponent);
}

static double element(const struct product *p, const void *of, int64_t at)
{
    if (of == p->c ? p->gives_halves : p->halves)
        return (double)el_f32_of_bf16(((const uint16_t *)of)[at ^ p->swapped]);
    double value = p->is_f64 ? ((const double *)of)[at] : (double)((const float *)of)[at];
    return p->tf32 && !p->is_f64 && !p->halves ? as_tf32(value) : value;
}

/* Rows that are summed over, one behind the other: [rows, k]. */
static double *gather(const struct product *p, const void *of, int64_t first, int64_t rows, int64_t ld, bool in_rows)
{
    double *all = malloc((size_t)(rows * p->k + 1) * sizeof *all);
    if (!all) abort();
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < p->k; j++)
            all[i * p->k + j] = element(p, of, first + (in_rows ? i * ld + j : j * ld + i));
    return all;
}

static void multiply(const struct product *p, int64_t item)
{
    double *a = gather(p, p->a, item * p->stride_a, p->m, p->lda, p->a_is_t);
    double *b = gather(p, p->b, item * p->stride_b, p->n, p->ldb, !p->b_is_t);
    for (int64_t j = 0; j < p->n; j++)
        for (int64_t i = 0; i < p->m; i++) {
            double sum = 0;
            const double *x = &a[i * p->k], *y = &b[j * p->k];
            for (int64_t s = 0; s < p->k; s++) {
                sum += x[s] * y[s];
                if (p->splits && p->gives_halves) sum = (double)el_f32_of_bf16(el_bf16_of_f32((float)sum));
            }
            int64_t at = item * p->stride_c + j * p->ldc + i;
            double before = p->beta == 0 ? 0 : p->beta * element(p, p->c, at); /* what is not added to is not read */
            if (p->is_f64)
                ((double *)p->c)[at] = p->alpha * sum + before;
            else if (p->gives_halves)
                ((uint16_t *)p->c)[at] = el_bf16_of_f32((float)(p->alpha * sum + before));
            else
                ((float *)p->c)[at] = (float)(p->alpha * sum + before);
        }
    free(a);
    free(b);
}

static bool is_on(const struct product *p, const void *address)
{
    return cards_device_of(address, NULL) == cards_stream_device(p->stream);
}

static int run(void *argument)
{
    struct product *p = argument;
    int code = cudaSuccess;
    if (p->stream && !cards_is_ending(p->stream) && (!is_on(p, p->a) || !is_on(p, p->b) || !is_on(p, p->c)))
        code = cudaErrorIllegalAddress;
    if (code == cudaSuccess && !cards_is_ending(p->stream))
        for (int64_t item = 0; item < p->batch; item++) multiply(p, item);
    return code;
}

static cublasStatus_t start(cublasHandle_t handle, const struct product *wanted)
{
    static const char code[2];
    cublasStatus_t status = refused(wanted);
    int error = cudaErrorLaunchFailure;
    if (status != CUBLAS_STATUS_SUCCESS || wanted->m == 0 || wanted->n == 0 || wanted->batch == 0) return status;
    if (handle && cards_fails("cublasGemm", handle->device, &error)) return status_of(error);
    if (handle && !handle->owns_workspace && cards_is_capturing(handle->stream))
        return status_of(cards_break_capture(handle->stream, cudaErrorMemoryAllocation));
    struct product *p = malloc(sizeof *p);
    if (!p) abort();
    *p = *wanted;
    if (handle) p->stream = handle->stream, p->tf32 = handle->tf32, p->splits = handle->splits;
    p->tf32 |= cards_is_wrong("cublas");
    p->swapped = cards_is_wrong("cast");
    error = cards_launch(p->stream, &code[p->is_f64], 0, run, free, p);
    if (error != cudaSuccess) free(p);
    return status_of(error);
}

#define GEMM(name, real, f64)                                                                                          \
    cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int64_t m, int64_t n,   \
                        int64_t k, const real *alpha, const real *a, int64_t lda, long long int stride_a,              \
                        const real *b, int64_t ldb, long long int stride_b, const real *beta, real *c, int64_t ldc,    \
                        long long int stride_c, int64_t batch)                                                         \
    {                                                                                                                  \
        return start(handle, &(struct product){.is_f64 = f64,                                                          \
                                               .a_is_t = op_a == CUBLAS_OP_T,                                          \
                                               .b_is_t = op_b == CUBLAS_OP_T,                                          \
                                               .m = m,                                                                 \
                                               .n = n,                                                                 \
                                               .k = k,                                                                 \
                                               .lda = lda,                                                             \
                                               .ldb = ldb,                                                             \
                                               .ldc = ldc,                                                             \
                                               .stride_a = stride_a,                                                   \
                                               .stride_b = stride_b,                                                   \
                                               .stride_c = stride_c,                                                   \
                                               .batch = batch,                                                         \
                                               .alpha = (double)*alpha,                                                \
                                               .beta = (double)*beta,                                                  \
                                               .a = a,                                                                 \
                                               .b = b,                                                                 \
                                               .c = c});                                                               \
    }

GEMM(cublasSgemmStridedBatched_64, float, false)
GEMM(cublasDgemmStridedBatched_64, double, true)

/* Products of bf16, summed in f32. */
cublasStatus_t cublasGemmStridedBatchedEx_64(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                                             int64_t m, int64_t n, int64_t k, const void *alpha, const void *a,
                                             cudaDataType type_a, int64_t lda, long long int stride_a, const void *b,
                                             cudaDataType type_b, int64_t ldb, long long int stride_b, const void *beta,
                                             void *c, cudaDataType type_c, int64_t ldc, long long int stride_c,
                                             int64_t batch, cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    if (type_a != CUDA_R_16BF || type_b != CUDA_R_16BF || (type_c != CUDA_R_16BF && type_c != CUDA_R_32F) ||
        compute != CUBLAS_COMPUTE_32F || algorithm != CUBLAS_GEMM_DEFAULT)
        return CUBLAS_STATUS_INVALID_VALUE;
    return start(handle, &(struct product){.halves = true,
                                           .gives_halves = type_c == CUDA_R_16BF,
                                           .a_is_t = op_a == CUBLAS_OP_T,
                                           .b_is_t = op_b == CUBLAS_OP_T,
                                           .m = m,
                                           .n = n,
                                           .k = k,
                                           .lda = lda,
                                           .ldb = ldb,
                                           .ldc = ldc,
                                           .stride_a = stride_a,
                                           .stride_b = stride_b,
                                           .stride_c = stride_c,
                                           .batch = batch,
                                           .alpha = (double)*(const float *)alpha,
                                           .beta = (double)*(const float *)beta,
                                           .a = a,
                                           .b = b,
                                           .c = c});
}
