/* From a family's function that takes the data type, to one for each type as a row wants it. */
#ifndef EL_KERNELS_CUDA_TYPED_H
#define EL_KERNELS_CUDA_TYPED_H

#include "kernels/cuda/cuda.h"

#define EL_CUDA_TYPED_RUN(name)                                                                                        \
    enum el_status el_cuda_##name##_f32(const struct el_kernel_args *args)                                             \
    {                                                                                                                  \
        return name(args, EL_F32);                                                                                     \
    }                                                                                                                  \
    enum el_status el_cuda_##name##_f64(const struct el_kernel_args *args)                                             \
    {                                                                                                                  \
        return name(args, EL_F64);                                                                                     \
    }

#define EL_CUDA_TYPED_WORKSPACE(name, size)                                                                            \
    enum el_status el_cuda_##name##_workspace_f32(const struct el_kernel_args *args, struct el_workspace *workspace_p) \
    {                                                                                                                  \
        *workspace_p = (struct el_workspace){.bytes = size(args, EL_F32)};                                             \
        return EL_OK;                                                                                                  \
    }                                                                                                                  \
    enum el_status el_cuda_##name##_workspace_f64(const struct el_kernel_args *args, struct el_workspace *workspace_p) \
    {                                                                                                                  \
        *workspace_p = (struct el_workspace){.bytes = size(args, EL_F64)};                                             \
        return EL_OK;                                                                                                  \
    }

#endif
