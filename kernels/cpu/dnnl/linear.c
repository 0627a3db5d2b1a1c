/* The linear layer by oneDNN's matmul on the plain layouts.
 *
 * Measured for 64 x 1024 x 1024 on one core with 2.6 (the peak is 0.75 ms): matmul takes 0.80 for dw and 0.98 for dx,
 * as sgemm does. Beside programs that use the memory too, dx took 1.8 to 2.5, and 1.20 in blocks of 128 rows of w,
 * which stay in the core's cache between being packed and used; dw took 1.53, and 1.22 in blocks of 64 rows. Forward it
 * takes 0.99 for y = x w', because it packs w; the transposed product y' = w x' leaves w as it is and packs x: 0.81,
 * and 0.04 to turn y' round with bias and ReLU. inner_product in its blocked layout would take 0.84 but its weights
 * change every step, and their reorder costs 0.37 ms.
 */
#include "kernels/cpu/dnnl/common.h"

/* A matrix [rows, columns] with the given strides. */
static enum el_status matrix(struct el_dnnl_recipe *recipe, int64_t rows, int64_t columns, int64_t row_stride,
                             int64_t column_stride, el_dnnl_view *view_p)
{
    const dnnl_dims_t dims = {rows, columns}, strides = {row_stride, column_stride};
    return el_dnnl_strided(recipe, recipe->type, 2, dims, strides, view_p);
}

/* Of f32, whatever the op's type is. */
static enum el_status wide_matrix(struct el_dnnl_recipe *recipe, int64_t rows, int64_t columns, el_dnnl_view *view_p)
{
    const dnnl_dims_t dims = {rows, columns}, strides = {columns, 1};
    return el_dnnl_strided(recipe, dnnl_f32, 2, dims, strides, view_p);
}

static size_t width_of(const struct el_dnnl_recipe *recipe)
{
    return recipe->type == dnnl_f32 ? sizeof(float) : sizeof(uint16_t);
}

/* One product a[m,k] x b[k,n] (+ bias[1,n]) -> c[m,n]. */
struct product {
    el_dnnl_view a, b, bias, c;
    struct el_dnnl_place a_at, b_at, bias_at, c_at;
};

static enum el_status product_add(struct el_dnnl_recipe *recipe, const struct product *product,
                                  struct el_dnnl_after after)
{
    const_dnnl_primitive_desc_t pd;
    EL_TRY(el_dnnl_matmul(recipe, product->a, product->b, product->bias, product->c, after, &pd));
    struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
    el_dnnl_operand_add(stage, DNNL_ARG_SRC, product->a, product->a_at);
    el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, product->b, product->b_at);
    if (product->bias) el_dnnl_operand_add(stage, DNNL_ARG_BIAS, product->bias, product->bias_at);
    el_dnnl_operand_add(stage, DNNL_ARG_DST, product->c, product->c_at);
    return EL_OK;
}

/* Whether there is much more of w than of x and y, of few rows: then forward is done transposed, and backward in blocks
 * (of the 8192 outputs of 1024 rows forward and dw are twice as fast without). */
static int mostly_weights(const struct el_kernel_args *args)
{
    return args->d[2] >= 8 * args->d[0] && args->d[0] >= 16 && args->d[0] <= 256;
}

/* y'[o,b] = w[o,i] x'[i,b], into the first region. */
static enum el_status cook_transposed(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    struct product product = {.a_at = el_dnnl_at(args->p[1]), .b_at = el_dnnl_at(args->p[0])};
    EL_TRY(matrix(recipe, o, i, i, 1, &product.a));
    EL_TRY(matrix(recipe, i, b, 1, i, &product.b));
    EL_TRY(matrix(recipe, o, b, b, 1, &product.c));
    product.c_at = el_dnnl_region(recipe, dnnl_memory_desc_get_size(product.c));
    return product_add(recipe, &product, (struct el_dnnl_after){0, 0});
}

/* y[b,o] = x[b,i] w'[i,o] + bias. Pointers are not known where only the workspace is asked for: it fits both ways. */
static enum el_status cook_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    if (recipe->type == dnnl_f32 && mostly_weights(args)) return cook_transposed(args, recipe);
    const struct el_dnnl_after after = {.relu = args->s[0] != 0};
    int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    struct product product = {.a_at = el_dnnl_at(args->p[0]),
                              .b_at = el_dnnl_at(args->p[1]),
                              .bias_at = el_dnnl_at(args->p[2]),
                              .c_at = el_dnnl_at(args->p[3])};
    EL_TRY(matrix(recipe, b, i, i, 1, &product.a));
    EL_TRY(matrix(recipe, i, o, 1, i, &product.b));
    EL_TRY(matrix(recipe, 1, o, o, 1, &product.bias));
    EL_TRY(matrix(recipe, b, o, o, 1, &product.c));
    if (args->p[2] || !args->p[3]) EL_TRY(product_add(recipe, &product, after));
    if (args->p[2]) return EL_OK;
    product.bias = NULL;
    return product_add(recipe, &product, after);
}

