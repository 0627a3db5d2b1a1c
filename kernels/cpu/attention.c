/* Fast causal attention, head by head, in scratch that fits the core's cache. Zeros pad sides to whole tiles; columns
 * that no row of a tile sees are skipped. In bf16, which needs a processor that multiplies pairs, operands are in
 * pairs along what is summed (tiles.h). */
#include <math.h>
#include <string.h>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/tiles.h"

/* A tile's rows; columns are whole COLUMNS, or HALF where no more are seen; rows per block, after which backward adds
 * to dk and dv. */
enum { ROWS = EL_TILE_ROWS, COLUMNS = EL_LANES, HALF = EL_TILE_COLUMNS, BLOCK = 64 };

static int64_t whole(int64_t n)
{
    return (n + COLUMNS - 1) / COLUMNS * COLUMNS;
}

/* One head's sizes and scratch; T, S: t and s rounded up. With pairs, planes [T, S] of bf16 fill their first half,
 * along S in pairs; the second half has the same values in pairs along T. */
struct head {
    int64_t t, s, T, S;
    bool pairs;                      /* operands are bf16 */
    float root;                      /* 1 / sqrt(s) */
    float *q, *k, *v, *dy, *dk, *dv; /* [T, S] */
    float *keys, *values;            /* [S, T]: k and v transposed */
    float *p, *ds;                   /* [BLOCK, T]: shares, and the gradients of the scores; with pairs see rows_of */
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

static struct head make_head(const struct el_kernel_args *args, int backward, bool pairs)
{
    const int64_t t = args->d[1], s = args->d[3];
    struct head head = {.t = t, .s = s, .T = whole(t), .S = whole(s), .pairs = pairs, .root = 1 / sqrtf((float)s)};
    lay_out(&head, backward, head.T, head.S, args->workspace);
    return head;
}

EL_VECTOR static void scale_row(const float *restrict x, int64_t n, float factor, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) y[i] = factor * x[i];
}

/* The bytes of n values of an operand. */
static size_t bytes(const struct head *head, int64_t n)
{
    return (size_t)n * (head->pairs ? sizeof(uint16_t) : sizeof(float));
}

static void *at(const struct head *head, const void *x, int64_t i)
{
    return (char *)x + bytes(head, i);
}

/* Of n values that are summed. */
static int64_t words(const struct head *head, int64_t n)
{
    return head->pairs ? (n + 1) / 2 : n;
}

static void multiply(const struct head *head, struct el_tiles o)
{
    o.depth = words(head, o.depth);
    el_tiles_multiply(&o, head->pairs);
}

static void bring(const struct head *head, const void *x, int64_t stride, float *y)
{
    if (head->T > head->t || head->S > head->s) memset(y, 0, (size_t)(head->T * head->S) * sizeof *y);
    for (int64_t i = 0; i < head->t; i++)
        memcpy(y + i * words(head, head->S), at(head, x, i * stride), bytes(head, head->s));
}

EL_VECTOR static void pair_halves(const uint16_t *restrict upper, const uint16_t *restrict lower, int64_t n,
                                  uint32_t *restrict pairs)
{
    for (int64_t j = 0; j < n; j++) pairs[j] = upper[j] | (uint32_t)lower[j] << 16;
}

/* The plane x for products that sum over T. */
static float *down(const struct head *head, float *x)
{
    return head->pairs ? x + head->T * head->S / 2 : x;
}

static void bring_down(const struct head *head, float *x)
{
    const uint16_t *halves = (const uint16_t *)x;
    uint32_t *pairs = (uint32_t *)down(head, x);
    for (int64_t i = 0; head->pairs && i < head->T; i += 2)
        pair_halves(halves + i * head->S, halves + (i + 1) * head->S, head->S, pairs + i / 2 * head->S);
}

static void give_row(const struct head *head, const float *x, float factor, void *y)
{
    if (head->pairs)
        el_vector_narrow(x, head->s, factor, 0, y);
    else
        scale_row(x, head->s, factor, y);
}

static void bring_qkv(const struct head *head, const void *qkv, int64_t width)
{
    bring(head, qkv, 3 * width, head->q);
    bring(head, at(head, qkv, width), 3 * width, head->k);
    bring(head, at(head, qkv, 2 * width), 3 * width, head->v);
    el_vector_transpose(head->k, words(head, head->S), head->T, head->keys);
}

