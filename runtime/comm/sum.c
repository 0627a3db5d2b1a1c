/* Sums block by block, each block staying in the first-level cache however many arrays there are. Only additions: they
 * are not contracted, so the instruction set chosen by the loader does not change a bit. */
#include "runtime/comm/sum.h"

#include <string.h>

#include "runtime/base/vector.h"

enum { BLOCK_BYTES = 4096 };

#define EL_DEFINE_ADD(name, type)                                                                                      \
    EL_VECTOR static void name(void *restrict out, const void *a, const void *b, size_t n)                             \
    {                                                                                                                  \
        type *restrict o = out;                                                                                        \
        const type *x = a, *y = b;                                                                                     \
        for (size_t i = 0; i < n; i++) o[i] = x[i] + y[i];                                                             \
    }
EL_DEFINE_ADD(add_f32, float)
EL_DEFINE_ADD(add_f64, double)
EL_DEFINE_ADD(add_i32, int32_t)
EL_DEFINE_ADD(add_u8, uint8_t)
#undef EL_DEFINE_ADD

#define EL_DEFINE_ADD_TO(name, type)                                                                                   \
    EL_VECTOR static void name(void *restrict sum, const void *a, size_t n)                                            \
    {                                                                                                                  \
        type *restrict s = sum;                                                                                        \
        const type *x = a;                                                                                             \
        for (size_t i = 0; i < n; i++) s[i] += x[i];                                                                   \
    }
EL_DEFINE_ADD_TO(add_to_f32, float)
EL_DEFINE_ADD_TO(add_to_f64, double)
EL_DEFINE_ADD_TO(add_to_i32, int32_t)
EL_DEFINE_ADD_TO(add_to_u8, uint8_t)
#undef EL_DEFINE_ADD_TO

static const struct {
    void (*add)(void *restrict out, const void *a, const void *b, size_t n);
    void (*add_to)(void *restrict sum, const void *a, size_t n);
} rows[EL_DTYPE_COUNT] = {
    [EL_F32] = {add_f32, add_to_f32},
    [EL_F64] = {add_f64, add_to_f64},
    [EL_I32] = {add_i32, add_to_i32},
    [EL_U8] = {add_u8, add_to_u8},
};

void el_sum(enum el_dtype dtype, void *const *outs, int n_outs, const void *const *ins, int n_ins, size_t count)
{
    _Alignas(64) char block[BLOCK_BYTES];
    size_t width = el_dtype_bytes(dtype), step = BLOCK_BYTES / width;
    for (size_t i = 0; i < count; i += step) {
        size_t n = count - i < step ? count - i : step, at = i * width;
        if (n_ins == 1)
            memcpy(block, (const char *)ins[0] + at, n * width);
        else
            rows[dtype].add(block, (const char *)ins[0] + at, (const char *)ins[1] + at, n);
        for (int k = 2; k < n_ins; k++) rows[dtype].add_to(block, (const char *)ins[k] + at, n);
        for (int k = 0; k < n_outs; k++) memcpy((char *)outs[k] + at, block, n * width);
    }
}
