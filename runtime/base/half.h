/* IEEE 754 binary16 (f16) and bfloat16 (bf16). Narrowing rounds to nearest even, overflows to infinity, passes through
 * subnormals to zero; NaN stays NaN and becomes quiet. A sum, product or quotient of halves computed in f32 and
 * narrowed is correctly rounded (Figueroa, When is double rounding innocuous?, 1995); for bf16 except subnormal
 * products and quotients. Branch-free, so that loops vectorize. */
#pragma once

#include <stdint.h>
#include <string.h>

#include "runtime/base/host_device.h"

EL_HOST_DEVICE static inline float el_f32_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

EL_HOST_DEVICE static inline uint32_t el_f32_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

EL_HOST_DEVICE static inline float el_f32_of_bf16(uint16_t half)
{
    return el_f32_of_bits((uint32_t)half << 16);
}

EL_HOST_DEVICE static inline uint16_t el_bf16_of_f32(float value)
{
    uint32_t bits = el_f32_bits(value), rounded = bits + 0x7fff + (bits >> 16 & 1);
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? bits >> 16 | 0x40 : rounded >> 16);
}

EL_HOST_DEVICE static inline float el_f32_of_f16(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, shifted = (uint32_t)(half & 0x7fff) << 13;
    uint32_t usual = shifted + (112U << 23), top = usual + (112U << 23); /* exponent bias; infinity and NaN */
    uint32_t small = el_f32_bits(el_f32_of_bits(shifted + (113U << 23)) - 0x1p-14F);
    uint32_t bits = shifted >= 0x1fU << 23 ? top : shifted < 1U << 23 ? small : usual;
    return el_f32_of_bits(sign | bits);
}

EL_HOST_DEVICE static inline uint16_t el_f16_of_f32(float value)
{
    uint32_t bits = el_f32_bits(value), size = bits & 0x7fffffff;
    uint32_t usual = (size - (112U << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t small = el_f32_bits(el_f32_of_bits(size) + 0.5F) - 0x3f000000; /* the addition rounds to 2^-24 */
    uint32_t large = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
    uint32_t half = size >= 143U << 23 ? large : size < 113U << 23 ? small : usual;
    return (uint16_t)((bits >> 16 & 0x8000) | half);
}
