/* Mixture of experts: the router, the rows' places, products by expert, SwiGLU.
 * Shazeer et al., "Outrageously Large Neural Networks", 2017; Lepikhin et al., "GShard", 2020 (first choices have the
 * first places); Fedus et al., "Switch Transformers", 2021 (auxiliary loss); Zoph et al., "ST-MoE", 2022 (z loss). */
#ifndef REAL

#include <math.h>
#include <string.h>

#include "kernels/experts.h"
#include "kernels/reference/reference.h"
#include "runtime/base/rng.h"

/* Expert j's key in a draw: the smallest k of exponential variables with rates w are a sample without replacement with
 * weights w (Efraimidis and Spirakis, 2006). */
static double draw(const struct el_kernel_args *args, int64_t sample, int64_t token, int64_t j, double weight)
{
    const struct el_rng_key key = {.seed = args->k[0], .use = EL_RNG_ROUTE, .id = (uint32_t)args->k[1]};
    const uint64_t global = args->step << 32 | (uint64_t)(args->d[4] + sample * args->d[5]);
    const double uniform = el_rng_uniform(&key, global, (uint64_t)(token * args->d[2] + j));
    return weight > 0 ? log1p(-(uniform + EL_EXPERTS_HALF_DRAW)) / weight
                      : -INFINITY; /* the largest of negative ones */
}

static void sort_places(const struct el_kernel_args *args, const int32_t *counts, int32_t *place);

#define EL_BODY "kernels/reference/experts.c"
#include "kernels/reference/twice.h"

/* place: a number within its sample and expert becomes a row. */
static void sort_places(const struct el_kernel_args *args, const int32_t *counts, int32_t *place)
{
    const int64_t b = args->d[0], each = args->d[1] * args->d[3], e = args->d[2], m = args->d[4], own = e / m;
    const int32_t *chosen = args->p[0];
    int64_t at[EL_EXPERTS_MAX];
    for (int64_t j = 0, next = 0; j < e; j++) {
        if (j % own == 0) next = j / own * (args->d[5] / m);
        at[j] = next;
        for (int64_t s = 0; s < b; s++) next += counts[(j / own * b + s) * own + j % own];
    }
    for (int64_t s = 0; s < b; s++) {
        for (int64_t i = s * each; i < (s + 1) * each; i++)
            if (place[i] >= 0) place[i] += (int32_t)at[chosen[i]];
        for (int64_t j = 0; j < e; j++) at[j] += counts[(j / own * b + s) * own + j % own];
    }
}

#else

#include "kernels/reference/sums.h"

/* The best `k` of key[e]: the largest, the first of equals. Overwrites keys. */
static void LOCAL(choose)(double *key, int64_t e, int64_t k, int32_t *chosen)
{
    for (int64_t i = 0; i < k; i++) {
        int64_t best = -1;
        for (int64_t j = 0; j < e; j++)
            if (!isnan(key[j]) && (best < 0 || key[j] > key[best])) best = j;
        if (best < 0) best = i; /* a row of NaN */
        chosen[i] = (int32_t)best;
        key[best] = NAN;
    }
}

static double LOCAL(log_sum)(const REAL *x, int64_t n)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++) most = (double)x[i] > most ? (double)x[i] : most;
    for (int64_t i = 0; i < n; i++) sum += exp((double)x[i] - most);
    return most + log(sum);
}

static void LOCAL(weigh)(const REAL *logits, int64_t e, int64_t k, const int32_t *chosen, REAL *weights)
{
    REAL picked[EL_EXPERTS_CHOSEN_MAX];
    for (int64_t i = 0; i < k; i++) picked[i] = logits[chosen[i]];
    const double sum = k == 1 ? LOCAL(log_sum)(logits, e) : LOCAL(log_sum)(picked, k);
    for (int64_t i = 0; i < k; i++) weights[i] = (REAL)exp((double)picked[i] - sum);
}

enum el_status NAME(route_forward)(const struct el_kernel_args *args)
{
    const REAL *logits = args->p[0], *table = args->p[1];
    REAL *weights = args->p[2];
    int32_t *chosen = args->p[3];
    const int64_t n = args->d[0] * args->d[1], t = args->d[1], e = args->d[2], k = args->d[3];
    const int64_t turn = args->d[6] ? (int64_t)(args->step % (uint64_t)args->d[6]) : 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t sample = i / t, token = i % t;
        const int64_t first = ((args->d[4] + sample * args->d[5]) * t + token) * k;
        double key[EL_EXPERTS_MAX];
        for (int64_t j = 0; j < e; j++)
            key[j] = args->s[0] != 0 ? 0
                     : table         ? draw(args, sample, token, j, (double)table[turn * e + j])
                                     : (double)logits[i * e + j];
        if (args->s[0] != 0)
            for (int64_t j = 0; j < k; j++) chosen[i * k + j] = (int32_t)((first + j) % e);
        else
            LOCAL(choose)(key, e, k, chosen + i * k);
        LOCAL(weigh)(logits + i * e, e, k, chosen + i * k, weights + i * k);
    }
    return EL_OK;
}