/* ROWS rows of p or ds in f32, from row i of the block on; with pairs all blocks' rows are in one place. */
static float *rows_of(const struct head *head, float *strip, int64_t i)
{
    return strip + (head->pairs ? BLOCK / 2 : i) * head->T;
}

/* These rows in words for products that sum over columns. */
static const float *across(const struct head *head, float *rows, int64_t columns)
{
    float *halves = rows + ROWS * head->T;
    if (!head->pairs) return rows;
    for (int64_t r = 0; r < ROWS; r++)
        el_vector_narrow(rows + r * head->T, columns, 1, 0, (uint16_t *)(halves + r * head->T / 2));
    return halves;
}

/* These rows, from row i of the block on, in words for products that sum over rows. */
static void keep_down(const struct head *head, const float *rows, int64_t i, int64_t columns, float *strip)
{
    for (int64_t r = 0; head->pairs && r < ROWS; r += 2)
        el_tiles_pair(rows + r * head->T, rows + (r + 1) * head->T, columns, strip + (i + r) / 2 * head->T);
}

/* The columns that some of the rows i and on see, in halves of tiles. */
static int64_t seen(int64_t i)
{
    return (i + ROWS + HALF - 1) / HALF * HALF;
}

/* Rows i and on of a times the transposed plane b, into `to`. */
static void multiply_rows(const struct head *head, const float *a, const float *b, int64_t i, float factor, float *to)
{
    multiply(head, (struct el_tiles){.a = a + i * words(head, head->S),
                                     .a_row = words(head, head->S),
                                     .a_column = 1,
                                     .b = b,
                                     .b_row = head->T,
                                     .depth = head->s,
                                     .columns = seen(i),
                                     .factor = factor,
                                     .c = to,
                                     .c_row = head->T});
}

/* out = rows i and on of p or ds times a plane. */
static void multiply_plane(const struct head *head, float *rows, int64_t i, float *plane)
{
    multiply(head, (struct el_tiles){.a = across(head, rows, seen(i)),
                                     .a_row = words(head, head->T),
                                     .a_column = 1,
                                     .b = down(head, plane),
                                     .b_row = head->S,
                                     .depth = i + ROWS,
                                     .columns = head->S,
                                     .factor = 1,
                                     .c = head->out,
                                     .c_row = head->S});
}

/* The scores of rows i and on, into `to`; invisible columns become -inf. Returns the number of columns done. */
static int64_t score(const struct head *head, int64_t i, float *to)
{
    const int64_t columns = whole(i + ROWS);
    multiply_rows(head, head->q, head->keys, i, head->root, to);
    for (int64_t r = 0; r < ROWS && i + r < head->t; r++)
        for (int64_t j = i + r + 1; j < columns; j++) to[r * head->T + j] = -INFINITY;
    return columns;
}

static void attend(const struct head *head, int64_t i, void *y, int64_t stride, float *saved)
{
    float *p = rows_of(head, head->p, 0), per_sum[ROWS];
    const int64_t rows = head->t - i < ROWS ? head->t - i : ROWS, columns = score(head, i, p);
    for (int64_t r = 0; r < rows; r++) {
        const float largest = el_vector_largest(p + r * head->T, columns);
        const double sum = el_vector_exp_sum(p + r * head->T, columns, largest, p + r * head->T);
        per_sum[r] = (float)(1 / sum);
        saved[i + r] = (float)((double)largest + log(sum));
    }
    multiply_plane(head, p, i, head->v);
    for (int64_t r = 0; r < rows; r++)
        give_row(head, head->out + r * head->S, per_sum[r], at(head, y, (i + r) * stride));
}

