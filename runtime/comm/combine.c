/* Combines block by block, each block staying in the first-level cache however many arrays there are. Each loop is one
 * operation of its type, which nothing contracts or reorders, so the instruction set chosen by the loader does not
 * change a bit. An output may be an input at the same index: no iteration needs another's. */
#include "runtime/comm/combine.h"

#include <string.h>

#include "runtime/base/vector.h"

enum { BLOCK_BYTES = 4096 };

typedef void (*combine)(void *out, const void *a, const void *b, size_t n);
/* Into two places at once: an all-reduce of two members, whose lines then go through the registers only. */
typedef void (*combine_twice)(void *out, void *also, const void *a, const void *b, size_t n);

#define EL_DEFINE(name, type, expression)                                                                              \
    EL_VECTOR static void name(void *out, const void *a, const void *b, size_t n)                                      \
    {                                                                                                                  \
        type *o = out;                                                                                                 \
        const type *p = a, *q = b;                                                                                     \
        EL_INDEPENDENT                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type x = p[i], y = q[i];                                                                                   \
            o[i] = (type)(expression);                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    EL_VECTOR static void name##_twice(void *out, void *also, const void *a, const void *b, size_t n)                  \
    {                                                                                                                  \
        type *o = out, *o2 = also;                                                                                     \
        const type *p = a, *q = b;                                                                                     \
        EL_INDEPENDENT                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            type x = p[i], y = q[i];                                                                                   \
            o[i] = o2[i] = (type)(expression);                                                                         \
        }                                                                                                              \
    }
EL_DEFINE(add_f32, float, x + y)
EL_DEFINE(add_f64, double, x + y)
EL_DEFINE(add_i32, uint32_t, x + y)
EL_DEFINE(add_u8, uint8_t, x + y)
EL_DEFINE(multiply_f32, float, (x * y))
EL_DEFINE(multiply_f64, double, (x * y))
EL_DEFINE(multiply_i32, uint32_t, (x * y))
EL_DEFINE(multiply_u8, uint8_t, (x * y))
EL_DEFINE(least_f32, float, (x < y) | (x != x) ? x : y)
EL_DEFINE(least_f64, double, (x < y) | (x != x) ? x : y)
EL_DEFINE(least_i32, int32_t, (x < y) ? x : y)
EL_DEFINE(least_u8, uint8_t, (x < y) ? x : y)
EL_DEFINE(most_f32, float, (x > y) | (x != x) ? x : y)
EL_DEFINE(most_f64, double, (x > y) | (x != x) ? x : y)
EL_DEFINE(most_i32, int32_t, (x > y) ? x : y)
EL_DEFINE(most_u8, uint8_t, (x > y) ? x : y)
EL_DEFINE(and_i32, uint32_t, (x & y))
EL_DEFINE(and_u8, uint8_t, (x & y))
EL_DEFINE(or_i32, uint32_t, x | y)
EL_DEFINE(or_u8, uint8_t, x | y)
EL_DEFINE(xor_i32, uint32_t, x ^ y)
EL_DEFINE(xor_u8, uint8_t, x ^ y)
#undef EL_DEFINE

#define EL_ROW(name)                                                                                                   \
    {                                                                                                                  \
        name, name##_twice                                                                                             \
    }
static const struct {
    combine once;
    combine_twice twice;
} rows[EL_COMM_REDUCTION_COUNT][EL_DTYPE_COUNT] = {
    [EL_COMM_SUM] =
        {[EL_F32] = EL_ROW(add_f32), [EL_F64] = EL_ROW(add_f64), [EL_I32] = EL_ROW(add_i32), [EL_U8] = EL_ROW(add_u8)},
    [EL_COMM_PRODUCT] = {[EL_F32] = EL_ROW(multiply_f32),
                         [EL_F64] = EL_ROW(multiply_f64),
                         [EL_I32] = EL_ROW(multiply_i32),
                         [EL_U8] = EL_ROW(multiply_u8)},
    [EL_COMM_MIN] = {[EL_F32] = EL_ROW(least_f32),
                     [EL_F64] = EL_ROW(least_f64),
                     [EL_I32] = EL_ROW(least_i32),
                     [EL_U8] = EL_ROW(least_u8)},
    [EL_COMM_MAX] = {[EL_F32] = EL_ROW(most_f32),
                     [EL_F64] = EL_ROW(most_f64),
                     [EL_I32] = EL_ROW(most_i32),
                     [EL_U8] = EL_ROW(most_u8)},
    [EL_COMM_AVERAGE] =
        {[EL_F32] = EL_ROW(add_f32), [EL_F64] = EL_ROW(add_f64), [EL_I32] = EL_ROW(add_i32), [EL_U8] = EL_ROW(add_u8)},
    [EL_COMM_AND] = {[EL_I32] = EL_ROW(and_i32), [EL_U8] = EL_ROW(and_u8)},
    [EL_COMM_OR] = {[EL_I32] = EL_ROW(or_i32), [EL_U8] = EL_ROW(or_u8)},
    [EL_COMM_XOR] = {[EL_I32] = EL_ROW(xor_i32), [EL_U8] = EL_ROW(xor_u8)},
};
#undef EL_ROW

#define EL_DEFINE_DIVIDE(name, type)                                                                                   \
    EL_VECTOR static void name(void *data, int members, size_t n)                                                      \
    {                                                                                                                  \
        type *x = data, by = (type)members;                                                                            \
        for (size_t i = 0; i < n; i++) x[i] = (type)(x[i] / by);                                                       \
    }
EL_DEFINE_DIVIDE(divide_f32, float)
EL_DEFINE_DIVIDE(divide_f64, double)
EL_DEFINE_DIVIDE(divide_i32, int32_t)
#undef EL_DEFINE_DIVIDE

/* The number of members need not be one of these. */
static void divide_u8(void *data, int members, size_t n)
{
    uint8_t *x = data;
    for (size_t i = 0; i < n; i++) x[i] = (uint8_t)(x[i] / members);
}

static void divide(enum el_dtype dtype, void *data, int members, size_t n)
{
    static void (*const divisions[EL_DTYPE_COUNT])(void *, int, size_t) = {
        [EL_F32] = divide_f32, [EL_F64] = divide_f64, [EL_I32] = divide_i32, [EL_U8] = divide_u8};
    divisions[dtype](data, members, n);
}

void el_combine(enum el_comm_reduction reduction, enum el_dtype dtype, int members, void *const *outs, int n_outs,
                const void *const *ins, int n_ins, size_t count)
{
    _Alignas(64) char block[BLOCK_BYTES];
    size_t width = el_dtype_bytes(dtype), step = BLOCK_BYTES / width;
    combine row = rows[reduction][dtype].once;
    bool average = reduction == EL_COMM_AVERAGE && members > 0;
    if (n_ins == 2 && n_outs == 1 && !average) {
        row(outs[0], ins[0], ins[1], count);
        return;
    }
    if (n_ins == 2 && n_outs == 2 && !average) {
        rows[reduction][dtype].twice(outs[0], outs[1], ins[0], ins[1], count);
        return;
    }
    for (size_t i = 0; i < count; i += step) {
        size_t n = count - i < step ? count - i : step, at = i * width;
        if (n_ins == 1)
            memcpy(block, (const char *)ins[0] + at, n * width);
        else
            row(block, (const char *)ins[0] + at, (const char *)ins[1] + at, n);
        for (int k = 2; k < n_ins; k++) row(block, block, (const char *)ins[k] + at, n);
        if (average) divide(dtype, block, members, n);
        for (int k = 0; k < n_outs; k++) memcpy((char *)outs[k] + at, block, n * width);
    }
}
