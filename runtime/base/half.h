/* Numbers of 16 bits: half (IEEE 754 binary16, "f16") and bfloat16 (the upper half of an f32, "bf16"), as C has no type
 * for them. Widening is exact. Narrowing rounds to nearest, ties to even, beyond the largest number to infinity,
 * through subnormal numbers to zero; a NaN stays one and becomes quiet. A sum, product or quotient of two halves
 * computed in f32 and narrowed is the correctly rounded one, as f32 has more than twice their digits (Figueroa, When is
 * double rounding innocuous?, 1995); so it is of bfloat16 but for subnormal products and quotients. Without branches,
 * so that loops over them become vectors. Threads: any. */
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
    uint32_t usual = shifted + (112U << 23), top = usual + (112U << 23); /* the exponent's bias; of infinity and NaN */
    uint32_t small = el_f32_bits(el_f32_of_bits(shifted + (113U << 23)) - 0x1p-14F);
    uint32_t bits = shifted >= 0x1fU << 23 ? top : shifted < 1U << 23 ? small : usual;
    return el_f32_of_bits(sign | bits);
}

EL_HOST_DEVICE static inline uint16_t el_f16_of_f32(float value)
{
    uint32_t bits = el_f32_bits(value), size = bits & 0x7fffffff;
    uint32_t usual = (size - (112U << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    uint32_t small = el_f32_bits(el_f32_of_bits(size) + 0.5F) - 0x3f000000; /* the addition rounds to whole 2^-24 */
    uint32_t large = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
    uint32_t half = size >= 143U << 23 ? large : size < 113U << 23 ? small : usual;
    return (uint16_t)((bits >> 16 & 0x8000) | half);
}
