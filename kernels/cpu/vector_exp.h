/* exp in f32 for vectorised loops: no branch, table or call. */
#pragma once

#include <stdint.h>
#include <string.h>

/* exp(x) within 2 ulp; 0 below -87, exp(88) above 88, NaN of NaN.
 * x = n ln 2 + r with |r| <= ln 2 / 2; the polynomial of exp(r) and the two parts of ln 2 are Cephes' (expf.c). Adding
 * 1.5 * 2^23 rounds to an integer in the sum's low bits; shifted up, they are 2^n's exponent. */
static inline __attribute__((always_inline)) float el_vector_exp(float x)
{
    const float shift = 12582912, bound = x > 88 ? 88 : x, sum = bound * 1.44269504F + shift, n = sum - shift;
    const float r = bound - n * 0.693359375F - n * -2.12194440e-4F;
    const float head = ((1.9875691500e-4F * r + 1.3981999507e-3F) * r + 8.3334519073e-3F) * r + 4.1665795894e-2F;
    const float tail = (head * r + 1.6666665459e-1F) * r + 5.0000001201e-1F;
    float power;
    uint32_t bits;
    memcpy(&bits, &sum, sizeof bits);
    bits = (bits << 23) + 0x3f800000U;
    memcpy(&power, &bits, sizeof power);
    return x < -87 ? 0 : (tail * (r * r) + r + 1) * power;
}
