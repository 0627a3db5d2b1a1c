/* What makes a gradient small for the wire: an orthonormal basis of few columns, and the largest values. */
#ifndef REAL

#include "kernels/reference/reference.h"

#include <math.h>
#include <string.h>

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

#define EL_BODY "kernels/reference/compress.c"
#include "kernels/reference/twice.h"

#else

static double LOCAL(product)(const REAL *x, int64_t n, int64_t r, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += (double)x[k * r + i] * (double)x[k * r + j];
    return sum;
}

enum el_status NAME(orthogonalize)(const struct el_kernel_args *args)
{
    REAL *x = args->p[0]; /* [n, r] */
    int64_t n = args->d[0], r = args->d[1];
    for (int64_t i = 0; i < r; i++) {
        for (int64_t j = 0; j < 2 * i; j++) {
            double along = LOCAL(product)(x, n, r, i, j % i);
            for (int64_t k = 0; k < n; k++)
                x[k * r + i] = (REAL)((double)x[k * r + i] - along * (double)x[k * r + j % i]);
        }
        double norm = sqrt(LOCAL(product)(x, n, r, i, i));
        for (int64_t k = 0; k < n && norm > 0; k++) x[k * r + i] = (REAL)((double)x[k * r + i] / norm);
    }
    return EL_OK;
}

/* Bits in whose order numbers without their sign are. */
static uint64_t LOCAL(key)(REAL value)
{
    uint64_t bits = 0;
    value = (REAL)fabs((double)value);
    memcpy(&bits, &value, sizeof value);
    return bits;
}

/* The k-th largest key, digit by digit from the highest; *equal_p: how many of those that have it are among the k. */
static uint64_t LOCAL(least_key)(const REAL *x, int64_t n, int64_t k, int64_t *equal_p)
{
    uint64_t found = 0;
    for (int shift = ((int)sizeof(REAL) * 8 - 1) / DIGIT_BITS * DIGIT_BITS; shift >= 0; shift -= DIGIT_BITS) {
        int64_t counts[DIGITS] = {0};
        int digit = DIGITS - 1;
        for (int64_t i = 0; i < n; i++) {
            uint64_t key = LOCAL(key)(x[i]) >> shift;
            if (key >> DIGIT_BITS == found) counts[key % DIGITS]++;
        }
        for (; counts[digit] < k; digit--) k -= counts[digit];
        found = found << DIGIT_BITS | (uint64_t)digit;
    }
    *equal_p = k;
    return found;
}

enum el_status NAME(top_k)(const struct el_kernel_args *args)
{
    REAL *x = args->p[0];      /* [n] */
    REAL *values = args->p[1]; /* [k] */
    int32_t *at = args->p[2];  /* [k] */
    int64_t n = args->d[0], taken = 0, equal;
    uint64_t least = LOCAL(least_key)(x, n, args->d[1], &equal);
    for (int64_t i = 0; i < n; i++) {
        uint64_t key = LOCAL(key)(x[i]);
        if (key < least || (key == least && equal-- <= 0)) continue;
        values[taken] = x[i];
        at[taken++] = (int32_t)i;
        x[i] = 0;
    }
    return EL_OK;
}

#endif
