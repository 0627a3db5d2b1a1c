/* The CUDA table: each op's row for f32 and f64. It holds no arithmetic; that is in the family files. */
#include "kernels/cuda/cuda.h"

#include "kernels/cuda/native.h"

static const struct el_kernel rows[EL_OP_COUNT][2] = {
#define EL_CUDA_ROW(op, name)                                                                                          \
    [op] = {[EL_F32] = {.run = el_cuda_##name##_f32}, [EL_F64] = {.run = el_cuda_##name##_f64}},
    EL_CUDA_LIST(EL_CUDA_ROW)
#undef EL_CUDA_ROW
#define EL_CUDA_ROW(op, name)                                                                                          \
    [op] = {[EL_F32] = {.run = el_cuda_##name##_f32, .step_values = el_cuda_##name##_step_values_f32},                 \
            [EL_F64] = {.run = el_cuda_##name##_f64, .step_values = el_cuda_##name##_step_values_f64}},
        EL_CUDA_STEP_LIST(EL_CUDA_ROW)
#undef EL_CUDA_ROW
#define EL_CUDA_ROW(op, name)                                                                                          \
    [op] = {[EL_F32] = {.run = el_cuda_##name##_f32, .workspace = el_cuda_##name##_workspace_f32},                     \
            [EL_F64] = {.run = el_cuda_##name##_f64, .workspace = el_cuda_##name##_workspace_f64}},
            EL_CUDA_WORKSPACE_LIST(EL_CUDA_ROW)
#undef EL_CUDA_ROW
};

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype)
{
    if ((unsigned)op >= EL_OP_COUNT || (dtype != EL_F32 && dtype != EL_F64)) return NULL;
    if (op >= EL_OP_CONV1D_FORWARD && op <= EL_OP_CONV2D_BACKWARD_WEIGHTS)
        return &el_cuda_conv_rows[op - EL_OP_CONV1D_FORWARD][dtype];
    return rows[op][dtype].run ? &rows[op][dtype] : NULL;
}

const struct el_kernel_table *el_kernels_cuda(void)
{
    /* f64 is never cuDNN's: there is one way, however operands lie. */
    static const struct el_kernel_table table = {
        .name = "cuda", .find = find, .alignment = {[EL_F32] = EL_CUDA_ALIGNMENT}};
    return &table;
}
