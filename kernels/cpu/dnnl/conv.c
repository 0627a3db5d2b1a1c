/* What the convolutions over time and over images do alike: their weights in the layout that a primitive wants, the way
 * forward, and the way back to their inputs. */
#include "kernels/cpu/dnnl/common.h"

struct el_dnnl_place el_dnnl_weights_region(struct el_dnnl_recipe *recipe, const struct el_dnnl_weights *weights,
                                            el_dnnl_view view)
{
    size_t bytes = dnnl_memory_desc_get_size(view);
    if (bytes > weights->bytes) recipe->padding_bytes += bytes - weights->bytes;
    return el_dnnl_region(recipe, bytes);
}

enum el_status el_dnnl_weights_add(struct el_dnnl_recipe *recipe, const struct el_dnnl_weights *weights, void *data,
                                   el_dnnl_view view, struct el_dnnl_place *place_p)
{
    if (dnnl_memory_desc_equal(view, weights->own)) {
        *place_p = el_dnnl_at(data);
        return EL_OK;
    }
    *place_p = el_dnnl_weights_region(recipe, weights, view);
    return el_dnnl_reorder_add(recipe, weights->own, el_dnnl_at(data), view, *place_p, 0);
}

enum el_status el_dnnl_forward_add(struct el_dnnl_recipe *recipe, const_dnnl_primitive_desc_t pd,
                                   const struct el_dnnl_conv *conv, const struct el_dnnl_weights *weights,
                                   const struct el_dnnl_forward *data)
{
    struct el_dnnl_place w;
    el_dnnl_view view = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    EL_TRY(el_dnnl_weights_add(recipe, weights, data->w, view, &w));
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_SRC, conv->x, el_dnnl_at(data->x));
    el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, view, w);
    if (data->bias) el_dnnl_operand_add(stage, DNNL_ARG_BIAS, conv->bias, el_dnnl_at(data->bias));
    el_dnnl_operand_add(stage, DNNL_ARG_DST, conv->y, el_dnnl_at(data->y));
    return EL_OK;
}

enum el_status el_dnnl_backward_data_add(struct el_dnnl_recipe *recipe, const struct el_kernel_args *args,
                                         const struct el_dnnl_conv *conv, const struct el_dnnl_weights *weights)
{
    const_dnnl_primitive_desc_t hint, pd;
    struct el_dnnl_place w, dx = el_dnnl_at(args->p[2]);
    if (args->s[0] != 0) dx = el_dnnl_region(recipe, dnnl_memory_desc_get_size(conv->x));
    EL_TRY(el_dnnl_conv_forward(recipe, conv, (struct el_dnnl_after){0, 0}, &hint));
    EL_TRY(el_dnnl_conv_backward_data(recipe, conv, hint, &pd));
    el_dnnl_view view = dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0);
    EL_TRY(el_dnnl_weights_add(recipe, weights, args->p[1], view, &w));
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_DST, conv->y, el_dnnl_at(args->p[0]));
    el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, view, w);
    el_dnnl_operand_add(stage, DNNL_ARG_DIFF_SRC, conv->x, dx);
    return EL_OK;
}
