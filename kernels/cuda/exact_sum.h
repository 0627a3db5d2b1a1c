/* Order-independent sums: terms become integers of a common unit, so that atomics give the same bits in every run.
 * At most n terms of magnitude <= `peak` get the unit 2^-shift such that their sum cannot exceed 2^62: 2^14 terms keep
 * 48 bits below the peak. A second word, with unit 2^-(shift + digits), holds the remainder for f64. For a peak that is
 * not finite the caller sets NaN. */
#pragma once

#include <math.h>
#include <stdint.h>

#include "runtime/base/host_device.h"

enum { EL_EXACT_WORDS_MAX = 2, EL_EXACT_BITS = 62 };

/* Bits per term so that n terms fit: 62 - ceil(log2 n); integers of any sign. */
EL_HOST_DEVICE static inline int el_exact_digits(int64_t n)
{
    int log2_n = 0;
    while (log2_n < EL_EXACT_BITS && ((int64_t)1 << log2_n) < n) log2_n++;
    return EL_EXACT_BITS - log2_n;
}

/* The first word's unit is 2^-shift. 0 < peak < infinity, or 0: then all terms are 0 and any unit will do. */
EL_HOST_DEVICE static inline int el_exact_shift(double peak, int digits)
{
    int exponent;
    frexp(peak, &exponent); /* peak < 2^exponent */
    return digits - exponent;
}

/* The integers of `term`, |term| <= peak. */
EL_HOST_DEVICE static inline void el_exact_split(double term, int shift, int digits, int64_t words[EL_EXACT_WORDS_MAX])
{
    double scaled = ldexp(term, shift), whole = rint(scaled);
    words[0] = (int64_t)whole;
    words[1] = (int64_t)rint(ldexp(scaled - whole, digits)); /* the difference is exact, and at most 0.5 */
}

EL_HOST_DEVICE static inline double el_exact_value(int64_t first, int64_t second, int shift, int digits)
{
    return ldexp((double)first + ldexp((double)second, -digits), -shift);
}
