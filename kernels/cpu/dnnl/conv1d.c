/* The convolution over time by oneDNN, on activations as they are (channels last) and weights in the layout it likes.
 *
 * The weights change every step and are small (textcnn: 150 to 260 kB), so that each op reorders them into its
 * workspace (10 us); the plain layout would send oneDNN to its reference, a thousand times slower. What the blocked
 * layout holds beyond the logical weights is reported as padding: 408,576 for 360,000 bytes with 300 -> 100 x 3.
 *
 * The library cannot add to dx or dbias: with `acc` they are made in the workspace and added by a loop. */
#include "kernels/cpu/dnnl/common.h"
#include "kernels/cpu/vector.h"

/* The op's tensors as oneDNN sees them: names are logical order (batch, channels, time), strides say channels last. */
struct shape {
    struct el_dnnl_conv conv; /* conv.w in the layout the primitive chooses */
    struct el_dnnl_weights w; /* plain */
};

static enum el_status shape_make(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe,
                                 struct shape *shape_p)
{
    int64_t b = args->d[0], l = args->d[1], c = args->d[2], f = args->d[3], k = args->d[4], t = l - k + 1;
    const dnnl_dims_t x = {b, c, l}, x_strides = {l * c, 1, c}, y = {b, f, t}, y_strides = {t * f, 1, f};
    const dnnl_dims_t w = {f, c, k}, w_strides = {k * c, 1, c}, bias = {f}, bias_strides = {1};
    shape_p->conv = (struct el_dnnl_conv){.stride = 1, .pad = 0};
    EL_TRY(el_dnnl_strided(recipe, 3, x, x_strides, &shape_p->conv.x));
    EL_TRY(el_dnnl_any(recipe, 3, w, &shape_p->conv.w));
    EL_TRY(el_dnnl_strided(recipe, 1, bias, bias_strides, &shape_p->conv.bias));
    EL_TRY(el_dnnl_strided(recipe, 3, y, y_strides, &shape_p->conv.y));
    EL_TRY(el_dnnl_strided(recipe, 3, w, w_strides, &shape_p->w.own));
    shape_p->w.bytes = (size_t)(f * k * c) * sizeof(float);
    return EL_OK;
}

static enum el_status cook_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    const_dnnl_primitive_desc_t pd;
    EL_TRY(shape_make(args, recipe, &shape));
    EL_TRY(el_dnnl_conv_forward(recipe, &shape.conv, (struct el_dnnl_after){.relu = args->s[0] != 0}, &pd));
    const struct el_dnnl_forward data = {.x = args->p[0], .w = args->p[1], .bias = args->p[2], .y = args->p[3]};
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
    if (args->s[0] != 0) el_vector_add(el_dnnl_region_data(args, 0), args->d[0] * args->d[1] * args->d[2], args->p[2]);
    return EL_OK;
}

/* With `acc` the first region is dbias, still to be added; the reorder into dw adds by itself. */
static enum el_status cook_backward_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    struct shape shape;
    const_dnnl_primitive_desc_t hint, pd;
    struct el_dnnl_place dw = el_dnnl_at(args->p[2]), dbias = el_dnnl_at(args->p[3]);
    int acc = args->s[0] != 0;
    EL_TRY(shape_make(args, recipe, &shape));
    if (acc) dbias = el_dnnl_region(recipe, dnnl_memory_desc_get_size(shape.conv.bias));
    EL_TRY(el_dnnl_conv_forward(recipe, &shape.conv, (struct el_dnnl_after){0, 0}, &hint));
    EL_TRY(el_dnnl_conv_backward_weights(recipe, &shape.conv, hint, &pd));
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_view view = dnnl_primitive_desc_query_md(pd, dnnl_query_diff_weights_md, 0);
    int direct = !acc && dnnl_memory_desc_equal(view, shape.w.own);
    if (!direct) dw = el_dnnl_weights_region(recipe, &shape.w, view);
    el_dnnl_operand_add(stage, DNNL_ARG_SRC, shape.conv.x, el_dnnl_at(args->p[0]));
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_DST, shape.conv.y, el_dnnl_at(args->p[1]));
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_WEIGHTS, view, dw);
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_BIAS, shape.conv.bias, dbias);
    if (direct) return EL_OK;
    return el_dnnl_reorder_add(recipe, view, dw, shape.w.own, el_dnnl_at(args->p[2]), acc);
}

static enum el_status backward_weights_run(const struct el_kernel_args *args)
{
    EL_TRY(el_dnnl_run(args));
    if (args->s[0] != 0) el_vector_add(el_dnnl_region_data(args, 0), args->d[3], args->p[3]);
    return EL_OK;
}

EL_DNNL_KERNEL(el_dnnl_conv1d_forward, cook_forward, el_dnnl_run);
EL_DNNL_KERNEL(el_dnnl_conv1d_backward_data, cook_backward_data, backward_data_run);
EL_DNNL_KERNEL(el_dnnl_conv1d_backward_weights, cook_backward_weights, backward_weights_run);
