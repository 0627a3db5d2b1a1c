/* The list of the CUDA kernels. Each has its twin of the same name in reference/, which says what it computes; here
 * stands only how it is done on a GPU.
 */
#ifndef EL_KERNELS_CUDA_CUDA_H
#define EL_KERNELS_CUDA_CUDA_H

#include "kernels/kernels.h"

/* The ops that need nothing but a run. */
#define EL_CUDA_LIST(X)                                                                                                \
    X(EL_OP_RELU_BACKWARD, relu_backward)                                                                              \
    X(EL_OP_COPY_COLUMNS, copy_columns)                                                                                \
    X(EL_OP_SCALE, scale)                                                                                              \
    X(EL_OP_ADD, add)                                                                                                  \
    X(EL_OP_FILL, fill)

#define EL_CUDA_DECLARE(op, name)                                                                                      \
    enum el_status el_cuda_##name##_f32(const struct el_kernel_args *args);                                            \
    enum el_status el_cuda_##name##_f64(const struct el_kernel_args *args);
EL_CUDA_LIST(EL_CUDA_DECLARE)

#endif
