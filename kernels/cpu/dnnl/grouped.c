/* Products by expert: how many rows an expert has is data, and a primitive's sizes are not, so each group is an sgemm.
 * oneDNN's is column-major: c' = b' a' for our c = a b. */
#include <string.h>

#include "kernels/cpu/dnnl/common.h"
#include "kernels/experts.h"

/* c[rows,columns] = scale * a[rows,deep] b + beta * c; `turned_b`: b is [columns,deep], else [deep,columns];
 * `turned_a`: a is [deep,rows]. */
struct product {
    bool turned_a, turned_b;
    int64_t rows, columns, deep;
    float scale, beta;
};

static enum el_status multiply(const struct product *p, const float *a, const float *b, float *c)
{
    if (p->rows == 0) return EL_OK;
    EL_DNNL_TRY(dnnl_sgemm(p->turned_a ? 'T' : 'N', p->turned_b ? 'T' : 'N', p->rows, p->columns, p->deep, p->scale, a,
                           p->turned_a ? p->rows : p->deep, b, p->turned_b ? p->deep : p->columns, p->beta, c,
                           p->columns));
    return EL_OK;
}

static enum el_status rows_run(const struct el_kernel_args *args, bool back)
{
    const int64_t in = args->d[1], out = args->d[2], deep = back ? out : in, wide = back ? in : out;
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    const float *x = args->p[0], *w = args->p[1];
    float *y = args->p[3];
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);) {
        const struct product product = {false, !back, group.n, wide, deep, 1, back && args->s[0] != 0 ? 1 : 0};
        EL_TRY(multiply(&product, x + group.first * deep, w + group.expert * in * out, y + group.first * wide));
    }
    return EL_OK;
}

static enum el_status forward_run(const struct el_kernel_args *args)
{
    return rows_run(args, false);
}

static enum el_status backward_data_run(const struct el_kernel_args *args)
{
    return rows_run(args, true);
}

/* dw[o,i] = dy'[o,n] x[n,i]. */
static enum el_status backward_weights_run(const struct el_kernel_args *args)
{
    const int64_t in = args->d[1], out = args->d[2];
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    const float *x = args->p[0], *dy = args->p[1];
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);) {
        const bool adds = group.part > 0 || args->s[0] != 0;
        const struct product product = {true, false, out, in, group.n, (float)args->s[2], adds ? 1 : 0};
        float *dw = (float *)args->p[3] + group.expert * in * out;
        if (group.n > 0)
            EL_TRY(multiply(&product, dy + group.first * out, x + group.first * in, dw));
        else if (!adds)
            memset(dw, 0, (size_t)(in * out) * sizeof *dw);
    }
    return EL_OK;
}

const struct el_kernel el_dnnl_grouped_forward[2] = {{.run = forward_run}},
                       el_dnnl_grouped_backward_data[2] = {{.run = backward_data_run}},
                       el_dnnl_grouped_backward_weights[2] = {{.run = backward_weights_run}};
