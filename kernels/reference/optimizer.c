/* Parameter updates: SGD, momentum, Adam and AdamW, and the bounds on norms of gradients and rows. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>

#define EL_BODY "kernels/reference/optimizer.c"
#include "kernels/reference/twice.h"

#else

enum el_status NAME(sgd)(const struct el_kernel_args *args)
{
    const REAL *g = args->p[0];
    REAL *w = args->p[1];
    double lr = args->s[0];
    for (int64_t i = 0; i < args->d[0]; i++) w[i] = (REAL)((double)w[i] - lr * (double)g[i]);
    return EL_OK;
}

enum el_status NAME(momentum)(const struct el_kernel_args *args)
{
    const REAL *g = args->p[0];
    REAL *w = args->p[1], *m = args->p[2];
    double lr = args->s[0], mu = args->s[1];
    for (int64_t i = 0; i < args->d[0]; i++) {
        m[i] = (REAL)(mu * (double)m[i] + (double)g[i]);
        w[i] = (REAL)((double)w[i] - lr * (double)m[i]);
    }
    return EL_OK;
}

/* Kingma and Ba's method with bias correction and Loshchilov and Hutter's decay, in the order of operations of
 * torch.optim.AdamW. */
enum el_status NAME(adam)(const struct el_kernel_args *args)
{
    const REAL *g = args->p[0];
    REAL *w = args->p[1], *m = args->p[2], *v = args->p[3];
    REAL *denominator = args->p[4], *root = args->p[5];
    double lr = args->s[0], beta1 = args->s[1], beta2 = args->s[2], eps = args->s[3];
    double t = (double)args->step + 1, kept = 1 - lr * args->s[4];
    double rate = lr / (1 - pow(beta1, t)), correction = sqrt(1 - pow(beta2, t));
    for (int64_t i = 0; i < args->d[0]; i++) {
        double gradient = (double)g[i];
        m[i] = (REAL)(beta1 * (double)m[i] + (1 - beta1) * gradient);
        v[i] = (REAL)(beta2 * (double)v[i] + (1 - beta2) * gradient * gradient);
        double below = sqrt((double)v[i]) / correction + eps;
        w[i] = (REAL)(kept * (double)w[i] - rate * (double)m[i] / below);
        if (denominator) denominator[i] = (REAL)below;
        if (root) root[i] = (REAL)sqrt((double)v[i]);
    }
    return EL_OK;
}

enum el_status NAME(sum_squares)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *sum = args->p[1];
    double squares = (double)*sum;
    for (int64_t i = 0; i < args->d[0]; i++) squares += (double)x[i] * (double)x[i];
    *sum = (REAL)squares;
    return EL_OK;
}

enum el_status NAME(clip)(const struct el_kernel_args *args)
{
    const REAL *sum = args->p[0];
    REAL *x = args->p[1];
    double factor = args->s[0] / (sqrt((double)*sum) + 1e-6);
    if (factor > 1) factor = 1;
    for (int64_t i = 0; i < args->d[0]; i++) x[i] = (REAL)(factor * (double)x[i]);
    return EL_OK;
}

enum el_status NAME(max_norm)(const struct el_kernel_args *args)
{
    REAL *w = args->p[0];
    int64_t rows = args->d[0], n = args->d[1];
    double limit = args->s[0];
    for (int64_t r = 0; r < rows; r++) {
        double squares = 0;
        for (int64_t i = 0; i < n; i++) squares += (double)w[r * n + i] * (double)w[r * n + i];
        if (squares <= limit * limit) continue;
        double factor = limit / sqrt(squares);
        for (int64_t i = 0; i < n; i++) w[r * n + i] = (REAL)(factor * (double)w[r * n + i]);
    }
    return EL_OK;
}

#endif
