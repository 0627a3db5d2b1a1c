/* The CUDA table: each op's row for f32, f64 and bf16. */
#include "kernels/cuda/cuda.h"

#include "kernels/bf16.h"
#include "kernels/cuda/native.h"

#define TAKES_MANY(op) .takes_many = (op) == EL_OP_SCALE || ((op) >= EL_OP_CAST && (op) <= EL_OP_ADAM)
#define IS_GROUPED(op) ((op) >= EL_OP_GROUPED_FORWARD && (op) <= EL_OP_GROUPED_BACKWARD_WEIGHTS)

static const struct el_kernel rows[EL_OP_COUNT][2] = {
#define EL_CUDA_ROW(op, name)                                                                                          \
    [op] = {[EL_F32] = {.run = el_cuda_##name##_f32, TAKES_MANY(op)},                                                  \
            [EL_F64] = {.run = el_cuda_##name##_f64, TAKES_MANY(op)}},
    EL_CUDA_LIST(EL_CUDA_ROW)
#undef EL_CUDA_ROW
#define EL_CUDA_ROW(op, name)                                                                                          \
    [op] = {                                                                                                           \
        [EL_F32] = {.run = el_cuda_##name##_f32, TAKES_MANY(op), .step_values = el_cuda_##name##_step_values_f32},     \
        [EL_F64] = {.run = el_cuda_##name##_f64, TAKES_MANY(op), .step_values = el_cuda_##name##_step_values_f64}},
        EL_CUDA_STEP_LIST(EL_CUDA_ROW)
#undef EL_CUDA_ROW
#define EL_CUDA_ROW(op, name)                                                                                          \
    [op] = {[EL_F32] = {.run = el_cuda_##name##_f32, TAKES_MANY(op), .workspace = el_cuda_##name##_workspace_f32},     \
            [EL_F64] = {.run = el_cuda_##name##_f64, TAKES_MANY(op), .workspace = el_cuda_##name##_workspace_f64}},
            EL_CUDA_WORKSPACE_LIST(EL_CUDA_ROW)
#undef EL_CUDA_ROW
};

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype);
/* Large groups, because a launch costs some microseconds. */
static const struct el_bf16_way way = {find, 1 << 22, el_cuda_bf16_move};
#define EL_BF16_WAY &way
EL_OP_LIST(EL_BF16_FUNCTIONS)
static const struct el_kernel bf16_rows[EL_OP_COUNT] = {EL_OP_LIST(EL_BF16_ROW)};
static const struct el_kernel bf16_own[EL_OP_COUNT] = {
#define EL_CUDA_ROW(op, name)                                                                                          \
    [op] = {.run = el_cuda_##name##_bf16,                                                                              \
            TAKES_MANY(op),                                                                                            \
            .step_values = op == EL_OP_ADAM            ? el_cuda_adam_step_values_f32                                  \
                           : op == EL_OP_ROUTE_FORWARD ? el_cuda_route_forward_step_values_f32                         \
                                                       : NULL,                                                         \
            .workspace = op == EL_OP_LINEAR_BACKWARD_WEIGHTS ? el_cuda_linear_backward_weights_workspace_f32           \
                         : op == EL_OP_ATTENTION_BACKWARD    ? el_cuda_attention_backward_workspace_f32                \
                         : IS_GROUPED(op)                    ? el_cuda_grouped_forward_workspace_f32                   \
                         : op == EL_OP_SUM_ROWS              ? el_cuda_sum_rows_workspace_f32                          \
                         : op == EL_OP_SUM_SQUARES           ? el_cuda_sum_squares_workspace_f32                       \
                                                             : NULL},
    EL_CUDA_BF16_LIST(EL_CUDA_ROW)
#undef EL_CUDA_ROW
};

static const struct el_kernel f16_cast = {.run = el_cuda_cast_f16}, f16_fill = {.run = el_cuda_fill_f16};

static const struct el_kernel *find(enum el_op_kind op, enum el_dtype dtype)
{
    if (dtype == EL_F16) return op == EL_OP_CAST ? &f16_cast : op == EL_OP_FILL ? &f16_fill : NULL;
    if ((unsigned)op < EL_OP_COUNT && dtype == EL_BF16) return bf16_own[op].run ? &bf16_own[op] : &bf16_rows[op];
    if ((unsigned)op >= EL_OP_COUNT || (dtype != EL_F32 && dtype != EL_F64)) return NULL;
    if (op >= EL_OP_CONV1D_FORWARD && op <= EL_OP_CONV2D_BACKWARD_WEIGHTS)
        return &el_cuda_conv_rows[op - EL_OP_CONV1D_FORWARD][dtype];
    return rows[op][dtype].run ? &rows[op][dtype] : NULL;
}

const struct el_kernel_table *el_kernels_cuda(void)
{
    /* f64 never uses cuDNN, so that addresses do not matter. */
    static const struct el_kernel_table table = {
        .name = "cuda", .find = find, .alignment = {[EL_F32] = EL_CUDA_ALIGNMENT, [EL_BF16] = EL_CUDA_ALIGNMENT}};
    return &table;
}
