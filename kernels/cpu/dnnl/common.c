/* The engine, and all differences between versions 2 and 3 of oneDNN's C API. */
#include "kernels/cpu/dnnl/common.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_once_t made = PTHREAD_ONCE_INIT;
static dnnl_engine_t engine;
static dnnl_status_t engine_status;

static void make_engine(void)
{
    engine_status = dnnl_engine_create(&engine, dnnl_cpu, 0);
}

enum el_status el_dnnl_engine(dnnl_engine_t *engine_p)
{
    pthread_once(&made, make_engine);
    EL_TRY(el_dnnl_check(engine_status, "dnnl_engine_create"));
    *engine_p = engine;
    return EL_OK;
}

enum el_status el_dnnl_check(dnnl_status_t status, const char *call)
{
    static const char *const words[] = {"success",       "out of memory",       "invalid arguments",
                                        "unimplemented", "iterator at its end", "runtime error",
                                        "not required"};
    if (status == dnnl_success) return EL_OK;
    if (status == dnnl_out_of_memory) return el_fail(EL_ERR_OOM, "no memory for oneDNN's kernels (%s)", call);
    int known = (size_t)status < sizeof words / sizeof words[0];
    return el_fail(EL_ERR_INTERNAL, "oneDNN: %s: %s (%d)", call, known ? words[status] : "unknown", (int)status);
}

enum el_status el_dnnl_strided(struct el_dnnl_recipe *recipe, dnnl_data_type_t type, int n_dims, const dnnl_dims_t dims,
                               const dnnl_dims_t strides, el_dnnl_view *view_p)
{
    dnnl_memory_desc_t *desc = &recipe->descs[recipe->n_descs];
#if DNNL_VERSION_MAJOR >= 3
    EL_DNNL_TRY(dnnl_memory_desc_create_with_strides(desc, n_dims, dims, type, strides));
#else
    EL_DNNL_TRY(dnnl_memory_desc_init_by_strides(desc, n_dims, dims, type, strides));
#endif
    recipe->n_descs++;
    *view_p = EL_DNNL_VIEW(*desc);
    return EL_OK;
}

enum el_status el_dnnl_tagged(struct el_dnnl_recipe *recipe, dnnl_data_type_t type, int n_dims, const dnnl_dims_t dims,
                              dnnl_format_tag_t tag, el_dnnl_view *view_p)
{
    dnnl_memory_desc_t *desc = &recipe->descs[recipe->n_descs];
#if DNNL_VERSION_MAJOR >= 3
    EL_DNNL_TRY(dnnl_memory_desc_create_with_tag(desc, n_dims, dims, type, tag));
#else
    EL_DNNL_TRY(dnnl_memory_desc_init_by_tag(desc, n_dims, dims, type, tag));
#endif
    recipe->n_descs++;
    *view_p = EL_DNNL_VIEW(*desc);
    return EL_OK;
}

const char *el_dnnl_implementation(const_dnnl_primitive_desc_t pd)
{
    const char *name = NULL;
    dnnl_status_t status = dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, (void *)&name);
    return status == dnnl_success && name ? name : "unknown";
}

static enum el_status post_ops(dnnl_post_ops_t ops, struct el_dnnl_after after)
{
#if DNNL_VERSION_MAJOR >= 3
    if (after.acc) EL_DNNL_TRY(dnnl_post_ops_append_sum(ops, 1, 0, dnnl_data_type_undef));
    if (after.relu) EL_DNNL_TRY(dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0));
#else
    if (after.acc) EL_DNNL_TRY(dnnl_post_ops_append_sum(ops, 1));
    if (after.relu) EL_DNNL_TRY(dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0));
#endif
    return EL_OK;
}

static enum el_status attributes(struct el_dnnl_after after, dnnl_primitive_attr_t *attr_p)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_post_ops_t ops = NULL;
    enum el_status status = el_dnnl_check(dnnl_primitive_attr_create(&attr), "dnnl_primitive_attr_create");
    if (status != EL_OK) return status;
    EL_TRY_GOTO(el_dnnl_check(dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user),
                              "dnnl_primitive_attr_set_scratchpad_mode"),
                fail_attr);
    EL_TRY_GOTO(el_dnnl_check(dnnl_post_ops_create(&ops), "dnnl_post_ops_create"), fail_attr);
    EL_TRY_GOTO(post_ops(ops, after), fail_ops);
    EL_TRY_GOTO(el_dnnl_check(dnnl_primitive_attr_set_post_ops(attr, ops), "dnnl_primitive_attr_set_post_ops"),
                fail_ops);
    dnnl_post_ops_destroy(ops);
    *attr_p = attr;
    return EL_OK;
fail_ops:
    dnnl_post_ops_destroy(ops);
fail_attr:
    dnnl_primitive_attr_destroy(attr);
    return status;
}

