/* Combines block by block; a block stays in the L1 cache for any number of arrays. Each loop is one operation that the
 * compiler cannot contract or reorder, so the instruction set chosen at load time does not change a bit. */
#include "runtime/comm/combine.h"

#include <string.h>

#include "runtime/base/half.h"
#include "runtime/base/vector.h"

enum { BLOCK_BYTES = 4096 };

typedef void (*combine)(void *out, const void *a, const void *b, size_t n);
/* Writes two outputs at once: an all-reduce of two members loads each line once. */
typedef void (*combine_twice)(void *out, void *also, const void *a, const void *b, size_t n);

/* `wide`: the type of the arithmetic, between `load` and `store`. */
#define EL_DEFINE(name, type, wide, load, store, expression)                                                           \
    EL_VECTOR static void name(void *out, const void *a, const void *b, size_t n)                                      \
    {                                                                                                                  \
        type *o = out;                                                                                                 \
        const type *p = a, *q = b;                                                                                     \
        EL_INDEPENDENT                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            wide x = load(p[i]), y = load(q[i]);                                                                       \
            o[i] = store(expression);                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    EL_VECTOR static void name##_twice(void *out, void *also, const void *a, const void *b, size_t n)                  \
    {                                                                                                                  \
        type *o = out, *o2 = also;                                                                                     \
        const type *p = a, *q = b;                                                                                     \
        EL_INDEPENDENT                                                                                                 \
        for (size_t i = 0; i < n; i++) {                                                                               \
            wide x = load(p[i]), y = load(q[i]);                                                                       \
            o[i] = o2[i] = store(expression);                                                                          \
        }                                                                                                              \
    }
#define EL_DEFINE_FLOATS(suffix, type, wide, load, store)                                                              \
    EL_DEFINE(add_##suffix, type, wide, load, store, x + y)                                                            \
    EL_DEFINE(multiply_##suffix, type, wide, load, store, (x * y))                                                     \
    EL_DEFINE(least_##suffix, type, wide, load, store, (x < y) | (x != x) ? x : y)                                     \
    EL_DEFINE(most_##suffix, type, wide, load, store, (x > y) | (x != x) ? x : y)                                      \
    EL_DEFINE_DIVIDE(divide_##suffix, type, wide, load, store)
#define EL_DEFINE_INTEGERS(suffix, type, bits)                                                                         \
    EL_DEFINE(add_##suffix, bits, bits, , (bits), x + y)                                                               \
    EL_DEFINE(multiply_##suffix, bits, bits, , (bits), (x * y))                                                        \
    EL_DEFINE(least_##suffix, type, type, , (type), (x < y) ? x : y)                                                   \
    EL_DEFINE(most_##suffix, type, type, , (type), (x > y) ? x : y)                                                    \
    EL_DEFINE(and_##suffix, bits, bits, , (bits), (x & y))                                                             \
    EL_DEFINE(or_##suffix, bits, bits, , (bits), x | y)                                                                \
    EL_DEFINE(xor_##suffix, bits, bits, , (bits), x ^ y)
#define EL_DEFINE_DIVIDE(name, type, wide, load, store)                                                                \
    EL_VECTOR static void name(void *data, int members, size_t n)                                                      \
    {                                                                                                                  \
        type *x = data;                                                                                                \
        wide by = (wide)members;                                                                                       \
        for (size_t i = 0; i < n; i++) x[i] = store(load(x[i]) / by);                                                  \
    }
EL_DEFINE_FLOATS(f32, float, float, , (float))
EL_DEFINE_FLOATS(f64, double, double, , (double))
EL_DEFINE_FLOATS(f16, uint16_t, float, el_f32_of_f16, el_f16_of_f32)
EL_DEFINE_FLOATS(bf16, uint16_t, float, el_f32_of_bf16, el_bf16_of_f32)
EL_DEFINE_INTEGERS(i32, int32_t, uint32_t)
EL_DEFINE_INTEGERS(u8, uint8_t, uint8_t)
EL_DEFINE_DIVIDE(divide_i32, int32_t, int32_t, , (int32_t))
#undef EL_DEFINE_DIVIDE
#undef EL_DEFINE_INTEGERS
#undef EL_DEFINE_FLOATS
#undef EL_DEFINE

#define EL_ROW(name)                                                                                                   \
    {                                                                                                                  \
        name, name##_twice                                                                                             \
    }
#define EL_INTEGERS(name) [EL_I32] = EL_ROW(name##_i32), [EL_U8] = EL_ROW(name##_u8)
#define EL_ALL(name)                                                                                                   \
    [EL_F32] = EL_ROW(name##_f32), [EL_F64] = EL_ROW(name##_f64), [EL_F16] = EL_ROW(name##_f16),                       \
    [EL_BF16] = EL_ROW(name##_bf16), EL_INTEGERS(name)
static const struct {
    combine once;
    combine_twice twice;
} rows[EL_COMM_REDUCTION_COUNT][EL_DTYPE_COUNT] = {
    [EL_COMM_SUM] = {EL_ALL(add)},    [EL_COMM_PRODUCT] = {EL_ALL(multiply)}, [EL_COMM_MIN] = {EL_ALL(least)},
    [EL_COMM_MAX] = {EL_ALL(most)},   [EL_COMM_AVERAGE] = {EL_ALL(add)},      [EL_COMM_AND] = {EL_INTEGERS(and)},
    [EL_COMM_OR] = {EL_INTEGERS(or)}, [EL_COMM_XOR] = {EL_INTEGERS(xor)},
};
#undef EL_ALL
#undef EL_INTEGERS
#undef EL_ROW

static void divide_u8(void *data, int members, size_t n)
{
    uint8_t *x = data;
    for (size_t i = 0; i < n; i++) x[i] = (uint8_t)(x[i] / members);
}

static void divide(enum el_dtype dtype, void *data, int members, size_t n)
{
    static void (*const divisions[EL_DTYPE_COUNT])(void *, int, size_t) = {
        [EL_F32] = divide_f32, [EL_F64] = divide_f64, [EL_I32] = divide_i32,
        [EL_U8] = divide_u8,   [EL_F16] = divide_f16, [EL_BF16] = divide_bf16};
    divisions[dtype](data, members, n);
}

#define EL_DEFINE_WIDE(suffix, load, store)                                                                            \
    EL_VECTOR static void add_wide_##suffix(const uint16_t *x, size_t n, bool first, float *sum)                       \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) sum[i] = first ? load(x[i]) : sum[i] + load(x[i]);                              \
    }                                                                                                                  \
    EL_VECTOR static void round_##suffix(const float *sum, size_t n, uint16_t *x)                                      \
    {                                                                                                                  \
        for (size_t i = 0; i < n; i++) x[i] = store(sum[i]);                                                           \
    }
EL_DEFINE_WIDE(f16, el_f32_of_f16, el_f16_of_f32)
EL_DEFINE_WIDE(bf16, el_f32_of_bf16, el_bf16_of_f32)
#undef EL_DEFINE_WIDE

/* The sum of `ins` at `at`, n halves: in f32, rounded once into `block`. */
static void sum_halves(enum el_dtype dtype, int divided_by, const void *const *ins, int n_ins, size_t at, size_t n,
                       void *block)
{
    float sum[BLOCK_BYTES / sizeof(uint16_t)];
    for (int k = 0; k < n_ins; k++)
        (dtype == EL_F16 ? add_wide_f16 : add_wide_bf16)((const uint16_t *)ins[k] + at, n, k == 0, sum);
    if (divided_by) divide_f32(sum, divided_by, n);
    (dtype == EL_F16 ? round_f16 : round_bf16)(sum, n, block);
}

void el_combine(enum el_comm_reduction reduction, enum el_dtype dtype, int members, void *const *outs, int n_outs,
                const void *const *ins, int n_ins, size_t count)
{
    _Alignas(64) char block[BLOCK_BYTES];
    size_t width = el_dtype_bytes(dtype), step = BLOCK_BYTES / width;
    combine row = rows[reduction][dtype].once;
    bool average = reduction == EL_COMM_AVERAGE && members > 0;
    bool sums_halves =
        (dtype == EL_F16 || dtype == EL_BF16) && (reduction == EL_COMM_SUM || reduction == EL_COMM_AVERAGE);
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
        if (sums_halves)
            sum_halves(dtype, average ? members : 0, ins, n_ins, i, n, block);
        else if (n_ins == 1)
            memcpy(block, (const char *)ins[0] + at, n * width);
        else
            row(block, (const char *)ins[0] + at, (const char *)ins[1] + at, n);
        for (int k = 2; k < n_ins && !sums_halves; k++) row(block, block, (const char *)ins[k] + at, n);
        if (average && !sums_halves) divide(dtype, block, members, n);
        for (int k = 0; k < n_outs; k++) memcpy((char *)outs[k] + at, block, n * width);
    }
}
