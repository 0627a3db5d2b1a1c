/* Fast causal attention, head by head, in scratch that fits the core's cache. Zeros pad sides to whole tiles; columns
 * that no row of a tile sees are skipped. */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lanes.h"

/* A tile's rows, its columns, and those that it takes where no more are seen; rows per block, after which backward adds
 * to dk and dv. */
enum { ROWS = 8, COLUMNS = EL_LANES, HALF = 16, BLOCK = 64 };

typedef float vector __attribute__((vector_size(64), may_alias)); /* of HALF columns */

/* A tile of c[ROWS, ...] (+)= a[ROWS, depth] b[depth, ...], `vectors` of c's columns wide; an element of a is at
 * row * a_row + column * a_column. Sums `rows` rows at a time; rows and vectors are constants that fill registers. */
static inline __attribute__((always_inline)) void tile(const float *a, int64_t a_row, int64_t a_column, const float *b,
                                                       int64_t b_row, int64_t depth, int acc, float *c, int64_t c_row,
                                                       const int rows, const int vectors)
{
    for (int i = 0; i < ROWS; i += rows) {
        const float *from = a + i * a_row;
        vector sum[ROWS][2];
        for (int r = 0; r < rows; r++)
            for (int l = 0; l < vectors; l++)
                sum[r][l] = acc ? ((const vector *)(c + (i + r) * c_row))[l] : (vector){0};
        for (int64_t k = 0; k < depth; k++) {
            const vector *row = (const vector *)(b + k * b_row);
            for (int r = 0; r < rows; r++)
                for (int l = 0; l < vectors; l++) sum[r][l] += from[r * a_row + k * a_column] * row[l];
        }
        for (int r = 0; r < rows; r++)
            for (int l = 0; l < vectors; l++) ((vector *)(c + (i + r) * c_row))[l] = sum[r][l];
    }
}

#ifdef __x86_64__
__attribute__((target("avx512f"))) static void multiply_wide(const float *a, int64_t a_row, int64_t a_column,
                                                             const float *b, int64_t b_row, int64_t depth,
                                                             int64_t columns, int acc, float *c, int64_t c_row)
{
    int64_t j = 0;
    for (; j + 2 * HALF <= columns; j += 2 * HALF)
        tile(a, a_row, a_column, b + j, b_row, depth, acc, c + j, c_row, ROWS, 2);
    if (j < columns) tile(a, a_row, a_column, b + j, b_row, depth, acc, c + j, c_row, ROWS, 1);
}
#endif

EL_VECTOR static void multiply_narrow(const float *a, int64_t a_row, int64_t a_column, const float *b, int64_t b_row,
                                      int64_t depth, int64_t columns, int acc, float *c, int64_t c_row)
{
    for (int64_t j = 0; j < columns; j += HALF)
        tile(a, a_row, a_column, b + j, b_row, depth, acc, c + j, c_row, ROWS / 2, 1);
}

/* `columns`: a multiple of HALF. */
static void multiply(const float *a, int64_t a_row, int64_t a_column, const float *b, int64_t b_row, int64_t depth,
                     int64_t columns, int acc, float *c, int64_t c_row)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f")) {
        multiply_wide(a, a_row, a_column, b, b_row, depth, columns, acc, c, c_row);
        return;
    }
#endif
    multiply_narrow(a, a_row, a_column, b, b_row, depth, columns, acc, c, c_row);
}

static int64_t whole(int64_t n)
{
    return (n + COLUMNS - 1) / COLUMNS * COLUMNS;
}

/* One head's sizes and scratch; T, S: t and s rounded up. */
struct head {
    int64_t t, s, T, S;
    size_t width;                    /* of an operand's value, in bytes */
    float *q, *k, *v, *dy, *dk, *dv; /* [T, S]; q is divided by sqrt(s) */
    float *keys, *values;            /* [S, T]: k and v transposed */
    float *p, *ds;                   /* [BLOCK, T]: shares, and the gradients of the scores */
    float *out;                      /* [ROWS, S] */
};

static int64_t lay_out(struct head *head, int backward, int64_t t, int64_t s, float *next)
{
    const int64_t plane = t * s, strip = BLOCK * t, first = 0;
    int64_t at = first;
    struct {
        float **p;
        int64_t n;
    } parts[] = {{&head->q, plane},  {&head->k, plane},      {&head->v, plane},  {&head->keys, plane},
                 {&head->p, strip},  {&head->out, ROWS * s}, {&head->dy, plane}, {&head->dk, plane},
                 {&head->dv, plane}, {&head->values, plane}, {&head->ds, strip}};
    for (int i = 0; i < (backward ? 11 : 6); i++) {
        if (next) *parts[i].p = next + at;
        at += parts[i].n;
    }
    return at;
}