/* share[e]: what a softmax's value of an expert adds to the auxiliary loss, for each token of the sample. */
static void LOCAL(route_back)(const struct el_kernel_args *args, int64_t i, const double *share)
{
    const REAL *dweights = args->p[0], *logits = args->p[1], *weights = args->p[2];
    const int32_t *chosen = args->p[3];
    REAL *dlogits = args->p[4];
    const int64_t t = args->d[1], e = args->d[2], k = args->d[3];
    const double sum = LOCAL(log_sum)(logits + i * e, e);
    double p[EL_EXPERTS_MAX], mean = 0, dot = 0;
    for (int64_t j = 0; j < e; j++) {
        p[j] = exp((double)logits[i * e + j] - sum);
        mean += p[j] * share[j];
    }
    for (int64_t j = 0; j < k; j++) dot += (double)weights[i * k + j] * (double)dweights[i * k + j];
    for (int64_t j = 0; j < e; j++) {
        double d = p[j] * (share[j] - mean) + args->s[1] * 2 * sum * p[j] / (double)t;
        if (k == 1) d -= p[j] * dot;
        for (int64_t c = 0; c < k; c++)
            if (chosen[i * k + c] == j)
                d += (double)weights[i * k + c] * ((double)dweights[i * k + c] - (k == 1 ? 0 : dot));
        dlogits[i * e + j] = (REAL)d;
    }
}

enum el_status NAME(route_backward)(const struct el_kernel_args *args)
{
    const int32_t *chosen = args->p[3];
    const int64_t b = args->d[0], t = args->d[1], e = args->d[2], k = args->d[3];
    for (int64_t s = 0; s < b; s++) {
        double share[EL_EXPERTS_MAX] = {0};
        for (int64_t i = 0; i < t * k; i++)
            share[chosen[s * t * k + i]] += args->s[0] * (double)e / (double)t / (double)t;
        for (int64_t i = 0; i < t; i++) LOCAL(route_back)(args, s * t + i, share);
    }
    return EL_OK;
}

enum el_status NAME(route_place)(const struct el_kernel_args *args)
{
    const int32_t *chosen = args->p[0];
    int32_t *place = args->p[1], *counts = args->p[2], *log = args->p[3];
    const int64_t b = args->d[0], t = args->d[1], e = args->d[2], k = args->d[3], m = args->d[4], own = e / m;
    const int64_t most = args->d[6] ? args->d[6] : t * k;
    memset(counts, 0, (size_t)(b * e) * sizeof *counts);
    for (int64_t s = 0; s < b; s++)
        for (int64_t i = 0; i < t * k; i++) {
            const int64_t at = s * t * k + i % t * k + i / t, j = chosen[at];
            int32_t *count = &counts[(j / own * b + s) * own + j % own];
            place[at] = *count < most ? (*count)++ : -1;
            if (log) log[j]++;
            if (log) log[e + j] += place[at] >= 0;
        }
    if (args->p[4]) memcpy(args->p[4], counts, (size_t)(b * e) * sizeof *counts);
    sort_places(args, counts, place);
    return EL_OK;
}

enum el_status NAME(rows_take)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    const int32_t *place = args->p[1];
    REAL *rows = args->p[2];
    const int64_t n = args->d[0], w = args->d[1], k = args->d[2];
    for (int64_t i = 0; i < n * k; i++)
        if (place[i] >= 0) memcpy(rows + place[i] * w, x + i / k * w, (size_t)w * sizeof *x);
    return EL_OK;
}

enum el_status NAME(rows_give)(const struct el_kernel_args *args)
{
    const REAL *rows = args->p[0];
    const int32_t *place = args->p[1];
    REAL *y = args->p[2];
    const int64_t n = args->d[0], w = args->d[1], k = args->d[2];
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < w; c++) {
            double sum = args->s[0] != 0 ? (double)y[i * w + c] : 0;
            for (int64_t j = 0; j < k; j++)
                if (place[i * k + j] >= 0) sum += (double)rows[place[i * k + j] * w + c];
            y[i * w + c] = (REAL)sum;
        }
    return EL_OK;
}