static enum el_status keep(struct el_dnnl_recipe *recipe, dnnl_primitive_attr_t attr, dnnl_status_t status,
                           const char *what, dnnl_primitive_desc_t pd, const_dnnl_primitive_desc_t *pd_p)
{
    dnnl_primitive_attr_destroy(attr);
    EL_TRY(el_dnnl_check(status, what));
    recipe->pds[recipe->n_pds++] = pd;
    *pd_p = pd;
    return EL_OK;
}

struct steps {
    dnnl_dims_t strides, padding, dilation;
};

static struct steps steps_of(const struct el_dnnl_conv *conv)
{
    return (struct steps){.strides = {conv->stride, conv->stride}, .padding = {conv->pad, conv->pad}};
}

enum el_status el_dnnl_conv_forward(struct el_dnnl_recipe *recipe, const struct el_dnnl_conv *conv,
                                    struct el_dnnl_after after, const_dnnl_primitive_desc_t *pd_p)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    struct steps steps = steps_of(conv);
    EL_TRY(attributes(after, &attr));
#if DNNL_VERSION_MAJOR >= 3
    dnnl_status_t status = dnnl_convolution_forward_primitive_desc_create(
        &pd, engine, dnnl_forward_training, dnnl_convolution_direct, conv->x, conv->w, conv->bias, conv->y,
        steps.strides, steps.dilation, steps.padding, steps.padding, attr);
#else
    dnnl_convolution_desc_t desc;
    dnnl_status_t status =
        dnnl_convolution_forward_desc_init(&desc, dnnl_forward_training, dnnl_convolution_direct, conv->x, conv->w,
                                           conv->bias, conv->y, steps.strides, steps.padding, steps.padding);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&pd, &desc, attr, engine, NULL);
#endif
    return keep(recipe, attr, status, "convolution forward", pd, pd_p);
}

enum el_status el_dnnl_conv_backward(struct el_dnnl_recipe *recipe, enum el_dnnl_backward way,
                                     const struct el_dnnl_conv *conv, const_dnnl_primitive_desc_t hint,
                                     const_dnnl_primitive_desc_t *pd_p)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t status;
    struct steps steps = steps_of(conv);
    EL_TRY(attributes((struct el_dnnl_after){0, 0}, &attr));
#if DNNL_VERSION_MAJOR >= 3
    if (way == EL_DNNL_DATA)
        status = dnnl_convolution_backward_data_primitive_desc_create(&pd, engine, dnnl_convolution_direct, conv->x,
                                                                      conv->w, conv->y, steps.strides, steps.dilation,
                                                                      steps.padding, steps.padding, hint, attr);
    else
        status = dnnl_convolution_backward_weights_primitive_desc_create(
            &pd, engine, dnnl_convolution_direct, conv->x, conv->w, conv->bias, conv->y, steps.strides, steps.dilation,
            steps.padding, steps.padding, hint, attr);
#else
    dnnl_convolution_desc_t desc;
    if (way == EL_DNNL_DATA)
        status = dnnl_convolution_backward_data_desc_init(&desc, dnnl_convolution_direct, conv->x, conv->w, conv->y,
                                                          steps.strides, steps.padding, steps.padding);
    else
        status =
            dnnl_convolution_backward_weights_desc_init(&desc, dnnl_convolution_direct, conv->x, conv->w, conv->bias,
                                                        conv->y, steps.strides, steps.padding, steps.padding);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&pd, &desc, attr, engine, hint);
#endif
    return keep(recipe, attr, status,
                way == EL_DNNL_DATA ? "convolution backward data" : "convolution backward weights", pd, pd_p);
}

enum el_status el_dnnl_matmul(struct el_dnnl_recipe *recipe, el_dnnl_view a, el_dnnl_view b, el_dnnl_view bias,
                              el_dnnl_view c, struct el_dnnl_after after, const_dnnl_primitive_desc_t *pd_p)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    EL_TRY(attributes(after, &attr));
#if DNNL_VERSION_MAJOR >= 3
    dnnl_status_t status = dnnl_matmul_primitive_desc_create(&pd, engine, a, b, bias, c, attr);
#else
    dnnl_matmul_desc_t desc;
    dnnl_status_t status = dnnl_matmul_desc_init(&desc, a, b, bias, c);
    if (status == dnnl_success) status = dnnl_primitive_desc_create(&pd, &desc, attr, engine, NULL);
#endif
    return keep(recipe, attr, status, "matmul", pd, pd_p);
}

enum el_status el_dnnl_reorder(struct el_dnnl_recipe *recipe, el_dnnl_view from, el_dnnl_view to,
                               struct el_dnnl_after after, const_dnnl_primitive_desc_t *pd_p)
{
    dnnl_primitive_attr_t attr;
    dnnl_primitive_desc_t pd = NULL;
    EL_TRY(attributes(after, &attr));
    dnnl_status_t status = dnnl_reorder_primitive_desc_create(&pd, from, engine, to, engine, attr);
    return keep(recipe, attr, status, "reorder", pd, pd_p);
}