/* In how many equal blocks of w's rows backward is done, of `least` rows or more: so many that a block fits a core's
 * own cache, where w is much more than x and y. */
static int64_t n_blocks(const struct el_kernel_args *args, int64_t least, int64_t most)
{
    int64_t n = 1, o = args->d[2];
    if (!mostly_weights(args)) return 1;
    while (n < most && o % (2 * n) == 0 && o / (2 * n) >= least) n *= 2;
    return n;
}

/* dx[b,i] = dy[b,o] w[o,i], as the sum over the blocks */
static enum el_status cook_backward_data(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2], n = recipe->type == dnnl_f32 ? n_blocks(args, 128, 8) : 1,
            rows = o / n; /* of bf16 a sum over blocks would be rounded in each */
    const size_t width = width_of(recipe);
    const char *dy = args->p[0], *w = args->p[1];
    const_dnnl_primitive_desc_t first, next = NULL;
    el_dnnl_view left, right, sum;
    EL_TRY(matrix(recipe, b, rows, o, 1, &left));
    EL_TRY(matrix(recipe, rows, i, i, 1, &right));
    EL_TRY(matrix(recipe, b, i, i, 1, &sum));
    EL_TRY(el_dnnl_matmul(recipe, left, right, NULL, sum, (struct el_dnnl_after){.acc = args->s[0] != 0}, &first));
    if (n > 1) EL_TRY(el_dnnl_matmul(recipe, left, right, NULL, sum, (struct el_dnnl_after){.acc = 1}, &next));
    for (int64_t block = 0; block < n; block++) {
        struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, block ? next : first);
        el_dnnl_operand_add(stage, DNNL_ARG_SRC, left, el_dnnl_at((void *)(dy + (size_t)(block * rows) * width)));
        el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, right,
                            el_dnnl_at((void *)(w + (size_t)(block * rows * i) * width)));
        el_dnnl_operand_add(stage, DNNL_ARG_DST, sum, el_dnnl_at(args->p[2]));
    }
    return EL_OK;
}

/* dw[o,i] = dy'[o,b] x[b,i], block by block */
static enum el_status cook_backward_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    int64_t b = args->d[0], i = args->d[1], o = args->d[2], n = n_blocks(args, 64, EL_DNNL_STAGES), rows = o / n;
    const size_t width = width_of(recipe);
    const char *dy = args->p[1];
    float *dw = args->p[2];
    const_dnnl_primitive_desc_t pd;
    el_dnnl_view left, right, product;
    EL_TRY(matrix(recipe, rows, b, 1, o, &left));
    EL_TRY(matrix(recipe, b, i, i, 1, &right));
    EL_TRY(wide_matrix(recipe, rows, i, &product));
    EL_TRY(el_dnnl_matmul(recipe, left, right, NULL, product, (struct el_dnnl_after){.acc = args->s[0] != 0}, &pd));
    for (int64_t block = 0; block < n; block++) {
        struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, pd);
        el_dnnl_operand_add(stage, DNNL_ARG_SRC, left, el_dnnl_at((void *)(dy + (size_t)(block * rows) * width)));
        el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, right, el_dnnl_at(args->p[0]));
        el_dnnl_operand_add(stage, DNNL_ARG_DST, product, el_dnnl_at(dw + block * rows * i));
    }
    return EL_OK;
}

static enum el_status forward_run(const struct el_kernel_args *args)
{
    EL_TRY(el_dnnl_run(args));
    if (mostly_weights(args))
        el_vector_transpose_bias(el_dnnl_region_data(args, 0), args->p[2], args->d[0], args->d[2], args->s[0] != 0,
                                 args->p[3]);
    return EL_OK;
}

/* The bias' gradient is no product: a sum over rows, in their order. */
static enum el_status backward_weights_run(const struct el_kernel_args *args)
{
    EL_TRY(el_dnnl_run(args));
    if (args->p[3]) el_vector_sum_rows(args->p[1], args->d[0], args->d[2], args->s[0] != 0, args->p[3]);
    return EL_OK;
}

static enum el_status backward_weights_run_bf16(const struct el_kernel_args *args)
{
    EL_TRY(el_dnnl_run(args));
    if (args->p[3]) el_vector_sum_rows_bf16(args->p[1], args->d[0], args->d[2], args->s[0] != 0, args->p[3]);
    return EL_OK;
}

EL_DNNL_KERNEL(el_dnnl_linear_forward, cook_forward, forward_run, el_dnnl_run);
EL_DNNL_KERNEL(el_dnnl_linear_backward_data, cook_backward_data, el_dnnl_run, el_dnnl_run);
EL_DNNL_KERNEL(el_dnnl_linear_backward_weights, cook_backward_weights, backward_weights_run, backward_weights_run_bf16);