/* A group's product by the linear layer's row. */
static enum el_status LOCAL(product)(const struct el_kernel_args *args, const struct el_expert_group *group,
                                     enum el_status (*run)(const struct el_kernel_args *args), const REAL *a,
                                     const REAL *b, REAL *c, int out, int acc)
{
    struct el_kernel_args one = {.d = {group->n, args->d[1], args->d[2]}, .s = {acc}};
    one.p[0] = (void *)a, one.p[1] = (void *)b, one.p[out] = c;
    return run(&one);
}

enum el_status NAME(grouped_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0], *w = args->p[1];
    REAL *y = args->p[3];
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    const int64_t in = args->d[1], out = args->d[2];
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);)
        EL_TRY(LOCAL(product)(args, &group, NAME(linear_forward), x + group.first * in, w + group.expert * in * out,
                              y + group.first * out, 3, 0));
    return EL_OK;
}

enum el_status NAME(grouped_backward_data)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0], *w = args->p[1];
    REAL *dx = args->p[3];
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    const int64_t in = args->d[1], out = args->d[2];
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);)
        EL_TRY(LOCAL(product)(args, &group, NAME(linear_backward_data), dy + group.first * out,
                              w + group.expert * in * out, dx + group.first * in, 2, args->s[0] != 0));
    return EL_OK;
}

static void LOCAL(add_weights)(const struct el_kernel_args *args, const struct el_expert_group *group, int acc)
{
    const int64_t in = args->d[1], out = args->d[2];
    const REAL *x = (const REAL *)args->p[0] + group->first * in, *dy = (const REAL *)args->p[1] + group->first * out;
    REAL *dw = (REAL *)args->p[3] + group->expert * in * out;
    for (int64_t o = 0; o < out; o++)
        for (int64_t i0 = 0; i0 < in; i0 += EL_REFERENCE_BLOCK) {
            double sum[EL_REFERENCE_BLOCK] = {0};
            const int64_t n = in - i0 < EL_REFERENCE_BLOCK ? in - i0 : EL_REFERENCE_BLOCK;
            for (int64_t r = 0; r < group->n; r++)
                for (int64_t j = 0; j < n; j++) sum[j] += (double)dy[r * out + o] * (double)x[r * in + i0 + j];
            for (int64_t j = 0; j < n; j++) sum[j] *= args->s[2];
            LOCAL(put)(sum, n, acc, dw + o * in + i0);
        }
}

enum el_status NAME(grouped_backward_weights)(const struct el_kernel_args *args)
{
    const struct el_experts all = el_experts(args->p[2], &args->d[3], args->d[0]);
    for (struct el_expert_group group = {0}; el_experts_next(&all, &group);)
        LOCAL(add_weights)(args, &group, group.part > 0 || args->s[0] != 0);
    return EL_OK;
}

enum el_status NAME(swiglu_forward)(const struct el_kernel_args *args)
{
    const REAL *h = args->p[0], *scale = args->p[1];
    REAL *y = args->p[3];
    const struct el_experts all = el_experts(args->p[2], &args->d[2], args->d[0]);
    const int64_t c = args->d[1];
    for (int64_t part = 0, first; part < all.m; part++) {
        const int64_t n = el_experts_part(&all, part, &first);
        for (int64_t r = first; r < first + n; r++)
            for (int64_t i = 0; i < c; i++) {
                const double gate = (double)h[r * 2 * c + i], up = (double)h[r * 2 * c + c + i];
                y[r * c + i] = (REAL)((double)scale[r] * gate / (1 + exp(-gate)) * up);
            }
    }
    return EL_OK;
}

/* silu(x) = x s, s = 1 / (1 + exp(-x)); its slope is s (1 + x (1 - s)). */
enum el_status NAME(swiglu_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0], *h = args->p[1], *scale = args->p[2];
    REAL *dh = args->p[4], *dscale = args->p[5];
    const struct el_experts all = el_experts(args->p[3], &args->d[2], args->d[0]);
    const int64_t c = args->d[1];
    for (int64_t part = 0, first; part < all.m; part++) {
        const int64_t n = el_experts_part(&all, part, &first);
        for (int64_t r = first; r < first + n; r++) {
            double sum = 0;
            for (int64_t i = 0; i < c; i++) {
                const double gate = (double)h[r * 2 * c + i], up = (double)h[r * 2 * c + c + i];
                const double s = 1 / (1 + exp(-gate)), d = (double)dy[r * c + i];
                sum += d * gate * s * up;
                dh[r * 2 * c + i] = (REAL)(d * (double)scale[r] * up * s * (1 + gate * (1 - s)));
                dh[r * 2 * c + c + i] = (REAL)(d * (double)scale[r] * gate * s);
            }
            dscale[r] = (REAL)sum;
        }
    }
    return EL_OK;
}

#endif
