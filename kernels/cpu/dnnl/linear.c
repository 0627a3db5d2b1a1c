/* The linear layer by oneDNN's matmul on plain layouts. 64 x 1024 x 1024 on one core with 2.6 (peak 0.75 ms): dw 0.80,
 * dx 0.98, like sgemm. Beside other memory-bound programs dx took 1.8 to 2.5, and 1.20 in blocks of 128 rows of w,
 * which stay in cache after packing; dw 1.53, and 1.22 in blocks of 64. Forward: y = x w' packs w, 0.99; y' = w x'
 * packs x, 0.81, and 0.04 to transpose. inner_product's blocked layout: 0.84, and 0.37 to reorder w in each step.
 * 1024 rows, 256 inputs, 8192 outputs (1 MiB cache per core): dx 23.2 ms, 18.6 in blocks of 2048; forward 19.4 and
 * 17.9; dw 20.5, 23 in blocks. */
#include "kernels/cpu/dnnl/common.h"

/* A matrix of a product. 0 rows or columns: the current block's; the next block is `step` elements further for each. */
struct matrix {
    int64_t rows, columns, row_stride, column_stride;
    struct el_dnnl_place at;
    int64_t step;
    bool wide; /* f32 for every op type */
};

struct product {
    struct matrix a, b, bias, c;
    bool has_bias, sums; /* sums: blocks are added up; else each is a part of c */
    struct el_dnnl_after after;
};

enum { A, B, BIAS, C, OPERANDS };

struct shape {
    el_dnnl_view views[OPERANDS];
    const_dnnl_primitive_desc_t pd;
};

static enum el_status shape_make(struct el_dnnl_recipe *recipe, const struct product *product, int64_t rows,
                                 struct el_dnnl_after after, struct shape *shape_p)
{
    const struct matrix *matrices[OPERANDS] = {&product->a, &product->b, &product->bias, &product->c};
    for (int i = 0; i < OPERANDS; i++) {
        const struct matrix *m = matrices[i];
        const dnnl_dims_t dims = {m->rows ? m->rows : rows, m->columns ? m->columns : rows};
        const dnnl_dims_t strides = {m->row_stride, m->column_stride};
        const dnnl_data_type_t type = m->wide ? dnnl_f32 : recipe->type;
        shape_p->views[i] = NULL;
        if (i != BIAS || product->has_bias) EL_TRY(el_dnnl_strided(recipe, type, 2, dims, strides, &shape_p->views[i]));
    }
    return el_dnnl_matmul(recipe, shape_p->views[A], shape_p->views[B], shape_p->views[BIAS], shape_p->views[C], after,
                          &shape_p->pd);
}

static struct el_dnnl_place at_row(const struct el_dnnl_recipe *recipe, const struct matrix *matrix, int64_t row)
{
    const size_t width = matrix->wide || recipe->type == dnnl_f32 ? sizeof(float) : sizeof(uint16_t);
    if (!matrix->at.data) return matrix->at;
    return el_dnnl_at((char *)matrix->at.data + (size_t)(row * matrix->step) * width);
}

static enum el_status product_add(struct el_dnnl_recipe *recipe, const struct product *product, int64_t all,
                                  int64_t rows)
{
    struct el_dnnl_after after = product->after;
    struct shape shape;
    for (int64_t row = 0, n = 0; row < all; row += n) {
        const int64_t before = n;
        n = all - row < rows ? all - row : rows;
        if (n != before || (product->sums && row == n)) EL_TRY(shape_make(recipe, product, n, after, &shape));
        if (product->sums) after.acc = 1;
        struct el_dnnl_stage *stage = el_dnnl_stage_add(recipe, shape.pd);
        el_dnnl_operand_add(stage, DNNL_ARG_SRC, shape.views[A], at_row(recipe, &product->a, row));
        el_dnnl_operand_add(stage, DNNL_ARG_WEIGHTS, shape.views[B], at_row(recipe, &product->b, row));
        if (product->has_bias)
            el_dnnl_operand_add(stage, DNNL_ARG_BIAS, shape.views[BIAS], at_row(recipe, &product->bias, row));
        el_dnnl_operand_add(stage, DNNL_ARG_DST, shape.views[C], at_row(recipe, &product->c, row));
    }
    return EL_OK;
}

