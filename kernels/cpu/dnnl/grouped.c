/* Products by expert: sgemm for each group, whose rows are only known at run time.
 * Against one product of as many rows (1024 in 8 groups, 256 and 1024 values, one core with 2.6): dx and dw 0.99 to
 * 1.08; forward up to 1.29 by sgemm alone, which takes long to transpose w, and 1.05 to 1.08 with w transposed here, in
 * blocks whose rows are not a power of two apart. For few rows w costs more than the product, so forward is y' = w x'
 * (64 groups of 16 rows: 1.8 instead of 2.7). */
#include <string.h>

#include "kernels/cpu/dnnl/common.h"
#include "kernels/experts.h"

enum { BLOCK = 128, BLOCK_STRIDE = BLOCK + 16, FEW = 32, SQUARE = 16, QUAD = 4 };

typedef float quad __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t places __attribute__((vector_size(16)));

#define SHUFFLE(a, b, ...) EL_SHUFFLE(places, a, b, __VA_ARGS__)

static inline void transpose_quad(const float *x, int64_t stride, float *y)
{
    const quad a = *(const quad *)x, b = *(const quad *)(x + stride);
    const quad c = *(const quad *)(x + 2 * stride), d = *(const quad *)(x + 3 * stride);
    const quad ab = SHUFFLE(a, b, 0, 4, 1, 5), cd = SHUFFLE(c, d, 0, 4, 1, 5);
    const quad ab2 = SHUFFLE(a, b, 2, 6, 3, 7), cd2 = SHUFFLE(c, d, 2, 6, 3, 7);
    *(quad *)y = SHUFFLE(ab, cd, 0, 1, 4, 5);
    *(quad *)(y + BLOCK_STRIDE) = SHUFFLE(ab, cd, 2, 3, 6, 7);
    *(quad *)(y + 2 * BLOCK_STRIDE) = SHUFFLE(ab2, cd2, 0, 1, 4, 5);
    *(quad *)(y + 3 * BLOCK_STRIDE) = SHUFFLE(ab2, cd2, 2, 3, 6, 7);
}

/* The next squares' lines go to the L2 cache: rows a power of two apart drive each other out of the L1. */
static inline void transpose_square(const float *x, int64_t i, float *y)
{
    for (int64_t j = 0; j < SQUARE; j++) __builtin_prefetch(x + (SQUARE + j) * i, 0, 2);
    for (int64_t j = 0; j < SQUARE; j += QUAD)
        for (int64_t r = 0; r < SQUARE; r += QUAD) transpose_quad(x + j * i + r, i, y + r * BLOCK_STRIDE + j);
}

/* y[i,n] = w'[i,n], in squares of whole lines. */
static void transpose_block(const float *w, int64_t n, int64_t i, float *y)
{
    const int64_t squares_n = n / SQUARE * SQUARE, squares_i = i / SQUARE * SQUARE;
    for (int64_t j = 0; j < squares_n; j += SQUARE)
        for (int64_t r = 0; r < squares_i; r += SQUARE) transpose_square(w + j * i + r, i, y + r * BLOCK_STRIDE + j);
    for (int64_t j = 0; j < n; j++)
        for (int64_t r = j < squares_n ? squares_i : 0; r < i; r++) y[r * BLOCK_STRIDE + j] = w[j * i + r];
}

static enum el_status product(char a_as, char b_as, const int64_t sizes[3], float scale, const float *a, int64_t lda,
                              const float *b, int64_t ldb, bool acc, float *c, int64_t ldc)
{
    return el_dnnl_check(
        dnnl_sgemm(a_as, b_as, sizes[0], sizes[1], sizes[2], scale, a, lda, b, ldb, acc ? 1 : 0, c, ldc), "dnnl_sgemm");
}

/* The plan makes the thread compute alone; forward has a block of w, or y', as a region. */
static enum el_status cook(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    (void)args, (void)recipe;
    return EL_OK;
}

