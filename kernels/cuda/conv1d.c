/* The rows of the convolution over time. The bias, its ReLU and its gradient are kernels of ours whichever way the
 * convolution is done. */
#include "kernels/cuda/conv.h"
#include "kernels/cuda/cuda.h"

static struct el_cuda_conv conv_of(enum el_cuda_conv_way way, const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    bool forward = way == EL_CONV_FORWARD; /* its scalar is relu */
    return (struct el_cuda_conv){.way = way,
                                 .b = d[0],
                                 .h = 1,
                                 .w = d[1],
                                 .c = d[2],
                                 .f = d[3],
                                 .kh = 1,
                                 .kw = d[4],
                                 .stride = 1,
                                 .oh = 1,
                                 .ow = d[1] - d[4] + 1,
                                 .in = {args->p[0], args->p[1]},
                                 .out = args->p[forward ? 3 : 2],
                                 .acc = !forward && args->s[0] != 0};
}

/* The workspace: first the stretches of the bias' gradient, then what the chosen way needs. */
static size_t bias_bytes(const struct el_cuda_conv *conv)
{
    if (conv->way != EL_CONV_WEIGHTS) return 0;
    return el_cuda_align(el_cuda_sum_rows_bytes(conv->b * conv->ow, conv->f));
}

static enum el_status workspace(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype,
                                struct el_workspace *workspace_p)
{
    const struct el_cuda_conv conv = conv_of(way, args);
    el_cuda_conv_workspace(&el_cuda_conv_taps, args, &conv, dtype, bias_bytes(&conv), workspace_p);
    return EL_OK;
}

static enum el_status prepare(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype,
                              void **plan_p)
{
    const struct el_cuda_conv conv = conv_of(way, args);
    return el_cuda_conv_prepare(&el_cuda_conv_taps, args, &conv, dtype, args->workspace_bytes - bias_bytes(&conv),
                                plan_p);
}

static enum el_status run(enum el_cuda_conv_way way, const struct el_kernel_args *args, enum el_dtype dtype)
{
    const struct el_cuda_conv conv = conv_of(way, args);
    void *scratch = (char *)args->workspace + bias_bytes(&conv);
    EL_TRY(el_cuda_conv_run(&el_cuda_conv_taps, args, &conv, dtype, scratch));
    int64_t rows = conv.b * conv.ow;
    if (way == EL_CONV_FORWARD) return el_cuda_bias(args, dtype, rows, conv.f, args->p[2], args->s[0] != 0, args->p[3]);
    if (way == EL_CONV_DATA) return EL_OK;
    return el_cuda_sum_rows(args, dtype, args->p[1], rows, conv.f, conv.acc, args->workspace, args->p[3]);
}

EL_CUDA_CONV_ROWS(EL_OP_CONV1D, conv1d)
