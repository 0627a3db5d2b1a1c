/* Fast, memory-bound optimizers: one pass over gradients, parameters and state (textcnn: 10.7 MB of parameters; SGD
 * moves 32 MB, Adam 75 MB). */
#include <math.h>

#include "kernels/cpu/cpu.h"

EL_VECTOR enum el_status el_cpu_sgd(const struct el_kernel_args *args)
{
    const float *restrict g = args->p[0];
    float *restrict w = args->p[1];
    float lr = (float)args->s[0];
    int64_t n = args->d[0];
    for (int64_t i = 0; i < n; i++) w[i] -= lr * g[i];
    return EL_OK;
}

EL_VECTOR enum el_status el_cpu_momentum(const struct el_kernel_args *args)
{
    const float *restrict g = args->p[0];
    float *restrict w = args->p[1], *restrict m = args->p[2];
    float lr = (float)args->s[0], mu = (float)args->s[1];
    int64_t n = args->d[0];
    for (int64_t i = 0; i < n; i++) {
        m[i] = mu * m[i] + g[i];
        w[i] -= lr * m[i];
    }
    return EL_OK;
}

/* One division per element, as defined; a reciprocal estimate is faster but wrong in the eleventh bit. */
EL_VECTOR static void adam(int64_t n, const float *restrict g, float *restrict w, float *restrict m, float *restrict v,
                           float *restrict root, float *restrict denominator, const float scalars[8])
{
    float beta1 = scalars[0], rest1 = scalars[1], beta2 = scalars[2], rest2 = scalars[3];
    float rate = scalars[4], per_root = scalars[5], eps = scalars[6], kept = scalars[7];
    for (int64_t i = 0; i < n; i++) {
        m[i] = beta1 * m[i] + rest1 * g[i];
        v[i] = beta2 * v[i] + rest2 * g[i] * g[i];
        root[i] = sqrtf(v[i]);
        denominator[i] = root[i] * per_root + eps;
        w[i] = kept * w[i] - rate * m[i] / denominator[i];
    }
}

/* Denominators and roots that nobody asked for stay in the cache. */
enum { ADAM_BLOCK = 1024 };

enum el_status el_cpu_adam(const struct el_kernel_args *args)
{
    double lr = args->s[0], beta1 = args->s[1], beta2 = args->s[2], eps = args->s[3];
    double t = (double)args->step + 1;
    /* 1 - beta in double: 1 - 0.999f is wrong in its fifth digit. */
    const float scalars[8] = {(float)beta1,
                              (float)(1 - beta1),
                              (float)beta2,
                              (float)(1 - beta2),
                              (float)(lr / (1 - pow(beta1, t))),
                              (float)(1 / sqrt(1 - pow(beta2, t))),
                              (float)eps,
                              (float)(1 - lr * args->s[4])};
    const float *g = args->p[0];
    float *w = args->p[1], *m = args->p[2], *v = args->p[3];
    float *denominator = args->p[4], *root = args->p[5];
    float own_denominator[ADAM_BLOCK], own_root[ADAM_BLOCK];
    for (int64_t at = 0, n = args->d[0]; at < n; at += ADAM_BLOCK)
        adam(n - at < ADAM_BLOCK ? n - at : ADAM_BLOCK, g + at, w + at, m + at, v + at, root ? root + at : own_root,
             denominator ? denominator + at : own_denominator, scalars);
    return EL_OK;
}

/* Eight sums in fixed order, in double. */
EL_VECTOR static double squares(const float *w, int64_t n)
{
    double sum[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int lane = 0; lane < 8; lane++) sum[lane] += (double)w[i + lane] * (double)w[i + lane];
    for (; i < n; i++) sum[0] += (double)w[i] * (double)w[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

enum el_status el_cpu_sum_squares(const struct el_kernel_args *args)
{
    float *sum = args->p[1];
    *sum = (float)((double)*sum + squares(args->p[0], args->d[0]));
    return EL_OK;
}

EL_VECTOR enum el_status el_cpu_clip(const struct el_kernel_args *args)
{
    const float *sum = args->p[0];
    float *x = args->p[1];
    double ratio = args->s[0] / (sqrt((double)*sum) + 1e-6);
    float factor = ratio > 1 ? 1 : (float)ratio;
    int64_t n = args->d[0];
    for (int64_t i = 0; i < n; i++) x[i] *= factor;
    return EL_OK;
}

enum el_status el_cpu_max_norm(const struct el_kernel_args *args)
{
    float *w = args->p[0];
    int64_t rows = args->d[0], n = args->d[1];
    double limit = args->s[0];
    for (int64_t r = 0; r < rows; r++) {
        double norm = squares(w + r * n, n);
        if (norm <= limit * limit) continue;
        float factor = (float)(limit / sqrt(norm));
        for (int64_t i = 0; i < n; i++) w[r * n + i] *= factor;
    }
    return EL_OK;
}
