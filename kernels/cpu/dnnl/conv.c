/* conv1d and conv2d by oneDNN, on channels-last activations.
 * conv1d weights are small (textcnn: 150 to 260 kB): each op reorders them into its workspace (10 us), because on the
 * plain layout oneDNN uses its reference, a thousand times slower. The blocked copy's surplus counts as padding:
 * 408,576 for 360,000 bytes with 300 -> 100 x 3.
 * conv2d weights in the stored layout (kernels/cpu/conv2d.h) are used in place, or copied to the workspace for backward
 * to the inputs (its vectors are input channels), and for forward with many pixels per filter, where the library's own
 * layout is up to a fifth faster.
 * Traps of 2.6: with plain weights or a free output layout it uses its reference for three channels, and elsewhere
 * strides, a hundred times slower. So activations have strides, and weights are stored or in the primitive's own
 * layout. The library cannot accumulate into dx, dw or dbias: with `acc` a loop adds them, except conv1d's dw, whose
 * reorder adds. */
#include <string.h>

#include "kernels/cpu/dnnl/common.h"
#include "kernels/window.h"

enum { MANY_PIXELS = 512 };

/* The op's tensors in oneDNN's logical order (batch, channels, height, width or time). */
struct shape {
    struct el_dnnl_conv conv; /* conv.w: in the primitive's chosen layout */
    struct el_dnnl_conv hint; /* for the forward hint: gradients of weights have other types */
    el_dnnl_view weights;     /* as in the op: stored or plain */
    size_t weights_bytes;
    int64_t pixels;
};

static size_t width_of(const struct el_dnnl_recipe *recipe)
{
    return recipe->type == dnnl_f32 ? sizeof(float) : sizeof(uint16_t);
}

/* conv1d has five sizes, conv2d eight. */
static bool over_time(const struct el_kernel_args *args)
{
    return args->d[5] == 0;
}

static enum el_status shape_over_time(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                      struct shape *shape_p)
{
    int64_t b = args->d[0], l = args->d[1], c = args->d[2], f = args->d[3], k = args->d[4], t = l - k + 1;
    const dnnl_dims_t x = {b, c, l}, x_strides = {l * c, 1, c}, y = {b, f, t}, y_strides = {t * f, 1, f};
    const dnnl_dims_t w = {f, c, k}, w_strides = {k * c, 1, c}, bias = {f}, bias_strides = {1};
    *shape_p =
        (struct shape){.conv.stride = 1, .weights_bytes = (size_t)(f * k * c) * width_of(recipe), .pixels = b * t};
    EL_TRY(el_dnnl_strided(recipe, recipe->type, 3, x, x_strides, &shape_p->conv.x));
    EL_TRY(el_dnnl_tagged(recipe, recipe->type, 3, w, dnnl_format_tag_any, &shape_p->conv.w));
    EL_TRY(el_dnnl_strided(recipe, recipe->type, 1, bias, bias_strides, &shape_p->conv.bias));
    EL_TRY(el_dnnl_strided(recipe, recipe->type, 3, y, y_strides, &shape_p->conv.y));
    return el_dnnl_strided(recipe, recipe->type, 3, w, w_strides, &shape_p->weights);
}

static enum el_status shape_in_type(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                    struct shape *shape_p)
{
    if (over_time(args)) return shape_over_time(args, recipe, shape_p);
    const struct el_window s = el_window_of_conv2d(args->d);
    const dnnl_dims_t x = {s.b, s.c, s.h, s.w}, x_strides = {s.h * s.w * s.c, 1, s.w * s.c, s.c};
    const dnnl_dims_t y = {s.b, s.f, s.oh, s.ow}, y_strides = {s.oh * s.ow * s.f, 1, s.ow * s.f, s.f};
    const dnnl_dims_t w = {s.f, s.c, s.k, s.k}, plain = {s.k * s.k * s.c, 1, s.k * s.c, s.c};
    *shape_p = (struct shape){.conv = {.stride = s.stride, .pad = s.pad},
                              .weights_bytes = (size_t)(s.f * s.k * s.k * s.c) * width_of(recipe),
                              .pixels = s.b * s.oh * s.ow};
    EL_TRY(el_dnnl_strided(recipe, recipe->type, 4, x, x_strides, &shape_p->conv.x));
    EL_TRY(el_dnnl_tagged(recipe, recipe->type, 4, w, dnnl_format_tag_any, &shape_p->conv.w));
    EL_TRY(el_dnnl_strided(recipe, recipe->type, 4, y, y_strides, &shape_p->conv.y));
    if (args->k[0]) return el_dnnl_tagged(recipe, recipe->type, 4, w, dnnl_OIhw16i16o, &shape_p->weights);
    return el_dnnl_strided(recipe, recipe->type, 4, w, plain, &shape_p->weights);
}

