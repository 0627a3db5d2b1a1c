/* Element-wise ops: ReLU's gradient, GELU, scale, add, cast, fill, and the copy of a matrix's columns. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>

#include "runtime/base/half.h"

static const double GELU_ROOT = 0.7978845608028654; /* sqrt(2 / pi) */
static const double GELU_CUBE = 0.044715;

static double value_of(const void *x, enum el_dtype dtype, int64_t i)
{
    if (dtype == EL_BF16) return (double)el_f32_of_bf16(((const uint16_t *)x)[i]);
    if (dtype == EL_F16) return (double)el_f32_of_f16(((const uint16_t *)x)[i]);
    return dtype == EL_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

enum el_status el_reference_cast_bf16(const struct el_kernel_args *args)
{
    uint16_t *y = args->p[1];
    for (int64_t i = 0; i < args->d[0]; i++) {
        double x = args->s[0] * value_of(args->p[0], (enum el_dtype)args->k[0], i);
        y[i] = el_bf16_of_f32((float)(args->s[1] != 0 ? (double)el_f32_of_bf16(y[i]) + x : x));
    }
    return EL_OK;
}

enum el_status el_reference_cast_f16(const struct el_kernel_args *args)
{
    uint16_t *y = args->p[1];
    for (int64_t i = 0; i < args->d[0]; i++) {
        double x = value_of(args->p[0], (enum el_dtype)args->k[0], i);
        x = args->s[0] * (double)el_f32_of_f16(el_f16_of_f32((float)x));
        y[i] = el_f16_of_f32((float)(args->s[1] != 0 ? (double)el_f32_of_f16(y[i]) + x : x));
    }
    return EL_OK;
}

enum el_status el_reference_fill_f16(const struct el_kernel_args *args)
{
    uint16_t *y = args->p[0];
    for (int64_t i = 0; i < args->d[0]; i++) y[i] = el_f16_of_f32((float)args->s[0]);
    return EL_OK;
}

#define EL_BODY "kernels/reference/elementwise.c"
#include "kernels/reference/twice.h"

#else

enum el_status NAME(relu_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0], *y = args->p[1];
    REAL *dx = args->p[2];
    for (int64_t i = 0; i < args->d[0]; i++) dx[i] = y[i] > 0 ? dy[i] : 0;
    return EL_OK;
}

enum el_status NAME(gelu_forward)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    for (int64_t i = 0; i < args->d[0]; i++) {
        double v = (double)x[i];
        y[i] = (REAL)(v / 2 * (1 + tanh(GELU_ROOT * (v + GELU_CUBE * v * v * v))));
    }
    return EL_OK;
}

enum el_status NAME(gelu_backward)(const struct el_kernel_args *args)
{
    const REAL *dy = args->p[0], *x = args->p[1];
    REAL *dx = args->p[2];
    for (int64_t i = 0; i < args->d[0]; i++) {
        double v = (double)x[i], t = tanh(GELU_ROOT * (v + GELU_CUBE * v * v * v));
        double slope = (1 - t * t) * GELU_ROOT * (1 + 3 * GELU_CUBE * v * v);
        dx[i] = (REAL)((double)dy[i] * (1 + t + v * slope) / 2);
    }
    return EL_OK;
}

enum el_status NAME(copy_columns)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    int64_t rows = args->d[0], columns = args->d[1], ldx = args->d[2], ldy = args->d[3];
    int acc = args->s[0] != 0;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            REAL *to = &y[r * ldy + c];
            *to = acc ? *to + x[r * ldx + c] : x[r * ldx + c];
        }
    return EL_OK;
}

enum el_status NAME(scale)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    for (int64_t i = 0; i < args->d[0]; i++) y[i] = (REAL)(args->s[0] * (double)x[i]);
    return EL_OK;
}

enum el_status NAME(add)(const struct el_kernel_args *args)
{
    const REAL *x = args->p[0];
    REAL *y = args->p[1];
    for (int64_t i = 0; i < args->d[0]; i++) y[i] += x[i];
    return EL_OK;
}

enum el_status NAME(cast)(const struct el_kernel_args *args)
{
    REAL *y = args->p[1];
    for (int64_t i = 0; i < args->d[0]; i++) {
        double x = args->s[0] * value_of(args->p[0], (enum el_dtype)args->k[0], i);
        y[i] = (REAL)(args->s[1] != 0 ? (double)y[i] + x : x);
    }
    return EL_OK;
}

enum el_status NAME(fill)(const struct el_kernel_args *args)
{
    REAL *y = args->p[0];
    for (int64_t i = 0; i < args->d[0]; i++) y[i] = (REAL)args->s[0];
    return EL_OK;
}

#endif
