/* The linear layer by cuBLAS; bias, ReLU and bias gradient by our kernels. cuBLAS is column-major and reads a row-major
 * matrix as its transpose: for c = a b it is asked for c' = b' a'. */
#include "kernels/cuda/check.h"
#include "kernels/cuda/cuda.h"
#include "kernels/cuda/layer.h"
#include "kernels/cuda/native.h"

/* cuBLAS 11 counts in int; el_cuda_multiply refuses larger sizes. */
#if defined CUBLAS_VER_MAJOR && CUBLAS_VER_MAJOR < 12
#define cublasDgemmStridedBatched_64  cublasDgemmStridedBatched
#define cublasSgemmStridedBatched_64  cublasSgemmStridedBatched
#define cublasGemmStridedBatchedEx_64 cublasGemmStridedBatchedEx
enum { COUNT_MAX = INT_MAX };
#else
#define COUNT_MAX INT64_MAX
#endif

static bool fits(const struct el_cuda_product *p)
{
    const int64_t counts[] = {p->m, p->n, p->k, p->batch, p->a.ld, p->b.ld, p->c.ld};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i] > COUNT_MAX) return false;
    return true;
}

enum el_status el_cuda_multiply(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_product *p)
{
    const struct el_cuda_native *native = args->native;
    const struct el_cuda_matrix *a = &p->a, *b = &p->b, *c = &p->c;
    cublasOperation_t op_a = a->transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      op_b = b->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (p->m == 0 || p->n == 0 || p->batch == 0) return EL_OK;
    if (!fits(p)) return el_fail(EL_ERR_ABSENT, "cuBLAS 11: a size beyond an int: build with CUDA 12 or newer");
    if (dtype == EL_F64) {
        const double alpha = 1, beta = p->acc;
        EL_CUBLAS_TRY(cublasDgemmStridedBatched_64(native->cublas, op_b, op_a, p->n, p->m, p->k, &alpha, b->data, b->ld,
                                                   b->stride, a->data, a->ld, a->stride, &beta, (double *)c->data,
                                                   c->ld, c->stride, p->batch));
        return EL_OK;
    }
    const float alpha = 1, beta = p->acc;
    if (dtype == EL_BF16) {
        const cudaDataType out = p->out == EL_BF16 ? CUDA_R_16BF : CUDA_R_32F;
        EL_CUBLAS_TRY(cublasGemmStridedBatchedEx_64(native->cublas, op_b, op_a, p->n, p->m, p->k, &alpha, b->data,
                                                    CUDA_R_16BF, b->ld, b->stride, a->data, CUDA_R_16BF, a->ld,
                                                    a->stride, &beta, (void *)c->data, out, c->ld, c->stride, p->batch,
                                                    CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
        return EL_OK;
    }
    EL_CUBLAS_TRY(cublasSgemmStridedBatched_64(native->cublas, op_b, op_a, p->n, p->m, p->k, &alpha, b->data, b->ld,
                                               b->stride, a->data, a->ld, a->stride, &beta, (float *)c->data, c->ld,
                                               c->stride, p->batch));
    return EL_OK;
}

/* y[b,o] = x[b,i] w'[i,o] + bias: in bf16 cuBLAS adds the product to the bias, so that it is rounded once. */
static enum el_status linear_forward(const struct el_kernel_args *args, enum el_dtype dtype)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    const bool bias_first = dtype == EL_BF16 && args->p[2];
    const struct el_cuda_product product = {.m = b,
                                            .n = o,
                                            .k = i,
                                            .batch = 1,
                                            .a = {.data = args->p[0], .ld = i},
                                            .b = {.data = args->p[1], .ld = i, .transposed = true},
                                            .c = {.data = args->p[3], .ld = o},
                                            .acc = bias_first,
                                            .out = dtype};
    if (bias_first) EL_TRY(el_cuda_bias(args, dtype, b, o, NULL, args->p[2], false, args->p[3]));
    EL_TRY(el_cuda_multiply(args, dtype, &product));
    return el_cuda_bias(args, dtype, b, o, args->p[3], bias_first ? NULL : args->p[2], args->s[0] != 0, args->p[3]);
}

static enum el_status linear_backward_data(const struct el_kernel_args *args, enum el_dtype dtype)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    const struct el_cuda_product product = {.m = b,
                                            .n = i,
                                            .k = o,
                                            .batch = 1,
                                            .a = {.data = args->p[0], .ld = o},
                                            .b = {.data = args->p[1], .ld = i},
                                            .c = {.data = args->p[2], .ld = i},
                                            .acc = args->s[0] != 0,
                                            .out = dtype};
    return el_cuda_multiply(args, dtype, &product);
}

static enum el_status linear_backward_weights(const struct el_kernel_args *args, enum el_dtype dtype)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    bool acc = args->s[0] != 0;
    const struct el_cuda_product product = {.m = o,
                                            .n = i,
                                            .k = b,
                                            .batch = 1,
                                            .a = {.data = args->p[1], .ld = o, .transposed = true},
                                            .b = {.data = args->p[0], .ld = i},
                                            .c = {.data = args->p[2], .ld = i},
                                            .acc = acc};
    EL_TRY(el_cuda_multiply(args, dtype, &product));
    if (!args->p[3]) return EL_OK;
    return el_cuda_sum_rows(args, dtype, args->p[1], b, o, acc, args->p[3]);
}

static enum el_status add_row(const struct el_kernel_args *args, enum el_dtype dtype)
{
    return el_cuda_bias(args, dtype, args->d[0], args->d[1], args->p[0], args->p[1], false, args->p[2]);
}

static enum el_status sum_rows(const struct el_kernel_args *args, enum el_dtype dtype)
{
    return el_cuda_sum_rows(args, dtype, args->p[0], args->d[0], args->d[1], args->s[0] != 0, args->p[1]);
}

#define ALL_TYPES(name)                                                                                                \
    enum el_status el_cuda_##name##_f32(const struct el_kernel_args *args)                                             \
    {                                                                                                                  \
        return name(args, EL_F32);                                                                                     \
    }                                                                                                                  \
    enum el_status el_cuda_##name##_f64(const struct el_kernel_args *args)                                             \
    {                                                                                                                  \
        return name(args, EL_F64);                                                                                     \
    }                                                                                                                  \
    enum el_status el_cuda_##name##_bf16(const struct el_kernel_args *args)                                            \
    {                                                                                                                  \
        return name(args, EL_BF16);                                                                                    \
    }
ALL_TYPES(linear_forward)
ALL_TYPES(linear_backward_data)
ALL_TYPES(linear_backward_weights)
ALL_TYPES(add_row)
ALL_TYPES(sum_rows)

#define WORKSPACE(name, columns)                                                                                       \
    enum el_status el_cuda_##name##_workspace_f32(const struct el_kernel_args *args, struct el_workspace *workspace_p) \
    {                                                                                                                  \
        *workspace_p = (struct el_workspace){.bytes = el_cuda_sum_rows_bytes(args->d[0], columns, 1)};                 \
        return EL_OK;                                                                                                  \
    }                                                                                                                  \
    enum el_status el_cuda_##name##_workspace_f64(const struct el_kernel_args *args, struct el_workspace *workspace_p) \
    {                                                                                                                  \
        return el_cuda_##name##_workspace_f32(args, workspace_p);                                                      \
    }
WORKSPACE(linear_backward_weights, args->d[2])
WORKSPACE(sum_rows, args->d[1])