/* w much larger than x and y, few rows: then dw is in blocks, and forward may be transposed (8192 outputs of 1024 rows
 * are twice as fast without). */
static int mostly_weights(const struct el_kernel_args *args)
{
    return args->d[2] >= 8 * args->d[0] && args->d[0] >= 16 && args->d[0] <= 256;
}

/* 256 x 256 x 8192 takes 12.1 ms transposed and 10.2 plainly, 64 x 256 x 8192 2.59 and 2.74. */
static bool transposes(const struct el_kernel_args *args)
{
    return mostly_weights(args) && args->d[0] <= 64;
}

/* Rows of w per block, so that a block fits a core's cache: `few` if w dominates, else WIDE; more if a recipe would
 * have too many stages. */
static int64_t block_rows(const struct el_kernel_args *args, int64_t few)
{
    enum { WIDE = 2048 };
    int64_t rows = mostly_weights(args) ? few : WIDE;
    while (rows * EL_DNNL_STAGES < args->d[2]) rows *= 2;
    return rows;
}

/* y'[o,b] = w[o,i] x'[i,b], into the first region. */
static enum el_status cook_transposed(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    const int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    const struct product product = {
        .a = {o, i, i, 1, el_dnnl_at(args->p[1]), 0},
        .b = {i, b, 1, i, el_dnnl_at(args->p[0]), 0},
        .c = {o, b, b, 1, el_dnnl_region(recipe, (size_t)(o * b) * sizeof(float)), 0},
    };
    return product_add(recipe, &product, o, o);
}

/* y[b,o] = x[b,i] w'[i,o] + bias. workspace() knows no pointers, so that its size fits with and without bias. */
static enum el_status cook_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    if (recipe->type == dnnl_f32 && transposes(args)) return cook_transposed(args, recipe);
    const int64_t b = args->d[0], i = args->d[1], o = args->d[2], rows = block_rows(args, o);
    struct product product = {
        .a = {b, i, i, 1, el_dnnl_at(args->p[0]), 0},
        .b = {i, 0, 1, i, el_dnnl_at(args->p[1]), i},
        .bias = {1, 0, o, 1, el_dnnl_at(args->p[2]), 1},
        .c = {b, 0, o, 1, el_dnnl_at(args->p[3]), 1},
        .has_bias = args->p[2] || !args->p[3],
        .after = {.relu = args->s[0] != 0},
    };
    EL_TRY(product_add(recipe, &product, o, rows));
    if (!product.has_bias || args->p[2]) return EL_OK;
    product.has_bias = false;
    recipe->n_stages = 0;
    return product_add(recipe, &product, o, rows);
}

/* dx[b,i] = dy[b,o] w[o,i], as a sum over blocks. */
static enum el_status cook_backward_data(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    const int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    const struct product product = {
        .a = {b, 0, o, 1, el_dnnl_at(args->p[0]), 1},
        .b = {0, i, i, 1, el_dnnl_at(args->p[1]), i},
        .c = {b, i, i, 1, el_dnnl_at(args->p[2]), 0},
        .sums = true,
        .after = {.acc = args->s[0] != 0},
    };
    const bool blocks = recipe->type == dnnl_f32; /* a bf16 sum over blocks would be rounded in each */
    return product_add(recipe, &product, o, blocks ? block_rows(args, 128) : o);
}

/* dw[o,i] = dy'[o,b] x[b,i], block by block. */
static enum el_status cook_backward_weights(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    const int64_t b = args->d[0], i = args->d[1], o = args->d[2];
    const struct product product = {
        .a = {0, b, 1, o, el_dnnl_at(args->p[1]), 1},
        .b = {b, i, i, 1, el_dnnl_at(args->p[0]), 0},
        .c = {0, i, i, 1, el_dnnl_at(args->p[2]), i, .wide = true},
        .after = {.acc = args->s[0] != 0},
    };
    return product_add(recipe, &product, o, mostly_weights(args) ? block_rows(args, 64) : o);
}

static enum el_status forward_run(const struct el_kernel_args *args)
{
    EL_TRY(el_dnnl_run(args));
    if (transposes(args))
        el_vector_transpose_bias(el_dnnl_region_data(args, 0), args->p[2], args->d[0], args->d[2], args->s[0] != 0,
                                 args->p[3]);
    return EL_OK;
}

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
