/* Numbers as safetensors has them, to doubles and back. */
#include "runtime/data/stored_types.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "runtime/data/safetensors.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they lie in the file: little-endian");

/* A type that C has. */
#define PLAIN(suffix, type)                                                                                            \
    static void to_##suffix(const char *bytes, size_t n, double *values)                                               \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type value;                                                                                                \
            memcpy(&value, bytes + i * sizeof value, sizeof value);                                                    \
            values[i] = (double)value;                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void from_##suffix(const double *values, size_t n, char *bytes)                                             \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type value = (type)values[i];                                                                              \
            memcpy(bytes + i * sizeof value, &value, sizeof value);                                                    \
        }                                                                                                              \
    }

PLAIN(f64, double)
PLAIN(f32, float)
PLAIN(i64, int64_t)

/* The upper half of an f32. */
static void to_bf16(const char *bytes, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        float value;
        memcpy(&half, bytes + i * sizeof half, sizeof half);
        uint32_t whole = (uint32_t)half << 16;
        memcpy(&value, &whole, sizeof value);
        values[i] = value;
    }
}

/* IEEE's binary16: a sign, 5 bits of exponent, 10 of fraction. */
static double half_value(uint16_t half)
{
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                   : exponent     ? ldexp(1024 + fraction, exponent - 25)
                                  : ldexp(fraction, -24);
    return half >> 15 ? -value : value;
}

static void to_f16(const char *bytes, size_t n, double *values)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, bytes + i * sizeof half, sizeof half);
        values[i] = half_value(half);
    }
}

const struct el_stored_kind el_stored_types[EL_STORED_TYPES] = {
    [EL_STORED_F64] = {"F64", 8, to_f64, from_f64}, [EL_STORED_F32] = {"F32", 4, to_f32, from_f32},
    [EL_STORED_F16] = {"F16", 2, to_f16, NULL},     [EL_STORED_BF16] = {"BF16", 2, to_bf16, NULL},
    [EL_STORED_I64] = {"I64", 8, to_i64, from_i64},
};
