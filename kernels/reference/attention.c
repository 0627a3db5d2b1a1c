/* Causal self-attention by sample, head and row. Backward recomputes softmax from the saved log of the sum of exp. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>
#include <string.h>

#define EL_BODY "kernels/reference/attention.c"
#include "kernels/reference/twice.h"

#else

#include "kernels/reference/sums.h"

struct LOCAL(head) {
    REAL *q, *k, *v;
    int64_t stride, s;
};

static struct LOCAL(head) LOCAL(head_of)(const void *qkv, const int64_t *d, int64_t sample, int64_t head)
{
    int64_t t = d[1], h = d[2], s = d[3];
    REAL *row = (REAL *)(uintptr_t)qkv + sample * t * 3 * h * s + head * s;
    return (struct LOCAL(head)){.q = row, .k = row + h * s, .v = row + 2 * h * s, .stride = 3 * h * s, .s = s};
}

static double LOCAL(score)(const struct LOCAL(head) * head, int64_t i, int64_t j)
{
    return LOCAL(dot)(head->q + i * head->stride, head->k + j * head->stride, head->s) / sqrt((double)head->s);
}

/* Row i of y; returns the log of the sum of exp. */
static double LOCAL(attend)(const struct LOCAL(head) * head, int64_t i, REAL *y)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j <= i; j++) largest = fmax(largest, LOCAL(score)(head, i, j));
    for (int64_t j = 0; j <= i; j++) sum += exp(LOCAL(score)(head, i, j) - largest);
    for (int64_t e0 = 0; e0 < head->s; e0 += EL_REFERENCE_BLOCK) {
        double value[EL_REFERENCE_BLOCK] = {0};
        int64_t n = head->s - e0 < EL_REFERENCE_BLOCK ? head->s - e0 : EL_REFERENCE_BLOCK;
        for (int64_t j = 0; j <= i; j++) {
            double share = exp(LOCAL(score)(head, i, j) - largest) / sum;
            for (int64_t e = 0; e < n; e++) value[e] += share * (double)head->v[j * head->stride + e0 + e];
        }
        LOCAL(put)(value, n, 0, y + e0);
    }
    return largest + log(sum);
}

enum el_status NAME(attention_forward)(const struct el_kernel_args *args)
{
    REAL *y = args->p[1], *saved = args->p[2];
    int64_t b = args->d[0], t = args->d[1], h = args->d[2], s = args->d[3];
    for (int64_t n = 0; n < b * h; n++) {
        struct LOCAL(head) head = LOCAL(head_of)(args->p[0], args->d, n / h, n % h);
        for (int64_t i = 0; i < t; i++)
            saved[n * t + i] = (REAL)LOCAL(attend)(&head, i, y + ((n / h * t + i) * h + n % h) * s);
    }
    return EL_OK;
}

/* Row i's gradients, with p its softmax and dp = v dy: the gradient of score j is p (dp - sum of p dp). */
static void LOCAL(give_back)(const struct LOCAL(head) * to, const struct LOCAL(head) * from, int64_t i, const REAL *dy,
                             double saved)
{
    int64_t at = i * from->stride;
    double mean = 0, per_root = 1 / sqrt((double)from->s);
    for (int64_t j = 0; j <= i; j++)
        mean += exp(LOCAL(score)(from, i, j) - saved) * LOCAL(dot)(dy, from->v + j * from->stride, from->s);
    for (int64_t j = 0; j <= i; j++) {
        int64_t other = j * from->stride;
        double p = exp(LOCAL(score)(from, i, j) - saved);
        double ds = p * (LOCAL(dot)(dy, from->v + other, from->s) - mean) * per_root;
        for (int64_t e = 0; e < from->s; e++) {
            to->v[other + e] = (REAL)((double)to->v[other + e] + p * (double)dy[e]);
            to->q[at + e] = (REAL)((double)to->q[at + e] + ds * (double)from->k[other + e]);
            to->k[other + e] = (REAL)((double)to->k[other + e] + ds * (double)from->q[at + e]);
        }
    }
}

enum el_status NAME(attention_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0], *saved = args->p[2];
    int64_t b = args->d[0], t = args->d[1], h = args->d[2], s = args->d[3];
    memset(args->p[3], 0, (size_t)(b * t * 3 * h * s) * sizeof(REAL));
    for (int64_t n = 0; n < b * h; n++) {
        struct LOCAL(head) from = LOCAL(head_of)(args->p[1], args->d, n / h, n % h);
        struct LOCAL(head) to = LOCAL(head_of)(args->p[3], args->d, n / h, n % h);
        for (int64_t i = 0; i < t; i++)
            LOCAL(give_back)(&to, &from, i, dy + ((n / h * t + i) * h + n % h) * s, (double)saved[n * t + i]);
    }
    return EL_OK;
}

#endif