static enum el_status workspace(const struct el_kernel_args *args, int backward, struct el_workspace *workspace_p)
{
    struct head head;
    const int64_t t = args->d[1], s = args->d[3];
    const int64_t used = lay_out(&head, backward, t, s, NULL), all = lay_out(&head, backward, whole(t), whole(s), NULL);
    *workspace_p = (struct el_workspace){.bytes = (size_t)all * sizeof(float),
                                         .padding_bytes = (size_t)(all - used) * sizeof(float)};
    return EL_OK;
}

static struct head make_head(const struct el_kernel_args *args, int backward, size_t width)
{
    struct head head = {
        .t = args->d[1], .s = args->d[3], .T = whole(args->d[1]), .S = whole(args->d[3]), .width = width};
    lay_out(&head, backward, head.T, head.S, args->workspace);
    return head;
}

EL_VECTOR static void scale_row(const float *restrict x, int64_t n, float factor, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = factor * x[i];
}

static void *at(const struct head *head, const void *x, int64_t i)
{
    return (char *)x + (size_t)i * head->width;
}

static void bring(const struct head *head, const void *x, int64_t stride, float factor, float *y)
{
    if (head->T > head->t || head->S > head->s) memset(y, 0, (size_t)(head->T * head->S) * sizeof *y);
    for (int64_t i = 0; i < head->t; i++) {
        if (head->width == sizeof(float))
            scale_row(at(head, x, i * stride), head->s, factor, y + i * head->S);
        else
            el_vector_widen(at(head, x, i * stride), head->s, factor, 0, y + i * head->S);
    }
}

static void give_row(const struct head *head, const float *x, float factor, void *y)
{
    if (head->width == sizeof(float))
        scale_row(x, head->s, factor, y);
    else
        el_vector_narrow(x, head->s, factor, 0, y);
}

static void bring_qkv(const struct head *head, const void *qkv, int64_t width)
{
    bring(head, qkv, 3 * width, 1 / sqrtf((float)head->s), head->q);
    bring(head, at(head, qkv, width), 3 * width, 1, head->k);
    bring(head, at(head, qkv, 2 * width), 3 * width, 1, head->v);
    el_vector_transpose_bias(head->k, NULL, head->S, head->T, 0, head->keys);
}

/* The columns that some of the rows i and on see, in halves of tiles. */
static int64_t seen(int64_t i)
{
    return (i + ROWS + HALF - 1) / HALF * HALF;
}

/* The scores of rows i and on, into `to`; invisible columns become -inf. Returns the number of columns done. */
static int64_t score(const struct head *head, int64_t i, float *to)
{
    const int64_t columns = whole(i + ROWS);
    multiply(head->q + i * head->S, head->S, 1, head->keys, head->T, head->s, seen(i), 0, to, head->T);
    for (int64_t r = 0; r < ROWS && i + r < head->t; r++)
        for (int64_t j = i + r + 1; j < columns; j++) to[r * head->T + j] = -INFINITY;
    return columns;
}

static void attend(const struct head *head, int64_t i, void *y, int64_t stride, float *saved)
{
    float *p = head->p, per_sum[ROWS];
    const int64_t rows = head->t - i < ROWS ? head->t - i : ROWS, columns = score(head, i, p);
    for (int64_t r = 0; r < rows; r++) {
        const float largest = el_vector_largest(p + r * head->T, columns);
        const double sum = el_vector_exp_sum(p + r * head->T, columns, largest, p + r * head->T);
        per_sum[r] = (float)(1 / sum);
        saved[i + r] = (float)((double)largest + log(sum));
    }
    multiply(p, head->T, 1, head->v, head->S, i + ROWS, head->S, 0, head->out, head->S);
    for (int64_t r = 0; r < rows; r++)
        give_row(head, head->out + r * head->S, per_sum[r], at(head, y, (i + r) * stride));
}

static enum el_status forward(const struct el_kernel_args *args, size_t width)
{
    const void *qkv = args->p[0];
    void *y = args->p[1];
    float *saved = args->p[2];
    const int64_t b = args->d[0], t = args->d[1], h = args->d[2], s = args->d[3];
    const struct head head = make_head(args, 0, width);
    for (int64_t n = 0; n < b * h; n++) {
        bring_qkv(&head, at(&head, qkv, n / h * t * 3 * h * s + n % h * s), h * s);
        for (int64_t i = 0; i < t; i += ROWS)
            attend(&head, i, at(&head, y, n / h * t * h * s + n % h * s), h * s, saved + n * t);
    }
    return EL_OK;
}

