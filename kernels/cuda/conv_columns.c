/* A convolution as one matrix product over columns of kh*kw*c values, a group of samples at a time.
 *     forward  y       =   columns of x  times  weights'
 *     data     columns =   dy            times  weights,  then summed per pixel
 *     weights  dw      (+)= dy'          times  columns of x
 * For 1 x 1 windows x is its own columns. */
#include "kernels/cuda/conv.h"

struct stretch {
    int64_t first, samples, rows, values;
    void *x, *y, *columns;
};

static bool is_own_columns(const struct el_cuda_conv *s)
{
    return s->kh == 1 && s->kw == 1 && s->stride == 1 && s->pad == 0;
}

size_t el_cuda_conv_columns_bytes(const struct el_cuda_conv *s, enum el_dtype dtype)
{
    if (is_own_columns(s)) return 0;
    int64_t values = s->oh * s->ow * s->kh * s->kw * s->c;
    return (size_t)(el_cuda_columns_samples(s, dtype) * values) * el_dtype_bytes(dtype);
}

static struct stretch stretch_of(const struct el_cuda_conv *s, enum el_dtype dtype, int64_t first, void *scratch)
{
    int64_t most = is_own_columns(s) ? s->b : el_cuda_columns_samples(s, dtype);
    struct stretch stretch = {.first = first, .samples = s->b - first < most ? s->b - first : most};
    void *x = s->way == EL_CONV_DATA ? s->out : s->in[0];
    void *y = s->way == EL_CONV_FORWARD ? s->out : s->in[s->way == EL_CONV_DATA ? 0 : 1];
    stretch.rows = stretch.samples * s->oh * s->ow;
    stretch.values = s->kh * s->kw * s->c;
    stretch.x = el_cuda_offset(x, first * s->h * s->w * s->c, dtype);
    stretch.y = el_cuda_offset(y, first * s->oh * s->ow * s->f, dtype);
    stretch.columns = is_own_columns(s) ? stretch.x : scratch;
    return stretch;
}

static enum el_status multiply(const struct el_kernel_args *args, const struct el_cuda_conv *s, enum el_dtype dtype,
                               const struct stretch *at)
{
    struct el_cuda_matrix y = {.data = at->y, .ld = s->f}, columns = {.data = at->columns, .ld = at->values};
    struct el_cuda_matrix weights = {.data = s->way == EL_CONV_WEIGHTS ? s->out : s->in[1], .ld = at->values};
    struct el_cuda_product product = {.batch = 1};
    if (s->way == EL_CONV_FORWARD) {
        weights.transposed = true;
        product = (struct el_cuda_product){at->rows, s->f, at->values, 1, columns, weights, y, false, EL_F32};
    } else if (s->way == EL_CONV_DATA) {
        bool acc = s->acc && is_own_columns(s);
        product = (struct el_cuda_product){at->rows, at->values, s->f, 1, y, weights, columns, acc, EL_F32};
    } else {
        y.transposed = true;
        product = (struct el_cuda_product){s->f,  at->values, at->rows, 1, y, columns, weights, s->acc || at->first > 0,
                                           EL_F32};
    }
    return el_cuda_multiply(args, dtype, &product);
}

enum el_status el_cuda_conv_columns_run(const struct el_kernel_args *args, const struct el_cuda_conv *s,
                                        enum el_dtype dtype, void *scratch)
{
    int64_t first = 0;
    do { /* also without samples: gradients of weights are then 0 */
        const struct stretch at = stretch_of(s, dtype, first, scratch);
        bool copied = !is_own_columns(s);
        if (copied && s->way != EL_CONV_DATA) EL_TRY(el_cuda_columns(args, dtype, s, at.samples, at.x, at.columns));
        EL_TRY(multiply(args, s, dtype, &at));
        if (copied && s->way == EL_CONV_DATA) EL_TRY(el_cuda_add_columns(args, dtype, s, at.samples, at.columns, at.x));
        first += at.samples;
    } while (first < s->b);
    return EL_OK;
}
