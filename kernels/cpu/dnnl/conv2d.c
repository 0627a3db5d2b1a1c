/* The convolution over images by oneDNN, on activations as they are (channels last).
 *
 * Weights that stand in the stored layout (kernels/cpu/conv2d.h) are read, and their gradient is written, where they
 * are; a primitive that wants another order gets a copy of them in the workspace. Backward to the inputs always does:
 * its vectors are channels of the input, the others' are filters. Forward does where there are many pixels for a
 * filter: the copy costs little then, and the layout that the library would choose is up to a fifth faster.
 *
 * Traps of 2.6: told that weights are plain, or asked to choose the output's layout, it takes its reference for three
 * channels; told so elsewhere, it goes by strides, a hundred times slower. So activations have strides, and weights are
 * stored ones or in the layout that the primitive chooses.
 *
 * The library cannot add to dx or dw: with `acc` they are made in the workspace and added by a loop. */
#include <string.h>

#include "kernels/cpu/dnnl/common.h"
#include "kernels/cpu/vector.h"
#include "kernels/window.h"

/* Above so many pixels a filter element is used often enough to be worth a copy of the weights. */
enum { MANY_PIXELS = 512 };

/* The op's tensors as oneDNN sees them: names are logical order (batch, channels, height, width). */
struct shape {
    struct el_dnnl_conv conv; /* conv.w in the layout the primitive chooses */
    struct el_dnnl_weights w; /* stored, or plain */
    int64_t pixels;           /* of the output, in all samples */
};

static enum el_status shape_make(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                 struct shape *shape_p)
{
    int64_t b = args->d[0], h = args->d[1], w = args->d[2], c = args->d[3], f = args->d[4], k = args->d[5];
    int64_t stride = args->d[6], pad = args->d[7];
    int64_t oh = el_window_places(h, k, stride, pad), ow = el_window_places(w, k, stride, pad);
    const dnnl_dims_t x = {b, c, h, w}, x_strides = {h * w * c, 1, w * c, c};
    const dnnl_dims_t y = {b, f, oh, ow}, y_strides = {oh * ow * f, 1, ow * f, f};
    const dnnl_dims_t filters = {f, c, k, k}, plain = {k * k * c, 1, k * c, c};
    *shape_p = (struct shape){.conv = {.stride = stride, .pad = pad},
                              .w.bytes = (size_t)(f * k * k * c) * sizeof(float),
                              .pixels = b * oh * ow};
    EL_TRY(el_dnnl_strided(recipe, 4, x, x_strides, &shape_p->conv.x));
    EL_TRY(el_dnnl_any(recipe, 4, filters, &shape_p->conv.w));
    EL_TRY(el_dnnl_strided(recipe, 4, y, y_strides, &shape_p->conv.y));
    if (args->k[0]) return el_dnnl_tagged(recipe, 4, filters, dnnl_OIhw16i16o, &shape_p->w.own);
    return el_dnnl_strided(recipe, 4, filters, plain, &shape_p->w.own);
}

/* Like conv, but with the op's own weights. */
static struct el_dnnl_conv as_stored(const struct shape *shape)
{
    struct el_dnnl_conv conv = shape->conv;
    conv.w = shape->w.own;
    return conv;
}

/* The library may have only its reference for weights whose layout it was told. */
static int is_fast(const_dnnl_primitive_desc_t pd)
{
    return strncmp(el_dnnl_implementation(pd), "ref", 3) != 0;
}

static enum el_status choose_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                     const struct shape *shape, const_dnnl_primitive_desc_t *pd_p)
{
    const struct el_dnnl_after none = {0, 0};
    struct el_dnnl_conv stored = as_stored(shape);
    if (args->k[0] && shape->pixels < MANY_PIXELS && el_dnnl_conv_forward(recipe, &stored, none, pd_p) == EL_OK &&
        is_fast(*pd_p))
        return EL_OK;
    return el_dnnl_conv_forward(recipe, &shape->conv, none, pd_p);
}

static enum el_status cook_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    const_dnnl_primitive_desc_t pd = NULL;
    EL_TRY(shape_make(args, recipe, &shape));
    EL_TRY(choose_forward(args, recipe, &shape, &pd));
    const struct el_dnnl_forward data = {.x = args->p[0], .w = args->p[1], .y = args->p[2]};
    return el_dnnl_forward_add(recipe, pd, &shape.conv, &shape.w, &data);
}

/* With `acc` the first region is dx, still to be added. */
static enum el_status cook_backward_data(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    EL_TRY(shape_make(args, recipe, &shape));
    return el_dnnl_backward_data_add(recipe, args, &shape.conv, &shape.w);
}

static enum el_status backward_data_run(const struct el_kernel_args *args)
{
    EL_TRY(el_dnnl_run(args));
    if (args->s[0] != 0)
        el_vector_add(el_dnnl_region_data(args, 0), args->d[0] * args->d[1] * args->d[2] * args->d[3], args->p[2]);
    return EL_OK;
}

/* The primitive that writes the stored layout, and else the one that chooses. */
static enum el_status choose_backward_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                              const struct shape *shape, const_dnnl_primitive_desc_t *pd_p)
{
    const_dnnl_primitive_desc_t hint;
    struct el_dnnl_conv stored = as_stored(shape);
    EL_TRY(el_dnnl_conv_forward(recipe, &shape->conv, (struct el_dnnl_after){0, 0}, &hint));
    if (args->k[0] && el_dnnl_conv_backward_weights(recipe, &stored, hint, pd_p) == EL_OK && is_fast(*pd_p))
        return EL_OK;
    return el_dnnl_conv_backward_weights(recipe, &shape->conv, hint, pd_p);
}

/* With `acc` the first region is dw in the op's own layout, still to be added. */
static enum el_status cook_backward_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    const_dnnl_primitive_desc_t pd = NULL;
    EL_TRY(shape_make(args, recipe, &shape));
    struct el_dnnl_place own = el_dnnl_at(args->p[2]), dw;
    if (args->s[0] != 0) own = el_dnnl_region(recipe, shape.w.bytes);
    EL_TRY(choose_backward_weights(args, recipe, &shape, &pd));
    el_dnnl_view view = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0);
    int direct = dnnl_memory_desc_equal(view, shape.w.own);
    dw = direct ? own : el_dnnl_weights_region(recipe, &shape.w, view);
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_SRC, shape.conv.x, el_dnnl_at(args->p[0]));
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_DST, shape.conv.y, el_dnnl_at(args->p[1]));
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_WEIGHTS, view, dw);
    if (direct) return EL_OK;
    return el_dnnl_reorder_add(recipe, view, dw, shape.w.own, own, 0);
}

static enum el_status backward_weights_run(const struct el_kernel_args *args)
{
    const int64_t *d = args->d;
    EL_TRY(el_dnnl_run(args));
    if (args->s[0] != 0) el_vector_add(el_dnnl_region_data(args, 0), d[3] * d[4] * d[5] * d[5], args->p[2]);
    return EL_OK;
}

EL_DNNL_KERNEL(el_dnnl_conv2d_forward, cook_forward, el_dnnl_run);
EL_DNNL_KERNEL(el_dnnl_conv2d_backward_data, cook_backward_data, backward_data_run);
EL_DNNL_KERNEL(el_dnnl_conv2d_backward_weights, cook_backward_weights, backward_weights_run);