/* The softmax gradient, in place: p (dp - sum of p dp). */
EL_VECTOR static void through_softmax(const float *restrict p, int64_t n, float *restrict ds)
{
    float lane[COLUMNS] = {0};
    for (int64_t i = 0; i < n; i += COLUMNS)
        for (int j = 0; j < COLUMNS; j++) lane[j] += p[i + j] * ds[i + j];
    const float mean = (float)el_lanes_total(lane);
    for (int64_t i = 0; i < n; i++) ds[i] = p[i] * (ds[i] - mean);
}

static void give_q(const struct head *head, int64_t i, const float *saved, float *p, float *ds, void *dq,
                   int64_t stride)
{
    const int64_t rows = head->t - i < ROWS ? head->t - i : ROWS, columns = score(head, i, p);
    multiply(head->dy + i * head->S, head->S, 1, head->values, head->T, head->s, seen(i), 0, ds, head->T);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = seen(i); j < columns; j++) ds[r * head->T + j] = 0;
        el_vector_exp_sum(p + r * head->T, columns, saved[i + r], p + r * head->T);
        through_softmax(p + r * head->T, columns, ds + r * head->T);
    }
    multiply(ds, head->T, 1, head->k, head->S, i + ROWS, head->S, 0, head->out, head->S);
    for (int64_t r = 0; r < rows; r++)
        give_row(head, head->out + r * head->S, 1 / sqrtf((float)head->s), at(head, dq, (i + r) * stride));
}

static void give_k_and_v(const struct head *head, int64_t i0, int64_t end)
{
    for (int64_t j = 0; j < end; j += ROWS) {
        const int64_t from = j > i0 ? j : i0, place = (from - i0) * head->T + j;
        multiply(head->ds + place, 1, head->T, head->q + from * head->S, head->S, end - from, head->S, j < i0,
                 head->dk + j * head->S, head->S);
        multiply(head->p + place, 1, head->T, head->dy + from * head->S, head->S, end - from, head->S, j < i0,
                 head->dv + j * head->S, head->S);
    }
}

static void head_backward(const struct head *head, const float *saved, void *dqkv, int64_t width)
{
    for (int64_t i0 = 0, end; i0 < head->t; i0 = end) {
        end = i0 + BLOCK < head->T ? i0 + BLOCK : head->T;
        for (int64_t i = i0; i < end; i += ROWS)
            give_q(head, i, saved, head->p + (i - i0) * head->T, head->ds + (i - i0) * head->T, dqkv, 3 * width);
        give_k_and_v(head, i0, end);
    }
    for (int64_t i = 0; i < head->t; i++) {
        give_row(head, head->dk + i * head->S, 1, at(head, dqkv, (3 * i + 1) * width));
        give_row(head, head->dv + i * head->S, 1, at(head, dqkv, (3 * i + 2) * width));
    }
}

static enum el_status backward(const struct el_kernel_args *args, size_t width)
{
    const void *dy = args->p[0], *qkv = args->p[1];
    const float *saved = args->p[2];
    void *dqkv = args->p[3];
    const int64_t b = args->d[0], t = args->d[1], h = args->d[2], s = args->d[3];
    const struct head head = make_head(args, 1, width);
    for (int64_t n = 0; n < b * h; n++) {
        const int64_t first = n / h * t * h * s;
        bring_qkv(&head, at(&head, qkv, 3 * first + n % h * s), h * s);
        bring(&head, at(&head, dy, first + n % h * s), h * s, 1, head.dy);
        el_vector_transpose_bias(head.v, NULL, head.S, head.T, 0, head.values);
        head_backward(&head, saved + n * t, at(&head, dqkv, 3 * first + n % h * s), h * s);
    }
    return EL_OK;
}

static enum el_status forward_workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)
{
    return workspace(args, 0, workspace_p);
}

static enum el_status backward_workspace(const struct el_kernel_args *args, struct el_workspace *workspace_p)
{
    return workspace(args, 1, workspace_p);
}

static enum el_status forward_f32(const struct el_kernel_args *args)
{
    return forward(args, sizeof(float));
}

static enum el_status forward_bf16(const struct el_kernel_args *args)
{
    return forward(args, sizeof(uint16_t));
}

static enum el_status backward_f32(const struct el_kernel_args *args)
{
    return backward(args, sizeof(float));
}

static enum el_status backward_bf16(const struct el_kernel_args *args)
{
    return backward(args, sizeof(uint16_t));
}

const struct el_kernel el_cpu_attention_forward[2] = {{.run = forward_f32, .workspace = forward_workspace},
                                                      {.run = forward_bf16, .workspace = forward_workspace}};
const struct el_kernel el_cpu_attention_backward[2] = {{.run = backward_f32, .workspace = backward_workspace},
                                                       {.run = backward_bf16, .workspace = backward_workspace}};
