/* Matrix products on row-major matrices. cuBLAS counts columns first, and a row-major matrix read so is its transpose:
 * of c = a b it is asked for c' = b' a'. */
#include "kernels/cuda/check.h"
#include "kernels/cuda/layer.h"
#include "kernels/cuda/native.h"

enum el_status el_cuda_multiply(const struct el_kernel_args *args, enum el_dtype dtype, const struct el_cuda_product *p)
{
    const struct el_cuda_native *native = args->native;
    const struct el_cuda_matrix *a = &p->a, *b = &p->b, *c = &p->c;
    cublasOperation_t op_a = a->transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                      op_b = b->transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    if (p->m == 0 || p->n == 0 || p->batch == 0) return EL_OK;
    if (dtype == EL_F64) {
        const double alpha = 1, beta = p->acc;
        EL_CUBLAS_TRY(cublasDgemmStridedBatched_64(native->cublas, op_b, op_a, p->n, p->m, p->k, &alpha, b->data, b->ld,
                                                   b->stride, a->data, a->ld, a->stride, &beta, (double *)c->data,
                                                   c->ld, c->stride, p->batch));
        return EL_OK;
    }
    const float alpha = 1, beta = p->acc;
    EL_CUBLAS_TRY(cublasSgemmStridedBatched_64(native->cublas, op_b, op_a, p->n, p->m, p->k, &alpha, b->data, b->ld,
                                               b->stride, a->data, a->ld, a->stride, &beta, (float *)c->data, c->ld,
                                               c->stride, p->batch));
    return EL_OK;
}
