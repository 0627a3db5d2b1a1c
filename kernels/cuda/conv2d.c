/* The rows of the convolution over images. */
#include "kernels/cuda/conv.h"
#include "kernels/cuda/cuda.h"
#include "kernels/window.h"

static struct el_cuda_conv conv_of(enum el_cuda_conv_way way, const struct el_kernel_args *args)
{
    const struct el_window s = el_window_of_conv2d(args->d);
    return (struct el_cuda_conv){.way = way,
                                 .b = s.b,
                                 .h = s.h,
                                 .w = s.w,
                                 .c = s.c,
                                 .f = s.f,
                                 .kh = s.k,
                                 .kw = s.k,
                                 .stride = s.stride,
                                 .pad = s.pad,
                                 .oh = s.oh,
                                 .ow = s.ow,
                                 .in = {args->p[0], args->p[1]},
                                 .out = args->p[2],
                                 .acc = way != EL_CONV_FORWARD && args->s[0] != 0};
}

static enum el_status workspace(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype,
                                struct el_workspace *workspace_p)
{
    const struct el_cuda_conv conv = conv_of(way, args);
    el_cuda_conv_workspace(&el_cuda_conv_columns, args, &conv, dtype, 0, workspace_p);
    return EL_OK;
}

static enum el_status prepare(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype,
                              void **plan_p)
{
    const struct el_cuda_conv conv = conv_of(way, args);
    return el_cuda_conv_prepare(&el_cuda_conv_columns, args, &conv, dtype, args->workspace_bytes, plan_p);
}

static enum el_status run(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype)
{
    const struct el_cuda_conv conv = conv_of(way, args);
    return el_cuda_conv_run(&el_cuda_conv_columns, args, &conv, dtype, args->workspace);
}

EL_CUDA_CONV_ROWS(EL_OP_CONV2D, conv2d)
