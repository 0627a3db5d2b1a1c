/* Sums that do not depend on their order: terms as whole numbers of a common unit, which is what lets thousands of
 * threads add by atomics and still give the same bits in every run.
 *
 * A group of at most n terms, the largest of magnitude `peak`, gets the unit 2^-shift such that n terms cannot exceed
 * 2^62: for 2^14 terms 48 bits below the peak are kept, twice as many as f32 has, and the sum is then exact, so that
 * the result is nearer to the truth than a sum of floats in any order. A second word, a unit of 2^-(shift + digits),
 * holds what the first rounded away; f64 needs it.
 *
 * A peak that is not finite has no unit; the sum is then NaN by the caller's hand.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#include "runtime/base/host_device.h"

enum { EL_EXACT_WORDS_MAX = 2, EL_EXACT_BITS = 62 };

/* Bits that a term may have so that n of them fit: 62 - ceil(log2 n). Whole numbers of any sign. */
EL_HOST_DEVICE static inline int el_exact_digits(int64_t n)
{
    int log2_n = 0;
    while (log2_n < EL_EXACT_BITS && ((int64_t)1 << log2_n) < n) log2_n++;
    return EL_EXACT_BITS - log2_n;
}

/* The first word's unit is 2^-shift. 0 < peak < infinity, or 0: then every term is 0 and any unit serves. */
EL_HOST_DEVICE static inline int el_exact_shift(double peak, int digits)
{
    int exponent;
    frexp(peak, &exponent); /* peak < 2^exponent */
    return digits - exponent;
}

/* Adds nothing: gives the whole numbers that stand for `term`, |term| <= peak. */
EL_HOST_DEVICE static inline void el_exact_split(double term, int shift, int digits, int64_t words[EL_EXACT_WORDS_MAX])
{
    double scaled = ldexp(term, shift), whole = rint(scaled);
    words[0] = (int64_t)whole;
    words[1] = (int64_t)rint(ldexp(scaled - whole, digits)); /* the difference is exact, and at most a half */
}

EL_HOST_DEVICE static inline double el_exact_value(int64_t first, int64_t second, int shift, int digits)
{
    return ldexp((double)first + ldexp((double)second, -digits), -shift);
}