static enum el_status shape_of(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe, struct shape *shape_p)
{
    EL_TRY(shape_in_type(args, recipe, shape_p));
    shape_p->hint = shape_p->conv;
    return EL_OK;
}

static enum el_status widen_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                    struct shape *shape)
{
    struct shape wide;
    const dnnl_data_type_t type = recipe->type;
    recipe->type = dnnl_f32;
    enum el_status status = shape_of(args, recipe, &wide);
    recipe->type = type;
    shape->conv.w = wide.conv.w, shape->conv.bias = wide.conv.bias;
    shape->weights = wide.weights, shape->weights_bytes = wide.weights_bytes;
    return status;
}

static struct el_dnnl_conv as_stored(const struct shape *shape)
{
    struct el_dnnl_conv conv = shape->conv;
    conv.w = shape->weights;
    return conv;
}

/* For weights in a fixed layout the library may have only its reference. */
static bool is_fast(const_dnnl_primitive_desc_t pd)
{
    return strncmp(el_dnnl_implementation(pd), "ref", 3) != 0;
}

/* A region for weights in layout `view`; its surplus over the plain bytes is padding. */
static struct el_dnnl_place weights_region(struct el_dnnl_recipe *recipe, const struct shape *shape, el_dnnl_view view)
{
    size_t bytes = dnnl_memory_desc_get_size(view);
    if (bytes > shape->weights_bytes) recipe->padding_bytes += bytes - shape->weights_bytes;
    return el_dnnl_region(recipe, bytes);
}

static enum el_status weights_add(struct el_dnnl_recipe *recipe, const struct shape *shape, void *data,
                                  el_dnnl_view view, struct el_dnnl_place *place_p)
{
    *place_p = el_dnnl_at(data);
    if (dnnl_memory_desc_equal(view, shape->weights)) return EL_OK;
    *place_p = weights_region(recipe, shape, view);
    return el_dnnl_reorder_add(recipe, shape->weights, el_dnnl_at(data), view, *place_p, 0);
}

static enum el_status choose_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                     const struct shape *shape, const_dnnl_primitive_desc_t *pd_p)
{
    const struct el_dnnl_after after = {.relu = over_time(args) && args->s[0] != 0};
    const struct el_dnnl_conv stored = as_stored(shape);
    if (args->k[0] && shape->pixels < MANY_PIXELS && el_dnnl_conv_forward(recipe, &stored, after, pd_p) == EL_OK &&
        is_fast(*pd_p))
        return EL_OK;
    return el_dnnl_conv_forward(recipe, &shape->conv, after, pd_p);
}

static enum el_status cook_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    struct el_dnnl_place w;
    const_dnnl_primitive_desc_t pd = NULL;
    EL_TRY(shape_of(args, recipe, &shape));
    EL_TRY(choose_forward(args, recipe, &shape, &pd));
    el_dnnl_view view = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    EL_TRY(weights_add(recipe, &shape, args->p[1], view, &w));
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_SRC, shape.conv.x, el_dnnl_at(args->p[0]));
    el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, view, w);
    if (shape.conv.bias) el_dnnl_operand_add(stage, DNNL_ARG_BIAS, shape.conv.bias, el_dnnl_at(args->p[2]));
    el_dnnl_operand_add(stage, DNNL_ARG_DST, shape.conv.y, el_dnnl_at(args->p[over_time(args) ? 3 : 2]));
    return EL_OK;
}