static enum el_status forward(const struct el_kernel_args *args, bool pairs)
{
    const void *qkv = args->p[0];
    void *y = args->p[1];
    float *saved = args->p[2];
    const int64_t b = args->d[0], t = args->d[1], h = args->d[2], s = args->d[3];
    const struct head head = make_head(args, 0, pairs);
    for (int64_t n = 0; n < b * h; n++) {
        bring_qkv(&head, at(&head, qkv, n / h * t * 3 * h * s + n % h * s), h * s);
        bring_down(&head, head.v);
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

/* Of rows i0 + i and on, where i0 is the block's first. */
static void give_q(const struct head *head, int64_t i0, int64_t i, const float *saved, void *dq, int64_t stride)
{
    float *p = rows_of(head, head->p, i), *ds = rows_of(head, head->ds, i);
    const int64_t first = i0 + i, rows = head->t - first < ROWS ? head->t - first : ROWS;
    const int64_t columns = score(head, first, p);
    multiply_rows(head, head->dy, head->values, first, 1, ds);
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t j = seen(first); j < columns; j++) ds[r * head->T + j] = 0;
        el_vector_exp_sum(p + r * head->T, columns, saved[first + r], p + r * head->T);
        through_softmax(p + r * head->T, columns, ds + r * head->T);
    }
    keep_down(head, p, i, columns, head->p);
    keep_down(head, ds, i, columns, head->ds);
    multiply_plane(head, ds, first, head->k);
    for (int64_t r = 0; r < rows; r++)
        give_row(head, head->out + r * head->S, head->root, at(head, dq, (first + r) * stride));
}

/* dk or dv (+)= the transpose of the block's rows of ds or p, times q or dy. */
static void add_block(const struct head *head, const float *strip, float *plane, int64_t i0, int64_t end, float *to)
{
    for (int64_t j = 0; j < end; j += ROWS) {
        const int64_t from = j > i0 ? j : i0;
        multiply(head, (struct el_tiles){.a = strip + words(head, from - i0) * head->T + j,
                                         .a_row = 1,
                                         .a_column = head->T,
                                         .b = down(head, plane) + words(head, from) * head->S,
                                         .b_row = head->S,
                                         .depth = end - from,
                                         .columns = head->S,
                                         .acc = j < i0,
                                         .factor = 1,
                                         .c = to + j * head->S,
                                         .c_row = head->S});
    }
}

static void head_backward(const struct head *head, const float *saved, void *dqkv, int64_t width)
{
    for (int64_t i0 = 0, end; i0 < head->t; i0 = end) {
        end = i0 + BLOCK < head->T ? i0 + BLOCK : head->T;
        for (int64_t i = 0; i0 + i < end; i += ROWS) give_q(head, i0, i, saved, dqkv, 3 * width);
        add_block(head, head->ds, head->q, i0, end, head->dk);
        add_block(head, head->p, head->dy, i0, end, head->dv);
    }
    for (int64_t i = 0; i < head->t; i++) {
        give_row(head, head->dk + i * head->S, head->root, at(head, dqkv, (3 * i + 1) * width));
        give_row(head, head->dv + i * head->S, 1, at(head, dqkv, (3 * i + 2) * width));
    }
}

static enum el_status backward(const struct el_kernel_args *args, bool pairs)
{
    const void *dy = args->p[0], *qkv = args->p[1];
    const float *saved = args->p[2];
    void *dqkv = args->p[3];
    const int64_t b = args->d[0], t = args->d[1], h = args->d[2], s = args->d[3];
    const struct head head = make_head(args, 1, pairs);
    for (int64_t n = 0; n < b * h; n++) {
        const int64_t first = n / h * t * h * s;
        bring_qkv(&head, at(&head, qkv, 3 * first + n % h * s), h * s);
        bring(&head, at(&head, dy, first + n % h * s), h * s, head.dy);
        el_vector_transpose(head.v, words(&head, head.S), head.T, head.values);
        bring_down(&head, head.q);
        bring_down(&head, head.k);
        bring_down(&head, head.dy);
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
    return forward(args, false);
}

static enum el_status forward_bf16(const struct el_kernel_args *args)
{
    return forward(args, true);
}

static enum el_status backward_f32(const struct el_kernel_args *args)
{
    return backward(args, false);
}

static enum el_status backward_bf16(const struct el_kernel_args *args)
{
    return backward(args, true);
}

const struct el_kernel el_cpu_attention_forward[2] = {{.run = forward_f32, .workspace = forward_workspace},
                                                      {.run = forward_bf16, .workspace = forward_workspace}};
const struct el_kernel el_cpu_attention_backward[2] = {{.run = backward_f32, .workspace = backward_workspace},
                                                       {.run = backward_bf16, .workspace = backward_workspace}};