static enum el_status cook_forward(const struct el_kernel_args *args, struct el_dnnl_recipe *recipe)
{
    const int64_t block = args->d[1] * BLOCK_STRIDE, few = args->d[2] * FEW;
    el_dnnl_region(recipe, (size_t)(block > few ? block : few) * sizeof(float));
    return EL_OK;
}

/* y[n,o] = x[n,i] w'[i,o]. */
static enum el_status forward(const float *x, const float *w, int64_t n, int64_t i, int64_t o, float *scratch, float *y)
{
    if (n <= FEW) {
        EL_TRY(product('N', 'T', (int64_t[]){o, n, i}, 1, w, i, x, i, false, scratch, n));
        el_vector_transpose_bias(scratch, NULL, n, o, 0, y);
        return EL_OK;
    }
    for (int64_t first = 0; first < o; first += BLOCK) {
        const int64_t some = o - first < BLOCK ? o - first : BLOCK;
        transpose_block(w + first * i, some, i, scratch);
        EL_TRY(product('N', 'N', (int64_t[]){n, some, i}, 1, x, i, scratch, BLOCK_STRIDE, false, y + first, o));
    }
    return EL_OK;
}

static enum el_status forward_run(const struct el_kernel_args *args)
{
    const float *x = args->p[0], *w = args->p[1];
    float *y = args->p[3], *scratch = el_dnnl_region_data(args, 0);
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    const int64_t i = args->d[1], o = args->d[2];
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);)
        if (group.n > 0)
            EL_TRY(forward(x + group.first * i, w + group.expert * i * o, group.n, i, o, scratch, y + group.first * o));
    return EL_OK;
}

/* dx[n,i] = dy[n,o] w[o,i]. */
static enum el_status backward_data_run(const struct el_kernel_args *args)
{
    const float *dy = args->p[0], *w = args->p[1];
    float *dx = args->p[3];
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    const int64_t i = args->d[1], o = args->d[2];
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);)
        if (group.n > 0)
            EL_TRY(product('N', 'N', (int64_t[]){group.n, i, o}, 1, dy + group.first * o, o, w + group.expert * i * o,
                           i, args->s[0] != 0, dx + group.first * i, i));
    return EL_OK;
}

/* dw[o,i] = dy'[o,n] x[n,i], summed over parts. */
static enum el_status backward_weights_run(const struct el_kernel_args *args)
{
    const float *x = args->p[0], *dy = args->p[1];
    float *dw = args->p[3];
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    const int64_t i = args->d[1], o = args->d[2];
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);) {
        const bool acc = group.part > 0 || args->s[0] != 0;
        float *own = dw + group.expert * i * o;
        if (group.n > 0)
            EL_TRY(product('T', 'N', (int64_t[]){o, i, group.n}, (float)args->s[2], dy + group.first * o, o,
                           x + group.first * i, i, acc, own, i));
        else if (!acc)
            memset(own, 0, (size_t)(i * o) * sizeof *own);
    }
    return EL_OK;
}

static const char *describe(const void *plan)
{
    (void)plan;
    return "oneDNN: sgemm";
}

EL_DNNL_FUNCTIONS(forward, f32, cook_forward)
EL_DNNL_FUNCTIONS(backward, f32, cook)
#define ROW(way, run_function)                                                                                         \
    {                                                                                                                  \
        {                                                                                                              \
            .run = run_function, .workspace = way##_f32_workspace, .prepare = way##_f32_prepare,                       \
            .release = el_dnnl_release, .describe = describe                                                           \
        }                                                                                                              \
    }
const struct el_kernel el_dnnl_grouped_forward[2] = ROW(forward, forward_run);
const struct el_kernel el_dnnl_grouped_backward_data[2] = ROW(backward, backward_data_run);
const struct el_kernel el_dnnl_grouped_backward_weights[2] = ROW(backward, backward_weights_run);