static enum el_status cook_backward_data(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    const_dnnl_primitive_desc_t hint, pd;
    struct el_dnnl_place w, dx = el_dnnl_at(args->p[2]);
    EL_TRY(shape_of(args, recipe, &shape));
    if (args->s[0] != 0) dx = el_dnnl_region(recipe, dnnl_memory_desc_get_size(shape.conv.x));
    EL_TRY(el_dnnl_conv_forward(recipe, &shape.conv, (struct el_dnnl_after){0, 0}, &hint));
    EL_TRY(el_dnnl_conv_backward(recipe, EL_DNNL_DATA, &shape.conv, hint, &pd));
    el_dnnl_view view = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    EL_TRY(weights_add(recipe, &shape, args->p[1], view, &w));
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_DST, shape.conv.y, el_dnnl_at(args->p[0]));
    el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, view, w);
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_SRC, shape.conv.x, dx);
    return EL_OK;
}

static enum el_status backward_data_run(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    EL_TRY(el_dnnl_run(args));
    if (args->s[0] != 0)
        el_vector_add(el_dnnl_region_data(args, 0), d[0] * d[1] * d[2] * (over_time(args) ? 1 : d[3]), args->p[2]);
    return EL_OK;
}

static enum el_status backward_data_run_bf16(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    EL_TRY(el_dnnl_run(args));
    if (args->s[0] != 0)
        el_vector_add_bf16(el_dnnl_region_data(args, 0), d[0] * d[1] * d[2] * (over_time(args) ? 1 : d[3]), args->p[2]);
    return EL_OK;
}

static enum el_status choose_backward_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                              const struct shape *shape, const_dnnl_primitive_desc_t *pd_p)
{
    const_dnnl_primitive_desc_t hint;
    const struct el_dnnl_conv stored = as_stored(shape);
    EL_TRY(el_dnnl_conv_forward(recipe, &shape->hint, (struct el_dnnl_after){0, 0}, &hint));
    if (args->k[0] && el_dnnl_conv_backward(recipe, EL_DNNL_WEIGHTS, &stored, hint, pd_p) == EL_OK && is_fast(*pd_p))
        return EL_OK;
    return el_dnnl_conv_backward(recipe, EL_DNNL_WEIGHTS, &shape->conv, hint, pd_p);
}

/* With `acc` the first region is added afterwards: dbias, or without bias dw in the op's layout. */
static enum el_status cook_backward_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    const_dnnl_primitive_desc_t pd = NULL;
    struct el_dnnl_place own = el_dnnl_at(args->p[2]), dw, dbias = el_dnnl_at(args->p[3]);
    EL_TRY(shape_of(args, recipe, &shape));
    if (recipe->type != dnnl_f32) EL_TRY(widen_weights(args, recipe, &shape));
    bool acc = args->s[0] != 0, reorder_adds = acc && shape.conv.bias;
    if (reorder_adds)
        dbias = el_dnnl_region(recipe, dnnl_memory_desc_get_size(shape.conv.bias));
    else if (acc)
        own = el_dnnl_region(recipe, shape.weights_bytes);
    EL_TRY(choose_backward_weights(args, recipe, &shape, &pd));
    el_dnnl_view view = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0);
    bool direct = !reorder_adds && dnnl_memory_desc_equal(view, shape.weights);
    dw = direct ? own : weights_region(recipe, &shape, view);
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_SRC, shape.conv.x, el_dnnl_at(args->p[0]));
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_DST, shape.conv.y, el_dnnl_at(args->p[1]));
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_WEIGHTS, view, dw);
    if (shape.conv.bias) el_dnnl_operand_add(stage, DNNL_ARG_DIFF_BIAS, shape.conv.bias, dbias);
    if (direct) return EL_OK;
    return el_dnnl_reorder_add(recipe, view, dw, shape.weights, own, reorder_adds);
}

static enum el_status backward_weights_run(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    EL_TRY(el_dnnl_run(args));
    if (args->s[0] == 0) return EL_OK;
    if (over_time(args))
        el_vector_add(el_dnnl_region_data(args, 0), d[3], args->p[3]);
    else
        el_vector_add(el_dnnl_region_data(args, 0), d[3] * d[4] * d[5] * d[5], args->p[2]);
    return EL_OK;
}

EL_DNNL_KERNEL(el_dnnl_forward, cook_forward, el_dnnl_run, el_dnnl_run);
EL_DNNL_KERNEL(el_dnnl_backward_data, cook_backward_data, backward_data_run, backward_data_run_bf16);
EL_DNNL_KERNEL(el_dnnl_backward_weights, cook_backward_weights, backward_weights_run, backward_weights_run);
